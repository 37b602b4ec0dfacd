"""Values of a request's fields, checked: each check is a function of value and place.

Rules: null was dealt with before. A check returns the value to work with, or
raises the 400 that names the place. true is no number, and "5" is none either.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final, TypeAlias

from .faults import bad_value

Check: TypeAlias = Callable[[Any, str], Any]
"""``(value, path of the field) -> value``."""

MAX_QUOTED: Final = 64

MAX_PAIRS: Final = 16
MAX_KEY: Final = 64
MAX_VALUE: Final = 512
"""Of ``metadata`` (responses.md 1.2)."""

MAX_STOPS: Final = 16
MAX_STOP: Final = 1024


def number(least: float, most: float) -> Check:
    """A number in a range, the ends included."""

    def check(value: Any, param: str) -> float:
        if isinstance(value, bool) or not isinstance(value, int | float):
            raise _wrong(param, value, "a number")
        if not least <= value <= most:
            raise bad_value(param, f"{param} is {value}; it is from {least} to {most}.")
        return value

    return check


def whole(least: int | None = None, most: int | None = None) -> Check:
    """A whole number in a range, the ends included; 3.0 is one too."""

    def check(value: Any, param: str) -> int:
        if isinstance(value, float) and value.is_integer():
            value = int(value)
        if isinstance(value, bool) or not isinstance(value, int):
            raise _wrong(param, value, "a whole number")
        if (least is not None and value < least) or (most is not None and value > most):
            wanted = f"at least {least}" if most is None else f"from {least} to {most}"
            raise bad_value(param, f"{param} is {str(value)[:MAX_QUOTED]}; it is {wanted}.")
        return value

    return check


def one_of(*words: str) -> Check:
    """One of a few words."""

    def check(value: Any, param: str) -> str:
        if value not in words:
            wanted = ", ".join(map(repr, words))
            raise bad_value(
                param, f"{param} is {str(value)[:MAX_QUOTED]!r}; it is one of {wanted}."
            )
        return str(value)

    return check


def flag(value: Any, param: str) -> bool:
    """True or false."""
    if not isinstance(value, bool):
        raise _wrong(param, value, "true or false")
    return value


def text(value: Any, param: str) -> str:
    """A string."""
    if not isinstance(value, str):
        raise _wrong(param, value, "a string")
    return value


def mapping(value: Any, param: str) -> dict[str, Any]:
    """An object."""
    if not isinstance(value, Mapping):
        raise _wrong(param, value, "an object")
    return dict(value)


def array(value: Any, param: str) -> list[Any]:
    """An array."""
    if not isinstance(value, list | tuple):
        raise _wrong(param, value, "an array")
    return list(value)


def anything(value: Any, param: str) -> Any:
    """Whatever it is: for what is only noted."""
    return value


def metadata(value: Any, param: str) -> dict[str, str]:
    """At most 16 pairs of strings, keys of 64 and values of 512 characters."""
    pairs = mapping(value, param)
    if len(pairs) > MAX_PAIRS:
        raise bad_value(param, f"{param} has {len(pairs)} pairs; at most {MAX_PAIRS} are kept.")
    for key, said in pairs.items():
        where = f"{param}.{key[:MAX_KEY]}"
        if len(key) > MAX_KEY:
            raise bad_value(param, f"{param} has a key of {len(key)} characters, over {MAX_KEY}.")
        if len(text(said, where)) > MAX_VALUE:
            raise bad_value(where, f"{where} has {len(said)} characters, over {MAX_VALUE}.")
    return pairs


def stops(value: Any, param: str) -> tuple[str, ...]:
    """A stop string, or several; empty ones stop nothing and are left out."""
    given = [value] if isinstance(value, str) else array(value, param)
    if len(given) > MAX_STOPS:
        raise bad_value(param, f"{param} has {len(given)} strings; at most {MAX_STOPS} are taken.")
    found = [text(word, f"{param}[{place}]") for place, word in enumerate(given)]
    if long := next((word for word in found if len(word) > MAX_STOP), None):
        raise bad_value(param, f"{param} has a string of {len(long)} characters, over {MAX_STOP}.")
    return tuple(dict.fromkeys(filter(None, found)))


def words(value: Any, param: str) -> tuple[str, ...]:
    """An array of strings."""
    return tuple(text(word, f"{param}[{place}]") for place, word in enumerate(array(value, param)))


def conversation(value: Any, param: str) -> str:
    """A conversation's id: a string, or an object with one."""
    if isinstance(value, Mapping):
        return text(value.get("id"), f"{param}.id")
    return text(value, param)


def _wrong(param: str, value: object, wanted: str) -> Exception:
    found = "null" if value is None else type(value).__name__
    return bad_value(param, f"{param} is of the type {found}; it is {wanted}.")
