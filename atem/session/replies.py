"""The tool messages that answer a turn's calls.

Rules: each call has exactly one answer in the history, at every moment: before
it runs one that says that it didn't, while it runs one that says that nobody
knows. So whatever interrupts a session, the model is told the truth.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from inspect import iscoroutinefunction
from typing import TYPE_CHECKING, Any, Final, TypeAlias

from ..errors import OptionError
from ..messages import Message, RejectedCall, ToolCall

if TYPE_CHECKING:
    from ..parser.fold import Turn
    from ..tools import ToolSet

Run: TypeAlias = Callable[[ToolCall], str]
"""Runs a call and gives its result as text; what it raises is told to the model."""

STOPPED: Final = "Stopped before this call began. It was not run."
RUNNING: Final = "Stopped while this call ran. It may have had an effect, in part or in whole."
CUT: Final = (
    "The turn was cut off before its end, so this call was not run. "
    "Send it again, with less text in the turn."
)
DENIED: Final = "This call is not allowed. It was not run."
REFUSED: Final = "The user was asked and did not allow this call. It was not run."
UNASKED: Final = "This call needs the user's consent, and there is nobody to ask. It was not run."


def run_functions(tools: ToolSet) -> Run:
    """What runs the tools' own functions. Raises OptionError if one has none, or an async one.

    A result that is no text becomes its JSON.
    """
    for tool in tools:
        if tool.function is None or iscoroutinefunction(tool.function):
            found = "no function" if tool.function is None else "an async function"
            raise OptionError(f"tool {tool.wire_name!r} has {found}; give run=, which runs a call")

    def run(call: ToolCall) -> str:
        tool = tools.get(call.wire_name)
        assert tool is not None, "the parser gives calls of declared tools only"
        return _text(tool.call(call.arguments))

    return run


def _text(result: Any) -> str:
    if isinstance(result, str):
        return result
    try:
        return json.dumps(result, ensure_ascii=False)
    except (TypeError, ValueError) as error:
        raise TypeError(f"it ran, but its result has no JSON form: {error}") from error


def failure(error: Exception) -> str:
    """What the model is told of a tool that raised: ``TypeName: sentence``."""
    return f"{type(error).__name__}: {error}".rstrip(": ")


def reply(call: ToolCall, text: str) -> Message:
    """The answer to ``call``; half a character, which has no UTF-8 form, is replaced."""
    written = text.encode("utf-8", "surrogatepass").decode("utf-8", "replace")
    return Message("tool", written, name=call.wire_name, call_id=call.id)


def calls_of(turn: Turn) -> list[ToolCall | RejectedCall]:
    """The calls and rejected calls of a turn, in the order in which they were written."""
    return [call for message in turn.messages for call in message.calls]


def first_reply(call: ToolCall | RejectedCall, tools: ToolSet, *, complete: bool) -> Message:
    """The answer before anything ran."""
    if isinstance(call, RejectedCall):
        return tools.feedback(call)
    return reply(call, STOPPED if complete else CUT)
