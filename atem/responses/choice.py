"""``tool_choice``: which tools the model may call, and whether it has to.

Rules: the prompt stays the same whatever is chosen, so that a prefix cache
holds; a choice is about what becomes of calls. Every form of responses.md 1.6
is read; a choice that can't be met is refused, naming what is missing.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, Literal, TypeAlias

from .faults import bad_value, missing, unsupported
from .tool_search import NAME as SEARCH_NAME

if TYPE_CHECKING:
    from ..messages import ToolCall
    from .tools import ClientTools, Declared

Mode: TypeAlias = Literal["auto", "none", "required", "named", "allowed"]

PARAM: Final = "tool_choice"
NAMED: Final = ("function", "custom")
MAX_ENTRIES: Final = 1024
"""Of "allowed_tools": twice as many as there can be tools."""


@dataclass(frozen=True, slots=True)
class Choice:
    """What the request says about calling tools.

    ``names`` are the wire names (as the model writes them) of the tools that
    may be called under "named" and "allowed". ``required`` says that a turn
    without a call is none of what was asked. ``echo`` is the response
    object's ``tool_choice``.
    """

    mode: Mode = "auto"
    names: frozenset[str] = frozenset()
    required: bool = False
    echo: str | dict[str, Any] = "auto"

    @classmethod
    def of(cls, value: Any, tools: ClientTools) -> Choice:
        """Read ``tool_choice``. Raises ApiError for what can't be met with ``tools``."""
        if value is None:
            return cls()
        if isinstance(value, str):
            return _word(value, tools)
        if isinstance(value, Mapping):
            return _object(value, tools)
        raise bad_value(PARAM, f"tool_choice is a {type(value).__name__}; {ACCEPTED}")

    def permits(self, tool: Declared) -> bool:
        """Whether ``tool`` may be called."""
        return self._permits(tool.tool.wire_name)

    def allows(self, call: ToolCall) -> bool:
        """Whether ``call`` may be passed on."""
        return self._permits(call.wire_name)

    def _permits(self, wire_name: str) -> bool:
        if self.mode in ("named", "allowed"):
            return wire_name in self.names
        return self.mode != "none"


ACCEPTED: Final = (
    'it is "auto", "none" or "required", or an object of type "function", "custom" or '
    '"allowed_tools".'
)


def _word(value: str, tools: ClientTools) -> Choice:
    match value:
        case "auto":
            return Choice()
        case "none":
            return Choice("none", echo="none")
        case "required" | "any":
            if not len(tools.toolset):
                raise bad_value(PARAM, 'tool_choice "required" needs a tool that can be called.')
            return Choice("required", required=True, echo="required")
    raise bad_value(PARAM, f"tool_choice is {value[:64]!r}; {ACCEPTED}")


def _object(value: Mapping[str, Any], tools: ClientTools) -> Choice:
    kind = value.get("type")
    if not isinstance(kind, str):
        raise missing(f"{PARAM}.type")
    return READERS.get(kind, _hosted)(value, tools)


def _named(value: Mapping[str, Any], tools: ClientTools) -> Choice:
    tool = _wanted(value, tools, PARAM)
    echo = {"type": value["type"], "name": tool.name}
    if tool.namespace:
        echo["namespace"] = tool.namespace
    return Choice("named", frozenset({tool.tool.wire_name}), required=True, echo=echo)


def _wanted(value: Mapping[str, Any], tools: ClientTools, where: str) -> Declared:
    """The declared tool that an entry names: by namespace and name, or by an unambiguous name."""
    fields = _fields(value)
    name = SEARCH_NAME if value["type"] == SEARCH_NAME else fields.get("name")
    if not isinstance(name, str):
        raise missing(f"{where}.name")
    namespace = fields.get("namespace")
    tool = tools.find(namespace if isinstance(namespace, str) else None, name)
    if tool is None and namespace is None:
        members = [tool for tool in tools if tool.name == name]
        tool = members[0] if len(members) == 1 else None
    if tool is None:
        raise bad_value(where, f"{where} names {name[:64]!r}, which is not among the tools.")
    if tool.deferred:
        raise bad_value(where, f"{where} names {name[:64]!r}, which no tool_search has found yet.")
    return tool


def _fields(value: Mapping[str, Any]) -> Mapping[str, Any]:
    nested = value.get(value["type"])
    return nested if isinstance(nested, Mapping) else value


def _allowed(value: Mapping[str, Any], tools: ClientTools) -> Choice:
    fields = _fields(value)
    mode, entries = fields.get("mode", "auto"), fields.get("tools")
    if mode not in ("auto", "required"):
        raise bad_value(f"{PARAM}.mode", 'tool_choice.mode is "auto" or "required".')
    if not isinstance(entries, list | tuple):
        raise missing(f"{PARAM}.tools")
    if len(entries) > MAX_ENTRIES:
        raise bad_value(f"{PARAM}.tools", f"tool_choice.tools has more than {MAX_ENTRIES} entries.")
    names = frozenset(
        name
        for place, entry in enumerate(entries)
        for name in _entry(entry, tools, f"{PARAM}.tools[{place}]")
    )
    if mode == "required" and not names:
        raise bad_value(f"{PARAM}.tools", "tool_choice.tools names no tool that can be called.")
    echo = {"type": "allowed_tools", "mode": mode, "tools": [dict(entry) for entry in entries]}
    return Choice("allowed", names, required=mode == "required", echo=echo)


def _entry(entry: Any, tools: ClientTools, where: str) -> frozenset[str]:
    """The wire names that one entry allows; a hosted tool is none that could be called."""
    if not isinstance(entry, Mapping) or not isinstance(entry.get("type"), str):
        raise bad_value(where, f'{where} is an object with a "type".')
    if entry["type"] == "namespace":
        members = [tool for tool in tools if tool.namespace == entry.get("name")]
        return frozenset(tool.tool.wire_name for tool in members if not tool.deferred)
    if entry["type"] not in (*NAMED, SEARCH_NAME):
        return frozenset()
    return frozenset({_wanted(entry, tools, where).tool.wire_name})


def _hosted(value: Mapping[str, Any], tools: ClientTools) -> Choice:
    kind = value["type"]
    raise unsupported(
        PARAM, f"tool_choice forces {kind[:64]!r}, a tool that this server can't run."
    )


READERS: Final[dict[str, Callable[[Mapping[str, Any], ClientTools], Choice]]] = {
    "function": _named,
    "custom": _named,
    SEARCH_NAME: _named,
    "allowed_tools": _allowed,
}
