"""Codecs of quantised matrices: values as the formats define them, rows alone, refusals."""

from __future__ import annotations

from pathlib import Path

import ml_dtypes
import mlx.core as mx
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from atem.errors import TensorError
from atem.runtime.layouts.codecs import blocks
from atem.runtime.layouts.codecs.affine import BITS, GROUPS, affine
from atem.runtime.layouts.codecs.blocks import factor
from atem.runtime.layouts.codecs.floats import E2M1, from_e4m3, from_e8m0
from atem.runtime.layouts.codecs.fp4 import mxfp4, nvfp4
from atem.runtime.layouts.codecs.fp8 import fp8, mxfp8
from atem.runtime.layouts.codecs.packing import nibbles, unpack
from atem.runtime.layouts.source import NUMPY, StoredTensor
from tests.runtime.layouts import quant_writers as writers

NAMES = {np.dtype(kind): name for name, kind in NUMPY.items()}
SHAPE = (5, 384)  # three groups of 128; rows are no round number


def stored(name, array, dtype=None):
    array = np.asarray(array)
    kind = dtype or NAMES[array.dtype]
    return StoredTensor(name, kind, array.shape, array.nbytes, Path("file"), lambda: array)


def tensors(parts):
    return {end.lstrip("."): stored("m" + end, array) for end, array in parts.stored.items()}


def weight(shape=SHAPE, seed=0):
    return np.random.default_rng(seed).standard_normal(shape).astype(np.float32)


def compressed_codec(t):
    whole = factor(t["weight_global_scale"], "divide")
    return nvfp4(t["weight_packed"], t["weight_scale"], whole)


CODECS = {
    "compressed nvfp4": (writers.compressed_nvfp4, compressed_codec, "NVFP4"),
    "modelopt nvfp4": (
        writers.modelopt_nvfp4,
        lambda t: nvfp4(t["weight"], t["weight_scale"], factor(t["weight_scale_2"])),
        "NVFP4",
    ),
    "mxfp4": (writers.mxfp4, lambda t: mxfp4(t["weight"], t["weight_scale"]), "MXFP4"),
    "mxfp8": (writers.mxfp8, lambda t: mxfp8(t["weight"], t["weight_scale"]), "MXFP8"),
    "fp8": (writers.fp8, lambda t: fp8(t["weight"], t["weight_scale"]), "FP8"),
    "mlx affine": (
        writers.mlx,
        lambda t: affine(t["weight"], t["scales"], t["biases"], bits=4, group=32),
        "MLX4",
    ),
}


def made(kind, shape=SHAPE, **changes):
    """The codec of a kind, its stored tensors, and the values it must give."""
    write, codec, _ = CODECS[kind]
    parts = write(weight(shape))
    found = tensors(parts) | changes
    return codec(found), found, parts.values


class TestTables:
    def test_e2m1_is_its_definition_and_what_ml_dtypes_has(self):
        theirs = np.arange(16, dtype=np.uint8).view(np.uint8).astype(np.uint8)
        theirs = theirs.view(ml_dtypes.float4_e2m1fn).astype(np.float32)
        assert list(E2M1) == [writers.e2m1(code) for code in range(16)] == theirs.tolist()

    def test_e4m3_is_its_definition(self):
        ours = from_e4m3(np.arange(256, dtype=np.uint8))
        np.testing.assert_array_equal(ours, [writers.e4m3(code) for code in range(256)])
        assert np.signbit(ours[0x80])

    def test_e8m0_is_its_definition(self):
        ours = from_e8m0(np.arange(256, dtype=np.uint8))
        np.testing.assert_array_equal(ours, [writers.e8m0(code) for code in range(256)])


class TestPacking:
    @given(st.sampled_from(BITS), st.binary(min_size=120, max_size=120))
    def test_codes_follow_one_another_from_the_lowest_bit(self, bits, data):
        row = np.frombuffer(data, np.uint8)
        assert unpack(row, bits).tolist() == writers.codes_of(data, bits)

    @given(st.binary(min_size=1, max_size=32))
    def test_the_low_nibble_is_the_even_index(self, data):
        found = nibbles(np.frombuffer(data, np.uint8), range(16))
        assert found.tolist() == [nibble for byte in data for nibble in (byte & 15, byte >> 4)]


