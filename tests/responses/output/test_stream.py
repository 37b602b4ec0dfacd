"""One iterable for a response: written by an engine, or made of the parser's events of a turn."""

from __future__ import annotations

from itertools import groupby
from typing import Any

import pytest

import atem
from atem.errors import EngineError
from atem.responses import ApiError, Blobs, ResponseStream, from_request, to_items
from atem.testing.scripted import ScriptedEngine
from tests.responses.output.contract import check
from tests.responses.output.writing import (
    EOT,
    READ,
    called,
    counted,
    invoke,
    kinds,
    said,
    texts,
    thought,
    turn,
)

ANSWER = turn(thought("Hm."), said("Hello.", end=EOT))
CALL = turn(thought("Hm."), called(invoke("read", path="a")))
FORMAT = {"type": "json_object"}


def asked(**body: Any) -> Any:
    return from_request({"model": "muse", "input": "hi", **body})


def told(text: str, ask: Any, reason: Any = "stop", **options: Any) -> ResponseStream:
    events = atem.parse_stream([text], tools=ask.tools.toolset, reason=reason)
    return ResponseStream.of_events(events, ask, clock=lambda: 7.9, **options)


def written(turns: Any, ask: Any, **options: Any) -> ResponseStream:
    return ResponseStream.of(ask, ScriptedEngine(turns), clock=lambda: 7.9, **options)


def order(events: Any) -> list[str]:
    """The types of events, several deltas as one."""
    return [name for name, _ in groupby(event["type"] for event in events)]


@pytest.mark.parametrize("text", [ANSWER, CALL])
def test_events_and_an_engine_give_the_same_but_for_the_usage(text: str) -> None:
    ask = asked(tools=[READ])
    one = told(text, ask, new_id=counted())
    two = written([text], ask, new_id=counted())
    assert order(one) == order(two)
    left, right = one.response, two.response
    for response in (left, right):
        for item in response["output"]:
            del item["id"]
            item.pop("call_id", None)
    assert {**left, "usage": None} == {**right, "usage": None}


def test_a_stream_keeps_the_laws_and_its_response_is_the_last_events() -> None:
    stream = told(CALL, asked(tools=[READ]))
    response = check(list(stream))
    assert response == stream.response
    assert (response["created_at"], response["completed_at"]) == (7, 7)


def test_in_one_piece_it_is_the_same_object() -> None:
    whole = written([ANSWER], asked()).whole()
    assert (kinds(whole), texts(whole)) == (["reasoning", "message"], ["Hello."])


def test_its_items_are_those_of_the_turn() -> None:
    whole = told(ANSWER, asked(), new_id=counted()).whole()
    items = to_items(atem.parse(ANSWER), new_id=counted())
    without = [{**item, "id": 0, "phase": 0} for item in items]
    assert [{**item, "id": 0, "phase": 0} for item in whole["output"]] == without


def test_a_turn_that_the_limit_cut_is_incomplete() -> None:
    whole = told(turn(said("Hel", end="")), asked(), reason="length").whole()
    assert (whole["status"], whole["output"][0]["status"]) == ("incomplete", "incomplete")


@pytest.mark.parametrize(
    ("body", "words"),
    [
        ({"tools": [READ], "tool_choice": "required"}, "called no tool"),
        ({"text": {"format": FORMAT}}, "does not fit text.format"),
    ],
)
def test_events_that_are_not_what_was_asked_fail(body: dict[str, Any], words: str) -> None:
    stream = told(ANSWER, asked(**body))
    events = list(stream)
    assert events[-1]["type"] == "response.failed"
    assert words in events[-1]["response"]["error"]["message"]
    assert "Hello." not in texts(stream.response) or "tools" in body


def test_an_engine_is_asked_again_where_events_fail() -> None:
    whole = written([ANSWER, turn(said("{}", end=EOT))], asked(text={"format": FORMAT})).whole()
    assert (whole["status"], texts(whole)) == ("completed", ["{}"])


def test_a_search_needs_an_engine() -> None:
    search = {"tools": [{"type": "tool_search"}, {**READ, "defer_loading": True}]}
    whole = told(turn(called(invoke("tool_search", query="read"), to="tool_search")), asked(**search)).whole()  # fmt: skip
    assert whole["status"] == "failed"
    assert "ResponseStream.of" in whole["error"]["message"]


def test_events_that_break_off_fail_and_say_nothing_of_why() -> None:
    def broken() -> Any:
        yield from list(atem.parse_stream([ANSWER]))[:3]
        raise RuntimeError("a secret")

    stream = ResponseStream.of_events(broken(), asked(), clock=lambda: 0)
    whole = stream.whole()
    assert whole["status"] == "failed"
    assert "secret" not in str(whole)
    assert isinstance(stream.builder.error, RuntimeError)


def test_events_without_an_end_fail() -> None:
    events = [e for e in atem.parse_stream([ANSWER]) if not isinstance(e, atem.TurnEnd)]
    stream = ResponseStream.of_events(events, asked(), clock=lambda: 0)
    assert stream.whole()["status"] == "failed"
    assert isinstance(stream.builder.error, EngineError)


def test_what_can_be_refused_is_refused_at_once() -> None:
    with pytest.raises(ApiError) as caught:
        ResponseStream.of(asked(input="a " * 900), ScriptedEngine([], context=300), clock=lambda: 0)
    assert caught.value.code == "context_length_exceeded"


def test_what_is_left_out_and_not_done_is_said() -> None:
    talk = [{"role": "user", "content": "a " * 200}, {"role": "assistant", "content": "b"}]
    ask = asked(input=[*talk, *talk, *talk[:1]], truncation="auto", wishes=3)
    stream = ResponseStream.of(ask, ScriptedEngine([ANSWER], context=900), clock=lambda: 0)
    assert stream.ask.left_out > 0
    assert stream.notes == ("'wishes' is no field of a request",)


def test_reasoning_is_sealed_if_the_client_wants_it() -> None:
    blobs = Blobs(None, "muse")
    include = ["reasoning.encrypted_content"]
    whole = written([ANSWER], asked(include=include), blobs=blobs).whole()
    assert blobs.open(whole["output"][0]["encrypted_content"]) == "Hm."
    assert "encrypted_content" not in written([ANSWER], asked(), blobs=blobs).whole()["output"][0]


@pytest.mark.parametrize("of", [False, True])
def test_closing_it_stops_what_writes(of: bool) -> None:
    closed = []

    class Engine(ScriptedEngine):
        def generate(self, request: Any, /) -> Any:
            try:
                yield from super().generate(request)
            finally:
                closed.append(True)

    def events() -> Any:
        try:
            yield from atem.parse_stream([ANSWER])
        finally:
            closed.append(True)

    if of:
        stream = ResponseStream.of(asked(), Engine([ANSWER]), clock=lambda: 0)
    else:
        stream = ResponseStream.of_events(events(), asked(), clock=lambda: 0)
    reading = iter(stream)
    while next(reading)["type"] != "response.output_item.added":
        pass
    stream.close()
    assert closed == [True]


@pytest.mark.parametrize("field", ["previous_response_id", "conversation"])
def test_a_request_that_goes_on_from_nothing_is_refused(field: str) -> None:
    with pytest.raises(ApiError) as caught:
        asked(**{field: "x_1"})
    assert caught.value.param == field
