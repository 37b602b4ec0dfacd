"""What a model writes, and the exact events of it, however its bytes are cut."""

from __future__ import annotations

from itertools import groupby
from typing import Any

import pytest

from tests.responses.output.contract import check
from tests.responses.output.writing import (
    EOT,
    Events,
    builder,
    called,
    invoke,
    said,
    streamed,
    thought,
    turn,
)

ADDED, DONE = "output_item.added", "output_item.done"
PART = ("content_part.added", "content_part.done")


def short(events: Events) -> list[tuple[Any, ...]]:
    """Each event as its name and what it says; deltas joined."""
    told = [(event["type"].removeprefix("response."), _says(event)) for event in events]
    joined: list[tuple[Any, ...]] = []
    for name, run in groupby(told, key=lambda each: each[0]):
        says = [each[1] for each in run]
        joined += [(name, "".join(says))] if name.endswith("delta") else [(name, s) for s in says]
    return joined


def _says(event: dict[str, Any]) -> Any:
    for key in ("delta", "text", "arguments", "input", "part", "item"):
        if key in event:
            return event[key]
    return event["response"]["status"]


def reasoning(place: int, text: str) -> list[tuple[Any, ...]]:
    item = {"id": f"rs_{place}", "type": "reasoning", "summary": []}
    part = {"type": "reasoning_text", "text": text}
    return [
        (ADDED, {**item, "status": "in_progress", "content": []}),
        (PART[0], {**part, "text": ""}),
        ("reasoning_text.delta", text),
        ("reasoning_text.done", text),
        (PART[1], part),
        (DONE, {**item, "status": "completed", "content": [part]}),
    ]


def message(
    place: int, text: str, phase: str | None, status: str = "completed"
) -> list[tuple[Any, ...]]:
    item = {"id": f"msg_{place}", "type": "message", "role": "assistant"}
    part = {"type": "output_text", "text": text, "annotations": [], "logprobs": []}
    done = {**item, "status": status, "content": [part]} | ({"phase": phase} if phase else {})
    return [
        (ADDED, {**item, "status": "in_progress", "content": []}),
        (PART[0], {**part, "text": ""}),
        ("output_text.delta", text),
        ("output_text.done", text),
        (PART[1], part),
        (DONE, done),
    ]


def function(
    place: int, call: int, name: str, arguments: str, **more: str
) -> list[tuple[Any, ...]]:
    item = {
        "id": f"fc_{place}",
        "type": "function_call",
        "call_id": f"call_{call}",
        "name": name,
        **more,
    }
    return [
        (ADDED, {**item, "status": "in_progress", "arguments": ""}),
        ("function_call_arguments.delta", arguments),
        ("function_call_arguments.done", arguments),
        (DONE, {**item, "status": "completed", "arguments": arguments}),
    ]


def custom(place: int, call: int, name: str, text: str, **more: str) -> list[tuple[Any, ...]]:
    item = {
        "id": f"ctc_{place}",
        "type": "custom_tool_call",
        "call_id": f"call_{call}",
        "name": name,
        **more,
    }
    return [
        (ADDED, {**item, "status": "in_progress", "input": ""}),
        ("custom_tool_call_input.delta", text),
        ("custom_tool_call_input.done", text),
        (DONE, {**item, "status": "completed", "input": text}),
    ]


def whole(*items: list[tuple[Any, ...]], end: str = "completed") -> list[tuple[Any, ...]]:
    head = [("created", "in_progress"), ("in_progress", "in_progress")]
    return [*head, *(event for item in items for event in item), (end, end)]