@pytest.mark.parametrize("kind", CODECS)
class TestEveryFormat:
    def test_values_are_what_the_format_defines(self, kind):
        codec, _, values = made(kind)
        np.testing.assert_array_equal(codec.read(), values)
        assert codec.read().dtype == np.float32
        assert codec.encoding == CODECS[kind][2]

    def test_rows_alone_are_the_rows_of_the_whole(self, kind):
        codec, _, values = made(kind)
        np.testing.assert_array_equal(codec.read([4, 0, 4]), values[[4, 0, 4]])
        np.testing.assert_array_equal(codec.read(slice(1, None, 2)), values[1::2])
        assert codec.read([]).shape == (0, SHAPE[1])

    def test_pieces_are_seamless(self, kind, monkeypatch):
        monkeypatch.setattr(blocks, "PIECE", 2 * SHAPE[1])
        codec, _, values = made(kind)
        np.testing.assert_array_equal(codec.read(), values)

    def test_nothing_is_looked_at_before_it_is_read(self, kind):
        found = tensors(CODECS[kind][0](weight()))
        closed = {
            part: StoredTensor(
                t.name, t.dtype, t.shape, t.nbytes, t.file, lambda: pytest.fail("read")
            )
            for part, t in found.items()
        }
        codec = CODECS[kind][1](closed)
        assert codec.stored_bytes == sum(
            found[name.removeprefix("m.")].nbytes for name in codec.parts
        )

    def test_scales_that_do_not_fit_are_refused_with_what_was_got_and_expected(self, kind):
        codec, found, _ = made(kind)
        for name in codec.parts[1:]:
            end = name.removeprefix("m.")
            scales = found[end].array()
            longer = stored(name, np.concatenate([np.atleast_1d(scales)] * 2, axis=-1))
            with pytest.raises(TensorError, match=rf"{name}: got shape \[.*expected \["):
                CODECS[kind][1](found | {end: longer})

    def test_parts_of_another_type_are_refused(self, kind):
        _, found, _ = made(kind)
        for part in CODECS[kind][1](found).parts:
            end = part.removeprefix("m.")
            other = stored(part, found[end].array().astype(np.float64))
            with pytest.raises(TensorError, match=rf"{part}: got type F64, expected"):
                CODECS[kind][1](found | {end: other})


class TestAffine:
    @pytest.mark.parametrize("dtype", [mx.float32, mx.float16, mx.bfloat16])
    @pytest.mark.parametrize("group", GROUPS)
    @pytest.mark.parametrize("bits", BITS)
    def test_equals_mlx_to_the_bit_in_float32(self, bits, group, dtype):
        parts = writers.mlx(weight(), group=group, bits=bits, dtype=dtype)
        found = tensors(parts)
        codec = affine(found["weight"], found["scales"], found["biases"], bits=bits, group=group)
        np.testing.assert_array_equal(codec.read(), parts.values)
        assert codec.encoding == f"MLX{bits}"

    def test_a_hand_made_group(self):
        words = np.array([[0x76543210, 0xFEDCBA98, 0, 0xFFFFFFFF]], np.uint32)
        found = (
            stored("w", words),
            stored("s", np.float32([[0.5]])),
            stored("b", np.float32([[-1]])),
        )
        values = affine(*found, bits=4, group=32).read()[0]
        assert values.tolist() == [code / 2 - 1 for code in [*range(16), *[0] * 8, *[15] * 8]]

    def test_scales_below_zero_are_a_part_of_the_format(self):
        found = stored("w", np.full((1, 4), 0x11111111, np.uint32))
        numbers = stored("s", np.float32([[-2]])), stored("b", np.float32([[0.5]]))
        assert set(affine(found, *numbers, bits=4, group=32).read()[0]) == {-1.5}

    @pytest.mark.parametrize("part", ["scales", "biases"])
    @pytest.mark.parametrize("number", [np.nan, np.inf, -np.inf])
    def test_a_number_that_is_not_finite_is_refused_with_its_place(self, part, number):
        parts = writers.mlx(weight())
        parts.stored[f".{part}"] = parts.stored[f".{part}"].copy()
        parts.stored[f".{part}"][3, 1] = number
        found = tensors(parts)
        codec = affine(found["weight"], found["scales"], found["biases"], bits=4, group=32)
        codec.read([0, 1, 2, 4])
        with pytest.raises(TensorError, match=rf"m\.{part}: row 3, group 1"):
            codec.read()


