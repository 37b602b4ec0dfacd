"""GGUF metadata (model.md 4.4).

Rules: every key that the architecture needs is there or the file is refused;
only the optional ones have defaults. Numbers are stored as float32 and read as
the shortest decimal that rounds to it, so that a GGUF file and its source give
one configuration.
"""

from __future__ import annotations

import math
import struct
from collections.abc import Sized
from typing import TYPE_CHECKING, Any, Final

from pydantic import BaseModel, ConfigDict, Field

from ...errors import ConfigError
from ..config import LayerCount, Positive, PositiveFloat, layer_pattern
from ..quoting import show
from .common import require_ids, require_neutral, same
from .layers import entries
from .parse import as_object, build, is_whole, parse
from .scale import RELEASED, hf_factor, require_attention_scale

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from ..config import LayerType, ModelConfig

PATTERN: Final = "attention.sliding_window_pattern"
ARCHITECTURES: Final = ("muse-glimmer", "muse_glimmer")
OTHERS: Final = {
    "clip": "the vision half (mmproj) of a model; open the text file beside it",
    "dflash": "a drafter, which makes no text alone; open the model's own file",
}
TOKEN_IDS: Final = tuple(
    f"tokenizer.ggml.{name}_token_id" for name in ("bos", "eos", "eot", "eom", "unknown", "padding")
)
NEUTRAL: Final[dict[str, object]] = {
    "rope.scaling.type": "none", "rope.scaling.factor": (0, 1), "attention.causal": True,
    "expert_count": 0, "attn_logit_softcapping": 0, "attention.clamp_kqv": 0,
    "embedding_scale": (0, 1), "residual_scale": (0, 1),
}  # fmt: skip
"""Keys that change the maths, with the values under which they change nothing."""

SAME: Final = {
    "attention.value_length": "attention.key_length",
    "attention.key_length_swa": "attention.key_length",
    "attention.value_length_swa": "attention.key_length",
    "rope.dimension_count": "attention.key_length",
    "rope.dimension_count_swa": "attention.key_length",
    "rope.freq_base_swa": "rope.freq_base",
}
"""Keys that, where present, have to repeat another: the model has one head size and one theta."""


class _Metadata(BaseModel):
    """The keys of the architecture, without their prefix."""

    model_config = ConfigDict(strict=True, extra="ignore")

    num_hidden_layers: LayerCount = Field(alias="block_count")
    max_position_embeddings: Positive = Field(alias="context_length")
    hidden_size: Positive = Field(alias="embedding_length")
    intermediate_size: Positive = Field(alias="feed_forward_length")
    num_attention_heads: Positive = Field(alias="attention.head_count")
    num_key_value_heads: Positive = Field(alias="attention.head_count_kv")
    head_dim: Positive = Field(alias="attention.key_length")
    value_length: Positive = Field(alias="attention.value_length", exclude=True)
    rms_norm_eps: PositiveFloat = Field(alias="attention.layer_norm_rms_epsilon")
    post_norm_eps: PositiveFloat = Field(1e-8, alias="attention.post_norm_rms_epsilon")
    sliding_window: Positive = Field(alias="attention.sliding_window")
    rope_theta: PositiveFloat = Field(alias="rope.freq_base")
    output_multiplier: PositiveFloat = Field(alias="logit_scale")
    final_logit_softcapping: PositiveFloat
    vocab_size: Positive
    attention_scale: PositiveFloat | None = Field(None, alias="attention.scale", exclude=True)


