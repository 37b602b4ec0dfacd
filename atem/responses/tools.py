"""The tools of one request: as the client declared them, and as the model sees them.

Rules: every type of tool is accepted (responses.md 1.6). ``function``,
``custom``, ``namespace`` and ``tool_search`` are offered to the model; hosted
ones, which only their own service can run, are named in ``dropped`` and echoed.
``namespace`` and ``name`` stay two fields and meet only on the wire. The
table of this request, never a dot in a name, says which tool a call means.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Final, Literal, TypeAlias

from ..errors import InvalidTool
from ..tools import Tool, ToolSet
from ..tools.check import faults
from ..tools.declare import declare
from ..tools.definition import CUSTOM_INPUT
from . import tool_names
from .faults import bad_value, missing
from .tool_echo import echo, inner
from .tool_search import DESCRIPTION, NAME, PARAMETERS, Searchable, search

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from ..messages import ToolCall
    from .choice import Choice
    from .faults import ApiError

ToolKind: TypeAlias = Literal["function", "custom", "tool_search"]
Key: TypeAlias = tuple[str | None, str]
"""``(namespace, name)`` as the client knows them."""

MAX_TOOLS: Final = 512
"""Members of namespaces counted."""

CALLABLE: Final = ("function", "custom")


@dataclass(frozen=True, slots=True)
class Declared:
    """One tool that can be called.

    ``namespace`` and ``name`` are the client's, ``tool`` is what the model
    sees. ``raw`` is the client's declaration, ``where`` its place in the
    request. A ``deferred`` tool is not shown until a search finds it.
    """

    kind: ToolKind
    namespace: str | None
    name: str
    tool: Tool
    raw: Mapping[str, Any]
    where: str
    strict: bool = False
    deferred: bool = False

    @property
    def key(self) -> Key:
        """What the client knows it by."""
        return (self.namespace, self.name)


class ClientTools:
    """The tools of one request; made by :meth:`of`, and unchanged from then on.

    ``toolset`` is what the model sees. ``dropped`` are the types of the hosted
    tools that it doesn't. ``echo`` is what the response object says in
    ``tools``. ``server_search`` says that a ``tool_search`` call is answered
    here (:meth:`search`, :meth:`with_found`) and not by the client.
    """

    __slots__ = ("_declared", "_wire", "dropped", "echo", "notes", "server_search", "toolset")

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
        reading = _Reading()
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
        """The same tools, ``found`` ones shown."""
        keys = {tool.key for tool in found}
        shown = {
            key: replace(tool, deferred=tool.deferred and key not in keys)
            for key, tool in self._declared.items()
        }
        return ClientTools(
            shown,
            dropped=self.dropped,
            echo=self.echo,
            notes=self.notes,
            server_search=self.server_search,
        )


class _Reading:
    """What has been read of a request's tools so far."""

    def __init__(self) -> None:
        self.declared: dict[Key, Declared] = {}
        self.dropped: list[str] = []
        self.notes: list[str] = []
        self.server_search = False

    def take(self, where: str, tools: Sequence[Any], *, loaded: bool = False) -> None:
        """Read one list. ``loaded`` shows its tools even if they are deferred."""
        if not isinstance(tools, list | tuple):
            raise bad_value(where, f"{where} is a {_named(tools)}; it is an array of tools.")
        for place, raw in enumerate(tools):
            for tool in self._read(raw, f"{where}[{place}]"):
                self._add(replace(tool, deferred=tool.deferred and not loaded))
        if len(self.declared) > MAX_TOOLS:
            raise bad_value(where, f"{len(self.declared)} tools; at most {MAX_TOOLS} are taken.")

    def _read(self, raw: Any, where: str) -> Iterator[Declared]:
        if not isinstance(raw, Mapping):
            raise bad_value(where, f"{where} is a {_named(raw)}; a tool is an object.")
        kind = raw.get("type")
        if kind == "namespace":
            yield from self._namespace(raw, where)
        elif kind == "tool_search":
            yield self._search_tool(raw, where)
        elif kind is None or kind in CALLABLE:
            yield _callable(raw, where, None)
        elif isinstance(kind, str) and kind:
            self.dropped.append(kind)
        else:
            raise bad_value(f"{where}.type", f"{where}.type is a {_named(kind)}; it is a string.")

    def _namespace(self, raw: Mapping[str, Any], where: str) -> Iterator[Declared]:
        name, members = raw.get("name"), raw.get("tools")
        if not isinstance(name, str) or not name:
            raise missing(f"{where}.name")
        if not isinstance(members, list | tuple):
            raise missing(f"{where}.tools")
        for place, member in enumerate(members):
            inside = f"{where}.tools[{place}]"
            if not isinstance(member, Mapping) or member.get("type") == "namespace":
                raise bad_value(inside, f"{inside}: a namespace holds functions and custom tools.")
            if member.get("type") in (None, *CALLABLE):
                yield _callable(member, inside, raw)
            else:
                self.dropped.append(f"{member['type']}"[:64])

    def _search_tool(self, raw: Mapping[str, Any], where: str) -> Declared:
        self.server_search = raw.get("execution") != "client"
        shape = {"name": NAME, "parameters": PARAMETERS, "description": DESCRIPTION}
        given = {key: raw[key] for key in ("parameters", "description") if raw.get(key)}
        made = _callable({**shape, **given, "type": "function"}, where, None)
        return replace(made, kind="tool_search", raw=raw)

    def _add(self, tool: Declared) -> None:
        before = self.declared.get(tool.key)
        if before is not None:
            if before.raw != tool.raw:
                self.notes.append(f"{tool.where}: declared before, this one is used")
            tool = replace(tool, deferred=tool.deferred and before.deferred)
        self.declared[tool.key] = tool


def _callable(raw: Mapping[str, Any], where: str, space: Mapping[str, Any] | None) -> Declared:
    fields = inner(raw)
    name = fields.get("name")
    if not isinstance(name, str) or not name:
        raise missing(f"{where}.name")
    tool = _tool(raw if raw.get("type") else {"type": "function", **raw}, where)
    if space is not None:
        about = space.get("description")
        described = about if isinstance(about, str) else ""
        tool = replace(tool, namespace=space["name"], namespace_description=described)
    _check_schema(tool, where)
    return Declared(
        kind=tool.kind,
        namespace=tool.namespace,
        name=name,
        tool=tool,
        raw=raw,
        where=where,
        strict=fields.get("strict") is True,
        deferred=fields.get("defer_loading") is True,
    )


def _tool(raw: Mapping[str, Any], where: str) -> Tool:
    try:
        (tool,), _ = declare([raw])
    except InvalidTool as error:
        raise _invalid(where, str(error).removeprefix("tools[0]").lstrip(".: ")) from error
    return tool


def _check_schema(tool: Tool, where: str) -> None:
    """Raise ApiError for a schema that can't be used; names are mapped, and never refused."""
    for fault in faults(replace(tool, name="this", namespace=None)):
        raise _invalid(f"{where}.parameters", f"{tool.wire_name!r}: {fault}")


def _invalid(param: str, message: str) -> ApiError:
    return bad_value(
        param, f"Invalid tool at {param}: {message}", code="invalid_function_parameters"
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


def _named(value: object) -> str:
    return type(value).__name__
