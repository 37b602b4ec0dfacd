"""The oracle's values: what a parameter's raw text means under its schema.

Rules: written from wire_format 7 alone; knows schemas and JSON, nothing of a stream.
"""

from __future__ import annotations

import json
import math
from decimal import Decimal
from typing import Any

from atem import wire

Schema = dict[str, Any] | bool | None


def parameter_schema(parameters: Schema, key: str) -> Schema:
    """The schema of a parameter, None where nothing is said."""
    parameters = parameters if isinstance(parameters, dict) else {}
    found = parameters.get("properties", {}).get(key, parameters.get("additionalProperties"))
    return found if isinstance(found, dict) else None


def resolved(schema: Any, root: Any) -> Any:
    """The schema with a local ``$ref`` followed."""
    seen = 0
    while isinstance(schema, dict) and str(schema.get("$ref", "")).startswith("#/") and seen < 32:
        target = root
        for step in schema["$ref"][2:].split("/"):
            target = target.get(step, {})
        schema, seen = target, seen + 1
    return schema


def type_of(value: Any) -> str:
    """The JSON type of a value."""
    names = {bool: "boolean", int: "integer", float: "number", str: "string", list: "array"}
    return "null" if value is None else names.get(type(value), "object")


def types(schema: Any, root: Any) -> set[str] | None:
    """The types that a schema admits, None for any."""
    schema = resolved(schema, root)
    if not isinstance(schema, dict):
        return None
    found: set[str] | None = None
    for narrowed in _narrowings(schema, root):
        if narrowed is not None:
            found = narrowed if found is None else found & narrowed
    if found is not None and schema.get("nullable") is True:
        found = found | {"null"}
    return found


def _narrowings(schema: dict[str, Any], root: Any) -> list[set[str] | None]:
    result: list[set[str] | None] = []
    if "type" in schema:
        named = schema["type"]
        result.append({named} if isinstance(named, str) else set(named))
    elif (members := _members(schema)) is not None:
        result.append({type_of(member) for member in members})
    for word in ("anyOf", "oneOf"):
        if word in schema:
            parts = [types(part, root) for part in schema[word]]
            known = [part for part in parts if part is not None]
            result.append(set().union(*known) if len(known) == len(parts) else None)
    return result + [types(part, root) for part in schema.get("allOf", ())]


def _members(schema: Any) -> list[Any] | None:
    if not isinstance(schema, dict):
        return None
    return [schema["const"]] if "const" in schema else schema.get("enum")


def loads(raw: str) -> Any:
    """Strict JSON; ValueError for anything else, infinities and huge integers included."""

    def number(text: str) -> float:
        if math.isinf(value := float(text)):
            raise ValueError(text)
        return value

    def refuse(text: str) -> Any:
        raise ValueError(text)

    try:
        return json.loads(raw, parse_float=number, parse_constant=refuse)
    except RecursionError as error:
        raise ValueError(raw) from error


def typed(raw: str, schema: Schema, root: Any) -> Any:
    """The value that ``raw`` spells under ``schema``; ``raw`` itself where it fits nothing."""
    allowed = types(schema, root)
    if allowed == {"string"}:
        return raw
    try:
        value = _decoded(raw, allowed)
    except ValueError:
        return raw
    members = _members(resolved(schema, root))
    if members is not None and raw in members and not _among(value, members):
        return raw
    return value


def _among(value: Any, members: list[Any]) -> bool:
    return any(value == member and type_of(value) == type_of(member) for member in members)


def _decoded(raw: str, allowed: set[str] | None) -> Any:
    text = raw.strip(wire.WHITESPACE)
    # Choice: beside a string only JSON's own spelling is a boolean.
    if allowed is not None and "boolean" in allowed and "string" not in allowed:
        text = text.lower() if text.lower() in ("true", "false") else text
    value = loads(text)
    kind = type_of(value)
    if allowed is None or (kind in allowed and kind != "string"):
        return value
    if kind == "integer" and "number" in allowed:
        return value
    if kind == "number" and "integer" in allowed and int(Decimal(text)) == Decimal(text):
        return int(Decimal(text))
    raise ValueError(raw)
