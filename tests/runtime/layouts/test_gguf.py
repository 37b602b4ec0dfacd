"""GGUF files as checkpoints: what is read is what was written, through gguf's own quantisers."""

from __future__ import annotations

import tracemalloc
from typing import TYPE_CHECKING, Any

import gguf
import ml_dtypes
import numpy as np
import pytest

from atem.errors import CheckpointError, LayoutError, MissingExtra, TensorError
from atem.runtime.layouts import open_checkpoint
from atem.testing.tiny import tiny_config, tiny_weights
from tests.runtime.layouts.gguf_writer import (
    K_SCALES,
    TOP,
    as_gguf,
    from_gguf,
    gguf_name,
    half_to_pairs,
    k_blocks,
    write_gguf,
)
from tests.runtime.oracle import oracle, oracle_logits

if TYPE_CHECKING:
    from pathlib import Path

# A multiplier that float32 holds, so that a configuration comes back as it was.
CONFIG = tiny_config(output_multiplier=0.25)
WEIGHTS = tiny_weights(CONFIG)
WIDE = tiny_config(
    hidden_size=256, intermediate_size=512, head_dim=64, num_hidden_layers=2, output_multiplier=0.25,
    layer_types=("sliding_attention", "full_attention"),
)  # fmt: skip
WIDE_WEIGHTS = tiny_weights(WIDE)
MATRICES = [name for name, values in WEIGHTS.items() if values.ndim == 2]
NORMS = [name for name in WEIGHTS if name.endswith("_norm")]


