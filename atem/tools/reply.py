"""What to tell the model about a call that was not run.

Rules: short plain text with bounds on everything quoted, because quotes come
from the model and the answer goes back into its context. Facts first: what was
wrong, what it wrote, what exists, what to do.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from ..messages import Message
from .excerpt import COUNTED, shorten
from .names import why_unwritable_name

if TYPE_CHECKING:
    from collections.abc import Iterator

    from ..messages import RejectedCall, RejectReason
    from .toolset import ToolSet

NAMELESS: Final = "unknown"
"""Stands for a name that can't be written again."""

MAX_QUOTE: Final = 300
MAX_NAME: Final = 80
MAX_LISTED: Final = 40
"""Tools, and violations, that are listed; the rest is counted."""

SENTENCES: Final[dict[RejectReason, str]] = {
    "unknown_tool": "There is no tool called {name}. This call was not run.",
    "malformed": "The call to {name} is not in the form of a tool call. This call was not run.",
    "incomplete": "The call to {name} was cut off before its end. This call was not run.",
    "invalid_arguments": "The arguments of {name} don't fit its schema. This call was not run.",
}

ADVICE: Final[dict[RejectReason, str]] = {
    "unknown_tool": "Call one of the tools that exist, by its exact name.",
    "malformed": "Write the whole call again, every parameter with its name in double quotes.",
    "incomplete": "Send the call again in a smaller piece, for example with less text at once.",
    "invalid_arguments": "Correct these arguments and send the whole call again.",
}


def feedback(rejected: RejectedCall, *, tools: ToolSet | None = None) -> Message:
    """The tool message that answers ``rejected``.

    Its name is what the model wrote (so that the model finds its call), or
    "unknown" if that can't stand in a header; its content is at most a few
    thousand characters. With ``tools`` it lists what exists.
    """
    writable = why_unwritable_name(rejected.raw_name) is None
    return Message(
        "tool",
        content="\n".join(_lines(rejected, tools)),
        name=rejected.raw_name if writable else NAMELESS,
        call_id=rejected.id,
    )


def _lines(rejected: RejectedCall, tools: ToolSet | None) -> Iterator[str]:
    name = (
        repr(shorten(rejected.raw_name, MAX_NAME, gap=COUNTED))
        if rejected.raw_name
        else "a tool without a name"
    )
    yield SENTENCES[rejected.reason].format(name=name)
    yield from (
        f"- {shorten(str(violation), MAX_QUOTE, gap=COUNTED)}"
        for violation in rejected.errors[:MAX_LISTED]
    )
    if rejected.reason in ("malformed", "incomplete") and rejected.text:
        yield f"You wrote: {shorten(rejected.text, MAX_QUOTE, gap=COUNTED)}"
    if rejected.suggestions:
        yield f"Nearest: {_listed(rejected.suggestions)}."
    if rejected.reason == "unknown_tool" and tools is not None:
        yield f"Tools that exist: {_listed(tools.names) or 'none'}."
    yield ADVICE[rejected.reason]


def _listed(names: tuple[str, ...]) -> str:
    listed = ", ".join(shorten(name, MAX_NAME, gap=COUNTED) for name in names[:MAX_LISTED])
    rest = len(names) - MAX_LISTED
    return f"{listed} and {rest} more" if rest > 0 else listed
