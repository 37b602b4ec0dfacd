"""What a checkpoint is and what it will take, before any weight is read.

Rules: headers and configuration only. Figures are bytes and counts; whoever
shows them chooses units.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, Literal, TypeAlias

from .memory import WIDTH, available_memory, growing_bytes, layer_bytes, ring_bytes

if TYPE_CHECKING:
    from collections.abc import Mapping

    from .checkpoint import Checkpoint

Verdict: TypeAlias = Literal["fits", "tight", "does not fit", "unknown"]

COMFORT: Final = 0.9
"""The share of the available memory up to which a plan is called comfortable."""

_DENSE: Final = frozenset({"F32", "BF16", "F16", "F64"})


@dataclass(frozen=True, slots=True)
class Plan:
    """What loading takes. All sizes are bytes.

    ``weights`` is what the weights take in memory as ``dtype``; ``stored`` what
    they take on disk. A request takes ``ring`` at most in its sliding layers and
    ``per_1k_tokens`` for each 1,000 tokens in its full ones; the prefix cache
    keeps ``cached_per_1k_tokens`` for each 1,000 it remembers, within its budget.
    ``context_bytes`` is a request that fills the context. ``encodings`` counts
    the parameters by how they are stored; ``dequantised`` those that are
    unpacked when loaded, and ``unpacking`` the bytes which that adds.
    """

    path: str
    layout: str
    dtype: str
    parameters: int
    encodings: Mapping[str, int]
    stored: int
    weights: int
    dequantised: int
    unpacking: int
    ring: int
    per_1k_tokens: int
    cached_per_1k_tokens: int
    context: int
    context_bytes: int
    available: int | None
    verdict: Verdict
    notes: tuple[str, ...]

    @property
    def needed(self) -> int:
        """Bytes for the weights and one request of 1,000 tokens."""
        return self.weights + self.ring + self.per_1k_tokens


def plan_checkpoint(checkpoint: Checkpoint, *, dtype: str, available: int | None = None) -> Plan:
    """The plan for loading ``checkpoint`` as ``dtype`` (float32, bfloat16 or float16).

    ``available`` is the memory of the device in bytes; by default this machine's.
    """
    config, tensors = checkpoint.config, checkpoint.tensors.values()
    available = available_memory() if available is None else available
    encodings: Counter[str] = Counter()
    for tensor in tensors:
        encodings[tensor.encoding] += tensor.size
    parameters = encodings.total()
    packed = [tensor for tensor in tensors if tensor.encoding not in _DENSE]
    dequantised = sum(tensor.size for tensor in packed)
    weights = parameters * WIDTH[dtype]
    ring, growing = ring_bytes(config, dtype), growing_bytes(config, dtype)
    whole = ring + growing * config.max_position_embeddings
    needed = weights + ring + growing * 1000
    return Plan(
        path=str(checkpoint.path),
        layout=checkpoint.layout,
        dtype=dtype,
        parameters=parameters,
        encodings=dict(encodings.most_common()),
        stored=sum(tensor.stored_bytes for tensor in tensors),
        weights=weights,
        dequantised=dequantised,
        unpacking=dequantised * WIDTH[dtype] - sum(tensor.stored_bytes for tensor in packed),
        ring=ring,
        per_1k_tokens=growing * 1000,
        cached_per_1k_tokens=config.num_hidden_layers * layer_bytes(config, dtype) * 1000,
        context=config.max_position_embeddings,
        context_bytes=whole,
        available=available,
        verdict=_verdict(needed, available),
        notes=checkpoint.notes,
    )


def _verdict(needed: int, available: int | None) -> Verdict:
    if available is None:
        return "unknown"
    if needed > available:
        return "does not fit"
    return "fits" if needed <= COMFORT * available else "tight"
