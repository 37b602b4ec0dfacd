"""Tiny random checkpoints of the real architecture: every quirk, small widths.

Norm weights are far from trivial, so that a reader that loses an offset, swaps
two norms or permutes q and k wrongly gives visibly other logits.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, Self

from ..runtime.checkpoint import SideFiles, TensorInfo, canonical_shapes
from ..runtime.config import ModelConfig, layer_pattern

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    import numpy as np
    from numpy.typing import NDArray

    from ..runtime.checkpoint import RopeStyle

    Weights = Mapping[str, NDArray[np.float32]]

SPECIALS: Final = (
    "<|begin_of_text|>", "<|end_of_text|>", "<|eom|>", "<|eot|>", "<|finetune_right_pad|>",
    "<|start|>", "<|message|>", "<|image_start|>", "<|image_end|>", "<|image|>", "<|video|>",
    "<|patch|>", "<|vid_start|>", "<|vid_end|>", "<|vid_frame_separator|>",
)  # fmt: skip
"""The named special tokens (model.md 5.1), in the order of the tiny tokenizer."""

VOCABULARY: Final = 320
"""256 bytes, 40 merges, the specials, and a few unused ids."""

HF_PREFIX: Final = "model.language_model."
HF_TOP: Final = {
    "embed": HF_PREFIX + "embed_tokens.weight",
    "norm": HF_PREFIX + "norm.weight",
    "head": "lm_head.weight",
}
HF_LAYER: Final = {
    "attn_norm": "input_layernorm", "q": "self_attn.q_proj", "k": "self_attn.k_proj",
    "v": "self_attn.v_proj", "gate": "self_attn.gate_proj", "o": "self_attn.o_proj",
    "post_attn_norm": "post_attention_layernorm", "ffn_norm": "pre_feedforward_layernorm",
    "ffn_gate": "mlp.gate_proj", "ffn_up": "mlp.up_proj", "ffn_down": "mlp.down_proj",
    "post_ffn_norm": "post_feedforward_layernorm",
}  # fmt: skip
_ENCODINGS: Final = {"float32": "F32", "float16": "F16", "bfloat16": "BF16"}


def tiny_config(**changes: Any) -> ModelConfig:
    """A configuration of 6 layers and 64 wide, its window (8) soon passed, with ``changes``.

    6 is no multiple of the pattern's period on purpose (model.md 1.2).
    """
    layers = changes.get("num_hidden_layers", 6)
    sizes: dict[str, Any] = {
        "vocab_size": VOCABULARY, "hidden_size": 64, "intermediate_size": 96,
        "num_hidden_layers": layers, "num_attention_heads": 4, "num_key_value_heads": 2,
        "head_dim": 16, "sliding_window": 8, "max_position_embeddings": 512,
        "layer_types": layer_pattern(layers), "rope_theta": 500000.0, "rms_norm_eps": 1e-5,
        "post_norm_eps": 1e-8, "qk_scale_factor": 3.87, "output_multiplier": 0.19611613513818404,
        "final_logit_softcapping": 20.0,
    }  # fmt: skip
    return ModelConfig(**(sizes | changes))


def tiny_weights(config: ModelConfig, seed: int = 0) -> dict[str, NDArray[np.float32]]:
    """Random canonical weights of ``config``, the same for the same seed."""
    import numpy as np

    random = np.random.default_rng(seed)
    weights: dict[str, NDArray[np.float32]] = {}
    for name, shape in canonical_shapes(config).items():
        values = random.standard_normal(shape)
        if len(shape) == 1:  # the final norm is a plain weight, the others are offsets from 1
            values = 0.3 * values + (1.0 if name == "norm" else 0.0)
        else:
            values = values * shape[-1] ** -0.5
        weights[name] = values.astype(np.float32)
    return weights


def tiny_tokenizer() -> Any:
    """A byte-level BPE ``tokenizers.Tokenizer`` with the named specials; ids below VOCABULARY."""
    from tokenizers import AddedToken, Tokenizer, decoders, models, pre_tokenizers

    alphabet = sorted(pre_tokenizers.ByteLevel.alphabet())
    merges = [("e", "r"), ("t", "o"), ("i", "n"), ("Ġ", "to"), ("s", "e"), ("l", "f"), ("se", "lf")]
    merges += [("u", "se"), ("use", "r"), ("a", "t"), ("e", "m"), ("at", "em")]
    pieces = alphabet + [left + right for left, right in merges]
    backend = Tokenizer(
        models.BPE(vocab={p: n for n, p in enumerate(pieces)}, merges=merges, ignore_merges=True)
    )
    backend.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=True)
    backend.decoder = decoders.ByteLevel()
    backend.add_special_tokens([AddedToken(text, special=True) for text in SPECIALS])
    return backend


def hf_config(config: ModelConfig) -> dict[str, Any]:
    """``config`` as today's nested ``config.json`` (model.md 3.1), without vision."""
    plain = config.model_dump(exclude={"rope_theta", "vision"})
    layer_types = list(plain.pop("layer_types"))
    theta = config.rope_theta
    tokenizer = tiny_tokenizer()
    return {
        "architectures": ["MuseGlimmerForConditionalGeneration"],
        "model_type": "muse_glimmer",
        "image_token_id": tokenizer.token_to_id("<|patch|>"),
        "video_token_id": tokenizer.token_to_id("<|video|>"),
        "tie_word_embeddings": plain.pop("tie_word_embeddings"),
        "text_config": {
            "model_type": "muse_glimmer_text",
            **plain,
            "layer_types": layer_types,
            "layer_rope_theta": [theta if t == "sliding_attention" else 0.0 for t in layer_types],
            "rope_parameters": {"rope_type": "default", "rope_theta": theta},
            "hidden_activation": "silu",
            "attention_bias": False,
            "bos_token_id": tokenizer.token_to_id("<|begin_of_text|>"),
            "eos_token_id": tokenizer.token_to_id("<|end_of_text|>"),
        },
    }