@pytest.fixture(scope="module")
def plain(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_gguf(tmp_path_factory.mktemp("plain") / "tiny.gguf", CONFIG, WEIGHTS)


def dequantised(path: Path, config: Any, name: str) -> np.ndarray:
    """The canonical tensor by gguf's reader and decoder alone."""
    tensor = next(t for t in gguf.GGUFReader(path).tensors if t.name == gguf_name(name))
    values = gguf.quants.dequantize(tensor.data, tensor.tensor_type)
    return from_gguf(name, values.reshape(tensor.shape[::-1]), config)


def test_the_configuration_is_that_of_the_source(plain: Path) -> None:
    checkpoint = open_checkpoint(plain)
    assert checkpoint.config == CONFIG
    assert (checkpoint.layout, checkpoint.rope_style) == ("gguf", "pairs")
    assert not checkpoint.has_vision


def test_matrices_and_the_final_norm_come_back_bit_by_bit(plain: Path) -> None:
    checkpoint = open_checkpoint(plain)
    assert list(checkpoint.tensors) == list(WEIGHTS)
    for name in [*MATRICES, "norm"]:
        np.testing.assert_array_equal(checkpoint.read(name), WEIGHTS[name])


def test_norms_of_layers_lose_the_1_that_the_file_adds(plain: Path) -> None:
    checkpoint = open_checkpoint(plain)
    assert len(NORMS) == 4 * CONFIG.num_hidden_layers
    for name in NORMS:
        np.testing.assert_allclose(checkpoint.read(name), WEIGHTS[name], atol=2e-7, rtol=0)


def test_logits_are_those_of_the_weights_that_were_written(plain: Path) -> None:
    checkpoint = open_checkpoint(plain)
    read = {name: checkpoint.read(name) for name in checkpoint.tensors}
    ids = list(np.random.default_rng(1).integers(0, 256, 24))
    found = oracle_logits(oracle(checkpoint.config, read), ids)
    np.testing.assert_allclose(found, oracle_logits(oracle(CONFIG, WEIGHTS), ids), atol=2e-5)


@pytest.mark.parametrize(("encoding", "dtype"), [("F16", np.float16), ("BF16", ml_dtypes.bfloat16)])
def test_half_precision_is_read_as_it_is_stored(tmp_path: Path, encoding: str, dtype: Any) -> None:
    path = write_gguf(tmp_path / "m.gguf", CONFIG, WEIGHTS, encoding=lambda _: encoding)
    checkpoint = open_checkpoint(path)
    for name in MATRICES:
        values = checkpoint.read(name)
        assert (values.dtype, checkpoint.tensors[name].encoding) == (dtype, encoding)
        np.testing.assert_array_equal(values, WEIGHTS[name].astype(dtype))


@pytest.mark.parametrize("encoding", ["Q8_0", "Q4_0"])
def test_quantised_tensors_equal_those_that_gguf_decodes(tmp_path: Path, encoding: str) -> None:
    path = write_gguf(tmp_path / "m.gguf", CONFIG, WEIGHTS, encoding=lambda _: encoding)
    checkpoint = open_checkpoint(path)
    for name in MATRICES:
        values = checkpoint.read(name)
        assert values.dtype == np.float32
        assert values.flags.c_contiguous
        np.testing.assert_array_equal(values, dequantised(path, CONFIG, name))
        assert checkpoint.tensors[name].encoding == encoding


@pytest.mark.parametrize("encoding", K_SCALES)
def test_k_quants_equal_those_that_gguf_decodes(tmp_path: Path, encoding: str) -> None:
    path = write_gguf(tmp_path / "m.gguf", WIDE, WIDE_WEIGHTS, encoding=lambda _: encoding)
    checkpoint = open_checkpoint(path)
    for name in ("embed", "head", "layers.1.q", "layers.1.k", "layers.0.v", "layers.0.ffn_down"):
        expected = dequantised(path, WIDE, name)
        assert np.ptp(expected) > 0
        np.testing.assert_array_equal(checkpoint.read(name), expected)


def test_a_mix_of_types_is_decided_tensor_by_tensor(tmp_path: Path) -> None:
    kinds = {"embed": "Q6_K", "head": "F16", "layers.0.ffn_down": "Q6_K", "layers.0.v": "Q5_K"}
    path = write_gguf(
        tmp_path / "m.gguf", WIDE, WIDE_WEIGHTS, encoding=lambda name: kinds.get(name, "Q4_K")
    )
    tensors = open_checkpoint(path).tensors
    for name, info in tensors.items():
        expected = kinds.get(name, "Q4_K") if len(info.shape) == 2 else "F32"
        assert info.encoding == expected
        block, size = gguf.GGML_QUANT_SIZES[gguf.GGMLQuantizationType[expected]]
        assert info.stored_bytes == info.size // block * size


@pytest.mark.parametrize("name", ["embed", "layers.1.q", "layers.0.k", "layers.1.ffn_up"])
@pytest.mark.parametrize("encoding", ["F32", "BF16", "Q8_0", *K_SCALES])
def test_rows_are_rows_of_the_whole(tmp_path: Path, encoding: str, name: str) -> None:
    path = write_gguf(tmp_path / "m.gguf", WIDE, WIDE_WEIGHTS, encoding=lambda _: encoding)
    checkpoint = open_checkpoint(path)
    numbers = [100, 3, 3, 0, 127]
    rows = checkpoint.rows(name, numbers)
    assert rows.dtype == np.float32
    np.testing.assert_array_equal(rows, checkpoint.read(name).astype(np.float32)[numbers])


@pytest.mark.parametrize("encoding", K_SCALES)
def test_rows_are_read_without_decoding_the_others(tmp_path: Path, encoding: str) -> None:
    path = write_gguf(tmp_path / "m.gguf", WIDE, WIDE_WEIGHTS, encoding=lambda _: encoding)
    tensor = next(t for t in gguf.GGUFReader(path).tensors if t.name == TOP["embed"])
    row = tensor.n_bytes // WIDE.vocab_size
    poison(path, tensor.data_offset + 7 * row + K_SCALES[encoding][1][0], np.float16(np.nan))
    checkpoint = open_checkpoint(path)
    assert np.isfinite(checkpoint.rows("embed", [6, 8])).all()
    for read in (lambda: checkpoint.read("embed"), lambda: checkpoint.rows("embed", [7])):
        with pytest.raises(TensorError, match=r"token_embd\.weight: row 7"):
            read()


def poison(path: Path, place: int, value: Any) -> None:
    with path.open("r+b") as file:
        file.seek(place)
        file.write(value.tobytes())


def test_opening_reads_no_tensor(tmp_path: Path) -> None:
    config = tiny_config(vocab_size=60_000)
    path = write_gguf(tmp_path / "m.gguf", config, tiny_weights(config))
    open_checkpoint(path).close()  # imports
    tracemalloc.start()
    open_checkpoint(path).close()
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert path.stat().st_size > 30_000_000
    assert peak < 1_000_000


@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf])
@pytest.mark.parametrize("name", ["layers.2.q", "layers.0.ffn_norm", "norm"])
def test_a_plain_value_that_is_not_finite_names_its_tensor(
    tmp_path: Path, name: str, value: float
) -> None:
    weights = dict(WEIGHTS)
    weights[name] = WEIGHTS[name].copy()
    weights[name].flat[5] = value
    checkpoint = open_checkpoint(write_gguf(tmp_path / "m.gguf", CONFIG, weights))
    with pytest.raises(TensorError, match=gguf_name(name).replace(".", r"\.")):
        checkpoint.read(name)


