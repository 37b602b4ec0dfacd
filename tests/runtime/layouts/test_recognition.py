"""Folders that are not what they seem: each error says what, where, and what to do (model.md 4.8)."""

from __future__ import annotations

import re
from importlib import metadata

import numpy as np
import pytest

from atem.errors import CheckpointError, LayoutError, TensorError
from atem.runtime.layouts import GROUP, open_checkpoint
from atem.testing.tiny import hf_config, tiny_config, tiny_weights
from tests.runtime.layouts import writers

CONFIG = tiny_config()
WEIGHTS = tiny_weights(CONFIG)
Q = "model.layers.0.self_attn.q_proj.weight"


def hf_tensors(**more):
    return writers.hf(CONFIG, WEIGHTS) | more


def opened(folder, tensors, config=None):
    writers.save(folder, tensors, config or hf_config(CONFIG))
    return open_checkpoint(folder)


def test_missing_and_unknown_tensors_are_counted_and_four_are_named(tmp_path):
    tensors = hf_tensors(**{f"model.language_model.extra{n}.weight": np.ones(1) for n in range(6)})
    gone = [name for name in tensors if ".v_proj." in name]
    kept = {name: values for name, values in tensors.items() if name not in gone}
    with pytest.raises(LayoutError) as caught:
        opened(tmp_path, kept)
    text = str(caught.value)
    assert str(tmp_path) in text
    assert "6 tensors (model.language_model.layers.0.self_attn.v_proj" in text
    assert "6 tensors (model.language_model.extra0.weight" in text
    assert text.count("v_proj") == text.count("extra") == 4


def test_one_missing_tensor_is_an_error(tmp_path):
    tensors = hf_tensors()
    del tensors["lm_head.weight"]
    with pytest.raises(LayoutError, match=r"1 tensors \(lm_head\) are missing"):
        opened(tmp_path, tensors)


def test_layers_beyond_the_configuration_are_an_error(tmp_path):
    config = tiny_config(num_hidden_layers=4, layer_types=CONFIG.layer_types[2:])
    with pytest.raises(LayoutError, match="24 tensors"):
        opened(tmp_path, hf_tensors(), hf_config(config))


def test_a_head_beside_a_tied_table_is_an_error(tmp_path):
    config = tiny_config(tie_word_embeddings=True)
    with pytest.raises(LayoutError, match="set it to false"):
        opened(tmp_path, hf_tensors(), hf_config(config))


def test_the_swapped_norm_names_never_chain(tmp_path):
    """A raw folder with one HF norm name is an error, not a folder with two readings."""
    tensors = writers.raw(CONFIG, WEIGHTS)
    norm = tensors.pop("model.layers.3.post_attn_norm.weight")
    tensors["model.layers.3.pre_feedforward_layernorm.weight"] = norm
    with pytest.raises(LayoutError, match="pre_feedforward_layernorm"):
        opened(tmp_path, tensors, writers.flat_config(CONFIG))


def test_names_of_no_family_name_the_nearest_one(tmp_path):
    tensors = {
        name: values
        for name, values in writers.raw(CONFIG, WEIGHTS).items()
        if not name.endswith(("output_gate_proj.weight", "q_proj.weight"))
    }
    with pytest.raises(LayoutError, match="nearest layout is 'raw'"):
        opened(tmp_path, tensors, writers.flat_config(CONFIG))


def test_another_model_is_of_no_known_layout(tmp_path):
    with pytest.raises(LayoutError, match="no name is known"):
        opened(tmp_path, {"transformer.h.0.attn.c_attn.weight": np.ones((2, 2))})


@pytest.mark.parametrize("version", [0, 2, True, "1", None])
def test_another_version_of_the_marker_is_refused(tmp_path, version):
    config = writers.flat_config(CONFIG) | {"muse_glimmer_mlx_format": version}
    with pytest.raises(CheckpointError, match=r"muse_glimmer_mlx_format.* 1"):
        opened(tmp_path, writers.packed(CONFIG, WEIGHTS), config)


@pytest.mark.parametrize("layout", ["raw", "hf"])
def test_the_marker_on_the_wrong_folder_is_refused(tmp_path, layout):
    tensors = writers.LAYOUTS[layout][0](CONFIG, WEIGHTS)
    with pytest.raises(LayoutError, match="wrong folder"):
        opened(tmp_path, tensors, writers.packed_config(CONFIG))


def test_a_fused_artefact_without_its_marker_is_refused(tmp_path):
    with pytest.raises(LayoutError, match="lacks its marker"):
        opened(tmp_path, writers.packed(CONFIG, WEIGHTS), writers.flat_config(CONFIG))


SHAPES = {
    "lm_head.weight": ((321, 64), "vocab_size x hidden_size"),
    "model.embed_tokens.weight": ((320, 63), "vocab_size x hidden_size"),
    "model.norm.weight": ((65,), "hidden_size"),
    Q: ((128, 64), "num_attention_heads * head_dim x hidden_size"),
    "model.layers.0.self_attn.gate_proj.weight": ((64,), "num_attention_heads * head_dim"),
    "model.layers.1.self_attn.k_proj.weight": ((64, 64), "num_key_value_heads * head_dim"),
    "model.layers.1.self_attn.o_proj.weight": ((64, 1, 64), "hidden_size x num_attention_heads"),
    "model.layers.2.mlp.down_proj.weight": ((96, 64), "hidden_size x intermediate_size"),
    "model.layers.2.input_layernorm.weight": ((64, 1), "hidden_size"),
}


