"""How much work one validation may be.

Rules: counts, and a clock for patterns alone, so that the same schema and value
always get the same answer. Alternatives that refer to themselves multiply with every level of
a value, and nothing about such a schema is wrong enough to refuse it unread.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from .pattern import Searches

BASE: Final = 20_000
"""Steps for any value: a fraction of a second."""

PER_MEMBER: Final = 100
"""Further steps for each value inside: a union of dozens of objects takes that many."""


class TooCostly(Exception):
    """The steps are used up. Internal: a violation by the time a caller sees it."""


class Budget:
    """The steps that checking ``value`` may take, and those ``spent``.

    A step is a schema that is set up for a value, or applied to one. What a
    step costs depends on that schema and that value alone.
    """

    __slots__ = ("limit", "searches", "spent")

    def __init__(self, value: object) -> None:
        self.limit = BASE + PER_MEMBER * _members(value)
        self.spent = 0
        self.searches: Searches | None = None
        """For the patterns of the schema, once there is one."""

    def spend(self) -> None:
        """Take a step. Raises TooCostly if none is left."""
        if self.spent >= self.limit:
            raise TooCostly
        self.spent += 1


def _members(value: object) -> int:
    """How many values are inside ``value``, at any depth; one that is there twice is open once."""
    pending: list[Any] = [value]
    seen: set[int] = set()
    count = 0
    while pending:
        node = pending.pop()
        if not isinstance(node, Mapping | list | tuple) or id(node) in seen:
            continue
        seen.add(id(node))
        count += len(node)
        pending.extend(node.values() if isinstance(node, Mapping) else node)
    return count
