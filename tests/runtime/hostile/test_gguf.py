"""GGUF files that lie: every one is a typed error, at once, in bounded memory."""

from __future__ import annotations

import struct
import time
import tracemalloc
from typing import TYPE_CHECKING

import numpy as np
import pytest
from gguf import GGMLQuantizationType as Type
from gguf import GGUFReader
from gguf import GGUFValueType as Kind
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from atem.errors import CheckpointError, UnsafeCheckpoint
from atem.runtime.layouts import open_checkpoint
from atem.runtime.layouts.gguf_file import read_header
from atem.testing.tiny import tiny_config, tiny_weights
from tests.runtime.layouts.gguf_writer import RawGGUF, metadata_of, text, write_gguf

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

HUGE = 1 << 60


def array(kind: int, count: int, content: bytes = b"") -> bytes:
    return struct.pack("<IQ", kind, count) + content


in_a_file = settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
"""For properties that write one file in ``tmp_path`` again and again."""


def refused(data: bytes) -> str:
    """The message of the error that ``data`` brings, found at once and in little memory."""
    tracemalloc.start()
    began = time.perf_counter()
    try:
        with pytest.raises(UnsafeCheckpoint) as error:
            read_header(data, "x.gguf")
        assert tracemalloc.get_traced_memory()[1] < 1 << 20
    finally:
        tracemalloc.stop()
    assert time.perf_counter() - began < 1
    assert str(error.value).startswith("x.gguf: ")
    return str(error.value)


COUNTS: dict[str, Callable[[int], RawGGUF]] = {
    "tensors": lambda n: RawGGUF(tensor_count=n),
    "keys": lambda n: RawGGUF(key_count=n),
    "values of an array of bytes": lambda n: RawGGUF().key("a", Kind.ARRAY, array(Kind.UINT8, n)),
    "values of an array of doubles": lambda n: RawGGUF().key(
        "a", Kind.ARRAY, array(Kind.FLOAT64, n)
    ),
    "values of an array of strings": lambda n: RawGGUF().key(
        "a", Kind.ARRAY, array(Kind.STRING, n)
    ),
    "bytes of a string": lambda n: RawGGUF().key("a", Kind.STRING, struct.pack("<Q", n)),
    "bytes of a string in an array": lambda n: RawGGUF().key(
        "a", Kind.ARRAY, array(Kind.STRING, 2, text("ab") + struct.pack("<Q", n))
    ),
    "bytes of a key": lambda n: RawGGUF(keys=[struct.pack("<Q", n) + b"abc" + bytes(99)]),
    "bytes of a tensor's name": lambda n: RawGGUF(tensors=[struct.pack("<Q", n) + bytes(99)]),
}


@pytest.mark.parametrize("number", [1000, 1 << 32, HUGE, (1 << 64) - 1, 1 << 63])
@pytest.mark.parametrize("what", COUNTS)
def test_a_count_that_the_file_cannot_hold_is_refused_at_once(what: str, number: int) -> None:
    refused(COUNTS[what](number).bytes())


def test_more_values_than_any_vocabulary_are_refused_though_they_are_there() -> None:
    five_million = array(Kind.UINT8, 5 << 20, bytes(5 << 20))
    assert "are the most that is read" in refused(
        RawGGUF().key("a", Kind.ARRAY, five_million).bytes()
    )


def test_the_limit_on_values_counts_all_arrays_together() -> None:
    raw = RawGGUF()
    for name in "abcde":
        raw.key(name, Kind.ARRAY, array(Kind.UINT8, 1 << 20, bytes(1 << 20)))
    with pytest.raises(UnsafeCheckpoint, match="values in 'e'"):
        read_header(raw.bytes(), "x.gguf")


def test_a_header_longer_than_the_limit_is_refused_though_it_is_there() -> None:
    data = RawGGUF().key("a", Kind.STRING, struct.pack("<Q", 65 << 20) + bytes(65 << 20)).bytes()
    refused(data)


