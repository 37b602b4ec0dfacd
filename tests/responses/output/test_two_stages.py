"""A server with two parsers, one for reasoning and one for calls, gives the items of the one parser."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from hypothesis import given

import atem
from atem.responses.builder import ResponseBuilder
from atem.responses.tools import ClientTools
from tests.parser.folding import examples
from tests.parser.strategies import soups, turns
from tests.parser.wire_cases import EVERY_CASE, reason
from tests.responses.output.drawing import REASONS, TURNS
from tests.responses.output.writing import TOOLS as OWN
from tests.responses.output.writing import counted

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

Items = list[dict[str, Any]]


def direct(tokens: Iterable[str], tools: Any, end: Any) -> Iterator[atem.Event]:
    return atem.parse_stream(tokens, tools=tools, reason=end)


def in_two_stages(tokens: Iterable[str], tools: Any, end: Any) -> Iterator[atem.Event]:
    """What isn't reasoning goes, as plain text, to a parser of its own.

    That may have to see what follows a call before it knows that it is one: reasoning
    waits for the message before it.
    """
    second = atem.Parser(tools=tools, framed=True)
    thoughts: list[atem.Event] = []
    inside = False
    for part in atem.split_channels(tokens, tools=tools, reason=end):
        if isinstance(part, atem.ReasoningDelta):
            thoughts.append(part)
        for event in second.feed(part.text) if isinstance(part, atem.Text) else ():
            inside = inside or isinstance(event, atem.MessageStart)
            yield event
            inside = inside and not isinstance(event, atem.MessageEnd)
            if not inside:
                yield from drained(thoughts)
        if not inside:
            yield from drained(thoughts)
    yield from second.close(end)
    yield from drained(thoughts)


def drained(events: list[atem.Event]) -> list[atem.Event]:
    taken, events[:] = list(events), []
    return taken


def items(chain: Any, tokens: Iterable[str], tools: ClientTools, end: Any) -> Items:
    builder = ResponseBuilder({}, tools, created_at=0, new_id=counted(), id="resp_0")
    for event in chain(tokens, tools.toolset, end):
        builder.feed(event)
    builder.finish(0, reason=None if end == "stop" else "max_output_tokens")
    return [comparable(item) for item in builder.response["output"]]


def comparable(item: dict[str, Any]) -> dict[str, Any]:
    return {key: value for key, value in item.items() if key not in ("id", "call_id")}


def agree(text: str, tools: Any, end: Any) -> None:
    given_ = ClientTools.of(list(tools))
    one = items(direct, [text], given_, end)
    for tokens in ([text], list(text)):
        two = items(in_two_stages, tokens, given_, end)
        if end == "length" and one and one[-1]["type"] == "reasoning":
            # The first stage tells what was thought, and not whether the end of that was written.
            two[-1]["status"] = one[-1]["status"]
        assert two == one


@examples(60)
@given(turns() | soups(), REASONS)
def test_both_chains_give_the_same_items_for_any_turn(turn: tuple[str, Any], end: Any) -> None:
    text, tools = turn
    agree(text, tools, end)


@examples(60)
@given(TURNS, REASONS)
def test_custom_tools_and_namespaces_too(text: str, end: Any) -> None:
    agree(text, OWN, end)


@EVERY_CASE
def test_both_chains_give_the_same_items_for_every_wire_case(case: dict[str, Any]) -> None:
    agree(case["input"], case["tools"], reason(case))
