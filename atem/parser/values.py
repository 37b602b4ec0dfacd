"""What a parameter's text means: its schema read once, its value decoded.

Rules: wire_format 7 and nothing else. No markup, no tool names, no validation;
a value that does not fit keeps its raw text, and the validator reports it.
Nothing here raises on what a model wrote, or on the shape of a schema.

The wire writes strings bare, so ``5`` may be the number or the string; only
the schema tells. A schema is therefore reduced to the kinds of value that it
admits. JSON Schema says that 3.0 is an integer, so the kind "number" stands
for what is written as a float, and the type ``number`` admits both kinds.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Callable, Hashable, Iterable, Mapping
from dataclasses import dataclass
from functools import partial, reduce
from json.encoder import encode_basestring
from types import MappingProxyType
from typing import Any, Final, NoReturn, TypeAlias, TypeVar

from atem.wire import WHITESPACE

T = TypeVar("T")

MAX_DEPTH: Final = 256
"""Brackets that may be open at once in a JSON value; a deeper one stays text."""

MAX_DIGITS: Final = 4300
"""Digits of the longest integer that is decoded (wire_format 7); a longer one stays text."""

MAX_CACHED: Final = 256
"""Parameter names remembered per tool: the names are the model's, so the memory is bounded."""

Kind: TypeAlias = str
Key: TypeAlias = Hashable
Admitted: TypeAlias = Mapping[Kind, frozenset[Key] | None]
"""The kinds of value that fit; None where every value of the kind does."""

STRING, INTEGER, NUMBER, BOOLEAN, NULL, ARRAY, OBJECT = KINDS = (
    *("string", "integer", "number", "boolean", "null", "array", "object"),
)

_KINDS_OF_TYPE: Final = {kind: (kind,) for kind in KINDS} | {NUMBER: (INTEGER, NUMBER)}

_KIND_OF_CLASS: Final[dict[type, Kind]] = {
    str: STRING,
    int: INTEGER,
    float: NUMBER,
    bool: BOOLEAN,
    type(None): NULL,
    list: ARRAY,
    tuple: ARRAY,
    dict: OBJECT,
    MappingProxyType: OBJECT,
}

# What a JSON text may be, by its first character.
_KINDS_OF_START: Final[dict[str, tuple[Kind, ...]]] = {
    **dict.fromkeys("-0123456789", (INTEGER, NUMBER)),
    **dict.fromkeys("tf", (BOOLEAN,)),
    '"': (STRING,),
    "n": (NULL,),
    "[": (ARRAY,),
    "{": (OBJECT,),
}

_BOOLEANS: Final = {"true": True, "false": False}


# --- JSON ---------------------------------------------------------------------------------


def to_json(value: Any) -> str:
    """The JSON text of ``value``: ``json.dumps`` with non-ASCII kept and default separators."""
    try:
        return _encode(value)
    except RecursionError:
        text = _on_fresh_stack(partial(_encode, value), None)
        if text is None:
            raise
        return text


def escape_json(text: str) -> str:
    """``text`` as the inside of a JSON string literal, non-ASCII kept.

    Characters are escaped one by one: the pieces of a string escape to the
    pieces of its literal, wherever it is cut.
    """
    return encode_basestring(text)[1:-1]


def _encode(value: Any) -> str:
    try:
        return _ENCODER.encode(value)
    except ValueError:
        return _encode_exactly(value)


def _encode_exactly(value: Any) -> str:
    """JSON where ``sys.set_int_max_str_digits`` forbids to write an integer: Decimal still does."""
    from decimal import Decimal  # rarely needed, and slow to import

    if isinstance(value, Mapping):
        items = (f"{_ENCODER.encode(str(k))}: {_encode_exactly(v)}" for k, v in value.items())
        return "{" + ", ".join(items) + "}"
    if isinstance(value, (list, tuple)):
        return "[" + ", ".join(map(_encode_exactly, value)) + "]"
    if isinstance(value, int) and not isinstance(value, bool):
        return str(Decimal(value))
    return _ENCODER.encode(value)


def _integer(literal: str) -> int:
    # 640 digits are the least that sys.set_int_max_str_digits can forbid to exceed.
    if len(literal) <= 640:
        return int(literal)
    if len(literal.removeprefix("-")) > MAX_DIGITS:
        raise ValueError("an integer of more digits than are decoded")
    from decimal import Decimal  # rarely needed, and slow to import

    return int(Decimal(literal))