@pytest.mark.parametrize("name", sorted(SHAPES))
def test_a_wrong_shape_names_tensor_got_expected_and_field(tmp_path, name):
    shape, fields = SHAPES[name]
    tensors = writers.bare(CONFIG, WEIGHTS)
    expected = tensors[name].shape
    with pytest.raises(TensorError, match=re.escape(name)) as caught:
        opened(tmp_path, tensors | {name: np.full(shape, 0.5)})
    for part in (str(shape), str(expected), fields):
        assert part in str(caught.value)


def test_a_wrong_shape_of_a_fused_tensor_is_told_as_it_is_stored(tmp_path):
    tensors = writers.packed(CONFIG, WEIGHTS)
    tensors[Q] = tensors[Q][:64]
    with pytest.raises(TensorError, match=r"\(64, 64\).*\(128, 64\) \(2 \* num_attention_heads"):
        opened(tmp_path, tensors, writers.packed_config(CONFIG))


@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf])
@pytest.mark.parametrize("dtype", sorted(writers.DTYPES))
def test_a_value_that_is_not_finite_is_never_handed_out(tmp_path, bad, dtype):
    tensors = hf_tensors()
    name = "model.language_model.layers.1.mlp.up_proj.weight"
    tensors[name] = tensors[name].copy()
    tensors[name][17, 3] = bad
    writers.save(tmp_path, tensors, hf_config(CONFIG), dtype=dtype)
    with open_checkpoint(tmp_path) as checkpoint:
        with pytest.raises(TensorError, match=re.escape(name)):
            checkpoint.read("layers.1.ffn_up")
        with pytest.raises(TensorError, match=re.escape(name)):
            checkpoint.rows("layers.1.ffn_up", [17])
        assert np.isfinite(checkpoint.rows("layers.1.ffn_up", [16])).all()


def test_weights_of_another_number_type_are_refused(tmp_path):
    folder = writers.save(tmp_path, hf_tensors(), hf_config(CONFIG))
    stored = {n: v.astype(np.float64) for n, v in hf_tensors().items()}
    writers.save_file(stored, folder / "model.safetensors")
    with pytest.raises(TensorError, match="F64"):
        open_checkpoint(folder)


def test_parts_that_no_codec_reads_are_named(tmp_path):
    name = "model.language_model.layers.0.mlp.up_proj.zeros"
    with pytest.raises(LayoutError, match=r"mlp\.up_proj .*zeros"):
        opened(tmp_path, hf_tensors(**{name: np.ones(3)}))


@pytest.mark.parametrize("ending", ["freqs", "inv_freq"])
def test_rotary_buffers_are_dropped_with_a_note(tmp_path, ending):
    buffers = {f"model.layers.{n}.self_attn.rotary_emb.{ending}": np.ones(8) for n in range(6)}
    config = writers.flat_config(CONFIG)
    with opened(tmp_path, writers.raw(CONFIG, WEIGHTS) | buffers, config) as checkpoint:
        assert any(note.startswith("6 tensors are not used: rotary") for note in checkpoint.notes)


VISION = [
    "model.vision_tower.patch_embedder.patch_embedding.weight",
    "model.vision_tower.layers.0.attn.q_proj.bias",
    "model.vision_adapter.fc1.weight",
    "model.vision_projection.weight",
    "vision_tower.ln_pre.weight",
    "vision_encoder.layers.0.mlp.fc1.weight",
    "model.vision_encoder.ln_post.bias",
    "vision_adapter.c_fc.weight",
    "vision_projection.weight",
]


@pytest.mark.parametrize("layout", ["hf", "bare", "raw"])
@pytest.mark.parametrize("name", VISION)
def test_vision_tensors_of_every_family_are_set_aside(tmp_path, layout, name):
    write, config = writers.LAYOUTS[layout]
    tensors = write(CONFIG, WEIGHTS) | {name: np.ones(4)}
    with opened(tmp_path, tensors, config(CONFIG)) as checkpoint:
        assert checkpoint.has_vision


def test_a_declared_tower_without_weights_is_a_note(tmp_path):
    config = hf_config(CONFIG) | {"vision_config": {"model_type": "muse_glimmer_vision"}}
    with opened(tmp_path, hf_tensors(), config) as checkpoint:
        assert not checkpoint.has_vision
        assert any("text only" in note for note in checkpoint.notes)


class _Point:
    """An entry point of a distribution that is installed beside atem."""

    name = "mine"
    dist = type("Distribution", (), {"name": "muse-atem-mine"})

    def __init__(self, load):
        self.load = load


def _plug_in(monkeypatch, load):
    def entry_points(*, group):
        assert group == GROUP
        return (_Point(load),)

    monkeypatch.setattr(metadata, "entry_points", entry_points)


def test_a_plug_in_is_asked_after_the_built_in_layouts(tmp_path, monkeypatch):
    class Mine:
        def matches(self, source):
            return "mine" in source.stored

        def open(self, source, rope_style):
            return ("mine", rope_style, source.stored["mine"].shape)

    _plug_in(monkeypatch, Mine)
    assert opened(tmp_path / "mine", {"mine": np.ones(3)}) == ("mine", None, (3,))
    with opened(tmp_path / "hf", hf_tensors()) as checkpoint:
        assert checkpoint.layout == "hf"


def test_a_plug_in_that_fails_names_its_distribution(tmp_path, monkeypatch):
    def load():
        raise RuntimeError("broken")

    _plug_in(monkeypatch, load)
    with pytest.raises(LayoutError, match=r"muse-atem-mine.*broken"):
        opened(tmp_path / "mine", {"mine": np.ones(3)})
