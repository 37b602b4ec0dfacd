"""What users of other servers complained about, each as a test of this one.

Rules: the names say what was wrong elsewhere; the docstrings where.
"""

from __future__ import annotations

import json
from typing import Any

import pytest

from tests.responses.output.contract import check
from tests.responses.output.writing import (
    EOT,
    MAIL,
    READ,
    TOOLS,
    Events,
    asked,
    called,
    invoke,
    kinds,
    said,
    texts,
    thought,
    turn,
)

MIXED = turn(
    thought("Hm."),
    said("I look."),
    called(invoke("read", path="a"), invoke("patch", input="b"), end="<|eom|>"),
    called(invoke("mail.send", path="c"), to="mail.send"),
)


@pytest.fixture(scope="module")
def mixed() -> Events:
    return asked([MIXED], {"tools": TOOLS})[0]


def of(events: Events, kind: str) -> list[dict[str, Any]]:
    return [event for event in events if event["type"] == f"response.{kind}"]


def test_streamed_ids_are_the_final_ones_and_custom_tools_are_usable(mixed: Events) -> None:
    """vllm-project/vllm#56285."""
    final = mixed[-1]["response"]["output"]
    assert [e["item"]["id"] for e in of(mixed, "output_item.added")] == [i["id"] for i in final]
    assert "custom_tool_call" in [item["type"] for item in final]


def test_every_answer_has_its_closing_sequence() -> None:
    """vllm-project/vllm#42407."""
    events, _, _ = asked([said("Hi.", end=EOT)])
    assert [event["type"].removeprefix("response.") for event in events[-4:]] == [
        "output_text.done", "content_part.done", "output_item.done", "completed",
    ]  # fmt: skip


def test_markup_is_never_text(mixed: Events) -> None:
    """vllm-project/vllm#29725."""
    deltas = "".join(event["delta"] for event in of(mixed, "output_text.delta"))
    assert deltas == "I look."


def test_an_answer_cut_by_its_length_says_so_and_what_it_used() -> None:
    """vllm-project/vllm#24184."""
    events, response, _ = asked([said("Once upon a time", end=EOT)], {"max_output_tokens": 8})
    check(events)
    assert response["status"] == "incomplete"
    assert response["incomplete_details"] == {"reason": "max_output_tokens"}
    assert response["usage"]["output_tokens"] == 8


def test_what_was_cut_is_incomplete_too() -> None:
    """vllm-project/vllm#57998."""
    _, response, _ = asked([said("Once upon a time", end="")])
    assert [item["status"] for item in response["output"]] == ["incomplete"]


@pytest.mark.parametrize(
    ("text", "end"), [(said("a", end=EOT), "completed"), (said("a", end=""), "incomplete")]
)
def test_the_last_event_has_the_name_of_the_status(text: str, end: str) -> None:
    """vllm-project/agentic-api#273."""
    events, response, _ = asked([text])
    assert (events[-1]["type"], response["status"]) == (f"response.{end}", end)


def test_a_call_has_one_call_id(mixed: Events) -> None:
    """vllm-project/vllm#47916."""
    added = {e["item"]["id"]: e["item"].get("call_id") for e in of(mixed, "output_item.added")}
    final = {item["id"]: item.get("call_id") for item in mixed[-1]["response"]["output"]}
    assert added == final
    ids = [call_id for call_id in final.values() if call_id]
    assert len(set(ids)) == 3
    assert not set(ids) & set(final)


def test_a_call_behind_reasoning_is_a_call() -> None:
    """vllm-project/vllm#24076: reasoning without a terminator before the call's header."""
    text = f" to=self<|message|>I read.{called(invoke('read', path='a'))}"
    open_reasoning = text.replace(" to=read", "<|start|>assistant to=read")
    events, response, _ = asked([open_reasoning], {"tools": [READ]})
    check(events)
    assert kinds(response) == ["reasoning", "function_call"]


def test_reasoning_tokens_are_counted(mixed: Events) -> None:
    """vllm-project/vllm#54091."""
    usage = mixed[-1]["response"]["usage"]
    assert 0 < usage["output_tokens_details"]["reasoning_tokens"] < usage["output_tokens"]


def test_a_string_stays_a_string() -> None:
    """vllm-project/vllm#51655."""
    _, response, _ = asked([called(invoke("read", path="12", lines="12"))], {"tools": [READ]})
    assert json.loads(response["output"][0]["arguments"]) == {"path": "12", "lines": 12}


def test_a_parameter_without_its_opening_tag_is_no_call_and_is_told() -> None:
    """vllm-project/vllm#51655: elsewhere the call came without its arguments."""
    swallowed = '<atem:invoke name="read.path">a.txt</atem:parameter>\n</atem:invoke>\n'
    _, response, _ = asked([called(swallowed)], {"tools": [READ]})
    assert kinds(response) == ["message"]
    assert "read.path" in texts(response)[0]


def test_every_delta_of_text_has_logprobs(mixed: Events) -> None:
    """openai/openai-python#2489."""
    assert all(event["logprobs"] == [] for event in of(mixed, "output_text.delta"))


def test_every_event_says_which_item_and_which_response(mixed: Events) -> None:
    """ggml-org/llama.cpp#20607, lemonade-sdk/lemonade#3607."""
    for event in mixed:
        if "response" in event:
            assert isinstance(event["response"]["created_at"], int)
            continue
        assert isinstance(event["output_index"], int)
        assert event.get("item_id") or event["item"]["id"]
        if "text" in event["type"] or "part" in event["type"]:
            assert isinstance(event["content_index"], int)