def hf_name(name: str) -> str:
    """The name of a canonical tensor in today's multimodal export (model.md 4.1)."""
    if name in HF_TOP:
        return HF_TOP[name]
    _, layer, part = name.split(".")
    return f"{HF_PREFIX}layers.{layer}.{HF_LAYER[part]}.weight"


def write_side_files(folder: Path) -> None:
    """tokenizer.json, tokenizer_config.json and generation_config.json of the tiny tokenizer."""
    tokenizer = tiny_tokenizer()
    tokenizer.save(str(folder / "tokenizer.json"))
    stops = [tokenizer.token_to_id("<|end_of_text|>"), tokenizer.token_to_id("<|eot|>")]
    files: dict[str, dict[str, Any]] = {
        "tokenizer_config.json": {"bos_token": SPECIALS[0], "eos_token": SPECIALS[1]},
        "generation_config.json": {"eos_token_id": stops, "temperature": 1.0, "top_p": 0.95},
    }
    for name, content in files.items():
        (folder / name).write_text(json.dumps(content, indent=1))


class MemoryCheckpoint:
    """A :class:`~atem.runtime.checkpoint.Checkpoint` of canonical weights in memory, without files.

    It has no tokenizer: give the engine one, such as :func:`tiny_tokenizer`.
    """

    def __init__(
        self, config: ModelConfig | None = None, weights: Mapping[str, NDArray[Any]] | None = None
    ) -> None:
        self.path = Path("memory")
        self.layout = "memory"
        self.config = config or tiny_config()
        self.rope_style: RopeStyle = "half"
        self.files = SideFiles()
        self.has_vision = False
        self.notes: tuple[str, ...] = ()
        self._weights = weights if weights is not None else tiny_weights(self.config)
        self.tensors: Mapping[str, TensorInfo] = {
            name: TensorInfo(values.shape, _ENCODINGS[values.dtype.name], values.nbytes)
            for name, values in self._weights.items()
        }

    def read(self, name: str, /) -> NDArray[Any]:
        """The tensor itself, in whatever type it was given."""
        return self._weights[name]

    def rows(self, name: str, numbers: Sequence[int], /) -> NDArray[np.float32]:
        """Some of its rows, in float32."""
        return self._weights[name][list(numbers)].astype("float32")

    def close(self) -> None:
        """There is nothing to give back."""

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def tiny_checkpoint(
    folder: str | Path,
    *,
    config: ModelConfig | None = None,
    weights: Weights | None = None,
    seed: int = 0,
    dtype: str = "float32",
) -> Path:
    """Write a checkpoint in today's multimodal layout (text only) and return its folder.

    ``dtype`` is float32, float16 or bfloat16.
    """
    import ml_dtypes
    import numpy as np
    from safetensors import numpy as safetensors

    folder = Path(folder)
    folder.mkdir(parents=True, exist_ok=True)
    config = config or tiny_config()
    weights = weights if weights is not None else tiny_weights(config, seed)
    stored = ml_dtypes.bfloat16 if dtype == "bfloat16" else np.dtype(dtype)
    tensors = {hf_name(name): values.astype(stored) for name, values in weights.items()}
    safetensors.save_file(tensors, folder / "model.safetensors", metadata={"format": "pt"})
    (folder / "config.json").write_text(json.dumps(hf_config(config), indent=1))
    write_side_files(folder)
    return folder
