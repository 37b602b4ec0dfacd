"""Whether a call that the parser decided may be passed on to the client.

Rules: ``tool_choice`` first; then, of what was promised to hold: the schema of a
strict function, and the grammar of a custom tool. A function that is not strict
gets its call as the model wrote it. Source: responses.md 1.6.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ...messages import Violation
from ...tools.definition import CUSTOM_INPUT
from .rejection import Rejection
from .syntax import Syntax

if TYPE_CHECKING:
    from ...messages import ToolCall
    from ..choice import Choice
    from ..tools import ClientTools


def objection(call: ToolCall, tools: ClientTools, choice: Choice | None) -> Rejection | None:
    """Why ``call`` must not be passed on; None if it may."""
    if choice is not None and not choice.allows(call):
        return Rejection.unchosen(call)
    errors = _errors(call, tools)
    return Rejection.unfit(call, errors) if errors else None


def _errors(call: ToolCall, tools: ClientTools) -> tuple[Violation, ...]:
    target = tools.target(call)
    if target is None:
        return ()
    if target.kind == "custom":
        return call.errors or _grammar_errors(tools.custom_input(call), Syntax.of(target.raw))
    return call.errors if target.strict else ()


def _grammar_errors(text: str, syntax: Syntax | None) -> tuple[Violation, ...]:
    fault = syntax.fault(text) if syntax else None
    return (Violation(f"/{CUSTOM_INPUT}", fault),) if fault else ()
