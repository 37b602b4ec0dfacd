"""CUDA graphs: a pass recorded once and played again without a launch for each kernel.

Rules: whatever is recorded reads and writes at fixed addresses; who replaces a
buffer calls ``clear``.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import torch

if TYPE_CHECKING:
    from collections.abc import Callable, Hashable


class Graphs:
    """Recorded passes by key; all share one pool of memory, as one is played at a time."""

    def __init__(self) -> None:
        self._graphs: dict[Hashable, torch.cuda.CUDAGraph] = {}
        self._pool: Any = None

    def run(self, key: Hashable, step: Callable[[], None]) -> None:
        """Do ``step``, which does the same each time for the same key but for what buffers hold."""
        if key not in self._graphs:
            self._graphs[key] = self._record(step)
        self._graphs[key].replay()

    def clear(self) -> None:
        """Forget all recordings."""
        self._graphs.clear()
        self._pool = None

    def _record(self, step: Callable[[], None]) -> torch.cuda.CUDAGraph:
        # Once outside, on a stream of its own, so that libraries set themselves up unrecorded.
        side = torch.cuda.Stream()  # type: ignore[no-untyped-call]
        side.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(side):
            step()
        torch.cuda.current_stream().wait_stream(side)
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph, pool=self._pool, capture_error_mode="thread_local"):
            step()
        self._pool = graph.pool()
        return graph
