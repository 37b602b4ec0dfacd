"""Every quantised layout reads as its weights dequantised first, to the bit."""

from __future__ import annotations

import json
from functools import cache, partial

import mlx.core as mx
import numpy as np
import pytest

from atem.errors import ConfigError, LayoutError, TensorError
from atem.runtime.layouts import open_checkpoint
from atem.testing.tiny import tiny_checkpoint
from tests.runtime.layouts import quant_writers as writers

MLX4 = {"group_size": 32, "bits": 4}
MLX6 = {"group_size": 64, "bits": 6, "mode": "affine"}
COMPRESSED = {"quant_method": "compressed-tensors", "format": "nvfp4-pack-quantized"}
MODELOPT = {"quant_method": "modelopt", "quant_algo": "NVFP4"}
MIXED = {"quant_method": "modelopt", "quant_algo": "MIXED_PRECISION"}
QUARK = {
    "quant_method": "quark",
    "global_quant_config": {"weight": {"dtype": "fp4", "group_size": 32, "scale_format": "e8m0"}},
}

mlx_bf16 = partial(writers.mlx, dtype=mx.bfloat16)


def mixed(name):
    """NVFP4 in the feed-forward, FP8 in the gate, MXFP8 in the head, the rest as it is."""
    form = {"ffn_gate": writers.modelopt_nvfp4, "ffn_up": writers.modelopt_nvfp4}
    form |= {"ffn_down": partial(writers.modelopt_nvfp4, activations=False)}
    form |= {"gate": writers.fp8, "head": writers.mxfp8}
    return form.get(name.rpartition(".")[2])


CASES = {
    "mlx": ("mlx", writers.only_linears(mlx_bf16), MLX4),
    "mlx, table and head too": ("mlx", writers.matrices(writers.mlx), MLX4),
    "mlx 6 bits": ("mlx", writers.matrices(partial(writers.mlx, group=64, bits=6)), MLX6),
    "mlx, text only": ("bare", writers.matrices(mlx_bf16), MLX4),
    "mlx nvfp4": (
        "mlx",
        writers.matrices(partial(writers.mlx, group=16, mode="nvfp4")),
        {"group_size": 16, "bits": 4, "mode": "nvfp4"},
    ),
    "packed": ("packed", writers.matrices(mlx_bf16), MLX4),
    "packed mxfp8": (
        "packed",
        writers.matrices(partial(writers.mlx, bits=8, mode="mxfp8")),
        {"group_size": 32, "bits": 8, "mode": "mxfp8"},
    ),
    "compressed-tensors": ("hf", writers.only_linears(writers.compressed_nvfp4), COMPRESSED),
    "compressed-tensors, weights only": (
        "bare",
        writers.only_linears(partial(writers.compressed_nvfp4, activations=False)),
        COMPRESSED,
    ),
    "modelopt": ("hf", writers.only_linears(writers.modelopt_nvfp4), MODELOPT),
    "modelopt, raw names, table too": ("raw", writers.matrices(writers.modelopt_nvfp4), MODELOPT),
    "modelopt mixed": ("hf", mixed, MIXED),
    "quark": ("hf", writers.only_linears(writers.mxfp4), QUARK),
}


@pytest.fixture(params=CASES)
def case(request):
    return built(request.param)


@cache
def built(name):
    return writers.quantised(*CASES[name])


def test_reads_as_dequantised_first(case, tmp_path):
    tiny_checkpoint(tmp_path / "plain", config=writers.CONFIG, weights=case.meant)
    with open_checkpoint(case.save(tmp_path / "quantised")) as ours:
        plain = open_checkpoint(tmp_path / "plain")
        assert list(ours.tensors) == list(plain.tensors)
        for name in ours.tensors:
            # Absolute norms lose a bit in 1 + w - 1; they are not what is looked at here.
            allowed = 1e-7 if name.endswith("_norm") else 0
            np.testing.assert_allclose(ours.read(name), plain.read(name), rtol=0, atol=allowed)


