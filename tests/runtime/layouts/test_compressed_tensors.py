"""compressed-tensors' and Quark's checkpoints: what their configurations may say."""

from __future__ import annotations

import numpy as np
import pytest

from atem.errors import ConfigError, LayoutError
from atem.runtime.layouts import open_checkpoint
from tests.runtime.layouts import quant_writers as writers

FORMAT = "nvfp4-pack-quantized"
WEIGHTS = {
    "num_bits": 4, "type": "float", "strategy": "tensor_group", "group_size": 16, "symmetric": True,
}  # fmt: skip
BLOCK = {
    "quant_method": "compressed-tensors",
    "format": FORMAT,
    "quantization_status": "compressed",
    "ignore": ["lm_head", "re:.*vision_tower.*"],
    "config_groups": {"group_0": {"targets": ["Linear"], "weights": WEIGHTS}},
    "kv_cache_scheme": None,
    "sparsity_config": {},
    "transform_config": {},
}
QUARK_WEIGHT = {"dtype": "fp4", "group_size": 32, "scale_format": "e8m0", "qscheme": "per_group"}
QUARK = {"quant_method": "quark", "global_quant_config": {"weight": QUARK_WEIGHT}}


def compressed(block=BLOCK):
    return writers.quantised("hf", writers.only_linears(writers.compressed_nvfp4), block)


def groups(**changes):
    return BLOCK | {
        "config_groups": {"group_0": {"targets": ["Linear"], "weights": WEIGHTS} | changes}
    }


@pytest.mark.parametrize(
    "block",
    [
        BLOCK,
        groups(format=FORMAT) | {"format": "mixed-precision"},
        {"quant_method": "compressed-tensors", "format": FORMAT},
    ],
)
def test_nvfp4_is_read_however_it_is_described(block, tmp_path):
    case = compressed(block)
    with open_checkpoint(case.save(tmp_path)) as ours:
        assert ours.tensors["layers.0.q"].encoding == "NVFP4"
        assert ours.tensors["head"].encoding == "F32"
        for name, values in case.meant.items():
            np.testing.assert_array_equal(ours.read(name), values)


@pytest.mark.parametrize(
    ("block", "words"),
    [
        (BLOCK | {"format": "pack-quantized"}, "'pack-quantized'.*atem reads nvfp4-pack-quantized"),
        (BLOCK | {"format": None}, "is None; of compressed-tensors"),
        ({"quant_method": "compressed-tensors"}, "format is None"),
        (groups(format="float-quantized"), "group_0 is 'float-quantized'"),
        (
            groups(weights=WEIGHTS | {"group_size": 32}),
            "weights.group_size is 32, and NVFP4 has 16",
        ),
        (groups(weights=WEIGHTS | {"symmetric": False}), "weights.symmetric is False"),
        (BLOCK | {"transform_config": {"config_groups": {}}}, "transform_config is set"),
        (BLOCK | {"sparsity_config": {"format": "sparse-24"}}, "sparsity_config is set"),
    ],
)
def test_another_form_is_refused_with_its_name(block, words, tmp_path):
    with pytest.raises(ConfigError, match=words):
        open_checkpoint(compressed(block).save(tmp_path))


@pytest.mark.parametrize("end", ["weight_packed", "weight_scale", "weight_global_scale"])
def test_a_part_that_is_missing_is_refused_with_the_module(end, tmp_path):
    case = compressed()
    name = "model.language_model.layers.3.mlp.down_proj"
    del case.tensors[f"{name}.{end}"]
    with pytest.raises(LayoutError, match=rf"{name} is stored as"):
        open_checkpoint(case.save(tmp_path))


def test_scales_of_a_quantised_cache_are_dropped_with_a_note(tmp_path):
    case = compressed()
    case.tensors["model.language_model.layers.0.self_attn.k_scale"] = np.ones(1, np.float32)
    with open_checkpoint(case.save(tmp_path)) as ours:
        assert any(note.startswith("1 tensors") and "cache" in note for note in ours.notes)


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"dtype": "int4"}, "dtype of the weights is 'int4'.*which has 'fp4'"),
        ({"group_size": 16}, "group_size of the weights is 16"),
        ({"scale_format": "float32"}, "scale_format of the weights is 'float32'"),
    ],
)
@pytest.mark.parametrize("where", ["global_quant_config", "*q_proj"])
def test_another_form_of_quark_is_refused(change, words, where, tmp_path):
    other = {"weight": QUARK_WEIGHT | change}
    block = QUARK | (
        {where: other} if "global" in where else {"layer_quant_config": {where: other}}
    )
    case = writers.quantised("hf", writers.only_linears(writers.mxfp4), block)
    with pytest.raises(ConfigError, match=words):
        open_checkpoint(case.save(tmp_path))
