"""ModelOpt's checkpoints: mixed recipes, names in lists, files beside the configuration."""

from __future__ import annotations

import json
from functools import partial

import numpy as np
import pytest

from atem.errors import ConfigError, LayoutError, TensorError
from atem.runtime.layouts import open_checkpoint
from tests.runtime.layouts import quant_writers as writers

NVFP4 = {"quant_method": "modelopt", "quant_algo": "NVFP4"}
LAYERS = range(writers.CONFIG.num_hidden_layers)


def mixed(name):
    forms = {
        "ffn_gate": writers.modelopt_nvfp4,
        "ffn_up": partial(writers.modelopt_nvfp4, activations=False),
        "gate": writers.fp8,
        "head": writers.mxfp8,
    }
    return forms.get(name.rpartition(".")[2])


def recipe(layout="hf"):
    """A mixed recipe that lists every module under the name it has in the file."""
    algorithms = {
        "ffn_gate": {"quant_algo": "NVFP4", "group_size": 16},
        "ffn_up": {"quant_algo": "W4A16_NVFP4", "group_size": 16},
        "gate": {"quant_algo": "FP8"},
    }
    listed = {
        writers.NAMES[layout](f"layers.{layer}.{part}").removesuffix(".weight"): algorithm
        for layer in LAYERS
        for part, algorithm in algorithms.items()
    }
    listed["lm_head"] = {"quant_algo": "MXFP8", "group_size": 32}
    return {"quant_method": "modelopt", "quant_algo": "MIXED_PRECISION", "quantized_layers": listed}


def assert_reads(case, folder):
    with open_checkpoint(folder) as ours:
        for name, values in case.meant.items():
            np.testing.assert_array_equal(ours.read(name), values)
        return ours


@pytest.mark.parametrize("layout", ["hf", "bare", "raw"])
def test_a_recipe_names_modules_as_the_file_does(layout, tmp_path):
    case = writers.quantised(layout, mixed, recipe(layout))
    ours = assert_reads(case, case.save(tmp_path))
    found = {name.rpartition(".")[2]: info.encoding for name, info in ours.tensors.items()}
    kinds = found["ffn_gate"], found["ffn_up"], found["gate"], found["head"], found["q"]
    assert kinds == ("NVFP4", "NVFP4", "FP8", "MXFP8", "F32")


def test_the_recipe_may_lie_in_a_file_of_its_own(tmp_path):
    case = writers.quantised("hf", mixed, {})
    block = recipe()
    del block["quant_method"]
    quantisation = {"producer": {"name": "modelopt", "version": "0.33"}, "quantization": block}
    folder = case.save(tmp_path)
    (folder / "hf_quant_config.json").write_text(json.dumps(quantisation))
    assert_reads(case, folder)


def test_the_recipe_beside_a_configuration_that_names_only_the_method_is_read(tmp_path):
    block = recipe()
    listed = block.pop("quantized_layers")
    listed["lm_head"] = {"quant_algo": "FP8"}  # which is wrong
    folder = writers.quantised("hf", mixed, block).save(tmp_path)
    beside = {"producer": {"name": "modelopt"}, "quantization": {"quantized_layers": listed}}
    (folder / "hf_quant_config.json").write_text(json.dumps(beside))
    with pytest.raises(ConfigError, match="lm_head means FP8, and it is stored as MXFP8"):
        open_checkpoint(folder)


def test_a_recipe_by_another_tool_is_refused(tmp_path):
    folder = writers.quantised("hf", mixed, {}).save(tmp_path)
    (folder / "hf_quant_config.json").write_text(json.dumps({"producer": {"name": "other"}}))
    with pytest.raises(ConfigError, match=r"hf_quant_config.json is by 'other'"):
        open_checkpoint(folder)


@pytest.mark.parametrize("key", ["ignore", "exclude_modules"])
def test_modules_that_are_left_out_are_read_as_they_are(key, tmp_path):
    block = NVFP4 | {key: ["lm_head", "*embed_tokens*"]}
    case = writers.quantised("hf", writers.only_linears(writers.modelopt_nvfp4), block)
    ours = assert_reads(case, case.save(tmp_path))
    assert ours.tensors["head"].encoding == ours.tensors["embed"].encoding == "F32"


