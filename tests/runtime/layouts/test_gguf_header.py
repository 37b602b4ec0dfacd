"""The GGUF header walker against gguf's own writer and reader."""

from __future__ import annotations

import string
import struct
import time
from typing import TYPE_CHECKING, Any

import gguf
import numpy as np
import pytest
from gguf import GGUFValueType as Kind
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from atem.errors import LayoutError, MissingExtra, TensorError
from atem.runtime.layouts.gguf_file import read_header
from tests.runtime.layouts.gguf_writer import RawGGUF, text

if TYPE_CHECKING:
    from pathlib import Path

INTEGERS = {
    Kind.UINT8: (0, 2**8 - 1), Kind.INT8: (-(2**7), 2**7 - 1),
    Kind.UINT16: (0, 2**16 - 1), Kind.INT16: (-(2**15), 2**15 - 1),
    Kind.UINT32: (0, 2**32 - 1), Kind.INT32: (-(2**31), 2**31 - 1),
    Kind.UINT64: (0, 2**64 - 1), Kind.INT64: (-(2**63), 2**63 - 1),
}  # fmt: skip
TEXTS = st.text(st.characters(exclude_categories=["Cs"]), max_size=20)
SCALARS: dict[Kind, st.SearchStrategy[Any]] = {
    **{kind: st.integers(*bounds) for kind, bounds in INTEGERS.items()},
    Kind.FLOAT32: st.floats(width=32, allow_nan=False),
    Kind.FLOAT64: st.floats(allow_nan=False),
    Kind.BOOL: st.booleans(),
    Kind.STRING: TEXTS,
}
FIELDS = st.sampled_from(list(SCALARS)).flatmap(
    lambda kind: st.one_of(
        st.tuples(st.just(kind), st.none(), SCALARS[kind]),
        st.tuples(
            st.just(Kind.ARRAY), st.just(kind), st.lists(SCALARS[kind], min_size=1, max_size=9)
        ),
    )
)
NAMES = st.text(string.ascii_lowercase + "._", min_size=1, max_size=12)


def write(
    path: Path,
    metadata: dict[str, tuple[Kind, Kind | None, Any]],
    tensors: dict[str, np.ndarray],
    alignment: int | None = None,
) -> bytes:
    writer = gguf.GGUFWriter(path, "anything")
    if alignment is not None:
        writer.add_custom_alignment(alignment)
    for key, (kind, inner, value) in metadata.items():
        writer.add_key_value("x." + key, value, kind, inner)
    for name, values in tensors.items():
        writer.add_tensor(name, values)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    return path.read_bytes()


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=60)
@given(metadata=st.dictionaries(NAMES, FIELDS, max_size=6))
def test_every_value_is_what_gguf_reads(tmp_path: Path, metadata: dict[str, Any]) -> None:
    path = tmp_path / "values.gguf"
    found = read_header(write(path, metadata, {}), "values.gguf").metadata
    fields = gguf.GGUFReader(path).fields
    assert found == {k: f.contents() for k, f in fields.items() if not k.startswith("GGUF.")}
    for key, (_, _, value) in metadata.items():
        assert found["x." + key] == value
        assert type(found["x." + key]) is type(value)


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=40)
@given(
    tensors=st.dictionaries(
        NAMES,
        st.tuples(
            st.lists(st.integers(1, 5), min_size=1, max_size=4),
            st.sampled_from(["float32", "float16", "int8", "int64"]),
        ),
        max_size=5,
    ),
    alignment=st.sampled_from([None, 8, 32, 64, 4096]),
)
def test_every_tensor_lies_where_gguf_finds_it(
    tmp_path: Path, tensors: dict[str, Any], alignment: int | None
) -> None:
    path = tmp_path / "tensors.gguf"
    arrays = {name: np.ones(shape, dtype) for name, (shape, dtype) in tensors.items()}
    found = read_header(write(path, {}, arrays, alignment), "tensors.gguf").tensors
    expected = {t.name: t for t in gguf.GGUFReader(path).tensors}
    assert list(found) == list(expected)
    for name, tensor in found.items():
        assert tensor.encoding == expected[name].tensor_type.name
        assert tensor.shape == arrays[name].shape
        assert (tensor.offset, tensor.nbytes) == (
            expected[name].data_offset,
            expected[name].n_bytes,
        )


