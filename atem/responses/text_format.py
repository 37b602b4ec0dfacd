"""``text.format``: plain text, JSON, or JSON of a schema.

Rules: a schema is checked when it is asked for, an answer when it is there. The
model is told in the system text what to write. A format that is not strict
guides and is not enforced (responses.md 1.8).
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final, Literal, NoReturn, TypeAlias

from ..tools import Tool, validate
from ..tools.excerpt import shorten
from ..tools.schema import Checker
from .faults import bad_schema, bad_value, missing
from .strict_schema import strict_faults
from .tool_reading import schema_fault

if TYPE_CHECKING:
    from .faults import ApiError

FormatKind: TypeAlias = Literal["text", "json_object", "json_schema"]

PARAM: Final = "text.format"
CHECKED: Final = "checked"
"""A key of our own, for APIs whose formats hold an answer to any schema."""

MAX_NAME: Final = 64
MAX_SCHEMA: Final = 1 << 17
"""Characters of the schema's JSON."""

ANY_JSON: Final = (
    "Write the answer to the user as one JSON object, with nothing before or after it."
)
THIS_JSON: Final = (
    "Write the answer to the user as JSON that matches the schema {}, with nothing before or "
    "after it.{}\n{}"
)
"""Name, description, schema."""


@dataclass(frozen=True, slots=True)
class TextFormat:
    """What the answer to the user has to look like.

    ``schema`` is set for "json_schema". ``strict`` is the API's: a schema in its
    strict subset, which the answer has to match. ``checked`` asks the same of
    the answer and takes any schema. ``echo`` is the response object's ``text.format``.
    """

    kind: FormatKind = "text"
    name: str = ""
    schema: dict[str, Any] | None = None
    strict: bool = False
    checked: bool = False
    description: str | None = None
    echo: dict[str, Any] = field(default_factory=lambda: {"type": "text"})

    @classmethod
    def of(cls, value: Any) -> TextFormat:
        """Read ``text.format``. Raises ApiError for an unknown one, or a schema that can't be."""
        if value is None:
            return cls()
        if not isinstance(value, Mapping):
            raise bad_value(PARAM, f"text.format is a {type(value).__name__}; it is an object.")
        match value.get("type", "text"):
            case "text":
                return cls()
            case "json_object":
                return cls("json_object", echo={"type": "json_object"})
            case "json_schema":
                return _of_schema(value)
        raise bad_value(
            f"{PARAM}.type", 'text.format.type is "text", "json_object" or "json_schema".'
        )

    @property
    def enforced(self) -> bool:
        """Whether an answer with :meth:`faults` must not be passed on as if it had none."""
        return self.kind == "json_object" or self.strict or self.checked

    def instruction(self) -> str:
        """What the model is told about it; "" for plain text."""
        if self.kind == "text":
            return ""
        if self.schema is None:
            return ANY_JSON
        about = f" {self.description}" if self.description else ""
        return THIS_JSON.format(repr(self.name), about, json.dumps(self.schema, ensure_ascii=False))

    def faults(self, text: str) -> list[str]:
        """What keeps ``text`` from being the answer asked for; nothing is asked of a guide."""
        if not self.enforced:
            return []
        try:
            value = json.loads(text, parse_constant=_no_constant)
        except (ValueError, RecursionError) as error:
            return [f"the answer is no JSON: {shorten(str(error))}"]
        if self.schema is not None:
            tool = Tool("answer", parameters=self.schema)
            return [str(violation) for violation in validate(tool, value)]
        return [] if isinstance(value, dict) else ["the answer is JSON, but no object"]


def _no_constant(word: str) -> NoReturn:
    raise ValueError(f"{word} is no JSON")


def _of_schema(value: Mapping[str, Any]) -> TextFormat:
    nested = value.get("json_schema")  # Chat Completions nests it
    fields = nested if isinstance(nested, Mapping) else value
    name, schema, about = fields.get("name"), fields.get("schema"), fields.get("description")
    if not isinstance(name, str) or not name:
        raise missing(f"{PARAM}.name")
    if len(name) > MAX_NAME:
        raise bad_value(f"{PARAM}.name", f"text.format.name has at most {MAX_NAME} characters.")
    if not isinstance(schema, dict):
        raise missing(f"{PARAM}.schema")
    if about is not None and not isinstance(about, str):
        raise bad_value(f"{PARAM}.description", "text.format.description is a string.")
    strict, checked = _flag(fields, "strict"), _flag(fields, CHECKED)
    _check(name, schema, strict=strict, enforced=strict or checked)
    said = {"name": name, "description": about, "schema": schema, "strict": strict}
    echo = {"type": "json_schema", **said, **({CHECKED: True} if checked else {})}
    return TextFormat("json_schema", name, schema, strict, checked, about, echo)


def _flag(fields: Mapping[str, Any], key: str) -> bool:
    given = fields.get(key)
    if given is not None and not isinstance(given, bool):
        raise bad_value(f"{PARAM}.{key}", f"text.format.{key} is true, false or null.")
    return bool(given)


def _check(name: str, schema: dict[str, Any], *, strict: bool, enforced: bool) -> None:
    if len(json.dumps(schema)) > MAX_SCHEMA:
        raise _broken(name, f"it has more than {MAX_SCHEMA} characters")
    if strict and (fault := next(strict_faults(schema), None)):
        raise _broken(name, fault)
    try:
        Checker(schema).check()
    except Exception as error:  # a stranger's schema can break in any way
        raise _broken(name, shorten(str(getattr(error, "message", error)))) from error
    if enforced and (fault := schema_fault(Tool("answer", parameters=schema))):
        raise _broken(name, fault)


def _broken(name: str, fault: str) -> ApiError:
    message = f"Invalid schema for response_format {name[:MAX_NAME]!r}: {fault}."
    return bad_schema(f"{PARAM}.schema", message)
