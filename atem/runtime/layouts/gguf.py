"""GGUF: llama.cpp's names, rows in pairs, absolute norms, blocks (model.md 4.4).

Rules: the file's metadata are the configuration; ``config.json`` beside it must
agree and then gives the numbers undiminished by float32. The factor of q is
stored as a constant norm of q and nowhere else: it is taken, the norms dropped.
"""

from __future__ import annotations

import math
import re
from typing import TYPE_CHECKING, Any, Final

from ...errors import ConfigError, LayoutError, TensorError
from ..quoting import show, some
from ..schemas import config_from_gguf, read_config
from ..schemas.family import MODEL_TYPES
from ..schemas.gguf import foreign
from .assembly import Form, assemble
from .codecs.gguf import gguf_codec
from .codecs.plain import Plain
from .names import DROPPED, Names

if TYPE_CHECKING:
    from collections.abc import Mapping

    from ..checkpoint import Checkpoint, RopeStyle
    from ..config import ModelConfig
    from .codecs import Codec
    from .source import Source, StoredTensor

NAMES: Final = Names(
    {"embed": "token_embd", "norm": "output_norm", "head": "output"},
    "blk.{}.",
    {
        "attn_norm": "attn_norm", "q": "attn_q", "k": "attn_k", "v": "attn_v",
        "gate": "attn_gate", "o": "attn_output", "post_attn_norm": "post_attention_norm",
        "ffn_norm": "ffn_norm", "ffn_gate": "ffn_gate", "ffn_up": "ffn_up",
        "ffn_down": "ffn_down", "post_ffn_norm": "post_ffw_norm",
    },
)  # fmt: skip
FORM: Final = Form(name="gguf", names=NAMES, absolute_norms=True)

_CONSTANT: Final = re.compile(r"^blk\.\d+\.attn_[qk]_norm\.weight$")
_NORMS: Final = ("attn_q_norm", "attn_k_norm")
_LAYER: Final = re.compile(r"^blk\.(\d+)\.")
_DROPPED: Final = DROPPED | {
    "constant norms of q and k (their factor is in the configuration)": _CONSTANT
}
_FROM_FILE: Final = {"tie_word_embeddings", "vision"}
"""Fields that GGUF metadata do not have."""


class GGUF:
    """The layout of GGUF files."""

    def matches(self, source: Source, /) -> bool:
        """Whether ``source`` is a GGUF file."""
        return bool(source.files.gguf)

    def open(self, source: Source, rope_style: RopeStyle | None, /) -> Checkpoint:
        """The checkpoint. Rows are in pairs unless ``rope_style`` says otherwise.

        Raises LayoutError for another architecture and for tensors that are
        missing or too many, ConfigError for metadata, TensorError for a type
        that is not read and for norms of q and k that are no constants.
        """
        _check_architecture(source)
        config = _config(source, _qk_scale(source))
        _check_widths(source, config.head_dim)
        if rope_style == "half":
            source.notes.append("rope_style='half' was set; GGUF files are defined to be 'pairs'")
        return assemble(
            source, FORM, config, rope_style or "pairs", choose=_choose, dropped=_DROPPED
        )


LAYOUTS: Final = (GGUF(),)


def _choose(source: Source, module: str) -> Codec | None:
    tensor = source.stored.get(f"{module}.weight")
    return None if tensor is None else gguf_codec(tensor)


def _check_architecture(source: Source) -> None:
    why = foreign(source.files.gguf)
    if why is not None:
        raise LayoutError(f"{source.path}: {why}")


def _config(source: Source, qk_scale: float | None) -> ModelConfig:
    config = config_from_gguf(source.files.gguf, qk_scale)
    config = config.model_copy(update={"tie_word_embeddings": "output.weight" not in source.stored})
    if source.config.get("model_type") not in MODEL_TYPES:
        if source.config:
            source.notes.append("config.json beside the file is of another model: it is ignored")
        return config
    beside = read_config(source.config)
    _check_agreement(source, config, beside)
    return beside


def _check_agreement(source: Source, config: ModelConfig, beside: ModelConfig) -> None:
    own, other = (c.model_dump(exclude=_FROM_FILE) for c in (config, beside))
    differ = [name for name, value in own.items() if not _close(value, other[name])]
    if differ:
        both = [f"{n} {show(own[n])} / {show(other[n])}" for n in differ]
        raise ConfigError(
            f"{source.path} and the config.json beside it differ in {some(both)}: they are of"
            " different models, move the config.json away"
        )


def _close(value: Any, other: Any) -> bool:
    """Whether two settings are equal, or numbers that float32 can't tell apart for sure."""
    if isinstance(value, float) and isinstance(other, float):
        return math.isclose(value, other, rel_tol=1e-6)
    return bool(value == other)


def _qk_scale(source: Source) -> float | None:
    """The constant of the q norms; None for a file without norms of q and k."""
    norms = {name: t for name, t in source.stored.items() if _CONSTANT.match(name)}
    if not norms:
        _check_conversion(source)
        return None
    _check_complete(source, norms)
    q, k = ({_constant(t) for name, t in norms.items() if part in name} for part in _NORMS)
    if len(q) > 1 or k != {1.0}:
        raise TensorError(
            f"{source.path}: attn_q_norm is {some(sorted(q))} and attn_k_norm {some(sorted(k))}; q"
            " has one factor in all layers, and k is 1: the file was converted wrongly"
        )
    return q.pop()


def _check_conversion(source: Source) -> None:
    """Refuse the known bad conversions; say what is assumed of the others."""
    bad = next((name for name, t in source.stored.items() if t.dtype == "NVFP4"), None)
    if bad is not None:
        raise TensorError(
            f"{source.path}: {bad} is stored as NVFP4 and the file has no norms of q and k: such "
            "conversions also lack the order of q and k rows, and the model repeats one token "
            "(ggml-org/llama.cpp#27178); take another file"
        )
    source.notes.append("the file has no norms of q and k: q is scaled by 3.87, as released")


def _check_complete(source: Source, norms: Mapping[str, StoredTensor]) -> None:
    layers = {match[1] for name in source.stored if (match := _LAYER.match(name))} | {"0"}
    wanted = {f"blk.{layer}.{part}.weight" for layer in layers for part in _NORMS}
    missing = sorted(wanted - norms.keys())
    if missing:
        raise LayoutError(
            f"{source.path}: {len(missing)} norms of q and k are missing "
            f"({some(missing)}) and others are there; the file was converted wrongly"
        )


def _constant(tensor: StoredTensor) -> float:
    values = Plain(tensor).read()
    first = values.flat[0]
    if not (values == first).all():
        raise TensorError(
            f"{tensor.file}: {tensor.name} is no constant ({values.min()} to {values.max()}); the "
            "model has no weights there, and a factor per channel is not its computation"
        )
    return float(first)


def _check_widths(source: Source, head_dim: int) -> None:
    for name, tensor in source.stored.items():
        if _CONSTANT.match(name) and tensor.shape != (head_dim,):
            raise TensorError(
                f"{source.path}: {name} has shape {list(tensor.shape)}, and attention.key_length "
                f"says {head_dim}: weights and metadata are of different models"
            )
