"""How much memory there is and how much a request takes, in bytes.

Rules: arithmetic on a configuration, and one look at the machine.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Final, NamedTuple

if TYPE_CHECKING:
    from .config import ModelConfig


class Needs(NamedTuple):
    """What an engine would use with its options.

    ``dtype`` is float32 or bfloat16, ``available`` the free bytes of its device
    (None: nobody knows), ``context`` the tokens of its longest request and
    ``prefix_bytes`` the most that its prefix cache takes.
    """

    dtype: str
    available: int | None
    context: int
    prefix_bytes: int = 0


WIDTH: Final = {"float32": 4, "bfloat16": 2}
"""Bytes of a value."""

_MEMINFO: Final = Path("/proc/meminfo")


def layer_bytes(config: ModelConfig, dtype: str) -> int:
    """Keys and values of one position in one layer (model.md 1.6: 1 KiB in the released model)."""
    return 2 * config.num_key_value_heads * config.head_dim * WIDTH[dtype]


def growing_bytes(config: ModelConfig, dtype: str) -> int:
    """What each further token of a request takes: its keys and values in the full layers."""
    return config.layer_types.count("full_attention") * layer_bytes(config, dtype)


def ring_bytes(config: ModelConfig, dtype: str) -> int:
    """What a request takes at most in the sliding layers: one window each, in rings."""
    sliding = config.layer_types.count("sliding_attention")
    return sliding * config.sliding_window * layer_bytes(config, dtype)


def available_memory() -> int | None:
    """Bytes that this machine can still give, or None where it doesn't say."""
    try:
        lines = _MEMINFO.read_text().splitlines()
    except OSError:
        return _total_memory()
    found = dict(line.split(":", 1) for line in lines if ":" in line)
    if "MemAvailable" not in found:
        return None
    return int(found["MemAvailable"].split()[0]) * 1024


def _total_memory() -> int | None:
    """All of the memory, where nothing tells what is free of it."""
    import os

    try:
        return os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    except (AttributeError, ValueError, OSError):
        return None
