"""The JSON files that a user names: tools, conversations.

Rules: whatever is wrong with a file is one sentence that begins with its name.
"""

from __future__ import annotations

import json
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from ..errors import AtemError
from . import source
from .exits import Failure

if TYPE_CHECKING:
    from collections.abc import Iterator

    from ..tools import ToolSet


def read_json(name: str) -> Any:
    """The value in the file ``name``. Raises Failure if there is none."""
    data = source.read(name)
    if not data.strip():
        raise Failure(f"{name}: the file is empty; it must hold JSON")
    try:
        return json.loads(data)
    except (ValueError, RecursionError) as error:
        raise Failure(f"{name}: not JSON: {error}") from error


def read_tools(name: str | None) -> ToolSet:
    """The tools in the file ``name``; none if there is no file. Raises Failure."""
    given = [] if name is None else read_json(name)
    return checked_tools(given, name or "tools")


def checked_tools(given: Any, name: str) -> ToolSet:
    """``given``, which stood in the file ``name``, as tools that can all be called."""
    from ..tools import ToolSet  # with it come the schemas

    if not isinstance(given, list):
        raise Failure(f"{name}: the tools must be a list of tools, not {_kind(given)}")
    with blaming(name):
        tools = ToolSet.of(given)
        tools.check()
    return tools


@contextmanager
def blaming(name: str) -> Iterator[None]:
    """Say of an error of atem's in which file its cause stands."""
    try:
        yield
    except AtemError as error:
        raise Failure(f"{name}: {error}") from error


def _kind(value: Any) -> str:
    names = {dict: "an object", str: "a string", bool: "a boolean", type(None): "null"}
    return names.get(type(value), "a number")
