"""Which reading of the weights is right: the loss of a short fixed text under each.

Rules: the loss is the judge and nothing else is. A model read in the wrong way
still writes fluent text (model.md 1.4); it only predicts worse. The weights are
streamed tensor by tensor, so that a model of any size can be probed; where it
is large, each reading costs a pass over the whole file.
"""

from __future__ import annotations

import math
from contextlib import closing
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, Literal, TypeAlias

from .. import wire
from ..engine import Progress
from ..errors import CheckpointError, RopeUndecided
from .layouts import open_checkpoint
from .tokens import load_tokenizer

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from pathlib import Path

    from numpy.typing import NDArray

    from ..tokenizer import Tokenizer
    from .checkpoint import Checkpoint, RopeStyle

    Read: TypeAlias = Callable[[str], NDArray[Any]]

SMALL: Final = 300_000_000
"""Parameters up to which a probe takes seconds and is made unasked."""

MARGIN: Final = 0.1
"""Nats per token by which a reading must be better to be believed."""

CHANCE: Final = 0.7
"""The share of ln(vocabulary) above which a text counts as not predicted at all."""

AS_READ: Final = "as read"
OTHER_ROPE: Final = "with q and k rows in the other order"

_DAYS: Final = "Monday, Tuesday, Wednesday, Thursday, Friday, Saturday, Sunday."
_TURN: Final = (
    (wire.START, "user", wire.MESSAGE, "List the days of the week, please.", wire.EOT),
    (
        wire.START, "assistant to=self", wire.MESSAGE,
        "The user wants the days of the week in a list.", wire.EOM,
    ),
    (
        wire.START, "assistant to=user", wire.MESSAGE,
        f"{_DAYS}\nAgain: {_DAYS}", wire.EOT,
    ),
)  # fmt: skip
TEXT: Final = (
    wire.BEGIN_OF_TEXT, wire.START, "system", wire.MESSAGE, "You are a helpful AI assistant.",
    wire.EOT, *(part for message in _TURN for part in message),
)  # fmt: skip
"""What every model of the family has seen much of: the format, plain English, a repetition."""


@dataclass(frozen=True, slots=True)
class Probe:
    """Mean loss per token (nats) of each reading, the file's own first; ``chance`` is ln(V)."""

    losses: Mapping[str, float]
    chance: float

    @property
    def best(self) -> str:
        """The reading that predicts best."""
        return min(self.losses, key=self.losses.__getitem__)

    @property
    def verdict(self) -> Literal["right", "wrong", "unclear"]:
        """Whether the file's own reading is the right one.

        It is unclear when no reading predicts the text, and when the best is
        not better than the next by MARGIN.
        """
        own = self.losses[AS_READ]
        least, *others = sorted(self.losses.values())
        if least > CHANCE * self.chance or not all(loss - least >= MARGIN for loss in others):
            return "unclear"
        return "right" if own == least else "wrong"


def open_settled(
    path: str | Path,
    *,
    rope_style: RopeStyle | None = None,
    probe: bool | None = None,
    progress: Callable[[Progress], None] | None = None,
) -> Checkpoint:
    """``open_checkpoint``, with a suspected old export decided by the loss under both orders.

    ``probe`` None decides that only for up to SMALL parameters, True always,
    False never. Raises RopeUndecided if it is not decided, and what
    ``open_checkpoint`` and ``load_tokenizer`` raise.
    """
    try:
        return open_checkpoint(path, rope_style=rope_style)
    except RopeUndecided as doubt:
        if probe is False:
            raise
        return _decided(path, doubt, anyway=probe is True, progress=progress)


def probe_readings(
    checkpoint: Checkpoint,
    tokenizer: Tokenizer,
    *,
    readings: tuple[str, ...] = (),
    progress: Callable[[Progress], None] | None = None,
) -> Probe:
    """The loss of TEXT as ``checkpoint`` is read, and under the other ``readings`` (all of them).

    Raises CheckpointError if the tokenizer can't spell the text.
    """
    from .reference import Model

    ids = text_ids(tokenizer)
    chosen = {name: _READINGS[name] for name in readings} if readings else _READINGS
    losses = {}
    for number, (name, changed) in enumerate({AS_READ: _unchanged, **chosen}.items()):
        if progress is not None:
            progress(Progress("probe", number, len(chosen) + 1))
        losses[name] = Model(checkpoint.config, changed(checkpoint)).loss(ids)
    return Probe(losses, math.log(checkpoint.config.vocab_size))


def text_ids(tokenizer: Tokenizer) -> list[int]:
    """The ids of TEXT. Raises CheckpointError if a special token is missing."""
    ids: list[int] = []
    for part in TEXT:
        special = tokenizer.special_id(part)
        if part in wire.CONTROL and special is None:
            raise CheckpointError(f"the tokenizer has no special {part}; the probe needs it")
        ids += tokenizer.encode(part) if special is None else [special]
    return ids


def _decided(
    path: str | Path,
    doubt: RopeUndecided,
    *,
    anyway: bool,
    progress: Callable[[Progress], None] | None,
) -> Checkpoint:
    """The checkpoint, in the order of rows that predicts better."""
    with closing(open_checkpoint(path, rope_style="pairs")) as checkpoint:
        if not anyway and sum(info.size for info in checkpoint.tensors.values()) > SMALL:
            raise doubt
        style = _better(checkpoint, doubt, progress)
    return open_checkpoint(path, rope_style=style)


def _better(
    checkpoint: Checkpoint, doubt: RopeUndecided, progress: Callable[[Progress], None] | None
) -> RopeStyle:
    """The order that fits a checkpoint which was opened as "pairs"; raises RopeUndecided."""
    tokenizer = load_tokenizer(checkpoint)
    found = probe_readings(checkpoint, tokenizer, readings=(OTHER_ROPE,), progress=progress)
    if found.verdict == "unclear":
        pairs, half = found.losses.values()
        raise RopeUndecided(
            f"{doubt}. The probe could not tell: a short text has a loss of {pairs:.2f} nats per "
            f"token as 'pairs' and {half:.2f} as 'half'"
        )
    return "pairs" if found.verdict == "right" else "half"


def _unchanged(checkpoint: Checkpoint) -> Read:
    return checkpoint.read


def _other_rope(checkpoint: Checkpoint) -> Read:
    """As if the file had been taken for one in the other order (model.md 1.4)."""
    import numpy as np

    from .layouts.rows import half_from_pairs

    config = checkpoint.config
    heads = {"q": config.num_attention_heads, "k": config.num_key_value_heads}

    def read(name: str) -> NDArray[Any]:
        values = checkpoint.read(name)
        part = name.rpartition(".")[2]
        if part not in heads:
            return values
        order = half_from_pairs(heads[part], config.head_dim)
        return values[order if checkpoint.rope_style == "half" else np.argsort(order)]

    return read


def _shifted_norms(by: int) -> Callable[[Checkpoint], Read]:
    """As if the layers' norms were stored in the other form (model.md 3.3)."""

    def changed(checkpoint: Checkpoint) -> Read:
        def read(name: str) -> NDArray[Any]:
            values = checkpoint.read(name)
            return values.astype("float32") + by if name.endswith("_norm") else values

        return read

    return changed


_READINGS: Final[Mapping[str, Callable[[Checkpoint], Read]]] = {
    OTHER_ROPE: _other_rope,
    "with 1 added to the norms": _shifted_norms(1),
    "with 1 taken off the norms": _shifted_norms(-1),
}
"""What a file may be mistaken for, and how it is read then."""