def _real(literal: str) -> float:
    value = float(literal)
    if math.isinf(value):
        raise ValueError("a number beyond the range of floats")
    return value


def _constant(name: str) -> NoReturn:
    raise ValueError(f"{name} is not JSON")


def _integral(literal: str) -> int:
    """The integer that a float literal writes, exactly; ValueError if it writes none."""
    from decimal import Decimal  # rarely needed, and slow to import

    try:
        number = Decimal(literal)
    except ArithmeticError as error:  # an exponent of twenty digits
        raise ValueError("an exponent beyond the range of decimals") from error
    if number != number.to_integral_value():
        raise ValueError("not an integer")
    return int(number)


_ENCODER: Final = json.JSONEncoder(ensure_ascii=False)
_DECODER: Final = json.JSONDecoder(parse_int=_integer, parse_float=_real, parse_constant=_constant)

# A string (or what is left of one), an opening bracket, a closing bracket. Possessive:
# each character is looked at once, whatever the text.
_BRACKETS: Final = re.compile(r'"(?:[^"\\]++|\\.)*+"?+|([\[{])|([\]}])', re.DOTALL)
_STEP: Final = {None: 0, 1: 1, 2: -1}


def _too_deep(text: str) -> bool:
    if text.count("[") + text.count("{") <= MAX_DEPTH:
        return False
    depth = 0
    for token in _BRACKETS.finditer(text):
        depth += _STEP[token.lastindex]
        if depth > MAX_DEPTH:
            return True
    return False


def _decode_json(text: str) -> Any:
    """The value of a JSON text without whitespace around it; ValueError if it is none."""
    if text[:1] not in _KINDS_OF_START:  # most prose ends here, cheaply
        raise ValueError("not JSON")
    if _too_deep(text):
        raise ValueError("nested deeper than is decoded")
    return _DECODER.decode(text)


def _on_fresh_stack(work: Callable[[], T], fallback: T) -> T:
    """What ``work`` returns where the whole stack is its own; ``fallback`` if that is too small.

    The recursion limit counts the caller's frames, and a value must not depend
    on who asks for it. Another thread starts from zero.
    """
    from threading import Thread  # rarely needed

    result = [fallback]

    def run() -> None:
        try:
            result[0] = work()
        except RecursionError:
            return

    try:
        thread = Thread(target=run, daemon=True)
        thread.start()
        thread.join()
    except RuntimeError:  # no thread to be had, or no frame left to start one
        return fallback
    return result[0]


# --- The type of one parameter ------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class ValueType:
    """What one parameter's schema admits; ``admitted`` is None for anything at all."""

    admitted: Admitted | None

    @property
    def string_only(self) -> bool:
        """Whether the value is the raw text, whatever it looks like: it may be streamed."""
        return self.admitted is not None and self.admitted.keys() == {STRING}

    def decode(self, text: str) -> Any:
        """The value that ``text`` writes (wire_format 7); ``text`` itself where nothing fits.

        Never raises. Containers are new on each call.
        """
        if self.string_only:
            return text
        try:
            return self._decode(text)
        except RecursionError:
            return _on_fresh_stack(partial(self._decode, text), text)

    def _decode(self, text: str) -> Any:
        try:
            value = self._read(text.strip(WHITESPACE))
        except ValueError:
            return text
        return text if self._holds(text) and not self._holds(value) else value

    def _read(self, text: str) -> Any:
        if self.admitted is None:
            return _decode_json(text)
        if BOOLEAN in self.admitted and STRING not in self.admitted:
            flag = _BOOLEANS.get(text[:6].lower())
            if flag is not None:
                return flag
        kinds = _KINDS_OF_START.get(text[:1], ())
        # A quoted text is never a JSON string here: strings are written bare.
        if STRING in kinds or self.admitted.keys().isdisjoint(kinds):
            raise ValueError("of a kind that the schema does not admit")
        value = _decode_json(text)
        if isinstance(value, float) and NUMBER not in self.admitted:
            return _integral(text)
        return value

    def _holds(self, value: Any) -> bool:
        if self.admitted is None:
            return True
        kind = _kind(value)
        if kind is None or kind not in self.admitted:
            return False
        members = self.admitted[kind]
        return members is None or _key(value) in members


UNTYPED: Final = ValueType(None)
"""No schema: JSON if it parses, else the text."""

