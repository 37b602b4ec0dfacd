"""The one configuration that engines see, whatever schema a checkpoint has (model.md 3.3).

Rules: HF conventions inside. How the weights of a file are laid out (order of
q and k rows, form of the norms) is a property of the file and stays with its
layout; readers of the schemas are in ``schemas``.
"""

from __future__ import annotations

from typing import Annotated, Literal, Self, TypeAlias

from pydantic import BaseModel, ConfigDict, Field, model_validator

LayerType: TypeAlias = Literal["full_attention", "sliding_attention"]
Positive: TypeAlias = Annotated[int, Field(ge=1, lt=2**31)]
PositiveFloat: TypeAlias = Annotated[float, Field(gt=0, allow_inf_nan=False)]
LayerCount: TypeAlias = Annotated[int, Field(ge=1, le=1024)]
"""Bounded, since lists of this length are made from the number alone, and it is not trusted."""


def layer_pattern(layers: int, period: int = 4) -> tuple[LayerType, ...]:
    """The types of ``layers`` layers: from the last one back, every ``period``-th is full.

    Counting from the front agrees only where ``layers`` is a multiple of the
    period (model.md 1.2).
    """
    return tuple(
        "full_attention" if (layers - 1 - layer) % period == 0 else "sliding_attention"
        for layer in range(layers)
    )


class ModelConfig(BaseModel):
    """The text decoder (model.md 1.1). Field names are those of HF's ``text_config``.

    ``layer_types`` has one entry a layer; rope is applied in sliding layers
    and nowhere else. ``qk_scale_factor`` multiplies the normalised q (3.87 in
    the released model). ``final_logit_softcapping`` None means no cap. Defaults
    are the schemas' business, so that no reader forgets a field unnoticed.
    Raises pydantic's ValidationError for sizes that don't go together
    (model.md 3.4); readers of checkpoints turn it into a ConfigError.
    """

    model_config = ConfigDict(strict=True, frozen=True, extra="forbid")

    vocab_size: Positive
    hidden_size: Positive
    intermediate_size: Positive
    num_hidden_layers: LayerCount
    num_attention_heads: Positive
    num_key_value_heads: Positive
    head_dim: Positive
    layer_types: tuple[LayerType, ...]
    sliding_window: Positive
    max_position_embeddings: Positive
    rope_theta: PositiveFloat
    rms_norm_eps: PositiveFloat
    post_norm_eps: PositiveFloat
    qk_scale_factor: PositiveFloat
    output_multiplier: PositiveFloat
    final_logit_softcapping: PositiveFloat | None
    tie_word_embeddings: bool = False
    vision: bool = False
    """Whether the configuration declares a vision tower (the weights may lack it)."""

    @model_validator(mode="after")
    def _sizes_fit(self) -> Self:
        if self.num_attention_heads % self.num_key_value_heads:
            raise ValueError(
                f"num_attention_heads={self.num_attention_heads} is no multiple of "
                f"num_key_value_heads={self.num_key_value_heads}; query heads share "
                "key-value heads in groups of one size"
            )
        if self.head_dim % 2:
            raise ValueError(f"head_dim={self.head_dim} is odd; rope turns pairs of values")
        if len(self.layer_types) != self.num_hidden_layers:
            raise ValueError(
                f"layer_types has {len(self.layer_types)} entries for "
                f"num_hidden_layers={self.num_hidden_layers}; it has one for each layer"
            )
        return self
