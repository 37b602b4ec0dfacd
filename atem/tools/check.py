"""Why a declared tool could not be called, before a model tries.

Rules: every fault is one sentence that names the tool. Refuses only what the
wire can't carry or a validator can't use: odd is allowed, impossible is not.
"""

from __future__ import annotations

import json
from functools import lru_cache
from typing import TYPE_CHECKING, Any, Final

from . import names
from .definition import Tool
from .excerpt import shorten
from .pattern import MAX_SIZE, UNREADABLE, occurs, written_out

if TYPE_CHECKING:
    from collections.abc import Iterator

DATA: Final = ("const", "enum", "default", "examples")
"""Keywords whose value is data, even if it looks like a schema."""

MAPS: Final = ("properties", "patternProperties", "$defs", "definitions", "dependentSchemas")
"""Keywords whose value maps names to schemas, so that no key in it is a keyword."""

MAX_REMEMBERED: Final = 1 << 16
"""Characters of a schema whose faults are remembered."""

UNBOUNDED: Final = "'unevaluatedProperties' beside 'patternProperties' can't be checked"

MAX_CHAIN: Final = 8
"""References that are followed from the root; a longer chain is judged where it is left."""


def faults(tool: Tool) -> Iterator[str]:
    """What makes ``tool`` impossible to call, a sentence each; nothing if it can be called."""
    if why := names.why_uncallable(tool.wire_name):
        yield f"tool {shorten(repr(tool.wire_name))}: {why}"
    if tool.parameters:
        where = f"tool {shorten(repr(tool.wire_name))}, parameters"
        yield from (f"{where}: {fault}" for fault in _faults_of(tool, tool.parameters))


def _faults_of(tool: Tool, schema: dict[str, Any]) -> tuple[str, ...]:
    """The schema's faults; remembered, because the same tools come with every prompt.

    A server renders the same dozens of schemas for every request, and
    jsonschema takes about 5 microseconds for each character of them.
    """
    try:
        text = json.dumps(schema)
    except (TypeError, ValueError, RecursionError):
        return tuple(_schema_faults(tool, schema))
    if len(text) > MAX_REMEMBERED:
        return tuple(_schema_faults(tool, schema))
    return _remembered(text)


@lru_cache(maxsize=512)
def _remembered(text: str) -> tuple[str, ...]:
    schema = json.loads(text)
    return tuple(_schema_faults(Tool("tool", parameters=schema), schema))


def _schema_faults(tool: Tool, schema: dict[str, Any]) -> Iterator[str]:
    try:
        tool.checker.check()
    except Exception as error:  # noqa: BLE001 - a stranger's schema can break in any way
        yield f"not a valid JSON Schema: {shorten(str(getattr(error, 'message', error)))}"
        return
    yield from _root_faults(_root(tool, schema))
    yield from _reference_faults(tool, schema)
    yield from _pattern_faults(schema)
    if tool.checker.unbounded:
        yield UNBOUNDED


def _root(tool: Tool, schema: dict[str, Any]) -> dict[str, Any]:
    """The schema that describes the arguments: pydantic puts a recursive one behind a ``$ref``."""
    for _ in range(MAX_CHAIN):
        target = tool.checker.lookup(schema["$ref"]) if "$ref" in schema else None
        if not isinstance(target, dict):
            break
        schema = target
    return schema


def _root_faults(root: dict[str, Any]) -> Iterator[str]:
    kinds = root.get("type", "object")
    if "object" not in (kinds if isinstance(kinds, list) else [kinds]):
        yield f"the schema is of type {kinds!r}, but arguments are always an object"
    for key in root.get("properties", {}):
        if why := names.why_unwritable_key(key):
            yield f"the parameter {shorten(repr(key))} can't be written: {why}"


def _reference_faults(tool: Tool, schema: dict[str, Any]) -> Iterator[str]:
    for inner in _subschemas(schema):
        for keyword in ("$ref", "$dynamicRef"):
            reference = inner.get(keyword, "#")
            if not reference.startswith("#"):
                yield f"{shorten(repr(reference))} is outside the schema; put it under $defs"
            elif tool.checker.lookup(reference) is None:
                yield f"{shorten(repr(reference))} leads nowhere in the schema"


def _pattern_faults(schema: dict[str, Any]) -> Iterator[str]:
    size = 0
    for pattern in _patterns(schema):
        try:
            occurs(pattern, "")
            size += written_out(pattern)
        except UNREADABLE as error:
            yield f"the pattern {shorten(repr(pattern))} is broken: {error}"
        if size > MAX_SIZE:
            yield f"its patterns are more than {MAX_SIZE} elements with their repeats written out"
            return


def _patterns(schema: dict[str, Any]) -> Iterator[Any]:
    for inner in _subschemas(schema):
        yield from (inner.get("pattern", ""), *inner.get("patternProperties", ()))


def _subschemas(schema: dict[str, Any]) -> Iterator[dict[str, Any]]:
    """``schema`` and every schema in it, without recursion; a shared one comes once."""
    pending: list[Any] = [schema]
    seen: set[int] = set()
    while pending:
        node = pending.pop()
        if id(node) in seen or not isinstance(node, dict | list):
            continue
        seen.add(id(node))
        if isinstance(node, list):
            pending.extend(node)
            continue
        yield node
        for key, value in node.items():
            if key in MAPS and isinstance(value, dict):
                pending.extend(value.values())
            elif key not in DATA:
                pending.append(value)
