"""Which reading of the weights is right: the loss of a fixed text under each.

Rules: the loss is the judge and nothing else is. A model read in the wrong way
still writes fluent text (model.md 1.4); it only predicts worse. The weights are
streamed tensor by tensor, so that a model of any size can be probed; where it
is large, each reading costs a pass over the whole file, and one text has to do.
"""

from __future__ import annotations

import math
from contextlib import closing
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, Literal, TypeAlias

from ..engine import Progress
from ..errors import RopeUndecided
from .layouts import open_checkpoint
from .probe_texts import PLAIN, TOOL_CALLS
from .tokens import load_tokenizer

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping
    from pathlib import Path

    from numpy.typing import NDArray

    from ..tokenizer import Tokenizer
    from .checkpoint import Checkpoint, RopeStyle
    from .probe_texts import Spelt, Text

    Read: TypeAlias = Callable[[str], NDArray[Any]]

SMALL: Final = 300_000_000
"""Parameters up to which a probe takes seconds and is made unasked."""

MARGIN: Final = 0.1
"""Nats per token by which a reading must be better to be believed."""

CHANCE: Final = 0.7
"""The share of ln(vocabulary) above which a text counts as not predicted at all."""

LONGEST: Final = 2048
"""Tokens that TOOL_CALLS may be spelt in; single bytes are more, and no model has learnt them."""

AS_READ: Final = "as read"
OTHER_ROPE: Final = "with q and k rows in the other order"


@dataclass(frozen=True, slots=True)
class Probe:
    """Mean loss per token of ``text`` (nats) in each reading, the file's own first.

    ``chance`` is ln(vocabulary): the loss of a model that knows nothing.
    """

    losses: Mapping[str, float]
    chance: float
    text: Text = PLAIN

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
        least, *others = sorted(self.losses.values())
        if least > CHANCE * self.chance or not all(loss - least >= MARGIN for loss in others):
            return "unclear"
        return "right" if self.best == AS_READ else "wrong"

    @property
    def good(self) -> bool:
        """Whether the best reading predicts the text as well as a whole model does."""
        return self.losses[self.best] <= self.text.good * self.chance


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
    """The losses as ``checkpoint`` is read, and under the other ``readings`` (all of them).

    The text is PLAIN for a large model. A small one is given TOOL_CALLS too, as
    it may have been trained on little else. What it predicts well decides, or
    else what it predicts better: of what isn't known, a wrong reading may predict
    more than the right one.
    Raises CheckpointError if the tokenizer can't spell the texts.
    """
    names = readings or tuple(_READINGS)
    found = [
        _losses(checkpoint, text, spelt, names, progress)
        for text, spelt in _texts(checkpoint, tokenizer)
    ]
    return min(found, key=lambda probe: (not probe.good, probe.losses[probe.best]))


def _texts(checkpoint: Checkpoint, tokenizer: Tokenizer) -> Iterator[tuple[Text, Spelt]]:
    yield PLAIN, PLAIN.spelt(tokenizer)
    if parameters(checkpoint) > SMALL:
        return
    spelt = TOOL_CALLS.spelt(tokenizer)
    if len(spelt.ids) <= min(LONGEST, checkpoint.config.max_position_embeddings):
        yield TOOL_CALLS, spelt


def parameters(checkpoint: Checkpoint) -> int:
    """How many numbers the model has."""
    return sum(info.size for info in checkpoint.tensors.values())


def _losses(
    checkpoint: Checkpoint,
    text: Text,
    spelt: Spelt,
    names: tuple[str, ...],
    progress: Callable[[Progress], None] | None,
) -> Probe:
    """The loss of one text under each reading; one that is no number counts as infinite."""
    from .reference import Model

    losses = {}
    readings = {AS_READ: _unchanged} | {name: _READINGS[name] for name in names}
    for number, (name, changed) in enumerate(readings.items()):
        if progress is not None:
            progress(Progress("probe", number, len(readings)))
        loss = Model(checkpoint.config, changed(checkpoint)).loss(*spelt)
        losses[name] = math.inf if math.isnan(loss) else loss
    return Probe(losses, math.log(checkpoint.config.vocab_size), text)


def _decided(
    path: str | Path,
    doubt: RopeUndecided,
    *,
    anyway: bool,
    progress: Callable[[Progress], None] | None,
) -> Checkpoint:
    """The checkpoint, in the order of rows that predicts better."""
    with closing(open_checkpoint(path, rope_style="pairs")) as checkpoint:
        if not anyway and parameters(checkpoint) > SMALL:
            raise doubt
        style = _better(checkpoint, doubt, progress)
    return open_checkpoint(path, rope_style=style)


def _better(
    checkpoint: Checkpoint, doubt: RopeUndecided, progress: Callable[[Progress], None] | None
) -> RopeStyle:
    """The order that fits a checkpoint which was opened as "pairs"; raises RopeUndecided."""
    tokenizer = load_tokenizer(checkpoint)
    found = probe_readings(checkpoint, tokenizer, readings=(OTHER_ROPE,), progress=progress)
    if found.verdict == "unclear" or not found.good:
        pairs, half = found.losses.values()
        raise RopeUndecided(
            f"{doubt}. The probe could not tell: the loss of {found.text.name} is {pairs:.2f} nats "
            f"per token as 'pairs' and {half:.2f} as 'half'"
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