@pytest.mark.parametrize("text", [MIXED, said("cut", end="")])
def test_usage_has_all_five_keys(text: str) -> None:
    """ggml-org/llama.cpp#22659."""
    _, response, _ = asked([text], {"tools": TOOLS})
    assert set(response["usage"]) == {
        "input_tokens", "input_tokens_details", "output_tokens", "output_tokens_details",
        "total_tokens",
    }  # fmt: skip
    assert set(response["usage"]["input_tokens_details"]) == {"cached_tokens", "cache_write_tokens"}


def test_namespace_and_name_stay_two_fields(mixed: Events) -> None:
    """ollama/ollama#18284."""
    item = mixed[-1]["response"]["output"][-1]
    assert (item["namespace"], item["name"]) == (MAIL["name"], "send")


def test_a_delta_is_never_of_an_item_that_was_not_announced(mixed: Events) -> None:
    """BerriAI/litellm#27671."""
    known: set[str] = set()
    for event in mixed:
        if event["type"] == "response.output_item.added":
            known.add(event["item"]["id"])
        assert event.get("item_id") in {*known, None}


def test_a_response_has_one_id(mixed: Events) -> None:
    """BerriAI/litellm#32607."""
    assert len({event["response"]["id"] for event in mixed if "response" in event}) == 1


def test_parallel_calls_have_places_of_their_own(mixed: Events) -> None:
    """BerriAI/litellm#21331."""
    done = of(mixed, "output_item.done")
    assert [event["output_index"] for event in done] == list(range(5))


def test_text_and_call_of_one_turn_both_come(mixed: Events) -> None:
    """BerriAI/litellm#17246."""
    assert kinds(mixed[-1]["response"]) == [
        "reasoning", "message", "function_call", "custom_tool_call", "function_call",
    ]  # fmt: skip


def test_the_name_is_still_there_when_a_call_is_done(mixed: Events) -> None:
    """BigPizzaV3/CodexPlusPlus#614."""
    calls = [e["item"] for e in of(mixed, "output_item.done") if "call_id" in e["item"]]
    assert [call["name"] for call in calls] == ["read", "patch", "send"]
    ends = of(mixed, "function_call_arguments.done")
    assert [event["name"] for event in ends] == ["read", "send"]


def test_the_last_event_has_the_whole_response(mixed: Events) -> None:
    """Oaklight/llm-rosetta#56."""
    response = mixed[-1]["response"]
    assert response["id"]
    assert response["model"] == "muse"
    assert response["output"] == [event["item"] for event in of(mixed, "output_item.done")]


@pytest.mark.parametrize("text", [MIXED, called(invoke("none"), to="none"), said("cut", end="")])
def test_every_item_that_was_announced_is_done(text: str) -> None:
    """NousResearch/hermes-agent#92764."""
    events, _, _ = asked([text], {"tools": TOOLS})
    added = [event["output_index"] for event in of(events, "output_item.added")]
    assert added == [event["output_index"] for event in of(events, "output_item.done")]


def test_a_broken_stream_says_that_it_failed() -> None:
    """ollama/ollama#17118."""

    class Dead:
        def __init__(self, engine: Any) -> None:
            self.info, self.tokenizer = engine.info, engine.tokenizer

        def generate(self, request: Any, /) -> Any:
            return iter(())

    engine = asked([said("a", end=EOT)])[2]
    events, response, _ = asked(Dead(engine))
    check(events)
    assert (events[-1]["type"], response["status"]) == ("response.failed", "failed")


def test_a_schema_is_never_ignored() -> None:
    """vllm-project/vllm#52594."""
    format_ = {
        "type": "json_schema",
        "name": "n",
        "strict": True,
        "schema": {
            "type": "object",
            "properties": {"a": {"type": "integer"}},
            "required": ["a"],
            "additionalProperties": False,
        },
    }
    for text in ("plain", '{"a": "1"}', '{"a": 1, "b": 2}', "[]", '```json\n{"a": 1}\n```'):
        turns = [said(text, end=EOT)] * 2
        _, response, _ = asked(turns, {"text": {"format": format_}})
        assert (response["status"], texts(response)) == ("failed", [])


def test_schema_and_tools_work_together() -> None:
    """vllm-project/vllm#16313."""
    body = {"tools": TOOLS, "text": {"format": {"type": "json_object"}}}
    _, response, _ = asked([called(invoke("read", path="a"))], body)
    assert kinds(response) == ["function_call"]
    _, response, _ = asked([said('{"a": 1}', end=EOT)], body)
    assert texts(response) == ['{"a": 1}']


def test_reasoning_and_headers_are_never_in_the_answer(mixed: Events) -> None:
    """Blaizzy/mlx-vlm#1843."""
    assert texts(mixed[-1]["response"]) == ["I look."]


def test_a_turn_that_is_a_call_alone_is_not_empty() -> None:
    """raullenchai/Rapid-MLX#549: a filter of markup had been put before the parser."""
    system = [{"role": role, "content": "Be brief."} for role in ("system", "developer")]
    body = {"tools": [READ], "input": [*system, {"role": "user", "content": "hi"}]}
    _, response, _ = asked([called(invoke("read", path="a"))], body)
    assert kinds(response) == ["function_call"]
