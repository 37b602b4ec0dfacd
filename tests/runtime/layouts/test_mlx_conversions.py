"""MLX's conversions: what mlx-lm writes, its own values, overrides of single modules."""

from __future__ import annotations

import json
from functools import partial

import mlx.core as mx
import mlx_lm.utils
import numpy as np
import pytest

from atem.errors import ConfigError, LayoutError, RopeUndecided, TensorError
from atem.runtime.layouts import open_checkpoint
from atem.testing.tiny import hf_config, tiny_weights
from tests.runtime.layouts import quant_writers as writers
from tests.runtime.layouts import writers as plain_writers

BLOCK = {"group_size": 32, "bits": 4, "mode": "affine"}
KINDS = {
    "embed": None,  # the published table is not quantised
    "head": partial(writers.mlx, group=64, bits=6),
    "ffn_down": partial(writers.mlx, bits=8),
    "o": None,
}


def published(name):
    """Four bits, but for a head of six, ffn_down of eight, and o and the table as they are."""
    part = name.rpartition(".")[2]
    return None if part.endswith("norm") else KINDS.get(part, writers.mlx)


def entries():
    block = {"language_model.lm_head": {"group_size": 64, "bits": 6}}
    for layer in range(writers.CONFIG.num_hidden_layers):
        prefix = f"language_model.model.layers.{layer}."
        block[prefix + "mlp.down_proj"] = {"group_size": 32, "bits": 8}
        block[prefix + "self_attn.o_proj"] = False
    return block


def flattened(config):
    """HF names on one level, as mlx-lm keeps them (model.md 3.2)."""
    return config["text_config"] | {k: v for k, v in config.items() if k != "text_config"}


def form(path, module):
    """What mlx-lm asks of each module: no, the default, or its own bits and group."""
    if path.endswith("embed_tokens") or not hasattr(module, "to_quantized"):
        return False
    return {"bits": 8, "group_size": 32} if path.endswith("down_proj") else True


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    folder, config = tmp_path_factory.mktemp("mlx"), writers.CONFIG
    tensors = plain_writers.bare(config, tiny_weights(config))
    described = flattened(hf_config(config))
    source = plain_writers.save(folder / "plain", tensors, described, dtype="bfloat16")
    model, described = mlx_lm.utils.load_model(source)
    model, described = mlx_lm.utils.quantize_model(model, described, 64, 4, quant_predicate=form)
    mlx_lm.utils.save_model(folder / "quantised", model)
    mlx_lm.utils.save_config(described, folder / "quantised" / "config.json")
    return folder / "quantised"


class TestAConversionByMLXItself:
    """mlx-lm loads, quantises and saves the model; mlx dequantises it for comparison."""

    def test_is_read_as_mlx_dequantises_it(self, folder):
        stored = mx.load(str(folder / "model.safetensors"))
        with open_checkpoint(folder) as ours:
            assert ours.layout == "bare"
            for name in ours.tensors:
                module = writers.NAMES["bare"](name).removesuffix(".weight")
                np.testing.assert_array_equal(
                    ours.read(name).astype(np.float32), self.dequantised(stored, module)
                )

    @staticmethod
    def dequantised(stored, module):
        weight = stored[f"{module}.weight"]
        if f"{module}.scales" not in stored:
            return np.array(weight.astype(mx.float32))
        numbers = [stored[f"{module}.{end}"].astype(mx.float32) for end in ("scales", "biases")]
        group, bits = (32, 8) if module.endswith("down_proj") else (64, 4)
        return np.array(mx.dequantize(weight, *numbers, group_size=group, bits=bits))

    def test_says_how_each_tensor_is_stored(self, folder):
        with open_checkpoint(folder) as ours:
            found = {name.rpartition(".")[2]: info.encoding for name, info in ours.tensors.items()}
        assert (found["embed"], found["head"], found["norm"]) == ("BF16", "MLX4", "BF16")
        assert (found["q"], found["ffn_down"], found["ffn_norm"]) == ("MLX4", "MLX8", "BF16")


class TestAMixAsItIsPublished:
    @pytest.mark.parametrize("key", ["quantization", "quantization_config"])
    def test_each_module_is_read_by_its_own_entry(self, key, tmp_path):
        case = writers.quantised("mlx", published, BLOCK | entries(), key=key)
        with open_checkpoint(case.save(tmp_path)) as ours:
            assert ours.layout == "mlx"
            assert ours.rope_style == "half"
            for name, values in case.meant.items():
                np.testing.assert_array_equal(ours.read(name), values)

    def test_the_configuration_may_be_flattened(self, tmp_path):
        case = writers.quantised("mlx", published, BLOCK | entries())
        case = case._replace(config=flattened(case.config))
        with open_checkpoint(case.save(tmp_path)) as ours:
            assert ours.config == writers.CONFIG
            np.testing.assert_array_equal(ours.read("layers.1.q"), case.meant["layers.1.q"])

    def test_a_twin_that_is_not_quantised_opens(self, tmp_path):
        config, weights = writers.CONFIG, tiny_weights(writers.CONFIG)
        tensors = writers.mlx_named(config, weights)
        folder = plain_writers.save(tmp_path, tensors, hf_config(config), dtype="bfloat16")
        with open_checkpoint(folder) as ours:
            assert {info.encoding for info in ours.tensors.values()} == {"BF16"}

    def test_vision_tensors_are_set_aside_in_whatever_form(self, tmp_path):
        case = writers.quantised("mlx", published, BLOCK | entries())
        tower = writers.mlx(np.ones((4, 32), np.float32)).stored
        vision = {f"vision_tower.layers.0.mlp.fc1{end}": part for end, part in tower.items()}
        case.tensors.update(vision)
        with open_checkpoint(case.save(tmp_path)) as ours:
            assert ours.has_vision

    def test_entries_of_modules_that_are_not_here_change_nothing(self, tmp_path):
        block = BLOCK | entries() | {"vision_tower.layers.0.mlp.fc1": {"bits": 8, "group_size": 64}}
        case = writers.quantised("mlx", published, block)
        open_checkpoint(case.save(tmp_path)).close()

    def test_a_normalised_table_leaves_the_order_of_rows_in_doubt(self, tmp_path):
        case = writers.quantised("mlx", published, BLOCK | entries())
        table = case.tensors["language_model.model.embed_tokens.weight"]
        table /= np.sqrt(np.mean(table**2, axis=1, keepdims=True))
        with pytest.raises(RopeUndecided):
            open_checkpoint(case.save(tmp_path))


