"""Finished turns as items: the builder's way, in one piece."""

from __future__ import annotations

from typing import Any

from hypothesis import given

import atem
from atem.responses.items import to_items
from atem.responses.tools import ClientTools
from tests.responses.output.drawing import REASONS, TURNS
from tests.responses.output.writing import (
    EOT,
    TOOLS,
    builder,
    called,
    counted,
    invoke,
    said,
    streamed,
    thought,
    turn,
)


def _plain(items: list[dict[str, Any]]) -> list[dict[str, Any]]:
    return [{key: value for key, value in item.items() if key != "call_id"} for item in items]


@given(TURNS, REASONS)
def test_a_turn_gives_the_items_of_its_stream(text: str, reason: Any) -> None:
    made = builder()
    streamed(made, text, reason=reason)
    parsed = atem.parse(text, reason=reason, tools=made.tools.toolset)
    items = to_items(parsed, made.tools, new_id=counted())
    stream = made.response["output"]
    if parsed.complete and reason == "stop":
        assert _plain(items) == _plain(stream)
    else:  # a turn doesn't say whether its last message had come to its end
        lasting = ("type", "content", "arguments", "input", "name", "namespace")
        assert [[i.get(key) for key in lasting] for i in items] == [
            [i.get(key) for key in lasting] for i in stream
        ]


def test_the_calls_ids_are_those_of_the_turn() -> None:
    tools = ClientTools.of(TOOLS)
    text = called(invoke("read", path="a"), invoke("patch", input="b"))
    parsed = atem.parse(text, tools=tools.toolset)
    assert [item["call_id"] for item in to_items(parsed, tools)] == [c.id for c in parsed.calls]


def test_without_tools_every_call_is_a_functions() -> None:
    tools = ClientTools.of(TOOLS)
    parsed = atem.parse(called(invoke("patch", input="b"), to="patch"), tools=tools.toolset)
    (item,) = to_items(parsed)
    assert (item["type"], item["arguments"]) == ("function_call", '{"input": "b"}')


def test_rejected_calls_can_be_left_out() -> None:
    parsed = atem.parse(turn(thought("Hm."), called(invoke("x"), to="x", end=EOT)))
    assert [item["type"] for item in to_items(parsed, on_rejected="drop")] == ["reasoning"]
    assert len(to_items(atem.parse(said("Hi.")))) == 1