@pytest.mark.parametrize("place", ["self_attn", "self_attn.k_proj"])
def test_scales_of_a_quantised_cache_are_dropped_with_a_note(place, tmp_path):
    case = writers.quantised("hf", writers.only_linears(writers.modelopt_nvfp4), NVFP4)
    for layer in LAYERS:
        for end in ("k_scale", "v_scale"):
            name = f"model.language_model.layers.{layer}.{place}.{end}"
            case.tensors[name] = np.array(0.5, np.float32)
    ours = assert_reads(case, case.save(tmp_path))
    assert [
        note for note in ours.notes if "cache" in note and note.startswith(f"{2 * len(LAYERS)} ")
    ]


@pytest.mark.parametrize(
    "algorithm", ["NVFP4_AWQ", "W4A8_AWQ", "FP8_PB_WO", "INT4_AWQ", "nvfp4", 4, ["NVFP4"]]
)
def test_another_algorithm_is_refused_with_its_name(algorithm, tmp_path):
    case = writers.quantised("hf", lambda name: None, NVFP4 | {"quant_algo": algorithm})
    with pytest.raises(ConfigError, match=r"quant_algo is .*atem reads NVFP4, W4A16_NVFP4, MXFP8"):
        open_checkpoint(case.save(tmp_path))


def test_another_algorithm_of_one_module_is_refused_with_the_module(tmp_path):
    block = recipe()
    block["quantized_layers"]["lm_head"] = {"quant_algo": "INT4_AWQ"}
    case = writers.quantised("hf", mixed, block)
    with pytest.raises(ConfigError, match="of lm_head is 'INT4_AWQ'"):
        open_checkpoint(case.save(tmp_path))


@pytest.mark.parametrize(
    ("listed", "stored"),
    [("MXFP8", "FP8"), ("NVFP4", "FP8"), ("FP8", "NVFP4"), ("FP8", "F32")],
)
def test_a_module_stored_otherwise_than_listed_is_refused(listed, stored, tmp_path):
    part = {"FP8": "gate", "NVFP4": "ffn_up", "F32": "q"}[stored]
    name = writers.NAMES["hf"](f"layers.1.{part}").removesuffix(".weight")
    block = recipe()
    block["quantized_layers"][name] = {"quant_algo": listed}
    case = writers.quantised("hf", mixed, block)
    with pytest.raises(ConfigError, match=rf"{name} means {listed}, and it is stored as {stored}"):
        open_checkpoint(case.save(tmp_path))


def test_a_format_beside_the_only_one_that_is_declared_is_refused(tmp_path):
    case = writers.quantised("hf", mixed, NVFP4)
    with pytest.raises(ConfigError, match="means NVFP4, and it is stored as FP8"):
        open_checkpoint(case.save(tmp_path))


def test_another_group_size_is_refused(tmp_path):
    block = NVFP4 | {"group_size": 32}
    case = writers.quantised("hf", writers.only_linears(writers.modelopt_nvfp4), block)
    with pytest.raises(ConfigError, match="group_size is 32, and NVFP4 has 16"):
        open_checkpoint(case.save(tmp_path))


def test_scales_of_inputs_before_quantisation_are_refused(tmp_path):
    case = writers.quantised("hf", writers.only_linears(writers.modelopt_nvfp4), NVFP4)
    name = "model.language_model.layers.0.self_attn.q_proj"
    case.tensors[f"{name}.pre_quant_scale"] = np.ones(64, np.float32)
    with pytest.raises(LayoutError, match=rf"{name} is stored as \(.*pre_quant_scale F32"):
        open_checkpoint(case.save(tmp_path))


def test_a_scale_for_every_row_is_refused(tmp_path):
    case = writers.quantised("hf", writers.only_linears(writers.fp8), NVFP4 | {"quant_algo": "FP8"})
    name = "model.language_model.layers.0.self_attn.q_proj.weight_scale"
    case.tensors[name] = np.ones((64, 1), np.float32)
    with pytest.raises(TensorError, match=rf"{name}: got shape \[64, 1\], expected \[1\]"):
        open_checkpoint(case.save(tmp_path))
