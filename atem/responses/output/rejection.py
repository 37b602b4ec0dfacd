"""A call that is not passed on: what the client is told, and what the model.

Rules: it never becomes an item that a client could run. Whatever is quoted of
the model's text is short. Source: responses.md 1.5 to 1.7.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Final, NamedTuple

from ...messages import Message, RejectedCall
from ...tools import feedback
from ...tools.excerpt import shorten

if TYPE_CHECKING:
    from ...messages import RejectReason, ToolCall, Violation
    from ...tools import ToolSet

MAX_NAME: Final = 80
MAX_QUOTE: Final = 600
MAX_LISTED: Final = 8

WHY: Final[dict[RejectReason, str]] = {
    "unknown_tool": "no such tool was declared",
    "malformed": "it is not in the form of a tool call",
    "incomplete": "it was cut off before its end",
    "invalid_arguments": "its arguments don't fit",
}

NOT_CHOSEN: Final = "tool_choice does not allow it"
TAKEN_BACK: Final = "what had been shown of it was taken back"


class Rejection(NamedTuple):
    """``call`` was not passed on, because of ``why`` (the end of a sentence).

    ``chosen`` is False for a call that is right in itself and that
    ``tool_choice`` does not allow.
    """

    call: RejectedCall
    why: str
    chosen: bool = True

    @classmethod
    def of(cls, rejected: RejectedCall) -> Rejection:
        """A call that the parser rejected."""
        return cls(rejected, WHY[rejected.reason])

    @classmethod
    def unfit(cls, call: ToolCall, errors: tuple[Violation, ...]) -> Rejection:
        """A call whose arguments must fit and don't."""
        return cls.of(replace(_rejected(call), errors=errors))

    @classmethod
    def unchosen(cls, call: ToolCall) -> Rejection:
        """A call that ``tool_choice`` doesn't allow."""
        return cls(_rejected(call), NOT_CHOSEN, chosen=False)

    def message(self) -> str:
        """What the client reads in place of the call."""
        call = self.call
        name = repr(shorten(call.raw_name, MAX_NAME)) if call.raw_name else "a tool without a name"
        lines = [f"The model tried to call {name}. The call was not passed on: {self.why}."]
        lines += [f"- {shorten(str(error), MAX_QUOTE)}" for error in call.errors[:MAX_LISTED]]
        if call.suggestions:
            listed = ", ".join(shorten(name, MAX_NAME) for name in call.suggestions)
            lines.append(f"Tools of nearly this name: {listed}.")
        if call.text:
            lines.append(f"It wrote: {shorten(call.text, MAX_QUOTE)}")
        return "\n".join(lines)

    def feedback(self, tools: ToolSet) -> Message:
        """What the model is told, so that it can write another call."""
        told = feedback(self.call, tools=tools)
        if self.chosen:
            return told
        return replace(told, content="This call is not allowed now. It was not run.")


def _rejected(call: ToolCall) -> RejectedCall:
    """The form of a call that was right for the parser and is not passed on."""
    return RejectedCall(
        "invalid_arguments",
        call.id,
        call.raw_name,
        call.arguments,
        call.arguments_json,
        span=call.span,
    )