def test_rows_are_the_rows_of_the_whole(case, tmp_path):
    with open_checkpoint(case.save(tmp_path)) as ours:
        for name in ("embed", "layers.0.q", "layers.3.ffn_down"):
            np.testing.assert_array_equal(ours.rows(name, [9, 0]), ours.read(name)[[9, 0]])


def test_every_stored_byte_is_counted_once_or_noted(case, tmp_path):
    dropped = ("input_scale", "input_global_scale")
    kept = {n: t.nbytes for n, t in case.tensors.items() if not n.endswith(dropped)}
    with open_checkpoint(case.save(tmp_path)) as ours:
        assert sum(info.stored_bytes for info in ours.tensors.values()) == sum(kept.values())
        noted = [note for note in ours.notes if "activations" in note]
    gone = len(case.tensors) - len(kept)
    assert [note.split()[0] for note in noted] == ([str(gone)] if gone else [])


@pytest.mark.parametrize(
    "method", ["gptq", "awq", "bitsandbytes", "fp8", "compressed_tensors", "", None, 4]
)
def test_another_method_is_refused_with_its_name_and_what_is_read(method, tmp_path):
    case = writers.quantised("hf", lambda name: None, {"quant_method": method})
    with pytest.raises(ConfigError, match=rf"by {method!r}.*compressed-tensors.*modelopt.*MLX"):
        open_checkpoint(case.save(tmp_path))


@pytest.mark.parametrize("block", [[], [1], "int4", 4])
def test_a_block_that_is_no_object_is_refused(block, tmp_path):
    case = writers.quantised("hf", lambda name: None, block)
    if block:
        with pytest.raises(ConfigError, match="quantization_config is not an object"):
            open_checkpoint(case.save(tmp_path))
    else:
        open_checkpoint(case.save(tmp_path)).close()


def test_two_methods_at_once_are_refused(tmp_path):
    case = writers.quantised("hf", lambda name: None, COMPRESSED)
    case.config["quantization"] = MLX4
    with pytest.raises(ConfigError, match="remove the one"):
        open_checkpoint(case.save(tmp_path))


def test_quantised_weights_without_a_method_are_refused(tmp_path):
    case = writers.quantised("hf", writers.only_linears(writers.modelopt_nvfp4), {})
    with pytest.raises(LayoutError, match=r"q_proj is stored as \(.*weight U8.*'none'"):
        open_checkpoint(case.save(tmp_path))


def test_codes_without_scales_are_refused(tmp_path):
    case = writers.quantised("hf", writers.only_linears(writers.fp8), MIXED)
    tensors = {n: t for n, t in case.tensors.items() if not n.endswith("weight_scale")}
    with pytest.raises(TensorError, match=r"q_proj.weight is stored as F8_E4M3 and no scales"):
        open_checkpoint(case._replace(tensors=tensors).save(tmp_path))


def test_a_declared_tower_that_is_not_there_is_noted(tmp_path):
    case = writers.quantised("hf", writers.only_linears(writers.modelopt_nvfp4), MODELOPT)
    case.config["vision_config"] = {"hidden_size": 1536}
    with open_checkpoint(case.save(tmp_path)) as ours:
        assert not ours.has_vision
        assert any("vision" in note and "text only" in note for note in ours.notes)


ODD = "\x1b[31m" * 999


@pytest.mark.parametrize(
    ("key", "block"),
    [
        ("quantization", MLX4 | {ODD: {"bits": 99}}),
        ("quantization_config", MIXED | {"quantized_layers": {ODD: {"quant_algo": "Q"}}}),
        ("quantization_config", COMPRESSED | {"config_groups": {ODD: {"format": "Q"}}}),
        ("quantization_config", QUARK | {"layer_quant_config": {ODD: {}}}),
    ],
)
def test_odd_names_of_modules_are_quoted_and_cut(tmp_path, key, block):
    folder = tiny_checkpoint(tmp_path)
    config = json.loads((folder / "config.json").read_text())
    (folder / "config.json").write_text(json.dumps(config | {key: block}))
    with pytest.raises(ConfigError) as refused:
        open_checkpoint(folder)
    assert str(refused.value).isprintable()
    assert len(str(refused.value)) < 1000