LIES: dict[str, tuple[RawGGUF, str]] = {
    "no values": (RawGGUF().tensor("w", (4, 0)), "has no values"),
    "no dimensions": (RawGGUF().tensor("w", ()), "0 dimensions"),
    "too many dimensions": (RawGGUF().tensor("w", (1,) * 5), "5 dimensions"),
    "huge number of dimensions": (RawGGUF().tensor("w", (1,), n_dims=2**32 - 1), "dimensions"),
    "huge dimension": (RawGGUF(data=bytes(64)).tensor("w", (HUGE,)), "claims"),
    "product past 64 bits": (RawGGUF(data=bytes(64)).tensor("w", (1 << 32,) * 3), "claims"),
    "past the end": (RawGGUF(data=bytes(64)).tensor("w", (17,)), "claims 68 bytes"),
    "offset past the end": (RawGGUF(data=bytes(64)).tensor("w", (4,), offset=64), "claims 16 bytes"),
    "huge offset": (RawGGUF(data=bytes(64)).tensor("w", (4,), offset=2**64 - 32), "claims"),
    "unaligned offset": (RawGGUF(data=bytes(64)).tensor("w", (4,), offset=16), "aligned to 32"),
    "overlap": (RawGGUF(data=bytes(64)).tensor("v", (9,)).tensor("w", (4,), offset=32), "overlap"),
    "one place for two": (RawGGUF(data=bytes(64)).tensor("v", (4,)).tensor("w", (4,)), "overlap"),
    "a tensor twice": (RawGGUF(data=bytes(64)).tensor("w", (4,)).tensor("w", (4,), offset=32), "twice"),
    "a key twice": (RawGGUF().key("a", Kind.BOOL, b"\0").key("a", Kind.BOOL, b"\1"), "twice"),
    "alignment 0": (RawGGUF().key("general.alignment", Kind.UINT32, bytes(4)), "power of two"),
    "alignment 24": (RawGGUF().key("general.alignment", Kind.UINT8, b"\x18"), "power of two"),
    "alignment true": (RawGGUF().key("general.alignment", Kind.BOOL, b"\1"), "power of two"),
    "alignment text": (RawGGUF().key("general.alignment", Kind.STRING, text("32")), "power of two"),
    "alignment below 0": (RawGGUF().key("general.alignment", Kind.INT8, b"\x80"), "power of two"),
    "unknown type": (RawGGUF().key("a", 13, bytes(8)), "type 13"),
    "unknown type in an array": (RawGGUF().key("a", Kind.ARRAY, array(77, 1, bytes(8))), "type 77"),
    "array of arrays": (RawGGUF().key("a", Kind.ARRAY, array(Kind.ARRAY, 1, bytes(12))), "of arrays"),
    "a bool of 2": (RawGGUF().key("a", Kind.BOOL, b"\2"), "neither 0 nor 1"),
    "text that is none": (RawGGUF().key("a", Kind.STRING, text(b"\xff")), "not UTF-8"),
    "a key that is no text": (RawGGUF().key(b"\xff", Kind.BOOL, b"\0"), "not UTF-8"),
    "texts that are none": (
        RawGGUF().key("a", Kind.ARRAY, array(Kind.STRING, 2, text("b") + text(b"\xff"))),
        "value 1 of 'a'",
    ),
}  # fmt: skip


@pytest.mark.parametrize("lie", LIES)
def test_a_header_that_contradicts_itself_is_refused_with_the_reason(lie: str) -> None:
    raw, says = LIES[lie]
    assert says in refused(raw.bytes())


def test_a_huge_alignment_puts_every_tensor_past_the_end() -> None:
    raw = RawGGUF(data=bytes(64)).key("general.alignment", Kind.UINT64, struct.pack("<Q", 1 << 62))
    assert "claims" in refused(raw.tensor("w", (4,)).bytes())


def test_what_a_file_says_of_itself_stands_quoted_and_cut_in_messages() -> None:
    name = "\x1b[2J" + "w" * 200
    message = refused(RawGGUF().tensor(name, (4,)).bytes())
    assert "\x1b" not in message
    assert len(message) < 400


def sample() -> bytes:
    raw = RawGGUF(data=bytes(256))
    raw.key("general.architecture", Kind.STRING, text("muse-glimmer"))
    raw.key("tokens", Kind.ARRAY, array(Kind.STRING, 3, text("a") + text("b") + text("")))
    raw.key("scores", Kind.ARRAY, array(Kind.FLOAT32, 3, bytes(12)))
    raw.key("flags", Kind.ARRAY, array(Kind.BOOL, 3, b"\0\1\0"))
    raw.tensor("a.weight", (4, 4))
    return raw.tensor("b.weight", (32, 2), kind=Type.Q8_0, offset=64).bytes()


SAMPLE = sample()


def test_a_header_cut_anywhere_is_refused() -> None:
    for size in range(len(SAMPLE) - (256 - 64 - 68)):
        with pytest.raises(CheckpointError):
            read_header(SAMPLE[:size], "x.gguf")


@given(flips=st.lists(st.tuples(st.integers(0, len(SAMPLE) - 1), st.integers(0, 255)), max_size=4))
def test_flipped_bytes_bring_a_header_or_a_checkpoint_error(flips: list[tuple[int, int]]) -> None:
    data = bytearray(SAMPLE)
    for place, value in flips:
        data[place] = value
    tracemalloc.start()
    try:
        header = read_header(bytes(data), "x.gguf")
    except CheckpointError:
        pass
    else:
        assert all(t.offset + t.nbytes <= len(data) for t in header.tensors.values())
    finally:
        peak = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
    assert peak < 1 << 20


# -- whole files ---------------------------------------------------------------------