class TestContradictions:
    """What is declared must fit what is stored; a wrong entry never gives other numbers."""

    @pytest.mark.parametrize(
        "wrong",
        [
            {"bits": 8}, {"bits": 2}, {"bits": 3}, {"group_size": 64}, {"group_size": 128},
            {"bits": 8, "group_size": 64}, {"bits": 2, "group_size": 128},
            {"mode": "mxfp4"}, {"mode": "nvfp4", "group_size": 16},
        ],
    )  # fmt: skip
    def test_another_bits_group_or_mode_is_refused(self, wrong, tmp_path):
        case = writers.quantised("mlx", writers.only_linears(writers.mlx), BLOCK | wrong)
        with pytest.raises((TensorError, LayoutError), match=r"layers\.0\.self_attn\.q_proj"):
            open_checkpoint(case.save(tmp_path))

    def test_scales_of_a_module_that_is_declared_plain_are_refused(self, tmp_path):
        case = writers.quantised("mlx", writers.only_linears(writers.mlx), BLOCK | entries())
        with pytest.raises(ConfigError, match=r"layers\.0\.self_attn\.o_proj is false"):
            open_checkpoint(case.save(tmp_path))

    @pytest.mark.parametrize(
        ("block", "words"),
        [
            ({"bits": 7}, "bits is 7, and atem reads 2, 3, 4, 5, 6, 8"),
            ({"bits": True}, "bits is True"),
            ({"bits": "4"}, "bits is '4'"),
            ({"group_size": 16}, "group_size is 16, and atem reads 32, 64, 128"),
            ({"mode": "int4"}, "mode 'int4' is none of affine, nvfp4, mxfp4, mxfp8"),
            ({"mode": ["affine"]}, "mode .* is none of"),
            ({"mode": "nvfp4", "group_size": 32}, "group_size is 32, and atem reads 16"),
            ({"lm_head": {"bits": 9}}, "quantization of lm_head: bits is 9"),
        ],
    )
    def test_what_mlx_does_not_have_is_refused(self, block, words, tmp_path):
        case = writers.quantised("mlx", writers.only_linears(writers.mlx), BLOCK | block)
        with pytest.raises(ConfigError, match=words):
            open_checkpoint(case.save(tmp_path))

    def test_what_the_block_leaves_out_is_mlx_default(self, tmp_path):
        form = writers.only_linears(partial(writers.mlx, group=64))
        case = writers.quantised("mlx", form, {"mode": "affine"})
        with open_checkpoint(case.save(tmp_path)) as ours:
            np.testing.assert_array_equal(ours.read("layers.0.v"), case.meant["layers.0.v"])

    @pytest.mark.parametrize("end", ["biases", "weight"])
    def test_a_part_that_is_missing_is_refused(self, end, tmp_path):
        case = writers.quantised("mlx", writers.only_linears(writers.mlx), BLOCK)
        del case.tensors[f"language_model.model.layers.2.mlp.up_proj.{end}"]
        with pytest.raises(LayoutError, match=r"layers\.2\.mlp\.up_proj is stored as"):
            open_checkpoint(case.save(tmp_path))

    def test_a_part_too_many_is_refused(self, tmp_path):
        case = writers.quantised("mlx", writers.only_linears(writers.mlx), BLOCK)
        case.tensors["language_model.model.layers.2.mlp.up_proj.global_scale"] = np.ones(
            1, np.float32
        )
        with pytest.raises(LayoutError, match=r"up_proj is stored as \(.*global_scale"):
            open_checkpoint(case.save(tmp_path))


def test_a_packed_artefact_shares_the_rows_of_q_and_gate(tmp_path):
    case = writers.quantised("packed", writers.matrices(writers.mlx), BLOCK)
    folder = case.save(tmp_path)
    stored = json.loads((folder / "config.json").read_text())
    assert stored["muse_glimmer_mlx_format"] == 1
    assert not any("output_gate_proj" in name for name in case.tensors)
    with open_checkpoint(folder) as ours:
        for name in ("layers.3.q", "layers.3.gate"):
            np.testing.assert_array_equal(ours.read(name), case.meant[name])
