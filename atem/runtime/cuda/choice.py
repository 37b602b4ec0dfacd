"""The candidates of each row, found on the device; only they are copied to the host.

Rules: the same candidates as :func:`atem.runtime.sampling.candidates` finds,
whatever other rows there are.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import torch

from ..sampling import Candidates, candidates

if TYPE_CHECKING:
    from collections.abc import Sequence

    from torch import Tensor


def choose(logits: Tensor, rows: Sequence[int], needs: Sequence[int | None]) -> list[Candidates]:
    """Candidates for some rows of float32 logits [N, V], each with its own need."""
    found: dict[int, Candidates] = {}
    for need in dict.fromkeys(needs):
        same = [row for row, wanted in zip(rows, needs, strict=True) if wanted == need]
        part = logits if same == list(range(len(logits))) else logits[same]
        found.update(zip(same, _alike(part, need), strict=True))
    return [found[row] for row in rows]


def _alike(logits: Tensor, need: int | None) -> list[Candidates]:
    if need is None:
        return [candidates(row, None) for row in logits.cpu().numpy()]
    ids = logits.argmax(-1, keepdim=True) if need == 1 else _best(logits, need)
    values = logits.gather(-1, ids).cpu().numpy()
    totals = logits.logsumexp(-1).tolist()
    rows = zip(ids.cpu().numpy().astype(np.int64), values, totals, strict=True)
    return [Candidates(*row) for row in rows]


def _best(logits: Tensor, need: int) -> Tensor:
    """Ids of the largest logits, best first, the lower id of two that are equal.

    Ties are common in bfloat16 and ``topk`` leaves them open, so it ranks whole
    numbers that have none: the bits of a float in its order, then the id from behind.
    """
    last = logits.shape[-1] - 1
    bits = (logits + 0.0).view(torch.int32)  # -0 and 0 are equal
    ordered = (bits ^ ((bits >> 31) & 0x7FFFFFFF)).long()
    behind = torch.arange(last, -1, -1, device=logits.device)
    best = ((ordered << 32) + behind).topk(need, sorted=True).values
    return last - (best & 0xFFFFFFFF)
