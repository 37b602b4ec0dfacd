"""What one turn shares between its messages: counters, types, what went wrong so far.

Rules: state, and the look-ups that every message makes in the same way. What
follows from it is decided by the modules that use it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from .emitter import Emitter
from .values import ParameterTypes

if TYPE_CHECKING:
    from ..messages import RejectedCall
    from ..tools import Tool
    from .options import Options

MAX_REFUTATIONS: Final = 3
"""How often in a turn text may be read again (wire_format 5.4)."""


class Context:
    """The state of a turn that outlives a message.

    ``next_index`` counts announced calls, ``calls`` those that ended.
    ``trusted`` turns False when a later call can't be told from a quoted one
    any more: then none is run. ``unknown`` collects what ``unknown="raise"``
    has yet to raise.
    """

    __slots__ = ("_next_index", "_types", "calls", "options", "out", "refutations", "trusted",
                 "unknown")  # fmt: skip

    def __init__(self, options: Options) -> None:
        self.options = options
        self.out = Emitter()
        self.calls = 0
        self.refutations = 0
        self.trusted = True
        self.unknown: list[RejectedCall] = []
        self._next_index = 0
        self._types: dict[str | None, ParameterTypes] = {}

    @property
    def may_read_again(self) -> bool:
        """Whether an undecided message may still be held (wire_format 5.4)."""
        return self.refutations < MAX_REFUTATIONS

    def fresh_index(self) -> int:
        """An event index that no call of this turn has had."""
        self._next_index += 1
        return self._next_index - 1

    def resolve(self, raw_name: str) -> Tool | None:
        """The declared tool that ``raw_name`` means under the chosen rule (wire_format 6)."""
        return self.options.tools.resolve(raw_name, names=self.options.names)

    def types(self, tool: Tool | None) -> ParameterTypes:
        """The types of a tool's parameters, compiled once; untyped for None."""
        key = None if tool is None else tool.wire_name
        types = self._types.get(key)
        if types is None:
            types = ParameterTypes(None if tool is None else tool.parameters)
            self._types[key] = types
        return types