SMALL = tiny_config(
    num_hidden_layers=1, layer_types=("full_attention",), vocab_size=64, hidden_size=32,
    intermediate_size=32,
)  # fmt: skip
SMALL_WEIGHTS = tiny_weights(SMALL)
KEYS = [
    *sorted(metadata_of(SMALL)),
    "general.architecture", "general.alignment", "split.no", "split.count", "split.tensors.count",
    "tokenizer.ggml.tokens", "tokenizer.chat_template", "muse-glimmer.attention.scale",
    "muse-glimmer.rope.scaling.type",
]  # fmt: skip
PLACES = st.integers(0, (1 << 16) - 1)
NUMBERS = st.integers(0, 2**32 - 1) | st.floats(width=32)
VALUES = (
    NUMBERS
    | st.booleans()
    | st.text("ab\0é", max_size=3)
    | st.lists(st.booleans(), min_size=1, max_size=3)
)


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("whole") / "m.gguf"
    return write_gguf(path, SMALL, SMALL_WEIGHTS, encoding=lambda _: "Q8_0")


def use(path: Path) -> None:
    """Open and read everything; any CheckpointError will do, and nothing else."""
    tracemalloc.start()
    try:
        with open_checkpoint(path) as checkpoint:
            for name, info in checkpoint.tensors.items():
                values = checkpoint.read(name)
                assert values.shape == info.shape
                assert np.isfinite(values.astype(np.float32)).all()
    except CheckpointError:
        pass
    finally:
        peak = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
    assert peak < 4 << 20


def test_a_file_cut_anywhere_is_refused(whole: Path, tmp_path: Path) -> None:
    path = tmp_path / "m.gguf"
    data = whole.read_bytes()
    for size in range(0, len(data) - 64, 64):
        path.write_bytes(data[:size])
        with pytest.raises(CheckpointError):
            open_checkpoint(path)


@in_a_file
@given(flips=st.lists(st.tuples(PLACES, st.integers(0, 255)), min_size=1, max_size=3))
def test_flipped_bytes_bring_a_checkpoint_or_a_checkpoint_error(
    whole: Path, tmp_path: Path, flips: list[tuple[int, int]]
) -> None:
    changed = bytearray(whole.read_bytes())
    header = min(t.offset for t in read_header(bytes(changed), "x").tensors.values())
    for place, value in flips:
        changed[place % header] = value
    path = tmp_path / "m.gguf"
    path.write_bytes(changed)
    use(path)


@in_a_file
@given(places=st.lists(PLACES, min_size=1, max_size=20))
def test_flipped_weights_bring_finite_numbers_or_a_checkpoint_error(
    whole: Path, tmp_path: Path, places: list[int]
) -> None:
    changed = bytearray(whole.read_bytes())
    header = min(t.offset for t in read_header(bytes(changed), "x").tensors.values())
    for place in places:
        changed[header + place % (len(changed) - header)] = 0xFF
    path = tmp_path / "m.gguf"
    path.write_bytes(changed)
    use(path)


@in_a_file
@given(key=st.sampled_from(KEYS), value=VALUES)
def test_metadata_of_any_type_bring_a_checkpoint_or_a_checkpoint_error(
    tmp_path: Path, key: str, value: object
) -> None:
    if key == "general.architecture":  # the writer has written it before
        raw = RawGGUF().key(key, Kind.UINT32, bytes(4)).bytes()
        (tmp_path / "m.gguf").write_bytes(raw)
    else:
        write_gguf(tmp_path / "m.gguf", SMALL, SMALL_WEIGHTS, metadata={key: value})
    use(tmp_path / "m.gguf")


@pytest.mark.parametrize("size", [1 << 22, (1 << 31) - 2, 1 << 31, (1 << 32) - 1])
@pytest.mark.parametrize(
    "key",
    ["block_count", "embedding_length", "feed_forward_length", "attention.head_count",
     "attention.head_count_kv", "attention.key_length", "vocab_size"],
)  # fmt: skip
def test_a_size_that_no_tensor_has_costs_nothing(tmp_path: Path, key: str, size: int) -> None:
    keys = {f"muse-glimmer.{key}": size}
    if key == "attention.key_length":
        keys["muse-glimmer.attention.value_length"] = size
    path = write_gguf(tmp_path / "m.gguf", SMALL, SMALL_WEIGHTS, metadata=keys, qk_scale=None)
    use(path)
    with pytest.raises(CheckpointError):
        open_checkpoint(path)


def test_the_reader_of_gguf_itself_believes_such_a_file(tmp_path: Path) -> None:
    """Why there is a walker: a text whose length is a lie reads as a shorter text."""
    path = tmp_path / "m.gguf"
    lie = struct.pack("<Q", 1 << 20) + b"cut"
    path.write_bytes(RawGGUF().key("a", Kind.STRING, lie).bytes())
    assert GGUFReader(path).fields["a"].contents().startswith("cut")
    refused(path.read_bytes())


def test_an_empty_file_is_refused(tmp_path):
    path = tmp_path / "model.gguf"
    path.touch()
    with pytest.raises(UnsafeCheckpoint, match="is empty"):
        open_checkpoint(path)
