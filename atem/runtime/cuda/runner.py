"""The tensor side: fills slots, decodes rows, and is told which.

Rules: ints and lists come in, numbers for a sampler go out; no request is
known here. Everything runs in inference mode.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import torch

from .attention import AllInOne, EachItsOwn
from .cache import aligned
from .choice import choose
from .graphs import Graphs

if TYPE_CHECKING:
    from collections.abc import Sequence

    from ..sampling import Candidates
    from .cache import Block, Cache
    from .model import Model


class Runner:
    """A model with the cache of its slots.

    With ``static``, decoding uses a few shapes again and again (batches and
    bounds are powers of two), and records them where there is a GPU.
    """

    def __init__(self, model: Model, cache: Cache, *, max_batch: int, static: bool) -> None:
        device = model.weights.embed.device
        self.cache = cache
        self._model, self._device, self._static = model, device, static
        self._graphs = Graphs() if static and device.type == "cuda" else None
        with torch.inference_mode():
            self._input = torch.zeros(2, max_batch, dtype=torch.int64, device=device)
            self._logits = torch.zeros(max_batch, model.config.vocab_size, device=device)

    def reserve(self, slots: int, length: int) -> None:
        """Have room for ``slots`` requests of up to ``length`` tokens; as ``Cache.grow``."""
        if self.cache.fits(slots, length):
            return
        if self._graphs is not None:
            self._graphs.clear()
        with torch.inference_mode():
            self.cache.grow(slots, length)

    def fill(self, slot: int, start: int, ids: Sequence[int], rows: int = 1) -> torch.Tensor:
        """Compute ``ids`` at the positions from ``start`` on; [rows, V]: logits of the last."""
        with torch.inference_mode():
            attend = AllInOne(self.cache, slot, start, len(ids))
            numbers = torch.tensor(ids, device=self._device)
            hidden = self._model.hidden(numbers, attend.positions, attend)
            return self._model.logits(hidden[len(ids) - rows :])

    def decode(self, rows: Sequence[tuple[int, int]], wanted: int | None = None) -> torch.Tensor:
        """Logits [wanted, V] of the first slots, each after one more token: (id, position).

        There is a row for every slot in use, as each of them may compute
        something. One that is not meant to move is given the position after its
        last: what is written there is overwritten before anybody reads it.
        """
        wanted = len(rows) if wanted is None else wanted
        batch = self.cache.padded(wanted) if self._static else wanted
        rows = [*rows[:batch], *[(0, 0)] * (batch - len(rows))]
        bound = max(position for _, position in rows) + 1
        bound = self.cache.roomy(bound) if self._static else min(aligned(bound), self.cache.length)
        with torch.inference_mode():
            self._input[:, :batch].copy_(torch.tensor(rows).t())
            if self._graphs is None:
                self._step(batch, bound)
            else:
                self._graphs.run((batch, bound), lambda: self._step(batch, bound))
        return self._logits[:wanted]

    def choose(
        self, logits: torch.Tensor, rows: Sequence[int], needs: Sequence[int | None]
    ) -> list[Candidates]:
        """See :func:`.choice.choose`."""
        with torch.inference_mode():
            return choose(logits, rows, needs)

    def copy(self, slot: int, span: range) -> Block:
        """See ``Cache.read``."""
        with torch.inference_mode():
            return self.cache.read(slot, span)

    def restore(self, slot: int, blocks: Sequence[Block]) -> None:
        """See ``Cache.write``."""
        with torch.inference_mode():
            self.cache.write(slot, blocks)

    def move(self, source: int, target: int) -> None:
        """See ``Cache.move``."""
        with torch.inference_mode():
            self.cache.move(source, target)

    def _step(self, batch: int, bound: int) -> None:
        """The part that a graph records: from ``_input`` to ``_logits``, nothing else moves."""
        ids, positions = self._input[:, :batch]
        attend = EachItsOwn(self.cache, positions, bound, self.cache.layers[0].dtype)
        self._logits[:batch] = self._model.logits(self._model.hidden(ids, positions, attend))
