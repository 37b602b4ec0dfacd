"""From untrusted JSON to a typed record, with errors that name the keys.

Rules: strict, so that a boolean is no integer and a string no number
(model.md 3.4, rule 12). Values are shown cut short: they are not ours.
"""

from __future__ import annotations

import reprlib
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Final, TypeVar

from pydantic import BaseModel, ValidationError

from ...errors import ConfigError
from ..config import ModelConfig

if TYPE_CHECKING:
    from pydantic_core import ErrorDetails

Record = TypeVar("Record", bound=BaseModel)

SHOWN: Final = 4
"""How many keys or layers one message names."""

_SHORT: Final = reprlib.Repr()
_SHORT.maxstring = _SHORT.maxother = 60


def as_object(value: Any, where: str) -> Mapping[str, Any]:
    """``value`` if it is a JSON object. Raises ConfigError."""
    if not isinstance(value, Mapping):
        raise ConfigError(f"{where} is {show(value)}; it has to be a JSON object")
    return value


def parse(record: type[Record], raw: Mapping[str, Any], where: str) -> Record:
    """``raw`` as a ``record``; keys it doesn't have are left alone. Raises ConfigError."""
    try:
        return record.model_validate(dict(raw))
    except ValidationError as error:
        raise ConfigError(_describe(error, where)) from error


def build(values: Mapping[str, Any], where: str) -> ModelConfig:
    """The canonical configuration of ``values``. Raises ConfigError."""
    return parse(ModelConfig, values, where)


def show(value: object) -> str:
    """``value`` for a message, cut short."""
    try:
        return _SHORT.repr(value)
    except (ValueError, RecursionError):  # a whole number of thousands of digits
        return f"a {type(value).__name__} too long to show"


def some(values: list[Any]) -> str:
    """The first few of ``values``, and how many more there are."""
    more = len(values) - SHOWN
    return ", ".join(map(str, values[:SHOWN])) + (f" and {more} more" if more > 0 else "")


def is_whole(value: object) -> bool:
    """Whether it is an integer; a boolean is none."""
    return isinstance(value, int) and not isinstance(value, bool)


def _describe(error: ValidationError, where: str) -> str:
    found = [_one(detail) for detail in error.errors(include_url=False)]
    return (
        f"{where}: "
        + "; ".join(found[:SHOWN])
        + (f"; and {len(found) - SHOWN} more" if len(found) > SHOWN else "")
    )


def _one(detail: ErrorDetails) -> str:
    key = ".".join(map(str, detail["loc"]))
    if detail["type"] == "missing":
        return f"{key} is missing"
    message = detail["msg"].removeprefix("Value error, ")
    return f"{key}={show(detail['input'])}: {message}" if key else message
