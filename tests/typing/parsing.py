"""Parsing: whole, as a stream, pushed, asynchronous, and in two stages."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterator
from typing import Any, Literal, assert_type

import atem

TEXT = " to=self<|message|>Easy.<|eom|><|start|>assistant to=user<|message|>Noon.<|eot|>"

# ---- whole -------------------------------------------------------------------

turn = atem.parse(TEXT)
assert_type(turn, atem.Turn)
assert_type(turn.reasoning, str)
assert_type(turn.content, str)
assert_type(turn.calls, tuple[atem.ToolCall, ...])
assert_type(turn.rejected, tuple[atem.RejectedCall, ...])
assert_type(turn.messages, tuple[atem.Message, ...])
assert_type(turn.problems, tuple[atem.Problem, ...])
assert_type(turn.complete, bool)
assert_type(turn.finish_reason, Literal["stop", "tool_calls", "length"])
assert_type(turn.empty, bool)
assert_type(turn.to_chat_message(), dict[str, Any])
assert_type(turn.to_response_items(), list[dict[str, Any]])
assert turn == atem.parse(TEXT.encode(), reason="stop") == atem.parse(list(TEXT))

for message in turn.messages:
    assert_type(message.recipient, str | None)
    for each in message.calls:
        assert_type(each, atem.ToolCall | atem.RejectedCall)


# ---- tokens of every kind ------------------------------------------------------


def pieces() -> Iterator[atem.Piece]:
    """A stream whose provenance is known."""
    yield atem.Piece(" to=user")
    yield atem.Piece("<|message|>", special=True)
    yield atem.Piece("Noon.")


def steps() -> Iterator[atem.Step]:
    """A stream as an engine yields it, which says itself why it ended."""
    yield atem.Step(ids=(1,), piece=TEXT)
    yield atem.Step(finish="length")


assert atem.parse(pieces()).content == "Noon."
assert not atem.parse(steps()).complete

# ---- pushed ---------------------------------------------------------------------

parser = atem.Parser(tools=[], unknown="reject", recover={"reasoning"}, max_header=128)
events: list[atem.Event] = parser.feed(TEXT)
assert_type(parser.done, bool)
events += parser.close("stop")
assert_type(atem.collect(events), atem.Turn)
assert atem.collect(events) == turn


def why() -> Literal["stop", "length", "abort"]:
    """Asked once the stream has ended."""
    return "abort"


assert atem.parse(TEXT, reason=why).finish_reason == "length"

# ---- asynchronous -----------------------------------------------------------------


async def source() -> AsyncIterator[str]:
    """Text as it arrives."""
    for character in TEXT:
        await asyncio.sleep(0)
        yield character


async def answer() -> str:
    """What the user is shown."""
    stream = atem.aparse_stream(source(), arguments="whole")
    assert_type(stream, AsyncIterator[atem.Event])
    return "".join([event.text async for event in stream if isinstance(event, atem.ContentDelta)])


assert asyncio.run(answer()) == turn.content

# ---- two stages ----------------------------------------------------------------------

first = list(atem.split_channels([TEXT], tool_parsing=True))
assert_type(first, list[atem.ReasoningDelta | atem.Text])
framed: list[str] = [part.text for part in first if isinstance(part, atem.Text)]
assert atem.collect(atem.parse_stream(framed, framed=True)).content == turn.content

# ---- errors ---------------------------------------------------------------------------

try:
    atem.parse(TEXT, max_header=1)
except atem.OptionError as error:
    assert_type(error, atem.OptionError)
    as_value_error: ValueError = error
    as_ours: atem.AtemError = error