TRANSCRIPTS: dict[str, tuple[str, str, list[tuple[Any, ...]]]] = {
    "an answer": (
        said("Größe: 3 µm.", end=EOT),
        "stop",
        whole(message(1, "Größe: 3 µm.", "final_answer")),
    ),
    "reasoning twice, and an empty one": (
        turn(thought("One."), thought(""), thought("Two."), said("So.", end=EOT)),
        "stop",
        whole(reasoning(1, "One."), reasoning(2, "Two."), message(3, "So.", "final_answer")),
    ),
    "a preamble, and a function of a namespace": (
        turn(
            said("I write."),
            called(invoke("mail.send", path="ä"), to="mail.send"),
        ),
        "stop",
        whole(
            message(1, "I write.", "commentary"),
            function(2, 1, "send", '{"path": "ä"}', namespace="mail"),
        ),
    ),
    "two calls of one message": (
        called(invoke("read", path="a"), invoke("read", path="b", lines="2")),
        "stop",
        whole(
            function(1, 1, "read", '{"path": "a"}'),
            function(2, 2, "read", '{"path": "b", "lines": 2}'),
        ),
    ),
    "a custom tool's text, character for character": (
        called(invoke("patch", input=' \\n "x"\n'), to="patch"),
        "stop",
        whole(custom(1, 1, "patch", ' \\n "x"\n')),
    ),
    "a cut answer": (
        turn(thought("Hm."), said("Once upon", end="")),
        "length",
        whole(reasoning(1, "Hm."), message(2, "Once upon", None, "incomplete"), end="incomplete"),
    ),
    "a call, then a cut one": (
        turn(
            called(invoke("read", path="a"), end="<|eom|>"),
            called(invoke("read", path="b"), end="")[:60],
        ),
        "length",
        whole(
            function(1, 1, "read", '{"path": "a"}'),
            message(
                2,
                "The model tried to call 'read'. The call was not passed on: "
                "it was cut off before its end.\n"
                'It wrote: <atem:invoke name="',
                "commentary",
            ),
            end="incomplete",
        ),
    ),
}


@pytest.mark.parametrize("name", TRANSCRIPTS)
def test_a_transcript_has_exactly_its_events(name: str) -> None:
    text, reason, expected = TRANSCRIPTS[name]
    events = streamed(builder(), text, reason=reason)
    check(events)
    assert short(events) == expected


@pytest.mark.parametrize("name", TRANSCRIPTS)
def test_no_cut_of_the_bytes_changes_the_events(name: str) -> None:
    text, reason, expected = TRANSCRIPTS[name]
    data = text.encode()
    cuts = [[data[:at], data[at:]] for at in range(1, len(data))]
    for tokens in [*cuts, [data[at : at + 1] for at in range(len(data))]]:
        assert short(streamed(builder(), tokens, reason=reason)) == expected


@pytest.mark.parametrize("name", TRANSCRIPTS)
def test_calls_shown_while_they_are_written_end_as_the_same_response(name: str) -> None:
    text, reason, _ = TRANSCRIPTS[name]
    whole_events = streamed(builder(), text, reason=reason)
    events = streamed(builder(arguments="stream"), list(text), reason=reason)
    check(events)
    kept = [item for item in events[-1]["response"]["output"] if item["status"] != "incomplete"]
    expected = [
        item for item in whole_events[-1]["response"]["output"] if item["status"] != "incomplete"
    ]
    assert [_nameless(item) for item in kept] == [_nameless(item) for item in expected]


def _nameless(item: dict[str, Any]) -> dict[str, Any]:
    """Without what counts the items that were taken back too."""
    return {key: value for key, value in item.items() if key not in ("id", "call_id")}


def test_reasoning_is_a_summary_where_one_was_asked_for() -> None:
    events = streamed(builder(summary=True), turn(thought("Hm."), said("Hi.", end=EOT)))
    check(events)
    part = {"type": "summary_text", "text": "Hm."}
    item = {"id": "rs_1", "type": "reasoning", "content": []}
    assert short(events)[2:8] == [
        (ADDED, {**item, "status": "in_progress", "summary": []}),
        ("reasoning_summary_part.added", {**part, "text": ""}),
        ("reasoning_summary_text.delta", "Hm."),
        ("reasoning_summary_text.done", "Hm."),
        ("reasoning_summary_part.done", part),
        (DONE, {**item, "status": "completed", "summary": [part]}),
    ]


def test_open_responses_has_another_name_for_raw_reasoning() -> None:
    events = streamed(builder(event_names="openresponses"), thought("Hm.", EOT))
    check(events)
    names = [event["type"] for event in events if "reasoning" in event["type"]]
    assert set(names) == {"response.reasoning.delta", "response.reasoning.done"}
