"""HF names: nested in ``text_config``, or flattened to the top level (model.md 3.1, 3.2).

Rules: transformers' reading, where it and others agree. Where the same key
stands at two places, both have to say the same, since readers differ in which
one they look at.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from ...errors import ConfigError
from ..config import Positive, PositiveFloat  # noqa: TC001 (pydantic reads them)
from ..quoting import show
from .common import Shared, refuse_unimplemented, require_ids, same
from .family import PROOF, require_family
from .layers import layer_types, thetas
from .parse import as_object, build, parse
from .rope import rope_theta
from .scale import RELEASED, hf_factor

if TYPE_CHECKING:
    from collections.abc import Mapping

    from ..config import ModelConfig

TEXT: Final = "text_config."

_PERIODS: Final = {"every_n_layers_nope": 4, "sliding_window_pattern": 4}
"""Keys that give other schemas' patterns; the one value is that of the derived lists."""


class HFText(Shared):
    """``text_config``, as transformers' MuseGlimmerTextConfig."""

    max_position_embeddings: Positive = 131072
    qk_scale_factor: PositiveFloat = RELEASED
    final_logit_softcapping: PositiveFloat | None = 20.0


def read_nested(raw: Mapping[str, Any], *, vision: bool) -> ModelConfig:
    """Today's multimodal ``config.json``. Raises ConfigError."""
    text = as_object(raw["text_config"], "text_config")
    require_family(text, TEXT)
    _refuse_flat_keys({**raw, **text})
    config = read(text, vision=vision, where=TEXT)
    require_ids(raw, config.vocab_size, "")
    refuse_unimplemented(raw, "", _PERIODS)
    _require_agreement(raw, text, config)
    # transformers ties by the outer key alone; the inner one is written as false beside it.
    tied = raw.get("tie_word_embeddings")
    if tied is None:
        return config
    parse(Shared, {"tie_word_embeddings": tied}, "config.json")
    return config.model_copy(update={"tie_word_embeddings": tied})


def read(raw: Mapping[str, Any], *, vision: bool, where: str = "") -> ModelConfig:
    """The text keys in ``raw``; ``where`` is their place, for messages. Raises ConfigError."""
    place = where.removesuffix(".") or "config.json"
    text = parse(HFText, raw, place)
    refuse_unimplemented(raw, where, _PERIODS)
    require_ids(raw, text.vocab_size, where)
    theta = rope_theta(raw, where)
    rotates = thetas(raw, text.num_hidden_layers, theta, where)
    own = {
        "layer_types": layer_types(raw, rotates, "layer_rope_theta", where),
        "max_position_embeddings": text.max_position_embeddings,
        "rope_theta": theta,
        "qk_scale_factor": hf_factor(text.qk_scale_factor, text.head_dim, "hf", where),
        "final_logit_softcapping": text.final_logit_softcapping,
        "vision": vision,
    }
    return build(text.shared() | own, place)


def _refuse_flat_keys(raw: Mapping[str, Any]) -> None:
    flat = [key for key in (*PROOF["flat"], "muse_glimmer_mlx_format") if key in raw]
    if flat:
        raise ConfigError(
            f"config.json has text_config (HF names) and {', '.join(flat)} (flat names); the same "
            "qk_scale_factor means two things in them, so take the keys of one away"
        )


def _require_agreement(
    raw: Mapping[str, Any], text: Mapping[str, Any], config: ModelConfig
) -> None:
    """Raise ConfigError where a key beside ``text_config`` differs from what is read inside."""
    known = config.model_dump() | {"layer_types": list(config.layer_types)}
    for key in (*HFText.model_fields, "layer_types", "layer_rope_theta"):
        inside = text.get(key, known.get(key))
        if key == "tie_word_embeddings" or raw.get(key) is None or same(raw[key], inside):
            continue
        raise ConfigError(
            f"{key}={show(raw[key])} stands beside text_config, in which it is {show(inside)}; "
            "readers differ in which they take, so keep the right one"
        )
    theta = rope_theta(raw, "", config.rope_theta)
    if theta != config.rope_theta:
        raise ConfigError(
            f"rope theta {theta} stands beside text_config, in which it is {config.rope_theta}; "
            "readers differ in which they take, so keep the right one"
        )
