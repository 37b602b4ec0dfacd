"""Arguments against a tool's JSON Schema, with answers that are always short.

Rules: values come from a model and schemas from strangers, so nothing here
raises, fetches, or takes more than about linear time in the value; what would
becomes a violation, by count and, but for patterns, never by a clock.
jsonschema is imported on the first validation.
"""

from __future__ import annotations

from itertools import islice
from typing import TYPE_CHECKING, Any, Final

from ..messages import Violation
from .budget import Budget, TooCostly
from .excerpt import MAX_MESSAGE, shorten

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from jsonschema.exceptions import ValidationError

    from .definition import Tool

MAX_VIOLATIONS: Final = 32
MAX_PATH: Final = 1000
"""Characters of a path. Names inside a value may be as long as the value."""

ALTERNATIVES: Final = 3
"""Branches of an ``anyOf`` or ``oneOf`` whose own complaint is quoted."""

COSTLY: Final = (
    "the schema is too costly to check on these arguments: still undecided after {} steps; "
    "nest less, or give its anyOf and oneOf fewer branches that refer to themselves"
)


def validate(tool: Tool, arguments: dict[str, Any]) -> tuple[Violation, ...]:
    """The ways in which ``arguments`` differ from the tool's schema, sorted; () if none.

    Draft 2020-12, or the draft that the schema's ``$schema`` names. Paths are
    JSON pointers, messages have at most 200 characters, and after 32 violations
    a last one says that there are more. A reference out of the schema, a schema
    that breaks while it is applied, and one that takes more steps than 20,000
    and 100 for each value inside ``arguments`` are violations too. Never raises.
    """
    if not tool.parameters:
        return ()
    found: list[Violation] = []
    budget = Budget(arguments)
    try:
        for error in islice(tool.checker.errors(arguments, budget), MAX_VIOLATIONS + 1):
            path = shorten(pointer(error.absolute_path), MAX_PATH)
            # One by one, so that those before a failure are kept.
            found.append(Violation(path, shorten(_message(error))))
    except TooCostly:
        found.append(Violation("", COSTLY.format(budget.limit)))
    except RecursionError:
        found.append(Violation("", "the arguments are nested too deeply to be checked"))
    except Exception as error:  # noqa: BLE001 - a stranger's schema can break in any way
        reason = f"the schema of {tool.wire_name!r} can't be applied: {_text(error)}"
        found.append(Violation("", shorten(reason)))
    if len(found) > MAX_VIOLATIONS:
        more = Violation("", f"and more: only the first {MAX_VIOLATIONS} are listed")
        return (*_sorted(found[:MAX_VIOLATIONS]), more)
    return tuple(_sorted(found))


def _sorted(violations: list[Violation]) -> list[Violation]:
    return sorted(set(violations), key=lambda violation: (violation.path, violation.message))


def pointer(path: Iterable[str | int]) -> str:
    """The path to a value as a JSON pointer (RFC 6901)."""
    parts = (str(part).replace("~", "~0").replace("/", "~1") for part in path)
    return "".join(f"/{part}" for part in parts)


def _message(error: ValidationError) -> str:
    """The error's text; for alternatives, what the first of them asked for."""
    branches = list(_branches(error)) if error.validator in ("anyOf", "oneOf") else []
    return "; or ".join(branches) if branches else error.message


def _branches(error: ValidationError) -> Iterator[str]:
    per_branch = {inner.schema_path[0]: inner for inner in reversed(error.context or [])}
    for branch in sorted(per_branch, key=str)[:ALTERNATIVES]:
        yield shorten(per_branch[branch].message, MAX_MESSAGE // ALTERNATIVES - len("; or "))


def _text(error: Exception) -> str:
    try:
        return f"{type(error).__name__}: {error}"
    except Exception:  # noqa: BLE001 - an error's text quotes values, which may have none
        return type(error).__name__
