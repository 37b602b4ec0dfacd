"""The header reader against the format's own implementation."""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from safetensors import SafetensorError, safe_open
from safetensors.torch import save_file

from atem.errors import CheckpointError, UnsafeCheckpoint
from atem.runtime.layouts.folder import tensors_of
from atem.runtime.layouts.header import BITS
from atem.runtime.layouts.mapped import Mapped
from atem.runtime.layouts.source import NUMPY

if TYPE_CHECKING:
    from pathlib import Path

    from atem.runtime.layouts.source import StoredTensor

TORCH = {
    "BOOL": torch.bool, "U8": torch.uint8, "I8": torch.int8, "U16": torch.uint16,
    "I16": torch.int16, "U32": torch.uint32, "I32": torch.int32, "U64": torch.uint64,
    "I64": torch.int64, "F8_E4M3": torch.float8_e4m3fn, "F8_E5M2": torch.float8_e5m2,
    "F8_E8M0": torch.float8_e8m0fnu, "F16": torch.float16, "BF16": torch.bfloat16,
    "F32": torch.float32, "F64": torch.float64,
}  # fmt: skip
"""The format's dtypes, but for the sub-byte F4."""


def file_of(header: object, data: bytes = b"", length: int | None = None) -> bytes:
    text = header if isinstance(header, bytes) else json.dumps(header).encode()
    return (len(text) if length is None else length).to_bytes(8, "little") + text + data


def tensor(start: int, stop: int, shape: list, dtype: str = "U8") -> dict:
    return {"dtype": dtype, "shape": shape, "data_offsets": [start, stop]}


def written(path: Path, content: bytes) -> Path:
    path.write_bytes(content)
    return path


def tensors(path: Path) -> list[StoredTensor]:
    return list(tensors_of(Mapped(path)))


def oracle_opens(path: Path) -> bool:
    try:
        with safe_open(path, "pt"):
            return True
    except SafetensorError:
        return False


def test_every_dtype_of_the_table_has_an_oracle():
    assert set(BITS) - {"F4"} == set(TORCH) == set(NUMPY)


@pytest.mark.parametrize("dtype", sorted(TORCH))
def test_a_dtype_is_mapped_bit_for_bit(tmp_path, dtype):
    random = np.random.default_rng(0).integers(0, 2 if dtype == "BOOL" else 256, 3 * 16, np.uint8)
    values = torch.from_numpy(random).view(TORCH[dtype]).reshape(3, -1)
    path = tmp_path / "model.safetensors"
    save_file({"odd": torch.ones(1, dtype=torch.uint8), "x": values}, path)
    found = {stored.name: stored for stored in tensors(path)}["x"]
    assert (found.dtype, found.shape, found.nbytes) == (dtype, tuple(values.shape), 48)
    assert found.array().tobytes() == random.tobytes()
    assert found.array().dtype.itemsize * 8 == BITS[dtype]


def test_four_bit_floats_are_given_as_bytes(tmp_path):
    data = file_of({"x": tensor(0, 4, [2, 4], "F4")}, b"\x12\x34\x56\x78")
    (found,) = tensors(written(tmp_path / "x", data))
    assert found.shape == (2, 4)
    assert found.array().tolist() == [[0x12, 0x34], [0x56, 0x78]]


@pytest.mark.parametrize("padding", range(8))
def test_data_may_begin_at_any_byte(tmp_path, padding):
    values = np.arange(6, dtype=np.float32)
    header = json.dumps({"x": tensor(0, 24, [2, 3], "F32")}).encode() + b" " * padding
    (found,) = tensors(written(tmp_path / "x", file_of(header, values.tobytes())))
    np.testing.assert_array_equal(found.array(), values.reshape(2, 3))


def test_a_tensor_without_values_is_mapped(tmp_path):
    (found,) = tensors(written(tmp_path / "x", file_of({"x": tensor(0, 0, [0, 3], "F32")})))
    assert found.array().shape == (0, 3)


def test_nothing_is_read_after_close(tmp_path):
    found = Mapped(written(tmp_path / "x", file_of({"x": tensor(0, 1, [1])}, b"a")))
    (stored,) = tensors_of(found)
    view = stored.array()
    found.close()
    found.close()
    assert view.tolist() == [97]
    with pytest.raises(CheckpointError, match="closed"):
        stored.array()


