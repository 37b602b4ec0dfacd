"""The type of one parameter: which values it admits, and which of them a text writes.

Rules: wire_format 7. A type is a table from kinds of value to the values
admitted; where it comes from is not known here. Nothing raises on a text.

The wire writes strings bare, so ``5`` may be the number or the string; only
the type tells. JSON Schema says that 3.0 is an integer, so the kind "number"
stands for what is written as a float, and the type ``number`` admits both.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any, Final, TypeAlias

from ..tools.equality import Key, key_of
from ..wire import WHITESPACE
from .json_text import decode_json, integral

Kind: TypeAlias = str
Admitted: TypeAlias = Mapping[Kind, frozenset[Key] | None]
"""The kinds of value that fit; None where every value of the kind does."""

STRING, INTEGER, NUMBER, BOOLEAN, NULL, ARRAY, OBJECT = KINDS = (
    *("string", "integer", "number", "boolean", "null", "array", "object"),
)

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

        Never raises: a caller with next to no stack left gets the text. Containers
        are new on each call.
        """
        if self.string_only:
            return text
        try:
            value = self._read(text.strip(WHITESPACE))
            return text if self._holds(text) and not self._holds(value) else value
        except (ValueError, RecursionError):
            return text

    def _read(self, text: str) -> Any:
        if self.admitted is None:
            return decode_json(text)
        if BOOLEAN in self.admitted and STRING not in self.admitted:
            flag = _BOOLEANS.get(text[:6].lower())
            if flag is not None:
                return flag
        kinds = _KINDS_OF_START.get(text[:1], ())
        # A quoted text is never a JSON string here: strings are written bare.
        if STRING in kinds or self.admitted.keys().isdisjoint(kinds):
            raise ValueError("of a kind that the schema does not admit")
        value = decode_json(text)
        if isinstance(value, float) and NUMBER not in self.admitted:
            return integral(text)
        return value

    def _holds(self, value: Any) -> bool:
        if self.admitted is None:
            return True
        kind = kind_of(value)
        if kind is None or kind not in self.admitted:
            return False
        members = self.admitted[kind]
        return members is None or key_of(value) in members


UNTYPED: Final = ValueType(None)
"""No schema: JSON if it parses, else the text."""

TEXT: Final = ValueType(MappingProxyType({STRING: None}))
"""The text as it is."""


def kind_of(value: Any) -> Kind | None:
    """The kind of a decoded value, or of one in a schema; None for what no JSON can be."""
    for cls in type(value).__mro__:  # bool comes before int, of which it is a subclass
        if cls in _KIND_OF_CLASS:
            return _KIND_OF_CLASS[cls]
    return None


def both(a: ValueType, b: ValueType) -> ValueType:
    """The type of what both admit."""
    if a.admitted is None or b.admitted is None:
        return b if a.admitted is None else a
    shared = {k: _common(a.admitted[k], b.admitted[k]) for k in a.admitted if k in b.admitted}
    return ValueType({kind: keys for kind, keys in shared.items() if keys is None or keys})


def _common(a: frozenset[Key] | None, b: frozenset[Key] | None) -> frozenset[Key] | None:
    if a is None or b is None:
        return b if a is None else a
    return a & b


def either(a: ValueType, b: ValueType) -> ValueType:
    """The type of what one of them admits."""
    if a.admitted is None or b.admitted is None:
        return UNTYPED
    joined = dict(a.admitted)
    for kind, keys in b.admitted.items():
        mine = joined.get(kind, frozenset())
        joined[kind] = None if mine is None or keys is None else mine | keys
    return ValueType(joined)
