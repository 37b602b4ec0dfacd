"""A signature's annotations as a pydantic model: its JSON Schema, and JSON arguments as values.

Rules: knows pydantic, not functions. Fields have made-up names and the
parameters' names as aliases, because a parameter may be called ``json`` or
``schema`` and a pydantic field may not.
"""

from __future__ import annotations

from inspect import Parameter
from typing import TYPE_CHECKING, Any, Final, TypeAlias, get_args

from pydantic import BaseModel, Field, ValidationError, create_model
from pydantic.errors import PydanticUndefinedAnnotation, PydanticUserError
from pydantic.fields import FieldInfo
from pydantic.json_schema import GenerateJsonSchema
from pydantic_core import SchemaError

from ..errors import InvalidArguments, InvalidTool
from ..messages import Violation
from .excerpt import shorten
from .validation import MAX_PATH, MAX_VIOLATIONS, pointer

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

UNREADABLE: Final = (PydanticUserError, PydanticUndefinedAnnotation, SchemaError, TypeError)
"""What pydantic raises for an annotation or a constraint that it can't use."""

Annotated: TypeAlias = tuple[Any, Any]
"""An annotation and its default (``Parameter.empty``: required)."""

UNKNOWN: Final = "the function has no such parameter"


class Arguments:
    """The arguments of the function ``name``, by parameter.

    ``notes`` are descriptions from the docstring; a ``Field(description=…)``
    in the annotation wins over them. Raises InvalidTool for an annotation
    without a JSON form.
    """

    __slots__ = ("_model", "_name", "_parameters")

    def __init__(
        self, name: str, parameters: Mapping[str, Annotated], notes: Mapping[str, str]
    ) -> None:
        self._name = name
        self._parameters = {f"p{index}": key for index, key in enumerate(parameters)}
        fields: dict[str, Any] = {
            field: _field(name, key, parameters[key], notes.get(key))
            for field, key in self._parameters.items()
        }
        try:
            self._model: type[BaseModel] = create_model("Arguments", **fields)
        except UNREADABLE as error:
            raise _no_json_form(name, error) from error

    def schema(self) -> dict[str, Any]:
        """The JSON Schema of the arguments object."""
        try:
            schema = self._model.model_json_schema(schema_generator=_Untitled)
        except PydanticUserError as error:
            raise _no_json_form(self._name, error) from error
        schema.pop("title")
        # Not by pydantic's extra="forbid", which would spread to TypedDicts inside.
        return {**schema, "additionalProperties": False}

    def convert(self, arguments: dict[str, Any]) -> dict[str, Any]:
        """Keyword arguments of the annotated types; those not given are left to their defaults.

        Raises InvalidArguments, with at most 32 violations sorted by path.
        """
        known = {field.alias for field in self._model.model_fields.values()}
        found = {_violation([key], UNKNOWN) for key in arguments if key not in known}
        try:
            values = self._model.model_validate(arguments)
        except ValidationError as error:
            raise self._refusal(found | _violations(error, arguments)) from error
        if found:
            raise self._refusal(found)
        return {
            self._parameters[field]: getattr(values, field)
            for field in self._parameters
            if field in values.model_fields_set
        }

    def _refusal(self, found: set[Violation]) -> InvalidArguments:
        ordered = sorted(found, key=lambda violation: (violation.path, violation.message))
        return InvalidArguments(self._name, tuple(ordered[:MAX_VIOLATIONS]))


class _Untitled(GenerateJsonSchema):
    """Without the titles that pydantic makes from names: they cost prompt and say nothing."""

    def field_title_should_be_set(self, _: Any) -> bool:
        return False


def _field(name: str, key: str, parameter: Annotated, note: str | None) -> tuple[Any, Any]:
    annotation, default = parameter
    if isinstance(default, FieldInfo):
        raise InvalidTool(
            f"function {name!r}, parameter {key!r}: a Field() as default breaks plain calls; "
            "write Annotated[type, Field(…)] and a plain default"
        )
    own = [item for item in get_args(annotation)[1:] if isinstance(item, FieldInfo)]
    options: dict[str, Any] = {"alias": next((item.alias for item in own if item.alias), key)}
    if note and not any(item.description for item in own):
        options["description"] = note
    if default is not Parameter.empty:
        options["default"] = default
    return annotation, Field(**options)


def _no_json_form(name: str, error: Exception) -> InvalidTool:
    return InvalidTool(f"function {name!r}: an annotation has no JSON form: {shorten(str(error))}")


def _violations(error: ValidationError, arguments: dict[str, Any]) -> set[Violation]:
    details = error.errors(include_url=False, include_context=False)
    return {_violation(_real(each["loc"], arguments), each["msg"]) for each in details}


def _violation(path: Iterable[str | int], message: str) -> Violation:
    return Violation(shorten(pointer(path), MAX_PATH), shorten(message))


def _real(location: tuple[str | int, ...], value: Any) -> tuple[str | int, ...]:
    """``location`` up to what exists in ``value``: pydantic adds the names of union members."""
    for depth, step in enumerate(location):
        try:
            value = value[step]
        except (KeyError, IndexError, TypeError):
            return location[: max(depth, 1)]
    return location
