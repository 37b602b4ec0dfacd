"""What the schemas of ``config.json`` share: fields, defaults, and the rules on them.

Rules: defaults are the released model's (model.md 1.1), as transformers fills
them in. Every rule names the keys of the file, not those of ``ModelConfig``.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from pydantic import BaseModel, ConfigDict

from ...errors import ConfigError
from ..config import LayerCount, Positive, PositiveFloat
from ..quoting import show, some
from .parse import is_whole

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

ACTIVATIONS: Final = ("hidden_activation", "hidden_act")

TOKEN_IDS: Final = (
    "bos_token_id", "eos_token_id", "pad_token_id", "image_token_id", "video_token_id",
)  # fmt: skip

NEUTRAL: Final[dict[str, object]] = {
    "use_qk_norm": True, "use_attn_output_gate": True, "normalize_tok_embeddings": True,
    "use_sliding_window": True, "attention_bias": False, "mlp_bias": False,
    "use_bidirectional_attention": False, "attn_temperature_tuning": False,
    "attention_chunk_size": None, "attn_logit_softcapping": None, "query_pre_attn_scalar": None,
    "attention_multiplier": 1, "embedding_multiplier": 1, "residual_multiplier": 1,
    "num_experts": 0, "num_local_experts": 0, "n_routed_experts": 0, "num_kv_shared_layers": 0,
}  # fmt: skip
"""Keys that change the maths, with the one value (besides null) under which they change nothing."""


class Shared(BaseModel):
    """Fields that have one name, one meaning and one default in both schemas."""

    model_config = ConfigDict(strict=True, frozen=True, extra="ignore")

    vocab_size: Positive = 202048
    hidden_size: Positive = 6656
    intermediate_size: Positive = 19968
    num_hidden_layers: LayerCount = 52
    num_attention_heads: Positive = 32
    num_key_value_heads: Positive = 2
    head_dim: Positive = 128
    sliding_window: Positive = 2048
    rms_norm_eps: PositiveFloat = 1e-5
    post_norm_eps: PositiveFloat = 1e-8
    output_multiplier: PositiveFloat = 0.19611613513818404
    tie_word_embeddings: bool = False

    def shared(self) -> dict[str, Any]:
        """These fields, for a ``ModelConfig``."""
        return {name: getattr(self, name) for name in Shared.model_fields}


def refuse_unimplemented(
    raw: Mapping[str, Any], where: str, extra: Mapping[str, object] | None = None
) -> None:
    """Raise ConfigError for another activation than silu, and for what NEUTRAL lists."""
    for key in ACTIVATIONS:
        if key in raw and raw[key] != "silu":
            raise ConfigError(f"{where}{key}={show(raw[key])}; the model is defined with 'silu'")
    require_neutral(raw, {**NEUTRAL, **(extra or {})}, where)


def require_neutral(raw: Mapping[str, Any], neutral: Mapping[str, object], where: str) -> None:
    """Raise ConfigError for a key that is there, not null, and not ``neutral``'s value (or one)."""
    for key, wanted in neutral.items():
        value, allowed = raw.get(key), wanted if isinstance(wanted, tuple) else (wanted,)
        if value is not None and not any(same(value, one) for one in allowed):
            raise ConfigError(
                f"{where}{key}={show(value)} asks for another computation than Muse Glimmer's, "
                f"which no engine here does; only {' or '.join(map(repr, allowed))} is read"
            )


def same(value: object, wanted: object) -> bool:
    """Equal, where a boolean equals no number."""
    return isinstance(value, bool) == isinstance(wanted, bool) and value == wanted


def require_ids(
    raw: Mapping[str, Any], vocab_size: int, where: str, keys: Iterable[str] = TOKEN_IDS
) -> None:
    """Raise ConfigError for a token id (or one in a list) that is not in the vocabulary."""
    for key in keys:
        value = raw.get(key)
        ids = value if isinstance(value, list) else [] if value is None else [value]
        wrong = [show(i) for i in ids if not is_whole(i) or not 0 <= i < vocab_size]
        if wrong:
            raise ConfigError(
                f"{where}{key}: {some(wrong)}; a token id is a whole number from 0 to "
                f"vocab_size - 1 = {vocab_size - 1}"
            )
