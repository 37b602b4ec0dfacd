"""From the forms in which tools are declared elsewhere to :class:`~atem.tools.definition.Tool`.

Rules: shapes only; whether a name can be called or a schema is sound is
:meth:`ToolSet.check`'s question. Fields that tell a server how to offer a tool
(``strict``, ``defer_loading``, annotations, titles) are not part of what the
model sees and are left alone. Accepted:

- :class:`Tool`; a typed function or bound method, under ``@atem.tool`` or bare;
- ``{"type": "function", "function": {…}}`` (Chat Completions);
- ``{"type": "function", "name": …, "parameters": …}`` (Responses);
- ``{"type": "namespace", "name": …, "tools": […]}`` of functions and custom tools;
- ``{"type": "custom", "name": …, "format": …}``, flat or under ``"custom"``: free text;
- ``{"name": …, "inputSchema": …}`` or ``"input_schema"`` (MCP, Anthropic), as a
  dict or as an object with these attributes;
- a pydantic model class, and a pydantic object that dumps to one of the dicts.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import replace
from typing import Any, Final, TypeAlias

from ..errors import InvalidTool
from .definition import CUSTOM_INPUT, Tool

Fields: TypeAlias = Mapping[str, Any]

SCHEMA_KEYS: Final = ("parameters", "inputSchema", "input_schema")

FREE_TEXT: Final[dict[str, Any]] = {
    "type": "object",
    "properties": {CUSTOM_INPUT: {"type": "string"}},
    "required": [CUSTOM_INPUT],
    "additionalProperties": False,
}

ACCEPTED: Final = (
    "accepted are Tool, typed functions, pydantic model classes, MCP tools, and dicts of "
    "type 'function', 'namespace' or 'custom'"
)


class Unsupported(InvalidTool):
    """``item`` is a tool of a type that only its own server can run (``web_search``, …)."""

    def __init__(self, message: str, item: object) -> None:
        super().__init__(message)
        self.item = item


Found: TypeAlias = Tool | Unsupported


def declare(
    tools: Iterable[object], *, skip_unsupported: bool = False
) -> tuple[list[Tool], tuple[Any, ...]]:
    """The tools that ``tools`` declare, in order, and the unsupported ones left out.

    Raises InvalidTool for anything else than the accepted forms, and for an
    unsupported type unless ``skip_unsupported``.
    """
    found: list[Tool] = []
    skipped: list[Any] = []
    for index, item in enumerate(tools):
        for tool in _read(item, f"tools[{index}]"):
            if isinstance(tool, Tool):
                found.append(tool)
            elif skip_unsupported:
                skipped.append(tool.item)
            else:
                raise tool
    return found, tuple(skipped)


def _read(item: object, where: str) -> Iterator[Found]:
    if isinstance(item, Tool):
        yield item
    elif isinstance(item, Mapping):
        yield from _from_fields(item, where)
    elif inspect.isclass(item):
        yield _from_class(item, where)
    elif inspect.isroutine(item):
        yield _from_routine(item)
    else:
        yield from _from_fields(_attributes(item, where), where)


def _from_fields(fields: Fields, where: str) -> Iterator[Found]:
    if (form := _form(fields)) is not None:
        yield from FORMS[form](fields, where)
    elif kind := fields.get("type"):
        yield Unsupported(f"{where} is a tool of type {kind!r}; {ACCEPTED}", fields)
    else:
        keys = sorted(map(str, fields))
        raise InvalidTool(f"{where} is a dict without a type, with the keys {keys}; {ACCEPTED}")


def _form(fields: Fields) -> str | None:
    """Which of FORMS a dict is in: its type, or the key that only one form has."""
    kind = fields.get("type")
    if kind in (None, "custom") and ("inputSchema" in fields or "input_schema" in fields):
        return "function"  # MCP names no type; Anthropic calls such a tool "custom"
    if kind is None and ("function" in fields or "parameters" in fields):
        return "function"
    return kind if isinstance(kind, str) and kind in FORMS else None


def _function(fields: Fields, where: str) -> Iterator[Tool]:
    inner, where = _inner(fields, "function", where)
    yield Tool(_name(inner, where), _description(inner, where), _schema(inner, where))


def _custom(fields: Fields, where: str) -> Iterator[Tool]:
    inner, where = _inner(fields, "custom", where)
    description = _description(inner, where) + _grammar(inner.get("format"))
    yield Tool(_name(inner, where), description.strip(), FREE_TEXT, kind="custom")


def _namespace(fields: Fields, where: str) -> Iterator[Found]:
    name, description = _name(fields, where), _description(fields, where)
    members = fields.get("tools")
    if not name or not isinstance(members, list | tuple):
        raise InvalidTool(f"{where}: a namespace needs a name and a list of tools")
    for index, member in enumerate(members):
        place = f"{where}.tools[{index}]"
        if not isinstance(member, Mapping) or member.get("type") == "namespace":
            raise InvalidTool(f"{place}: a namespace holds dicts of type 'function' or 'custom'")
        for tool in _from_fields(member, place):
            if isinstance(tool, Unsupported):
                yield tool
            else:
                yield replace(tool, namespace=name, namespace_description=description)


FORMS: Final[dict[str, Callable[[Fields, str], Iterator[Found]]]] = {
    "function": _function,
    "custom": _custom,
    "namespace": _namespace,
}


def _inner(fields: Fields, key: str, where: str) -> tuple[Fields, str]:
    """The dict that holds name and description: Chat Completions nests it under the type."""
    if key not in fields:
        return fields, where
    if not isinstance(fields[key], Mapping):
        raise InvalidTool(f"{where}.{key} must be a dict, not {type(fields[key]).__name__}")
    return fields[key], f"{where}.{key}"


def _name(fields: Fields, where: str) -> str:
    name = fields.get("name")
    if not isinstance(name, str):
        raise InvalidTool(f"{where}.name must be a string, not {type(name).__name__}")
    return name


def _description(fields: Fields, where: str) -> str:
    text = fields.get("description")
    if text is not None and not isinstance(text, str):
        raise InvalidTool(f"{where}.description must be a string, not {type(text).__name__}")
    return text or ""


def _schema(fields: Fields, where: str) -> dict[str, Any]:
    key = next((key for key in SCHEMA_KEYS if fields.get(key) is not None), None)
    if key is None:
        return {}
    if not isinstance(fields[key], dict):
        raise InvalidTool(f"{where}.{key} must be a dict, not {type(fields[key]).__name__}")
    schema: dict[str, Any] = fields[key]
    return schema


def _grammar(form: object) -> str:
    """The grammar of a custom tool as a sentence for the model."""
    if not isinstance(form, Mapping) or form.get("type") != "grammar":
        return ""
    grammar = form["grammar"] if isinstance(form.get("grammar"), Mapping) else form
    syntax, definition = grammar.get("syntax", "given"), grammar.get("definition", "")
    return f"\n\nThe input must match this {syntax} grammar:\n{definition}"


def _from_class(item: type, where: str) -> Tool:
    # Imported only when a class is declared: it costs more than all of atem.
    from pydantic import BaseModel
    from pydantic.errors import PydanticUserError

    if not issubclass(item, BaseModel):
        raise InvalidTool(f"{where} is the class {item.__name__!r}; {ACCEPTED}")
    try:
        schema = item.model_json_schema()
    except PydanticUserError as error:
        raise InvalidTool(f"{where}: {item.__name__!r} has no JSON Schema: {error}") from error
    schema.pop("title", None)
    schema.pop("description", None)
    return Tool(item.__name__, inspect.cleandoc(item.__dict__.get("__doc__") or ""), schema)


def _from_routine(item: Any) -> Tool:
    from .function import declared  # it imports pydantic's machinery on use

    return declared(item)


def _attributes(item: object, where: str) -> Fields:
    """The fields of an MCP tool object or of a pydantic object, as a dict."""
    found = {key: getattr(item, key) for key in SCHEMA_KEYS[1:] if hasattr(item, key)}
    if found and hasattr(item, "name"):
        return {**found, "name": item.name, "description": getattr(item, "description", None)}
    dump = getattr(item, "model_dump", None)
    if callable(dump) and isinstance(fields := dump(), Mapping):
        return fields
    raise InvalidTool(f"{where} is {_described(item)}; {ACCEPTED}")


def _described(item: object) -> str:
    call = "; pass its __call__ method" if callable(item) else ""
    return f"of the type {type(item).__name__!r}{call}"
