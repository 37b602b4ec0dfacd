"""What a checkpoint is and what it will take, before any weight is read.

Rules: headers and configuration only, no weight. Figures are bytes and counts; whoever
shows them chooses units.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any, Final, Literal, TypeAlias

from .memory import WIDTH, growing_bytes, layer_bytes, ring_bytes

if TYPE_CHECKING:
    from collections.abc import Mapping

    from .checkpoint import Checkpoint
    from .memory import Needs

Verdict: TypeAlias = Literal["fits", "tight", "does not fit", "unknown"]

COMFORT: Final = 0.9
"""The share of the available memory up to which a plan is called comfortable."""

_DENSE: Final = frozenset({"F32", "BF16", "F16"})


@dataclass(frozen=True, slots=True)
class Plan:
    """What loading takes. All sizes are bytes.

    ``weights`` is what the weights take in memory as ``dtype``; ``stored`` what
    they take on disk. A request takes ``ring`` at most in its sliding layers and
    ``per_1k_tokens`` for each 1,000 tokens in its full ones; the prefix cache
    keeps ``cached_per_1k_tokens`` for each 1,000 it remembers, ``prefix_bytes``
    at most. ``encodings`` counts
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
    prefix_bytes: int
    context: int
    available: int | None
    notes: tuple[str, ...]

    @property
    def needed(self) -> int:
        """Bytes for the weights and one request of 1,000 tokens."""
        return self.weights + self.ring + self.per_1k_tokens

    @property
    def context_bytes(self) -> int:
        """Bytes of a request that fills the context."""
        return self.ring + self.per_1k_tokens * self.context // 1000

    @property
    def verdict(self) -> Verdict:
        """Whether ``needed`` is there."""
        if self.available is None:
            return "unknown"
        if self.needed > self.available:
            return "does not fit"
        return "fits" if self.needed <= COMFORT * self.available else "tight"

    def as_dict(self) -> dict[str, Any]:
        """Everything, for JSON."""
        derived = ("needed", "context_bytes", "verdict")
        return asdict(self) | {name: getattr(self, name) for name in derived}


def plan_checkpoint(checkpoint: Checkpoint, needs: Needs) -> Plan:
    """The plan for loading ``checkpoint`` into an engine that ``needs`` this."""
    config, tensors = checkpoint.config, checkpoint.tensors.values()
    width = WIDTH[needs.dtype]
    encodings: Counter[str] = Counter()
    for tensor in tensors:
        encodings[tensor.encoding] += tensor.size
    packed = [tensor for tensor in tensors if tensor.encoding not in _DENSE]
    dequantised = sum(tensor.size for tensor in packed)
    return Plan(
        path=str(checkpoint.path),
        layout=checkpoint.layout,
        dtype=needs.dtype,
        parameters=encodings.total(),
        encodings=dict(encodings.most_common()),
        stored=sum(tensor.stored_bytes for tensor in tensors),
        weights=encodings.total() * width,
        dequantised=dequantised,
        unpacking=dequantised * width - sum(tensor.stored_bytes for tensor in packed),
        ring=ring_bytes(config, needs.dtype),
        per_1k_tokens=growing_bytes(config, needs.dtype) * 1000,
        cached_per_1k_tokens=config.num_hidden_layers * layer_bytes(config, needs.dtype) * 1000,
        prefix_bytes=needs.prefix_bytes,
        context=needs.context,
        available=needs.available,
        notes=checkpoint.notes,
    )
