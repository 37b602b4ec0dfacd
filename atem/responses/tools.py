"""The tools of one request: as the client declared them, and as the model sees them.

Rules: every type of tool is accepted (responses.md 1.6). ``function``,
``custom``, ``namespace`` and ``tool_search`` are offered to the model; hosted
ones, which only their own service can run, are named in ``dropped`` and echoed.
``namespace`` and ``name`` stay two fields and meet only on the wire. The
table of this request, never a dot in a name, says which tool a call means.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

from ..tools import ToolSet
from ..tools.definition import CUSTOM_INPUT
from . import tool_names
from .tool_echo import echo
from .tool_reading import Declared, Key, Reading, ToolKind
from .tool_search import Searchable, search

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from ..messages import ToolCall
    from .choice import Choice

__all__ = ["ClientTools", "Declared", "Key", "ToolKind"]


class ClientTools:
    """The tools of one request; made by :meth:`of`, and unchanged from then on.

    ``toolset`` is what the model may call. ``shown`` of these are in the system
    text; the others were shown where a search found them, so that what stands
    before that stays the same. ``dropped`` are the types of the hosted tools.
    ``echo`` is what the response object says in ``tools``. ``server_search`` says
    that a ``tool_search`` call is answered here (:meth:`search`,
    :meth:`with_found`) and not by the client.
    """

    __slots__ = (
        "_declared", "_wire", "dropped", "echo", "notes", "server_search", "shown", "toolset",
    )  # fmt: skip

    def __init__(
        self,
        declared: Mapping[Key, Declared] | None = None,
        *,
        dropped: tuple[str, ...] = (),
        echo: Sequence[dict[str, Any]] = (),
        notes: tuple[str, ...] = (),
        server_search: bool = False,
    ) -> None:
        self._declared = _with_template_names(declared or {})
        self._wire = {tool.tool.wire_name: tool for tool in self._declared.values()}
        self.toolset = ToolSet(tool.tool for tool in self if not tool.deferred)
        shown = ToolSet(tool.tool for tool in self if not tool.deferred and not tool.found)
        # How a tool is called is only told with tools.
        self.shown = shown if len(shown) else self.toolset
        self.dropped = dropped
        self.echo = list(echo)
        self.notes = notes
        self.server_search = server_search

    @classmethod
    def of(
        cls,
        tools: Sequence[Any] | None,
        *,
        more: Sequence[tuple[str, Sequence[Any]]] = (),
        found: Sequence[tuple[str, Sequence[Any]]] = (),
    ) -> ClientTools:
        """Read the request's ``tools``, then those of ``more`` and ``found``.

        Both are ``(where, tools)``: ``more`` come with an ``additional_tools``
        item, ``found`` with a ``tool_search_output``, which shows deferred ones.
        A tool declared twice is the later one. Raises ApiError for what is no
        tool, for a schema that can't be used, and for more than 512.
        """
        reading = Reading()
        reading.take("tools", tools or ())
        for where, extra in more:
            reading.take(where, extra)
        for where, extra in found:
            reading.take(where, extra, loaded=True)
        return cls(
            reading.declared,
            dropped=tuple(dict.fromkeys(reading.dropped)),
            echo=[echo(tool) for tool in tools or ()],
            notes=tuple(reading.notes),
            server_search=reading.server_search,
        )

    def __iter__(self) -> Iterator[Declared]:
        return iter(self._declared.values())

    def __len__(self) -> int:
        return len(self._declared)

    def find(self, namespace: str | None, name: str) -> Declared | None:
        """The tool that the client knows by these two."""
        return self._declared.get((namespace or None, name))

    def target(self, call: ToolCall) -> Declared | None:
        """The tool that ``call`` means; None for one that was not declared."""
        return self._wire.get(call.wire_name)

    def kind(self, call: ToolCall) -> ToolKind:
        """Which item ``call`` becomes; an undeclared one is a function."""
        target = self.target(call)
        return target.kind if target else "function"

    def client_name(self, call: ToolCall) -> Key:
        """``(namespace, name)`` of an item; an undeclared call keeps what the model wrote."""
        target = self.target(call)
        return target.key if target else (call.namespace, call.name)

    def custom_input(self, call: ToolCall) -> str:
        """The text that a custom tool is called with."""
        given = call.arguments.get(CUSTOM_INPUT, "")
        return given if isinstance(given, str) else call.arguments_json

    def strict(self, call: ToolCall) -> bool:
        """Whether the client wants no call whose arguments miss the schema."""
        target = self.target(call)
        return target is not None and target.strict

    def written(self, namespace: str | None, name: str) -> Key:
        """``(namespace, name)`` as the model writes them, also for a tool that is not declared."""
        tool = self.find(namespace, name)
        if tool is not None:
            return (tool.tool.namespace, tool.tool.name)
        return tool_names.template_name(namespace, name, ())

    def callable(self, choice: Choice) -> tuple[Declared, ...]:
        """The tools that ``choice`` lets the model call, of those that it sees."""
        return tuple(tool for tool in self if not tool.deferred and choice.permits(tool))

    def search(self, query: str, limit: int = 8) -> tuple[Declared, ...]:
        """The deferred tools that fit ``query`` best, best first."""
        deferred = [tool for tool in self if tool.deferred]
        return tuple(deferred[place] for place in search(map(_searchable, deferred), query, limit))

    def with_found(self, found: Iterable[Declared]) -> ClientTools:
        """The same tools, ``found`` ones to be called, and to be shown where they were found."""
        keys = {tool.key for tool in found if tool.deferred}
        return self._with(
            {
                key: replace(tool, deferred=False, found=True) if key in keys else tool
                for key, tool in self._declared.items()
            }
        )

    def all_shown(self) -> ClientTools:
        """The same tools, found ones in the system text too: the searches may be gone."""
        return self._with({key: replace(tool, found=False) for key, tool in self._declared.items()})

    def _with(self, declared: Mapping[Key, Declared]) -> ClientTools:
        return ClientTools(
            declared,
            dropped=self.dropped,
            echo=self.echo,
            notes=self.notes,
            server_search=self.server_search,
        )


def _with_template_names(declared: Mapping[Key, Declared]) -> dict[Key, Declared]:
    taken: set[str] = set()
    named: dict[Key, Declared] = {}
    for key, tool in declared.items():
        namespace, name = tool_names.template_name(tool.namespace, tool.name, taken)
        named[key] = replace(tool, tool=replace(tool.tool, namespace=namespace, name=name))
        taken.add(named[key].tool.wire_name)
    return named


def _searchable(tool: Declared) -> Searchable:
    return Searchable(
        tool.tool.wire_name, f"{tool.tool.description} {tool.tool.namespace_description}"
    )
