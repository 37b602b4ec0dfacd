"""Muon: momentum whose every update is made orthogonal, about (Keller Jordan, 2024).

Rules: for matrices only, each with a gradient, and in their own precision.
Those of one shape are worked on together, because hundreds of tiny products
are slower than a few larger ones; their momentum is kept with the first.
"""

from __future__ import annotations

from collections import defaultdict
from typing import TYPE_CHECKING, Any

import torch

if TYPE_CHECKING:
    from collections.abc import Iterable

    from torch import Tensor


class Muon(torch.optim.Optimizer):
    """``lr`` is about the size of an update in every direction of a matrix.

    A matrix of more rows than columns is updated by sqrt(rows / columns) times that.
    """

    def __init__(self, params: Iterable[Tensor], lr: float, momentum: float = 0.95) -> None:
        super().__init__(params, {"lr": lr, "momentum": momentum})

    @torch.no_grad()
    def step(self, closure: Any = None) -> None:
        """One update of every matrix; a closure is refused (TypeError)."""
        if closure is not None:
            raise TypeError("Muon takes no closure: call backward() before step()")
        for group in self.param_groups:
            shapes: dict[torch.Size, list[Tensor]] = defaultdict(list)
            for param in group["params"]:
                shapes[param.shape].append(param)
            for params in shapes.values():
                self._update(params, group["lr"], group["momentum"])

    def _update(self, params: list[Tensor], lr: float, momentum: float) -> None:
        grads = torch.stack([param.grad for param in params])  # type: ignore[misc]
        state = self.state[params[0]]
        mean = state.setdefault("mean", torch.zeros_like(grads))
        mean.lerp_(grads, 1 - momentum)
        update = orthogonal(grads.lerp(mean, momentum))
        rows, columns = params[0].shape
        scale = lr * max(1.0, rows / columns) ** 0.5
        for param, change in zip(params, update, strict=True):
            param.sub_(change, alpha=scale)


def orthogonal(matrices: Tensor, steps: int = 5) -> Tensor:
    """The nearest orthogonal matrices [N, rows, columns], about, by Newton-Schulz steps."""
    tall = matrices.shape[-2] > matrices.shape[-1]
    x = matrices.mT if tall else matrices
    x = x / (x.norm(dim=(-2, -1), keepdim=True) + 1e-7)
    for _ in range(steps):
        a = x @ x.mT
        x = 3.4445 * x + (-4.7750 * a + 2.0315 * a @ a) @ x
    return x.mT if tall else x
