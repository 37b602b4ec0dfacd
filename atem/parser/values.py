"""The types of a tool's parameters, read from its schema once for each name.

Rules: JSON Schema as far as it says which kinds of value fit (wire_format 7);
no markup, no tool names, no validation. Nothing here raises on the shape of a
schema, and nothing is read without a bound.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import suppress
from functools import reduce
from types import MappingProxyType
from typing import Any, Final

from ..tools.equality import Key, key_of
from .json_text import escape_json, to_json
from .value_type import (
    INTEGER,
    KINDS,
    NULL,
    NUMBER,
    TEXT,
    UNTYPED,
    Kind,
    ValueType,
    both,
    either,
    kind_of,
)

__all__ = ["MAX_CACHED", "UNTYPED", "ParameterTypes", "ValueType", "escape_json", "to_json"]

MAX_CACHED: Final = 256
"""Parameter names remembered per tool: the names are the model's, so the memory is bounded."""

MAX_NESTING: Final = 64
"""Schemas within each other, by combination or reference; what is deeper says nothing."""

_KINDS_OF_TYPE: Final = {kind: (kind,) for kind in KINDS} | {NUMBER: (INTEGER, NUMBER)}

_NEVER: Final = ValueType(MappingProxyType({}))
_NULL: Final = ValueType(MappingProxyType({NULL: None}))


class ParameterTypes:
    """The types of one tool's parameters, by name, from the schema of its ``parameters``.

    ``schema`` must not change afterwards. A name that the schema does not
    declare has the type of ``additionalProperties``, or :data:`UNTYPED`.
    """

    __slots__ = ("_known", "_schema")

    def __init__(self, schema: Mapping[str, Any] | None) -> None:
        self._schema = schema
        self._known: dict[str, ValueType] = {}

    def __getitem__(self, key: str) -> ValueType:
        found = self._known.get(key)
        return self._read(key) if found is None else found

    def _read(self, key: str) -> ValueType:
        try:
            found = _property_type(self._schema, key)
        except RecursionError:  # of this caller, so it is not remembered
            return TEXT
        if len(self._known) >= MAX_CACHED:
            self._known.clear()
        self._known[key] = found
        return found


def _property_type(root: Any, key: str) -> ValueType:
    types = _Walk(root, _own_type, nullable=True)

    def declared(schema: Any) -> ValueType | None:
        return _fold(both, map(types, _declarations(schema, key)))

    def additional(schema: Any) -> ValueType | None:
        rest = schema.get("additionalProperties") if isinstance(schema, Mapping) else None
        return types(rest) if isinstance(rest, Mapping) else None

    found = _Walk(root, declared)(root) or _Walk(root, additional)(root) or UNTYPED
    # Nothing fits a contradiction; the validator says so, decoding can't.
    return found if found.admitted is None or found.admitted else UNTYPED


class _Walk:
    """One reading of a schema, of what it refers to, and of what it is combined from.

    ``own`` reads a single level, and returns None where it says nothing. What
    says nothing takes no part in a combination; nor does a reference that leads
    nowhere, or back to a schema being read. Each schema is read once.
    """

    def __init__(
        self, root: Any, own: Callable[[Any], ValueType | None], *, nullable: bool = False
    ) -> None:
        self._root = root
        self._own = own
        self._nullable = nullable
        self._read: dict[int, ValueType | None] = {}
        self._depth = 0

    def __call__(self, schema: Any) -> ValueType | None:
        if id(schema) not in self._read:
            self._read[id(schema)] = None
            if self._depth < MAX_NESTING:
                self._depth += 1
                self._read[id(schema)] = self._combine(schema)
                self._depth -= 1
        return self._read[id(schema)]

    def _combine(self, schema: Any) -> ValueType | None:
        own = self._own(schema)
        if not isinstance(schema, Mapping):
            return own
        parts = [
            own,
            *map(self, _targets(self._root, schema)),
            *map(self, _items(schema, "allOf")),
            *(_fold(either, map(self, _items(schema, word))) for word in ("anyOf", "oneOf")),
        ]
        found = _fold(both, parts)
        if self._nullable and found is not None and schema.get("nullable") is True:
            return either(found, _NULL)
        return found


def _fold(
    combine: Callable[[ValueType, ValueType], ValueType], parts: Iterable[ValueType | None]
) -> ValueType | None:
    present = [part for part in parts if part is not None]
    return reduce(combine, present) if present else None


def _items(schema: Mapping[str, Any], word: str) -> Iterable[Any]:
    branches = schema.get(word)
    return branches if isinstance(branches, (list, tuple)) else ()


def _mapping(schema: Mapping[str, Any], word: str) -> Mapping[Any, Any]:
    value = schema.get(word)
    return value if isinstance(value, Mapping) else {}


def _own_type(schema: Any) -> ValueType:
    if not isinstance(schema, Mapping):
        return _NEVER if schema is False else UNTYPED
    parts = [_named(schema.get("type"))]
    if isinstance(schema.get("enum"), (list, tuple)):
        parts.append(_listed(schema["enum"]))
    if "const" in schema:
        parts.append(_listed([schema["const"]]))
    return reduce(both, parts)


def _named(names: Any) -> ValueType:
    """The types of a ``type`` keyword; a name that JSON Schema does not know adds none."""
    listed = names if isinstance(names, (list, tuple)) else (names,)
    kinds = [k for name in listed if isinstance(name, str) for k in _KINDS_OF_TYPE.get(name, ())]
    return ValueType(dict.fromkeys(kinds)) if kinds else UNTYPED


def _listed(members: Iterable[Any]) -> ValueType:
    keys: dict[Kind, set[Key]] = {}
    for member in members:
        kind = kind_of(member)
        if kind is not None:
            keys.setdefault(kind, set()).add(key_of(member))
            # A float that is an integer may be written as one.
            if kind is NUMBER and member.is_integer():
                keys.setdefault(INTEGER, set()).add(key_of(member))
    return ValueType({kind: frozenset(found) for kind, found in keys.items()})


def _declarations(schema: Any, key: str) -> Iterable[Any]:
    if not isinstance(schema, Mapping):
        return
    properties = _mapping(schema, "properties")
    if key in properties:
        yield properties[key]
    if declared := _mapping(schema, "patternProperties"):
        yield from _matching(declared, key)


def _matching(declared: Mapping[Any, Any], key: str) -> Iterator[Any]:
    from ..tools import pattern as patterns  # slow to import, and few schemas have one

    searches = patterns.Searches()
    for pattern, found in declared.items():
        with suppress(*patterns.UNREADABLE):
            if searches.occurs(pattern, key):
                yield found


def _targets(root: Any, schema: Mapping[str, Any]) -> Iterable[Any]:
    """What the schema's ``$ref`` points at within its document, if it points at anything."""
    reference = schema.get("$ref")
    if not isinstance(reference, str) or not reference.startswith("#"):
        return
    from urllib.parse import unquote  # slow to import, and most schemas have no reference

    start, *tokens = unquote(reference[1:]).split("/")
    if start:  # an anchor, which is not looked for
        return
    try:
        yield reduce(_step, tokens, root)
    except (LookupError, TypeError, ValueError):
        return


def _step(node: Any, token: str) -> Any:
    if isinstance(node, (list, tuple)):
        return node[int(token) if token.isdecimal() else len(node)]
    return node[token.replace("~1", "/").replace("~0", "~")]