@pytest.mark.parametrize("encoding", ["Q8_0", "Q4_0", "Q4_K", "Q5_K", "Q6_K", "MXFP4", "IQ4_XS"])
def test_a_quantised_tensor_has_the_bytes_of_its_blocks(tmp_path: Path, encoding: str) -> None:
    kind = gguf.GGMLQuantizationType[encoding]
    block, size = gguf.GGML_QUANT_SIZES[kind]
    path = tmp_path / "blocks.gguf"
    writer = gguf.GGUFWriter(path, "anything")
    writer.add_tensor("w", np.zeros((3, 512 // block * size), np.uint8), raw_dtype=kind)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    tensor = read_header(path.read_bytes(), "blocks.gguf").tensors["w"]
    assert (tensor.encoding, tensor.shape) == (encoding, (3, 512))
    assert tensor.nbytes == 3 * 512 // block * size


def test_version_2_reads_as_version_3() -> None:
    raw = RawGGUF().key("a", Kind.UINT8, b"\7")
    current = read_header(raw.bytes(), "x")
    raw.version = 2
    assert read_header(raw.bytes(), "x") == current
    assert current.metadata == {"a": 7}


def test_an_empty_array_is_an_empty_list() -> None:
    raw = RawGGUF().key("a", Kind.ARRAY, struct.pack("<IQ", Kind.STRING, 0))
    assert read_header(raw.bytes(), "x").metadata == {"a": []}


def test_a_vocabulary_and_its_merges_are_read_in_a_moment() -> None:
    tokens = b"".join(text(f"token{n}") for n in range(200_000))
    merges = b"".join(text(f"left{n} right{n}") for n in range(440_000))
    raw = RawGGUF()
    raw.key("tokens", Kind.ARRAY, struct.pack("<IQ", Kind.STRING, 200_000) + tokens)
    raw.key("merges", Kind.ARRAY, struct.pack("<IQ", Kind.STRING, 440_000) + merges)
    data = raw.bytes()
    began = time.perf_counter()
    metadata = read_header(data, "x").metadata
    spent = time.perf_counter() - began
    assert metadata["tokens"][199_999] == "token199999"
    assert metadata["merges"][439_999] == "left439999 right439999"
    assert spent < 3, "a fraction of a second on a quiet machine"


@pytest.mark.parametrize(
    ("raw", "says"),
    [
        (RawGGUF(magic=b"PK\3\4"), "no GGUF file"),
        (RawGGUF(version=1), "GGUF version 1"),
        (RawGGUF(version=4), "GGUF version 4"),
        (RawGGUF(version=3 << 24), "big-endian"),
    ],
)
def test_another_format_or_version_is_named(raw: RawGGUF, says: str) -> None:
    with pytest.raises(LayoutError, match=says):
        read_header(raw.bytes(), "x.gguf")


def test_an_unknown_type_of_tensor_is_named_with_its_tensor() -> None:
    raw = RawGGUF(data=bytes(64)).tensor("blk.0.attn_q.weight", (4, 4), kind=99)
    with pytest.raises(TensorError, match=r"'blk\.0\.attn_q\.weight'.*ggml type 99"):
        read_header(raw.bytes(), "x.gguf")


def test_rows_must_be_whole_blocks() -> None:
    raw = RawGGUF(data=bytes(4096)).tensor("w", (48, 4), kind=gguf.GGMLQuantizationType.Q8_0)
    with pytest.raises(TensorError, match="rows of 48 values, no multiple of Q8_0's 32"):
        read_header(raw.bytes(), "x.gguf")


def test_without_the_package_gguf_the_extra_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(__import__("sys").modules, "gguf.constants", None)
    raw = RawGGUF(data=bytes(16)).tensor("w", (4,))
    with pytest.raises(MissingExtra, match=r"muse-atem\[gguf\]"):
        read_header(raw.bytes(), "x.gguf")
