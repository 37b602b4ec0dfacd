"""Tools from typed Python functions: the signature is the schema, the docstring the description.

Rules: pydantic reads the annotations, so that schema and conversion can't
disagree; what has no JSON form is refused when it is declared, not when it is
called. pydantic is imported when the first function is declared.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final, TypeVar, get_type_hints, overload

from ..errors import InvalidTool
from . import docstring
from .definition import Tool

if TYPE_CHECKING:
    from .signature import Arguments

MARK: Final = "__atem_tool__"
STARRED: Final = (inspect.Parameter.VAR_POSITIONAL, inspect.Parameter.VAR_KEYWORD)

Function = TypeVar("Function", bound=Callable[..., Any])


@overload
def tool(function: Function, /) -> Function: ...
@overload
def tool(
    *, name: str | None = None, description: str | None = None
) -> Callable[[Function], Function]: ...


def tool(
    function: Function | None = None,
    /,
    *,
    name: str | None = None,
    description: str | None = None,
) -> Function | Callable[[Function], Function]:
    """Declare a typed function as a tool; it stays the same function, callable as before.

    ``name`` and ``description`` replace the function's name and docstring.
    Raises InvalidTool where the signature has no JSON form.
    """

    def mark(function: Function) -> Function:
        declaration = from_function(function, name=name, description=description)
        if not inspect.isfunction(function):
            raise InvalidTool(
                f"{declaration.name!r} is a bound method, which can't be marked; "
                "put it in the list of tools as it is, or use Tool.from_function"
            )
        setattr(function, MARK, declaration)
        return function

    return mark if function is None else mark(function)


def declared(function: Callable[..., Any]) -> Tool:
    """The Tool of a function, under ``@tool`` or not. Raises InvalidTool as :func:`tool` does."""
    mark: Tool | None = getattr(function, MARK, None)
    if mark is None:
        return from_function(function)
    # A wrapper made by functools.wraps carries the mark of the function inside it.
    return replace(mark, function=function)


def from_function(
    function: Callable[..., Any], *, name: str | None = None, description: str | None = None
) -> Tool:
    """The Tool of a typed function or bound method; :meth:`Tool.from_function` documents it."""
    if not (inspect.isfunction(function) or inspect.ismethod(function)):
        raise InvalidTool(
            f"{function!r} is not a Python function or bound method; wrap it in a typed function"
        )
    called = name if name is not None else function.__name__
    text, notes = docstring.split(function.__doc__ or "")
    arguments = _arguments(function, called, notes)
    return Tool(
        called,
        text if description is None else description,
        arguments.schema(),
        function=function,
        convert=arguments.convert,
    )


def _arguments(function: Callable[..., Any], name: str, notes: dict[str, str]) -> Arguments:
    from .signature import Arguments

    hints = _hints(function, name)
    parameters = inspect.signature(function).parameters.values()
    for parameter in parameters:
        if why := _refusal(parameter, hints):
            raise InvalidTool(f"function {name!r}, parameter {parameter.name!r}: {why}")
    return Arguments(name, {p.name: (hints[p.name], p.default) for p in parameters}, notes)


def _hints(function: Callable[..., Any], name: str) -> dict[str, Any]:
    try:
        return get_type_hints(function, include_extras=True)
    except (NameError, TypeError, AttributeError, SyntaxError) as error:
        raise InvalidTool(
            f"function {name!r}: its annotations can't be read ({error}); "
            "types must be defined at module level"
        ) from error


def _refusal(parameter: inspect.Parameter, hints: dict[str, Any]) -> str | None:
    """Why a parameter can't be filled from a JSON object, with what to write instead; or None."""
    if parameter.kind in STARRED:
        return "a tool has a fixed list of parameters; name each, or take one dict or list"
    if parameter.kind is parameter.POSITIONAL_ONLY:
        return "arguments come by name; remove the '/' from the signature"
    if parameter.name not in hints:
        method = parameter.name in ("self", "cls")
        return (
            "declare the bound method (tools=[object.method]) instead of the plain one"
            if method
            else "annotate it, for example 'path: str' ('Any' if it may be anything)"
        )
    return None