_NEVER: Final = ValueType(MappingProxyType({}))
_NULL: Final = ValueType(MappingProxyType({NULL: None}))


def _kind(value: Any) -> Kind | None:
    for cls in type(value).__mro__:  # bool comes before int, of which it is a subclass
        if cls in _KIND_OF_CLASS:
            return _KIND_OF_CLASS[cls]
    return None


def _key(value: Any) -> Key:
    """Equal for two values that JSON Schema calls equal: 1 and 1.0 are, 1 and true are not."""
    if isinstance(value, Mapping):
        return OBJECT, frozenset((name, _key(item)) for name, item in value.items())
    if isinstance(value, (list, tuple)):
        return ARRAY, tuple(map(_key, value))
    return isinstance(value, bool), value if isinstance(value, Hashable) else repr(value)


def _both(a: ValueType, b: ValueType) -> ValueType:
    if a.admitted is None or b.admitted is None:
        return b if a.admitted is None else a
    shared = {k: _common(a.admitted[k], b.admitted[k]) for k in a.admitted if k in b.admitted}
    return ValueType({kind: keys for kind, keys in shared.items() if keys is None or keys})


def _common(a: frozenset[Key] | None, b: frozenset[Key] | None) -> frozenset[Key] | None:
    if a is None or b is None:
        return b if a is None else a
    return a & b


def _either(a: ValueType, b: ValueType) -> ValueType:
    if a.admitted is None or b.admitted is None:
        return UNTYPED
    joined = dict(a.admitted)
    for kind, keys in b.admitted.items():
        mine = joined.get(kind, frozenset())
        joined[kind] = None if mine is None or keys is None else mine | keys
    return ValueType(joined)


# --- Schemas ------------------------------------------------------------------------------


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
        if found is None:
            if len(self._known) >= MAX_CACHED:
                self._known.clear()
            found = self._known[key] = self._type(key)
        return found

    def _type(self, key: str) -> ValueType:
        read = partial(_property_type, self._schema, key)
        try:
            return read()
        except RecursionError:
            return _on_fresh_stack(read, UNTYPED)


def _property_type(root: Any, key: str) -> ValueType:
    types = _Walk(root, _own_type, nullable=True)

    def declared(schema: Any) -> ValueType | None:
        return _fold(_both, map(types, _declarations(schema, key)))

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

    def __call__(self, schema: Any) -> ValueType | None:
        if id(schema) not in self._read:
            self._read[id(schema)] = None
            self._read[id(schema)] = self._combine(schema)
        return self._read[id(schema)]

    def _combine(self, schema: Any) -> ValueType | None:
        own = self._own(schema)
        if not isinstance(schema, Mapping):
            return own
        parts = [
            own,
            *map(self, _targets(self._root, schema)),
            *map(self, _items(schema, "allOf")),
            *(_fold(_either, map(self, _items(schema, word))) for word in ("anyOf", "oneOf")),
        ]
        found = _fold(_both, parts)
        if self._nullable and found is not None and schema.get("nullable") is True:
            return _either(found, _NULL)
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
    return reduce(_both, parts)


def _named(names: Any) -> ValueType:
    """The types of a ``type`` keyword; a name that JSON Schema does not know adds none."""
    listed = names if isinstance(names, (list, tuple)) else (names,)
    kinds = [k for name in listed if isinstance(name, str) for k in _KINDS_OF_TYPE.get(name, ())]
    return ValueType(dict.fromkeys(kinds)) if kinds else UNTYPED


def _listed(members: Iterable[Any]) -> ValueType:
    keys: dict[Kind, set[Key]] = {}
    for member in members:
        kind = _kind(member)
        if kind is not None:
            keys.setdefault(kind, set()).add(_key(member))
            # A float that is an integer may be written as one.
            if kind is NUMBER and member.is_integer():
                keys.setdefault(INTEGER, set()).add(_key(member))
    return ValueType({kind: frozenset(found) for kind, found in keys.items()})


def _declarations(schema: Any, key: str) -> Iterable[Any]:
    if not isinstance(schema, Mapping):
        return
    properties = _mapping(schema, "properties")
    if key in properties:
        yield properties[key]
    for pattern, found in _mapping(schema, "patternProperties").items():
        if _matches(pattern, key):
            yield found


def _matches(pattern: Any, key: str) -> bool:
    try:
        return re.search(pattern, key) is not None
    except (re.error, TypeError, OverflowError):  # not a pattern of this dialect
        return False


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