def config_from_gguf(metadata: Mapping[str, Any], qk_scale: float | None) -> ModelConfig:
    """The configuration in GGUF ``metadata`` (key -> plain value, list or NumPy value).

    ``qk_scale`` is the constant of ``blk.*.attn_q_norm.weight``, None for a
    file without that tensor (3.87). Whether the head is tied is not in the
    metadata: the result says untied, and the reader that misses
    ``output.weight`` changes it. Raises ConfigError.
    """
    metadata = as_object(metadata, "GGUF metadata")
    why = foreign(metadata)
    if why is not None:
        raise ConfigError(why)
    prefix = metadata["general.architecture"] + "."
    values = {
        key.removeprefix(prefix): _plain(value)
        for key, value in metadata.items()
        if isinstance(key, str) and key.startswith(prefix)
    }
    require_neutral(values, NEUTRAL, prefix)
    values["vocab_size"] = _vocab_size(values, metadata, prefix)
    read = parse(_Metadata, values, f"GGUF metadata ({prefix}*)")
    _require_repeats(values, prefix)
    ids = {key: [_plain(metadata[key])] for key in TOKEN_IDS if metadata.get(key) is not None}
    require_ids(ids, read.vocab_size, "", TOKEN_IDS)
    factor = _factor(qk_scale, read.head_dim)
    if read.attention_scale is not None:
        key = prefix + "attention.scale"
        require_attention_scale(read.attention_scale, factor, read.head_dim, key)
    types = _layer_types(values, read.num_hidden_layers, prefix)
    own = {"layer_types": types, "qk_scale_factor": factor}
    return build(read.model_dump() | own, "GGUF metadata, under config.json's names")


def foreign(metadata: Mapping[str, Any]) -> str | None:
    """Why a file of ``metadata`` is of another architecture; None if it is of this one."""
    found = metadata.get("general.architecture")
    name = found if isinstance(found, str) else ""
    if name in ARCHITECTURES:
        return None
    what = OTHERS.get(name, f"not a Muse Glimmer ({' or '.join(ARCHITECTURES)})")
    return f"general.architecture={show(found)}: {what}"


def _plain(value: Any) -> Any:
    """A Python value of a NumPy one; a float32 as the shortest decimal that means it."""
    value = value.tolist() if hasattr(value, "tolist") else value
    if not isinstance(value, float) or not math.isfinite(value):
        return value
    try:
        stored = struct.pack("<f", value)
    except OverflowError:
        return value
    if struct.unpack("<f", stored)[0] != value:
        return value
    short = (float(f"{value:.{digits}g}") for digits in range(6, 10))
    return next((v for v in short if struct.pack("<f", v) == stored), value)


def _vocab_size(values: Mapping[str, Any], metadata: Mapping[str, Any], prefix: str) -> Any:
    """``vocab_size``, else the number of tokens; the tokens have to fit into the former."""
    tokens = metadata.get("tokenizer.ggml.tokens")
    count = len(tokens) if isinstance(tokens, Sized) and not isinstance(tokens, str) else None
    size = values.get("vocab_size", count)
    if size is None:
        raise ConfigError(
            f"GGUF metadata has neither {prefix}vocab_size nor tokenizer.ggml.tokens, so the "
            "size of the vocabulary is unknown; use a file that has one of them"
        )
    if is_whole(size) and count is not None and count > size:
        raise ConfigError(
            f"tokenizer.ggml.tokens has {count} entries, more than {prefix}vocab_size={size}"
        )
    return size


def _require_repeats(values: Mapping[str, Any], prefix: str) -> None:
    for key, other in SAME.items():
        if key in values and not same(values[key], values[other]):
            raise ConfigError(
                f"{prefix}{key}={show(values[key])} and {prefix}{other}={show(values[other])} "
                "differ; the model has one head size and one rope theta"
            )


def _factor(qk_scale: float | None, head_dim: int) -> float:
    if qk_scale is None:
        return RELEASED
    factor = _plain(qk_scale)
    if isinstance(factor, bool) or not isinstance(factor, int | float) or not 0 < factor < 1e9:
        raise ConfigError(f"blk.*.attn_q_norm.weight is {show(factor)}; it is a positive constant")
    return hf_factor(float(factor), head_dim, "hf", "blk.*.attn_q_norm.weight as ")


def _layer_types(values: Mapping[str, Any], layers: int, prefix: str) -> tuple[LayerType, ...]:
    """Types by an array (true: sliding) or a period counted from the front; else the pattern."""
    period: Any = values.get(PATTERN)
    if is_whole(period) and period >= 1:
        return _types((layer + 1) % period != 0 for layer in range(layers))
    sliding = entries(
        values, PATTERN, layers, prefix,
        good=lambda v: isinstance(v, int) and v in (0, 1),
        rule="true (sliding) or false (full); or one number, a period above 0",
    )  # fmt: skip
    return layer_pattern(layers) if sliding is None else _types(sliding)


def _types(sliding: Iterable[int]) -> tuple[LayerType, ...]:
    return tuple("sliding_attention" if slides else "full_attention" for slides in sliding)
