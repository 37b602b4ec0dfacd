"""Calls as they form: the provisional events of the first reading (design 4.2).

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


def announce(
    context: Context, invoke: Invoke, tool: Tool | None, recipient: str | None, end: int
) -> Live:
    """Emit the ``CallStart`` of ``invoke`` under a fresh index."""
    live = Live(context.fresh_index(), context.options.new_id(), invoke.start, context.types(tool))
    name = invoke.name if tool is None else tool.name
    namespace = None if tool is None else tool.namespace
    fields = (live.index, live.id, name, namespace, invoke.name, recipient)
    context.out.put(CallStart, *fields, end=end)
    return live


class Provisional:
    """Listens to the first reading of one tool body and emits its calls as they form.

    ``announced`` holds the calls not yet ended, by the position of their invoke.
    """

    __slots__ = ("_context", "_live", "_out", "_prefix", "_recipient", "_rope", "_streams", "_type",
                 "announced")  # fmt: skip

    def __init__(self, context: Context, rope: Rope, recipient: str | None) -> None:
        self._context = context
        self._out = context.out
        self._rope = rope
        self._recipient = recipient
        self.announced: dict[int, Live] = {}
        self._live: Live | None = None
        self._prefix = ""
        self._type: ValueType | None = None
        self._streams = False  # the open value is a string, whatever follows

    def named(self, invoke: Invoke) -> None:
        """Announce the call if its name resolves, or unknown ones are forwarded."""
        tool = self._context.resolve(invoke.name)
        self._live = self._type = None
        if tool is not None or self._context.options.unknown == "forward":
            self._live = announce(self._context, invoke, tool, self._recipient, invoke.tag_end)
            self.announced[invoke.start] = self._live

    def parameter(self, key: str) -> None:
        """Begin a parameter; a repeated one takes the call back (design 4.2)."""
        live = self._live
        if live is None:
            return
        if key in live.keys:
            self._live = self._type = None
            self._withdraw(live)
            return
        opening = ", " if live.keys else "{"
        live.keys.add(key)
        self._type = live.types[key]
        self._streams = self._type.string_only
        quote = '"' if self._streams else ""
        self._prefix = f"{opening}{to_json(key)}: {quote}"

    @property
    def streams(self) -> bool:
        """Whether the open value is a string of an announced call."""
        return self._live is not None and self._type is not None and self._streams

    def quick(self, text: str) -> tuple[int, str]:
        """Index and JSON of the next piece of a value that :attr:`streams`."""
        assert self._live is not None, "only asked while a value streams"
        json, self._prefix = self._prefix + escape_json(text), ""
        return self._live.index, json

    def value(self, text: str, end: int) -> None:
        """Pass on text of a value that is a string whatever follows."""
        live = self._live
        if live is not None and self.streams:
            self._out.put(ArgumentsDelta, live.index, self._prefix + escape_json(text), end=end)
            self._prefix = ""

    def value_closed(self, start: int, end: int, behind: int) -> None:
        """End a value: the quote of a string, the whole of anything else."""
        live, kind = self._live, self._type
        if live is None or kind is None:
            return
        text = '"' if self._streams else to_json(kind.decode(self._rope.slice(start, end)))
        self._out.put(ArgumentsDelta, live.index, self._prefix + text, end=behind)
        self._type = None

    def closed(self, invoke: Invoke) -> None:
        """Close the object. The call stays provisional until its message is decided."""
        if self._live is not None:
            closing = "}" if self._live.keys else "{}"
            self._out.put(ArgumentsDelta, self._live.index, closing, end=invoke.end or 0)
        self._live = None

    def withdraw(self) -> None:
        """Take back every announced call without a verdict."""
        for live in list(self.announced.values()):
            self._withdraw(live)

    def _withdraw(self, live: Live) -> None:
        del self.announced[live.start]
        self._out.put(CallRejected, live.index, None)