REFUSED = {
    "nothing": b"",
    "a cut length": b"\x02\0\0",
    "a length past the end": file_of({}, length=3),
    "a length of 2^63": file_of({}, length=1 << 63),
    "an empty header": file_of(b""),
    "no JSON": file_of(b"{]"),
    "no object": file_of([]),
    "another encoding": file_of("{}".encode("utf-16-le")),
    "a cut tensor": file_of({"x": tensor(0, 4, [4])}, b"abc"),
    "bytes after the end": file_of({"x": tensor(0, 4, [4])}, b"abcde"),
    "an overlap": file_of({"x": tensor(0, 4, [4]), "y": tensor(2, 6, [4])}, b"abcdef"),
    "the same bytes twice": file_of({"x": tensor(0, 4, [4]), "y": tensor(0, 4, [4])}, b"abcd"),
    "a hole": file_of({"x": tensor(0, 2, [2]), "y": tensor(4, 6, [2])}, b"abcdef"),
    "a hole at the begin": file_of({"x": tensor(2, 4, [2])}, b"abcd"),
    "offsets that go back": file_of({"x": tensor(4, 0, [4])}, b"abcd"),
    "a shape of more bytes": file_of({"x": tensor(0, 4, [5])}, b"abcd"),
    "a shape of fewer bytes": file_of({"x": tensor(0, 4, [1], "U16")}, b"abcd"),
    "a product that overflows": file_of({"x": tensor(0, 0, [1 << 32, 1 << 32])}),
    "a product that overflows to the size": file_of(
        {"x": tensor(0, 4, [(1 << 62) + 1, 4])}, b"abcd"
    ),
    "a negative length": file_of({"x": tensor(0, 4, [-4])}, b"abcd"),
    "negative offsets": file_of({"x": tensor(-4, 0, [4])}, b"abcd"),
    "a fraction": file_of({"x": tensor(0, 4, [4.0])}, b"abcd"),
    "a fraction as offset": file_of({"x": tensor(0, 4.0, [4])}, b"abcd"),
    "a truth as length": file_of({"x": tensor(0, 1, [True])}, b"a"),
    "a number in exponents": file_of(b'{"x":{"dtype":"U8","shape":[1e1],"data_offsets":[0,10]}}', b"0" * 10),
    "not a number": file_of(b'{"x":{"dtype":"U8","shape":[NaN],"data_offsets":[0,0]}}'),
    "an unknown dtype": file_of({"x": tensor(0, 4, [4], "U9")}, b"abcd"),
    "a dtype that is no text": file_of({"x": {"dtype": ["U8"], "shape": [1], "data_offsets": [0, 1]}}, b"a"),
    "a field too few": file_of({"x": {"dtype": "U8", "shape": [0]}}),
    "one offset": file_of({"x": {"dtype": "U8", "shape": [0], "data_offsets": [0]}}),
    "a tensor that is a list": file_of({"x": []}),
    "half a byte": file_of({"x": tensor(0, 1, [1], "F4")}, b"a"),
}  # fmt: skip
"""What the format's own implementation refuses too."""


@pytest.mark.parametrize("kind", sorted(REFUSED))
def test_a_header_that_lies_is_unsafe(tmp_path, kind):
    path = tmp_path / "model.safetensors"
    with pytest.raises(UnsafeCheckpoint, match=re.escape(str(path))):
        tensors(written(path, REFUSED[kind]))
    assert not oracle_opens(path)


STRICTER = {
    "a name twice": file_of(
        b'{"x":{"dtype":"U8","shape":[2],"data_offsets":[0,2]},'
        b'"x":{"dtype":"U8","shape":[2],"data_offsets":[0,2]}}',
        b"ab",
    ),
    "a field twice": file_of(
        b'{"x":{"dtype":"I8","dtype":"U8","shape":[2],"data_offsets":[0,2]}}', b"ab"
    ),
    "a name that a terminal obeys": file_of({"\x1b[2J": tensor(0, 1, [1])}, b"a"),
    "a name without letters": file_of({"": tensor(0, 1, [1])}, b"a"),
    "nine axes": file_of({"x": tensor(0, 1, [1] * 9)}, b"a"),
}


@pytest.mark.parametrize("kind", sorted(STRICTER))
def test_a_header_that_invites_two_readings_is_unsafe(tmp_path, kind):
    with pytest.raises(UnsafeCheckpoint):
        tensors(written(tmp_path / "model.safetensors", STRICTER[kind]))


@given(
    st.dictionaries(
        st.text("abc.", min_size=1, max_size=6),
        st.tuples(st.sampled_from(sorted(TORCH)), st.lists(st.integers(0, 4), max_size=3)),
        max_size=5,
    )
)
def test_what_the_format_writes_is_read(tmp_path_factory, wanted):
    path = tmp_path_factory.mktemp("any") / "model.safetensors"
    save_file(
        {n: torch.zeros(shape).to(TORCH[dtype]) for n, (dtype, shape) in wanted.items()}, path
    )
    found = {stored.name: (stored.dtype, list(stored.shape)) for stored in tensors(path)}
    assert found == wanted
