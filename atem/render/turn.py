"""Assistant messages: as history, and as the model itself would have written them.

Rules: one Message is one message of the wire, with the recipient and the names
that it holds; a turn that was parsed is written back as it was. So a prompt
grows by exactly what the model wrote, and a prefix cache stays valid. A
rejected call is history, as the text that it was, and no part of a new turn.
"""

from __future__ import annotations

from dataclasses import replace
from itertools import groupby
from typing import TYPE_CHECKING, Any

from .. import wire
from ..errors import RenderError
from ..messages import Message, RejectedCall, ToolCall
from .accepted import as_sequence, check_message
from .prompt import Prompt, Writer
from .values import arguments_text, header_name, tag_name

if TYPE_CHECKING:
    from collections.abc import Sequence


def render_turn(turn: Sequence[Message] | Any) -> Prompt:
    """The text that a model writes after ``<|start|>assistant`` for these assistant messages.

    ``turn`` is a sequence of messages or an object with ``messages`` (a parsed
    Turn). Every message but the last ends with ``<|eom|>``, the last with
    ``<|eot|>`` unless its ``end_turn`` is False. A recipient of None is written
    as none. An empty turn is an empty prompt. Raises RenderError for another
    role, for a rejected call, and for a message inside that ends the turn.
    """
    messages: Sequence[Message] = as_sequence(getattr(turn, "messages", turn), "a turn")
    out = Writer()
    for place, message in enumerate(messages):
        check_message(message, f"messages[{place}]")
        last = place == len(messages) - 1
        if message.role != wire.ASSISTANT or (message.end_turn and not last):
            raise RenderError(
                f"messages[{place}] {'ends the turn' if message.end_turn else 'is no assistant'} "
                f"(role {message.role!r}); a turn is assistant messages, the last of which ends it"
            )
        _check_decided(message)
        if place:
            open_header(out)
        write_header(out, _recipient(message))
        write_body(out, message, ends=last if message.end_turn is None else message.end_turn)
    return out.prompt()


def write_assistant(out: Writer, message: Message, *, followed: bool) -> None:
    """An assistant message of the past. ``followed``: another of the same turn stands behind it.

    Text before a block without a header (wire_format 5.6) becomes a message of its own.
    """
    if message.calls and message.content and message.recipient is None:
        write_assistant(out, replace(message, calls=(), end_turn=False), followed=True)
        message = replace(message, content="")
    open_header(out)
    write_header(out, _recipient(message) or wire.USER)
    write_body(out, message, ends=not followed if message.end_turn is None else message.end_turn)


def open_header(out: Writer) -> None:
    """The beginning of a message, which is also the generation prompt."""
    out.control(wire.START)
    out.text(wire.ASSISTANT)


def write_header(out: Writer, recipient: str | None) -> None:
    """The rest of a header."""
    if recipient is not None:
        out.text(f" {wire.TO}{header_name(recipient, 'the recipient of an assistant message')}")
    out.control(wire.MESSAGE)


def write_body(out: Writer, message: Message, *, ends: bool) -> None:
    """Content or calls, and the terminator."""
    if message.calls and message.content:
        raise RenderError(
            "an assistant message has content and calls; make the content a message of its own"
        )
    if message.calls:
        out.text(block(message.calls))
    else:
        out.content(message.content)
    out.control(wire.EOT if ends else wire.EOM)


def block(calls: Sequence[ToolCall | RejectedCall]) -> str:
    """The calls of one message, byte for byte as the template writes them (wire_format 2).

    Rejected ones stand among them as the model wrote them. A text that is more
    or less than an invoke stands by itself, and a block whose last invoke was
    never closed isn't either.
    """
    texts = [call.text if isinstance(call, RejectedCall) else _invoke(call) for call in calls]
    runs = groupby(texts, key=lambda text: text.startswith(wire.INVOKE_OPEN))
    return "\n".join(_wrapped(list(run)) if invokes else "\n".join(run) for invokes, run in runs)


def _wrapped(invokes: list[str]) -> str:
    closed = invokes[-1].endswith(wire.INVOKE_CLOSE)
    return "\n".join([wire.BLOCK_OPEN, *invokes, *([wire.BLOCK_CLOSE] if closed else [])])


def _invoke(call: ToolCall) -> str:
    name = tag_name(call.raw_name, "a called tool")
    parameters = arguments_text(call.arguments, f"the call to {name!r}")
    return f"{wire.invoke_open(name)}\n{parameters}{wire.INVOKE_CLOSE}"


def _recipient(message: Message) -> str | None:
    """The message's channel; a call without one goes to its tool's, as in the template."""
    call = next((call for call in message.calls if isinstance(call, ToolCall)), None)
    if call is None:
        return message.recipient
    recipient = message.recipient or _channel(call)
    if recipient in (wire.SELF, wire.USER):
        raise RenderError(
            f"a call to {recipient!r} would be read as "
            f"{'reasoning' if recipient == wire.SELF else 'an answer'}; rename the tool"
        )
    return recipient


def _channel(call: ToolCall) -> str:
    """The tool as the model named it; as it is declared if that can't be a recipient."""
    if not any(char in wire.BREAKS_HEADER for char in call.raw_name):
        return call.raw_name
    return call.wire_name


def _check_decided(message: Message) -> None:
    for call in message.calls:
        if isinstance(call, RejectedCall):
            raise RenderError(
                f"the call to {call.raw_name!r} was rejected ({call.reason}), and no text is sure "
                "to be read back as that; leave it out, or use render(), which shows it as history"
            )