@pytest.mark.parametrize("bits", [0x7F800001, 0xFFBFFFFF])
def test_a_signalling_nan_is_an_error_like_any_other(tmp_path: Path, bits: int) -> None:
    path = write_gguf(tmp_path / "m.gguf", CONFIG, WEIGHTS)
    tensor = next(t for t in gguf.GGUFReader(path).tensors if t.name == "blk.0.attn_norm.weight")
    poison(path, tensor.data_offset, np.uint32(bits))
    with pytest.raises(TensorError, match=r"blk\.0\.attn_norm\.weight"):
        open_checkpoint(path).read("layers.0.attn_norm")


@pytest.mark.parametrize("scale", [np.nan, np.inf])
@pytest.mark.parametrize("encoding", ["Q8_0", "Q4_0"])
def test_a_scale_that_is_not_finite_names_its_tensor(
    tmp_path: Path, encoding: str, scale: float
) -> None:
    path = write_gguf(tmp_path / "m.gguf", CONFIG, WEIGHTS, encoding=lambda _: encoding)
    tensor = next(t for t in gguf.GGUFReader(path).tensors if t.name == "blk.3.ffn_up.weight")
    poison(path, tensor.data_offset, np.float16(scale))
    checkpoint = open_checkpoint(path)
    with pytest.raises(TensorError, match=r"blk\.3\.ffn_up\.weight: row 0"):
        checkpoint.read("layers.3.ffn_up")


def test_a_head_that_is_not_there_is_tied(tmp_path: Path) -> None:
    path = write_gguf(tmp_path / "m.gguf", CONFIG, WEIGHTS, tensors={"output.weight": None})
    checkpoint = open_checkpoint(path)
    assert checkpoint.config == CONFIG.model_copy(update={"tie_word_embeddings": True})
    assert "head" not in checkpoint.tensors


def test_the_older_spelling_of_the_architecture_is_read(tmp_path: Path) -> None:
    path = write_gguf(tmp_path / "m.gguf", CONFIG, WEIGHTS, architecture="muse_glimmer")
    assert open_checkpoint(path).config == CONFIG


@pytest.mark.parametrize(
    ("pattern", "full"),
    [
        ([True, False, True, True, True, False], [1, 5]),
        ([True] * 6, []),
        (4, [3]),
        (3, [2, 5]),
    ],
)
def test_the_window_pattern_is_a_list_or_a_period(
    tmp_path: Path, pattern: Any, full: list[int]
) -> None:
    keys = {"muse-glimmer.attention.sliding_window_pattern": pattern}
    checkpoint = open_checkpoint(write_gguf(tmp_path / "m.gguf", CONFIG, WEIGHTS, metadata=keys))
    types = checkpoint.config.layer_types
    assert [i for i, kind in enumerate(types) if kind == "full_attention"] == full


