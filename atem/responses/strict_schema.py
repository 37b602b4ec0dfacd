"""The part of JSON Schema that a strict format may use.

Rules: the rules of the API's strict mode (responses.md 1.8), so that a schema
that works there works here and one that is refused there is refused here, with
the JSON pointer of what is wrong. Bounds on a string's length are allowed: the
answer is checked by a validator, which knows them.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Final

from ..tools.validation import pointer

if TYPE_CHECKING:
    from collections.abc import Iterator

Path = tuple[str | int, ...]

ANNOTATIONS: Final = ("title", "description", "default", "examples", "deprecated", "readOnly")
IDENTIFIERS: Final = ("$schema", "$id", "$comment", "$defs", "definitions", "$ref", "$anchor")
ANY_TYPE: Final = ("type", "enum", "const", "anyOf")
OBJECTS: Final = ("properties", "required", "additionalProperties")
ARRAYS: Final = ("items", "minItems", "maxItems")
STRINGS: Final = ("pattern", "format", "minLength", "maxLength")
NUMBERS: Final = ("multipleOf", "minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum")
SUPPORTED: Final = frozenset(
    (*ANNOTATIONS, *IDENTIFIERS, *ANY_TYPE, *OBJECTS, *ARRAYS, *STRINGS, *NUMBERS)
)

MAPS: Final = ("properties", "$defs", "definitions")
"""Keywords whose value maps names to schemas."""


def strict_faults(schema: Mapping[str, Any]) -> Iterator[str]:
    """What a strict format can't have, a sentence each with its place."""
    if schema.get("type") != "object":
        yield "the root must be of type 'object'"
    if "anyOf" in schema:
        yield "the root must not be an 'anyOf'"
    for path, inner in _schemas(schema):
        yield from (f"{fault} (at {pointer(path) or '/'})" for fault in _faults(inner))


def _faults(schema: Any) -> Iterator[str]:
    if not isinstance(schema, Mapping):
        yield f"a schema is an object, not a {type(schema).__name__}"
        return
    unsupported = [key for key in schema if key not in SUPPORTED]
    yield from (f"{key[:64]!r} is not supported" for key in unsupported)
    kind = schema.get("type")
    if kind == "object" or "properties" in schema or (isinstance(kind, list) and "object" in kind):
        yield from _object_faults(schema)
    if kind == "array" and "items" not in schema:
        yield "an array needs 'items'"


def _object_faults(schema: Mapping[str, Any]) -> Iterator[str]:
    if schema.get("additionalProperties") is not False:
        yield "'additionalProperties' is required to be supplied and to be false"
    given, required = schema.get("properties"), schema.get("required")
    properties = given if isinstance(given, Mapping) else {}
    listed = required if isinstance(required, list) else []
    missing = [key for key in properties if key not in listed]
    if missing:
        yield f"'required' has to list every property; {missing[0][:64]!r} is not there"


def _schemas(schema: Any) -> Iterator[tuple[Path, Any]]:
    """Every schema in ``schema`` and its place, without recursion, outermost first."""
    pending: list[tuple[Path, Any]] = [((), schema)]
    for path, node in pending:
        yield path, node
        if isinstance(node, Mapping):
            pending += [((*path, *place), inner) for place, inner in _inside(node)]


def _inside(schema: Mapping[str, Any]) -> Iterator[tuple[Path, Any]]:
    for key in MAPS:
        if isinstance(members := schema.get(key), Mapping):
            yield from (((key, name), member) for name, member in members.items())
    if isinstance(branches := schema.get("anyOf"), list):
        yield from ((("anyOf", place), branch) for place, branch in enumerate(branches))
    if "items" in schema:
        yield ("items",), schema["items"]
