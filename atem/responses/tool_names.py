"""The names of a client's tools, and those that the model writes for them.

Rules: a client may call a tool anything; the format carries no space, quote or
bracket in a name, and two tools must differ in ``namespace.name``. Most names
are the same on both sides. The others get a safe one, the same in every
request that declares the tools in the same order, so that prompts stay alike.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from .. import wire
from ..tools.names import MAX_NAME, why_uncallable
from ..wire import dotted

if TYPE_CHECKING:
    from collections.abc import Container

MAX_SAFE: Final = MAX_NAME - len("_00000")
"""Leaves room for a number."""

_UNSAFE: Final = frozenset(wire.BREAKS_TAG + wire.BREAKS_HEADER)


def template_name(
    namespace: str | None, name: str, taken: Container[str]
) -> tuple[str | None, str]:
    """``(namespace, name)`` for the model: as they are if they can be, else a safe name alone."""
    wire_name = dotted(namespace, name)
    if wire_name not in taken and why_uncallable(wire_name) is None:
        return namespace or None, name
    safe = safe_name(wire_name)
    number, free = 1, safe
    while free in taken:
        number += 1
        free = f"{safe}_{number}"
    return None, free


def safe_name(wire_name: str) -> str:
    """``wire_name`` with what the format can't carry as underscores; never a channel's name."""
    text = "".join("_" if _breaks(char) else char for char in wire_name[:MAX_SAFE]) or "_"
    return f"{text}_tool" if text in (wire.SELF, wire.USER) else text


def _breaks(char: str) -> bool:
    return char in _UNSAFE or "\ud800" <= char <= "\udfff"
