"""The tools of one conversation, by the names the model may write.

Rules: a ToolSet doesn't change once made. It accepts any tool name, because a
parser must; :meth:`ToolSet.check` says which of them can't be called.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING

from ..errors import InvalidTool
from . import names as naming

if TYPE_CHECKING:
    from ..messages import Message, RejectedCall
    from .definition import Tool
    from .names import NameRule


class ToolSet:
    """An ordered set of tools with different wire names.

    ``tools`` may hold any form that :mod:`atem.tools.declare` lists. Raises
    InvalidTool for a form that is none of them and for a repeated wire name.
    ``skipped`` holds what ``ToolSet.of(…, skip_unsupported=True)`` left out.
    """

    __slots__ = ("_aliases", "_heads", "_leaves", "_tools", "skipped")

    def __init__(self, tools: Iterable[object] = (), *, skip_unsupported: bool = False) -> None:
        from .declare import declare

        found, self.skipped = declare(tools, skip_unsupported=skip_unsupported)
        self._tools = _by_wire_name(found)
        self._aliases = naming.aliases(self._tools)
        self._heads = frozenset(map(naming.head, self._tools))
        self._leaves = naming.unique_leaves(self._tools)

    @classmethod
    def of(cls, tools: object = None, *, skip_unsupported: bool = False) -> ToolSet:
        """A ToolSet from None, a ToolSet (returned as it is) or any iterable of tools."""
        if isinstance(tools, cls):
            return tools
        if tools is None:
            return cls()
        if isinstance(tools, str | bytes | dict) or not isinstance(tools, Iterable):
            raise InvalidTool(
                f"tools must be an iterable of tools, not {type(tools).__name__}; "
                "put a single tool in a list"
            )
        return cls(tools, skip_unsupported=skip_unsupported)

    def __iter__(self) -> Iterator[Tool]:
        return iter(self._tools.values())

    def __len__(self) -> int:
        return len(self._tools)

    def __contains__(self, wire_name: object) -> bool:
        return wire_name in self._tools

    def __repr__(self) -> str:
        return f"ToolSet({', '.join(self._tools)})"

    @property
    def names(self) -> tuple[str, ...]:
        """The wire names, in the order of declaration."""
        return tuple(self._tools)

    @property
    def namespace_descriptions(self) -> dict[str, str]:
        """Namespace -> the description it was declared with; only those that have one."""
        found: dict[str, str] = {}
        for tool in self:
            if tool.namespace and tool.namespace_description:
                found.setdefault(tool.namespace, tool.namespace_description)
        return found

    def get(self, wire_name: str) -> Tool | None:
        """The tool of exactly this wire name."""
        return self._tools.get(wire_name)

    def resolve(self, raw_name: str, *, names: NameRule = "safe") -> Tool | None:
        """The declared tool that the model meant by ``raw_name``, or None (wire_format 6).

        "safe" tries in order: exact; ``x.x``; ``ns.ns.fn``; a foreign prefix
        before an undotted tool. "exact" stops after the first; "unique-leaf"
        goes on to the only tool with the same last segment, which can cross
        namespaces. Spellings are tabled when the set is made, so this is a
        few look-ups, linear in the name's length whatever it holds.
        """
        tool = self._tools.get(raw_name)
        if tool is not None or names == "exact":
            return tool
        if (name := self._aliases.get(raw_name)) is not None:
            return self._tools[name]
        name = naming.strip_foreign_prefix(raw_name, self._heads)
        if name not in self._tools:
            name = self._leaves.get(naming.leaf(raw_name)) if names == "unique-leaf" else None
        return None if name is None else self._tools[name]

    def suggest(self, raw_name: str) -> tuple[str, ...]:
        """Up to three wire names nearest to ``raw_name``, best first; only its beginning counts."""
        return naming.nearest(raw_name, self._tools)

    def check(self) -> None:
        """Raise InvalidTool, listing every tool that can't be called and why.

        Refused are names and parameter names that the format can't carry,
        tools named like a channel, and schemas that are not valid JSON
        Schemas of an object or that refer outside themselves.
        """
        from .check import faults

        if found := [fault for tool in self for fault in faults(tool)]:
            raise InvalidTool("tools that can't be called: " + "; ".join(found))

    def feedback(self, rejected: RejectedCall) -> Message:
        """The tool message that tells the model what was wrong with its call and what exists."""
        from .reply import feedback

        return feedback(rejected, tools=self)


def _by_wire_name(tools: Iterable[Tool]) -> dict[str, Tool]:
    found: dict[str, Tool] = {}
    for tool in tools:
        if tool.wire_name in found:
            raise InvalidTool(
                f"two tools have the wire name {tool.wire_name!r}; rename one, or declare it once"
            )
        found[tool.wire_name] = tool
    return found