def test_without_vocab_size_the_tokens_are_counted(tmp_path: Path) -> None:
    keys = {
        "muse-glimmer.vocab_size": None,
        "tokenizer.ggml.tokens": [f"t{n}" for n in range(CONFIG.vocab_size)],
    }
    path = write_gguf(tmp_path / "m.gguf", CONFIG, WEIGHTS, metadata=keys)
    assert open_checkpoint(path).config == CONFIG


@pytest.mark.parametrize("factor", [3.87, 2.5])
def test_the_constant_of_the_q_norm_is_the_factor_of_q(tmp_path: Path, factor: float) -> None:
    path = write_gguf(tmp_path / "m.gguf", CONFIG, WEIGHTS, qk_scale=factor)
    checkpoint = open_checkpoint(path)
    assert checkpoint.config.qk_scale_factor == factor
    assert any("norms of q and k" in note for note in checkpoint.notes)


def test_a_file_without_norms_of_q_and_k_has_the_released_factor(tmp_path: Path) -> None:
    checkpoint = open_checkpoint(write_gguf(tmp_path / "m.gguf", CONFIG, WEIGHTS, qk_scale=None))
    assert checkpoint.config.qk_scale_factor == 3.87
    assert any("3.87" in note for note in checkpoint.notes)


def test_an_order_of_rows_that_is_set_is_taken_and_noted(tmp_path: Path) -> None:
    half = {
        gguf_name(name): WEIGHTS[name] for name in WEIGHTS if name.rpartition(".")[2] in ("q", "k")
    }
    path = write_gguf(tmp_path / "m.gguf", CONFIG, WEIGHTS, tensors=half)
    checkpoint = open_checkpoint(path, rope_style="half")
    np.testing.assert_array_equal(checkpoint.read("layers.1.q"), WEIGHTS["layers.1.q"])
    assert any("rope_style" in note for note in checkpoint.notes)
    assert open_checkpoint(path, rope_style="pairs").rope_style == "pairs"


def test_the_writer_of_these_tests_moves_rows_as_transformers_undoes_it() -> None:
    rows = np.arange(8.0)[:, None]
    assert half_to_pairs(rows, 4).ravel().tolist() == [0, 2, 1, 3, 4, 6, 5, 7]
    for name in ("layers.0.q", "layers.0.post_ffn_norm", "embed"):
        there = as_gguf(name, WEIGHTS[name], CONFIG)
        np.testing.assert_allclose(from_gguf(name, there, CONFIG), WEIGHTS[name], atol=2e-7)


def test_a_closed_checkpoint_says_so(plain: Path) -> None:
    with open_checkpoint(plain) as checkpoint:
        held = checkpoint.read("norm")
    np.testing.assert_array_equal(held, WEIGHTS["norm"])
    checkpoint.close()
    with pytest.raises(CheckpointError, match="closed"):
        checkpoint.read("norm")


