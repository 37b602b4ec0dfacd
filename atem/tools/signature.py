"""A signature's annotations as a pydantic model: its JSON Schema, and JSON arguments as values.

Rules: knows pydantic, not functions. Fields have made-up names and the
parameters' names as aliases, because a parameter may be called ``json`` or
``schema`` and a pydantic field may not.
"""

from __future__ import annotations

from inspect import Parameter
from typing import TYPE_CHECKING, Any, TypeAlias, get_args

from pydantic import BaseModel, ConfigDict, Field, ValidationError, create_model
from pydantic.errors import PydanticUndefinedAnnotation, PydanticUserError
from pydantic.fields import FieldInfo
from pydantic.json_schema import GenerateJsonSchema

from atem.errors import InvalidArguments, InvalidTool
from atem.messages import Violation

from .validation import MAX_VIOLATIONS, pointer, shorten

if TYPE_CHECKING:
    from collections.abc import Mapping

Annotated: TypeAlias = tuple[Any, Any]
"""An annotation and its default (``Parameter.empty``: required)."""


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
            self._model: type[BaseModel] = create_model(
                "Arguments", __config__=ConfigDict(extra="forbid"), **fields
            )
        except (PydanticUserError, PydanticUndefinedAnnotation, TypeError) as error:
            raise _no_json_form(name, error) from error

    def schema(self) -> dict[str, Any]:
        """The JSON Schema of the arguments object."""
        try:
            schema = self._model.model_json_schema(schema_generator=_Untitled)
        except PydanticUserError as error:
            raise _no_json_form(self._name, error) from error
        schema.pop("title")
        return schema

    def convert(self, arguments: dict[str, Any]) -> dict[str, Any]:
        """Keyword arguments of the annotated types; those not given are left to their defaults.

        Raises InvalidArguments, its violations sorted by path.
        """
        try:
            values = self._model.model_validate(arguments)
        except ValidationError as error:
            raise InvalidArguments(self._name, _violations(error, arguments)) from error
        return {
            self._parameters[field]: getattr(values, field)
            for field in self._parameters
            if field in values.model_fields_set
        }


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


def _violations(error: ValidationError, arguments: dict[str, Any]) -> tuple[Violation, ...]:
    found = {
        Violation(pointer(_real(detail["loc"], arguments)), shorten(detail["msg"]))
        for detail in error.errors(include_url=False, include_context=False)[:MAX_VIOLATIONS]
    }
    return tuple(sorted(found, key=lambda violation: (violation.path, violation.message)))


def _real(location: tuple[str | int, ...], value: Any) -> tuple[str | int, ...]:
    """``location`` up to what exists in ``value``: pydantic adds the names of union members."""
    for depth, step in enumerate(location):
        try:
            value = value[step]
        except (KeyError, IndexError, TypeError):
            return location[: max(depth, 1)]
    return location