@pytest.mark.parametrize(
    ("mode", "group", "bits", "codec"),
    [("nvfp4", 16, 4, nvfp4), ("mxfp4", 32, 4, mxfp4), ("mxfp8", 32, 8, mxfp8)],
)
def test_mlx_own_float_modes_equal_mlx(mode, group, bits, codec):
    parts = writers.mlx(weight(), group=group, bits=bits, mode=mode)
    found = tensors(parts)
    np.testing.assert_array_equal(codec(found["weight"], found["scales"]).read(), parts.values)


class TestDamage:
    @pytest.mark.parametrize("number", [0.0, -1.0, np.nan, np.inf])
    @pytest.mark.parametrize(
        ("kind", "part"),
        [
            ("compressed nvfp4", "weight_global_scale"),
            ("modelopt nvfp4", "weight_scale_2"),
            ("fp8", "weight_scale"),
        ],
    )
    def test_a_scale_of_the_tensor_that_is_not_positive_is_refused(self, kind, part, number):
        codec, _, _ = made(kind, **{part: stored(f"m.{part}", np.float32([number]))})
        with pytest.raises(TensorError, match=rf"m\.{part}: the scale of the whole tensor is"):
            codec.read([0])

    @pytest.mark.parametrize(
        ("kind", "code"),
        [
            ("mxfp4", 0xFF),
            ("mxfp8", 0xFF),
            ("compressed nvfp4", 0x7F),
            ("modelopt nvfp4", 0xFF),
            ("modelopt nvfp4", 0x81),  # below zero
        ],
    )
    def test_a_block_scale_that_is_no_scale_is_refused_with_its_place(self, kind, code):
        _, found, _ = made(kind)
        scales = found["weight_scale"].array().copy()
        scales.view(np.uint8)[2, 1] = code
        codec, _, _ = made(kind, weight_scale=stored("m.weight_scale", scales))
        with pytest.raises(TensorError, match=r"m\.weight_scale: row 2, group 1"):
            codec.read()

    def test_a_block_scale_of_zero_makes_a_block_of_zeros(self):
        _, found, _ = made("modelopt nvfp4")
        scales = found["weight_scale"].array().copy()
        scales.view(np.uint8)[2, 1] = 0
        codec, _, _ = made("modelopt nvfp4", weight_scale=stored("m.weight_scale", scales))
        assert not codec.read()[2, 16:32].any()

    @pytest.mark.parametrize("kind", ["fp8", "mxfp8"])
    def test_a_weight_that_is_not_a_number_is_refused_with_its_place(self, kind):
        _, found, _ = made(kind)
        codes = found["weight"].array().copy()
        codes.view(np.uint8)[1, 7] = 0x7F
        codec, _, _ = made(kind, weight=stored("m.weight", codes))
        with pytest.raises(TensorError, match=r"m\.weight: row 1, column 7 is nan"):
            codec.read()

    def test_a_product_beyond_float32_is_refused(self):
        huge = np.full((SHAPE[0], SHAPE[1] // 32), 254, np.uint8)
        codec, _, _ = made("mxfp8", weight_scale=stored("m.weight_scale", huge))
        with pytest.raises(TensorError, match=r"m\.weight: .*inf"):
            codec.read()

    @pytest.mark.parametrize("inputs", [0, 40, 36])
    def test_inputs_that_fill_no_whole_group_are_refused(self, inputs):
        codes = stored("m.weight", np.zeros((5, inputs // 2), np.uint8))
        scales = stored("m.weight_scale", np.zeros((5, 2), np.uint8))
        with pytest.raises(TensorError, match=rf"m\.weight\w*: a row of {inputs} can't be cut"):
            mxfp4(codes, scales)
