"""From untrusted JSON to a typed record, with errors that name the keys.

Rules: strict, so that a boolean is no integer and a string no number
(model.md 3.4, rule 12). Values are shown cut short: they are not ours.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, TypeVar

from pydantic import BaseModel, ValidationError

from ...errors import ConfigError
from ..config import ModelConfig
from ..quoting import FEW, show

if TYPE_CHECKING:
    from pydantic_core import ErrorDetails

Record = TypeVar("Record", bound=BaseModel)


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


def is_whole(value: object) -> bool:
    """Whether it is an integer; a boolean is none."""
    return isinstance(value, int) and not isinstance(value, bool)


def _describe(error: ValidationError, where: str) -> str:
    found = [_one(detail) for detail in error.errors(include_url=False)]
    return (
        f"{where}: "
        + "; ".join(found[:FEW])
        + (f"; and {len(found) - FEW} more" if len(found) > FEW else "")
    )


def _one(detail: ErrorDetails) -> str:
    key = ".".join(map(str, detail["loc"]))
    if detail["type"] == "missing":
        return f"{key} is missing"
    message = detail["msg"].removeprefix("Value error, ")
    return f"{key}={show(detail['input'])}: {message}" if key else message
