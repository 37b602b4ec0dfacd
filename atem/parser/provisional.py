"""Calls as they form: the provisional events of the first reading.

Rules: what is announced here is a promise to end it: each ``CallStart`` is
followed by a ``CallEnd`` or a ``CallRejected`` of the same index. Nothing here
decides whether a call may run.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from .events import ArgumentsDelta, CallRejected, CallStart
from .values import escape_json, to_json

if TYPE_CHECKING:
    from ..tools import Tool
    from .calls import Invoke
    from .context import Context
    from .rope import Rope
    from .values import ParameterTypes, ValueType


class Live:
    """A call that has been announced and not yet ended."""

    __slots__ = ("id", "index", "keys", "start", "types")

    def __init__(self, index: int, call_id: str, start: int, types: ParameterTypes) -> None:
        self.index = index
        self.id = call_id
        self.start = start
        self.types = types
        self.keys: set[str] = set()


def announce(context: Context, invoke: Invoke, tool: Tool | None, recipient: str | None) -> Live:
    """Emit the ``CallStart`` of ``invoke`` under a fresh index."""
    live = Live(context.fresh_index(), context.options.new_id(), invoke.start, context.types(tool))
    name = invoke.name if tool is None else tool.name
    namespace = None if tool is None else tool.namespace
    fields = (live.index, live.id, name, namespace, invoke.name, recipient)
    context.out.put(CallStart, *fields, end=invoke.tag_end)
    return live


class Provisional:
    """Listens to the first reading of one tool body and emits its calls as they form.

    ``announced`` holds the calls not yet ended, by the position of their invoke.
    ``index`` is set while text of a value may be passed on as it comes: it is
    then the index of its call.
    """

    __slots__ = (
        "_context",
        "_live",
        "_opening",
        "_out",
        "_recipient",
        "_rope",
        "_type",
        "announced",
        "index",
    )

    def __init__(self, context: Context, rope: Rope, recipient: str | None) -> None:
        self._context = context
        self._out = context.out
        self._rope = rope
        self._recipient = recipient
        self.announced: dict[int, Live] = {}
        self.index: int | None = None
        self._live: Live | None = None
        self._type: ValueType | None = None
        self._opening = ""

    def named(self, invoke: Invoke) -> None:
        """Announce the call if its name resolves, or unknown ones are forwarded."""
        tool = self._context.resolve(invoke.name)
        self._live = self._type = self.index = None
        if tool is not None or self._context.options.unknown == "forward":
            self._live = announce(self._context, invoke, tool, self._recipient)
            self.announced[invoke.start] = self._live

    def parameter(self, key: str, end: int) -> None:
        """Begin a parameter whose tag reaches to ``end``.

        A string's opening is emitted at once; anything else is told whole at its
        close. A repeated parameter takes the call back.
        """
        live = self._live
        if live is None:
            return
        if key in live.keys:
            self._live = self._type = None
            self._withdraw(live)
            return
        opening = f"{', ' if live.keys else '{'}{to_json(key)}: "
        live.keys.add(key)
        self._type = live.types[key]
        if self._type.string_only:
            self.index = live.index
            self._out.put(ArgumentsDelta, live.index, opening + '"', end=end)
        else:
            self._opening = opening

    def value(self, text: str, end: int) -> None:
        """Pass on text of a value that is a string whatever follows."""
        if self.index is not None:
            self._out.put(ArgumentsDelta, self.index, escape_json(text), end=end)

    def value_closed(self, start: int, end: int, behind: int) -> None:
        """End a value: the quote of a string, the whole of anything else."""
        live, kind = self._live, self._type
        if live is None or kind is None:
            return
        text = '"'
        if self.index is None:
            text = self._opening + to_json(kind.decode(self._rope.slice(start, end)))
        self._out.put(ArgumentsDelta, live.index, text, end=behind)
        self._type = self.index = None

    def closed(self, invoke: Invoke) -> None:
        """Close the object. The call stays provisional until its message is decided."""
        if self._live is not None:
            closing = "}" if self._live.keys else "{}"
            self._out.put(ArgumentsDelta, self._live.index, closing, end=invoke.end or 0)
        self._live = None

    def withdraw(self) -> None:
        """Take back every announced call without a verdict."""
        self._live = self._type = self.index = None
        for live in list(self.announced.values()):
            self._withdraw(live)

    def _withdraw(self, live: Live) -> None:
        del self.announced[live.start]
        self._out.put(CallRejected, live.index, None)
