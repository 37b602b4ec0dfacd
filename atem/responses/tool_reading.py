"""A request's lists of tools, read: what can be called, and what can't.

Rules: a tool is refused for what it is (no name, a schema that can't be used),
never for a type that is not known here. Sizes are limited before they cost.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Final, Literal, TypeAlias

from ..errors import InvalidTool
from ..tools.check import faults
from ..tools.declare import declare
from ..tools.excerpt import shorten
from .faults import bad_value, missing
from .tool_echo import inner
from .tool_search import DESCRIPTION, NAME, PARAMETERS

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from ..tools import Tool
    from .faults import ApiError

ToolKind: TypeAlias = Literal["function", "custom", "tool_search"]
Key: TypeAlias = tuple[str | None, str]
"""``(namespace, name)`` as the client knows them."""

MAX_TOOLS: Final = 512
"""Members of namespaces counted."""

MAX_SCHEMAS: Final = 1 << 20
"""Characters of all schemas together: checking them takes about 5 microseconds each."""

MAX_TYPE: Final = 64

CALLABLE: Final = ("function", "custom")

_UNSAFE: Final = re.compile(r"[^A-Za-z0-9_.-]")
"""What the name of a dropped type can't have: it stands in a header."""


@dataclass(frozen=True, slots=True)
class Declared:
    """One tool that can be called.

    ``namespace`` and ``name`` are the client's, ``tool`` is what the model
    sees. ``raw`` is the client's declaration, ``where`` its place in the
    request. A ``deferred`` tool is not shown until a search finds it; a ``found``
    one is shown where it was found.
    """

    kind: ToolKind
    namespace: str | None
    name: str
    tool: Tool
    raw: Mapping[str, Any]
    where: str
    strict: bool = False
    deferred: bool = False
    found: bool = False

    @property
    def key(self) -> Key:
        """What the client knows it by."""
        return (self.namespace, self.name)


class Reading:
    """What has been read of a request's tools so far."""

    def __init__(self) -> None:
        self.declared: dict[Key, Declared] = {}
        self.dropped: list[str] = []
        self.notes: list[str] = []
        self.server_search = False
        self.count = 0
        self.schemas = 0

    def take(self, where: str, tools: Sequence[Any], *, loaded: bool = False) -> None:
        """Read one list. ``loaded`` is what a search found, which may be called."""
        if not isinstance(tools, list | tuple):
            raise bad_value(where, f"{where} is a {_named(tools)}; it is an array of tools.")
        for place, raw in enumerate(tools):
            for tool in self._read(raw, f"{where}[{place}]"):
                self._add(replace(tool, deferred=tool.deferred and not loaded, found=loaded))

    def _read(self, raw: Any, where: str) -> Iterator[Declared]:
        if not isinstance(raw, Mapping):
            raise bad_value(where, f"{where} is a {_named(raw)}; a tool is an object.")
        kind = raw.get("type")
        if kind == "namespace":
            yield from self._namespace(raw, where)
        elif kind == "tool_search":
            yield self._search_tool(raw, where)
        elif kind is None or kind in CALLABLE:
            yield self._callable(raw, where)
        else:
            self._drop(kind, where)

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
                yield self._callable(member, inside, raw)
            else:
                self._drop(member["type"], inside)

    def _search_tool(self, raw: Mapping[str, Any], where: str) -> Declared:
        self.server_search = raw.get("execution") != "client"
        shape = {"name": NAME, "parameters": PARAMETERS, "description": DESCRIPTION}
        given = {key: raw[key] for key in ("parameters", "description") if raw.get(key)}
        made = self._callable({**shape, **given, "type": "function"}, where)
        return replace(made, kind="tool_search", raw=raw)

    def _callable(
        self, raw: Mapping[str, Any], where: str, space: Mapping[str, Any] | None = None
    ) -> Declared:
        self.count += 1
        if self.count > MAX_TOOLS:
            raise bad_value(where, f"More than {MAX_TOOLS} tools; at most {MAX_TOOLS} are taken.")
        fields = inner(raw)
        name = fields.get("name")
        if not isinstance(name, str) or not name:
            raise missing(f"{where}.name")
        tool = _tool(raw if raw.get("type") else {"type": "function", **raw}, where)
        if space is not None:
            about = space.get("description")
            described = about if isinstance(about, str) else ""
            tool = replace(tool, namespace=space["name"], namespace_description=described)
        self._check_schema(tool, where)
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

    def _check_schema(self, tool: Tool, where: str) -> None:
        """Raise ApiError for a schema that can't be used; names are mapped, and never refused."""
        self.schemas += len(json.dumps(tool.parameters))
        if self.schemas > MAX_SCHEMAS:
            raise bad_value(where, f"The tools' schemas have over {MAX_SCHEMAS} characters.")
        if fault := schema_fault(replace(tool, name="this", namespace=None)):
            raise _invalid(f"{where}.parameters", f"{tool.wire_name!r}: {fault}")

    def _drop(self, kind: object, where: str) -> None:
        if not isinstance(kind, str) or not kind:
            raise bad_value(f"{where}.type", f"{where}.type is a {_named(kind)}; it is a string.")
        self.dropped.append(_UNSAFE.sub("_", kind[:MAX_TYPE]))

    def _add(self, tool: Declared) -> None:
        before = self.declared.get(tool.key)
        if before is not None:
            if before.raw != tool.raw:
                self.notes.append(f"{tool.where}: declared before, this one is used")
            hidden = before.deferred or before.found
            tool = replace(
                tool, deferred=tool.deferred and before.deferred, found=tool.found and hidden
            )
        self.declared[tool.key] = tool


def _tool(raw: Mapping[str, Any], where: str) -> Tool:
    try:
        (tool,), _ = declare([raw])
    except InvalidTool as error:
        raise _invalid(where, str(error).removeprefix("tools[0]").lstrip(".: ")) from error
    return tool


def schema_fault(tool: Tool) -> str | None:
    """The first thing that makes a tool's schema unusable."""
    try:
        return next(faults(tool), None)
    except Exception as error:  # noqa: BLE001 - a stranger's schema can break in any way
        return shorten(f"not a valid JSON Schema: {error}")


def _invalid(param: str, message: str) -> ApiError:
    return bad_value(
        param, f"Invalid tool at {param}: {message}", code="invalid_function_parameters"
    )


def _named(value: object) -> str:
    return type(value).__name__