def test_blocks_need_the_package_gguf(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = write_gguf(tmp_path / "m.gguf", CONFIG, WEIGHTS, encoding=lambda _: "Q8_0")
    checkpoint = open_checkpoint(path)
    monkeypatch.setitem(__import__("sys").modules, "gguf.quants", None)
    with pytest.raises(MissingExtra, match=r"muse-atem\[gguf\]"):
        checkpoint.read("embed")


# -- files that are refused --------------------------------------------------------


def refusal(path: Path, kind: type[CheckpointError]) -> str:
    with pytest.raises(kind) as error:
        open_checkpoint(path)
    return str(error.value)


@pytest.mark.parametrize(
    ("architecture", "says"),
    [("clip", "vision"), ("dflash", "drafter"), ("llama", "muse-glimmer")],
)
def test_another_architecture_is_named_for_what_it_is(
    tmp_path: Path, architecture: str, says: str
) -> None:
    path = write_gguf(tmp_path / "m.gguf", CONFIG, WEIGHTS, architecture=architecture)
    message = refusal(path, LayoutError)
    assert repr(architecture) in message
    assert says in message


def test_missing_and_unknown_tensors_are_both_reported(tmp_path: Path) -> None:
    changes = {"blk.2.ffn_up.weight": None, "blk.0.attn_q.bias": np.zeros(64, np.float32)}
    path = write_gguf(tmp_path / "m.gguf", CONFIG, WEIGHTS, tensors=changes)
    message = refusal(path, LayoutError)
    assert "blk.2.ffn_up" in message
    assert "blk.0.attn_q.bias" in message


def test_a_shape_of_another_model_names_the_tensor(tmp_path: Path) -> None:
    changes = {"blk.2.ffn_up.weight": np.zeros((97, 64), np.float32)}
    path = write_gguf(tmp_path / "m.gguf", CONFIG, WEIGHTS, tensors=changes)
    assert "blk.2.ffn_up.weight" in refusal(path, TensorError)


@pytest.mark.parametrize("encoding", ["Q5_1", "IQ4_NL", "MXFP4", "NVFP4", "I8", "F64"])
def test_another_type_names_module_and_type(tmp_path: Path, encoding: str) -> None:
    path = retyped(tmp_path, encoding, qk_scale=3.87)
    message = refusal(path, TensorError)
    assert "blk.1.ffn_gate.weight" in message
    assert f"stored as {encoding}" in message
    assert "Q4_K" in message


def test_nvfp4_without_norms_of_q_and_k_is_refused_with_the_known_fault(tmp_path: Path) -> None:
    message = refusal(retyped(tmp_path, "NVFP4", qk_scale=None), TensorError)
    assert "ggml-org/llama.cpp#27178" in message
    assert "blk.1.ffn_gate.weight" in message


def retyped(folder: Path, encoding: str, qk_scale: float | None) -> Path:
    """A file whose one tensor is of another type; its bytes are zero."""
    kind = gguf.GGMLQuantizationType[encoding]
    block, size = gguf.GGML_QUANT_SIZES[kind]
    shape = WEIGHTS["layers.1.ffn_gate"].shape
    zeros = np.zeros((shape[0], shape[1] // block * size), np.uint8)
    path = folder / "m.gguf"
    changes = {"blk.1.ffn_gate.weight": (zeros, kind)}
    return write_gguf(path, CONFIG, WEIGHTS, qk_scale=qk_scale, tensors=changes)


Q, K = "blk.3.attn_q_norm.weight", "blk.3.attn_k_norm.weight"
WIDTH = CONFIG.head_dim


@pytest.mark.parametrize(
    ("changes", "kind", "says"),
    [
        ({Q: np.linspace(3, 4, WIDTH)}, TensorError, "attn_q_norm.weight is no constant"),
        ({K: np.linspace(1, 2, WIDTH)}, TensorError, "attn_k_norm.weight is no constant"),
        ({Q: np.full(WIDTH, np.nan)}, TensorError, "attn_q_norm.weight is no constant"),
        ({Q: np.full(WIDTH, 3.5)}, TensorError, "one factor in all layers"),
        ({K: np.full(WIDTH, 2.0)}, TensorError, "k is 1"),
        ({Q: np.full(WIDTH - 2, 3.87)}, TensorError, "has shape"),
        ({Q: np.full((WIDTH, 1), 3.87)}, TensorError, "has shape"),
        ({Q: None}, LayoutError, Q),
        ({K: None}, LayoutError, K),
    ],
)
def test_norms_of_q_and_k_that_are_more_than_one_factor_are_refused(
    tmp_path: Path, changes: dict[str, Any], kind: type[CheckpointError], says: str
) -> None:
    tensors = {n: None if v is None else np.asarray(v, np.float32) for n, v in changes.items()}
    path = write_gguf(tmp_path / "m.gguf", CONFIG, WEIGHTS, tensors=tensors)
    assert says in refusal(path, kind)


@pytest.mark.parametrize("factor", [0.0, -3.87, np.inf])
def test_a_factor_that_no_model_has_is_refused(tmp_path: Path, factor: float) -> None:
    path = write_gguf(tmp_path / "m.gguf", CONFIG, WEIGHTS, qk_scale=factor)
    assert "attn_q_norm" in refusal(path, CheckpointError)


def test_random_blocks_of_these_tests_are_no_constant() -> None:
    assert len(np.unique(k_blocks("Q4_K", (4, 256)))) > 100
