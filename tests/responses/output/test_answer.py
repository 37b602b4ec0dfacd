"""A request answered: what follows from each turn of the model."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from atem.engine import Request, Step
from atem.errors import ContextOverflow, EngineError, OutOfMemory, RemoteError
from atem.responses.answer import answer, new_builder
from atem.responses.blob import Blobs
from atem.responses.faults import ApiError, overloaded
from atem.responses.request import from_request
from atem.testing.scripted import ScriptedEngine
from tests.responses.output.contract import check
from tests.responses.output.writing import (
    EOT,
    FORMAT,
    PATCH,
    READ,
    TOOLS,
    asked,
    called,
    invoke,
    kinds,
    said,
    texts,
    thought,
    turn,
)

if TYPE_CHECKING:
    from collections.abc import Iterator

HI = said("Hi.", end=EOT)
READS = called(invoke("read", path="a"))
WRONG = called(invoke("write", path="a"), to="write")
STRICT = {**READ, "strict": True}


class Failing(ScriptedEngine):
    """Gives the first steps of a turn, then raises."""

    def __init__(self, error: Exception, *, steps: int) -> None:
        super().__init__([said("Hello, world.", end=EOT)])
        self._error = error
        self._left = steps

    def generate(self, request: Request, /) -> Iterator[Step]:
        if self._left < 0:
            raise self._error
        return self._some(super().generate(request))

    def _some(self, steps: Iterator[Step]) -> Iterator[Step]:
        for step, _ in zip(steps, range(self._left), strict=False):
            yield step
        raise self._error


def prompt(engine: ScriptedEngine, number: int) -> str:
    shown = engine.requests[number].prompt
    assert not isinstance(shown, list)
    return str(shown.text())  # type: ignore[union-attr]


# -- the ends ------------------------------------------------------------------


def test_usage_counts_prompt_answer_and_reasoning_with_its_framing() -> None:
    _, response, engine = asked([turn(thought("Hm."), HI)])
    tokenizer = engine.tokenizer
    framing = 2  # <|message|> and <|eom|>
    reasoning = len(tokenizer.encode(" to=self")) + len(tokenizer.encode("Hm.")) + framing
    usage = response["usage"]
    assert usage["output_tokens_details"]["reasoning_tokens"] == reasoning
    assert usage["input_tokens"] == len(engine.requests[0].prompt_ids(tokenizer))
    rest = len(tokenizer.encode("assistant to=user")) + len(tokenizer.encode("Hi.")) + 3
    assert usage["output_tokens"] == reasoning + rest
    assert usage["total_tokens"] == usage["input_tokens"] + usage["output_tokens"]


def test_text_without_ids_is_counted_with_the_tokenizer() -> None:
    text = turn(thought("Hm."), HI)
    _, response, engine = asked([[Step(piece=text), Step(finish="stop")]])
    encode = engine.tokenizer.encode
    assert response["usage"]["output_tokens"] == len(encode(text))
    assert response["usage"]["output_tokens_details"]["reasoning_tokens"] == len(encode("Hm."))


def test_cached_tokens_are_those_the_engine_tells() -> None:
    steps = [Step(piece=HI, cached_tokens=48), Step(finish="stop")]
    _, response, _ = asked([steps])
    assert response["usage"]["input_tokens_details"]["cached_tokens"] == 48


@pytest.mark.parametrize("last", [Step(), Step(finish="abort")])
def test_an_answer_that_breaks_off_fails(last: Step) -> None:
    class Cut(ScriptedEngine):
        def generate(self, request: Request, /) -> Iterator[Step]:
            return iter([Step(piece=said("Half", end="")), last])

    events, response, _ = asked(Cut([]))
    check(events)
    assert response["status"] == "failed"
    assert response["error"]["code"] == "server_error"
    assert [item["status"] for item in response["output"]] == ["incomplete"]


FAILURES = [
    (RuntimeError("secret /etc/key"), "server_error", "secret"),
    (OutOfMemory("no memory for 4 GiB"), "server_error", None),
    (RemoteError("busy", 429), "rate_limit_exceeded", None),
    # Codex gives up at "server_is_overloaded", and asks again after this.
    (RemoteError("down", 503), "server_error", None),
    (overloaded("closed"), "server_error", None),
    (ContextOverflow("too long"), "context_length_exceeded", None),
]


@pytest.mark.parametrize(("error", "code", "hidden"), FAILURES)
def test_an_engine_that_raises_midway_fails_the_response(
    error: Exception, code: str, hidden: str | None
) -> None:
    events, response, _ = asked(Failing(error, steps=14))
    assert events[-1]["type"] == "response.failed"
    assert response["error"]["code"] == code
    assert (str(error) in response["error"]["message"]) is (hidden is None)
    assert response["usage"]["output_tokens"] == 14
    assert texts(response)[0].startswith("H")


def test_the_error_is_kept_for_a_log() -> None:
    ask = from_request({"model": "muse", "input": "hi"})
    made = new_builder(ask, created_at=0)
    error = RuntimeError("broken")
    list(answer(ask, Failing(error, steps=3), made, clock=lambda: 1))
    assert made.error is error


@pytest.mark.parametrize(
    ("error", "status", "code"),
    [
        (ContextOverflow("too long"), 400, "context_length_exceeded"),
        (RemoteError("busy", 429), 429, "rate_limit_exceeded"),
        (RemoteError("away"), 502, None),
        (RemoteError("waited there", 504), 504, None),
        (RemoteError("waited here", late=True), 504, None),
        (EngineError("broken"), 500, None),
    ],
)
def test_what_the_engine_refuses_is_refused_before_the_first_event(
    error: EngineError, status: int, code: str | None
) -> None:
    ask = from_request({"model": "muse", "input": "hi"})
    made = new_builder(ask, created_at=0)
    with pytest.raises(ApiError) as caught:
        answer(ask, Failing(error, steps=-1), made, clock=lambda: 1)
    assert (caught.value.status, caught.value.code) == (status, code)
    assert made.sequence == 0


def test_closing_the_events_closes_the_engine_at_once() -> None:
    closed: list[bool] = []

    class Endless(ScriptedEngine):
        def generate(self, request: Request, /) -> Iterator[Step]:
            try:
                yield Step(piece=" to=user<|message|>")
                while True:
                    yield Step(piece="word ")
            finally:
                closed.append(True)

    ask = from_request({"model": "muse", "input": "hi"})
    events = answer(ask, Endless([]), new_builder(ask, created_at=0), clock=lambda: 1)
    for _ in range(5):
        next(events)
    events.close()
    assert closed == [True]


def test_a_stop_string_ends_the_answer_as_complete() -> None:
    _, response, _ = asked([said("one END two", end=EOT)], {"stop": ["END"]})
    assert (response["status"], texts(response)) == ("completed", ["one "])


def test_a_stop_string_holds_where_the_engine_has_none() -> None:
    class Without(ScriptedEngine):
        def __init__(self, turns: Any) -> None:
            super().__init__(turns)
            from dataclasses import replace

            self.info = replace(self.info, features=self.info.features - {"stop"})

    engine = Without([said("one END two", end=EOT)])
    _, response, _ = asked(engine, {"stop": ["END"]})
    assert (response["status"], texts(response)) == ("completed", ["one "])
    assert engine.requests[0].stop == ()


def test_what_is_only_to_be_prepared_has_no_output() -> None:
    events, response, engine = asked([HI], {"generate": False})
    check(events)
    assert (response["output"], response["usage"]["output_tokens"]) == ([], 0)
    assert engine.requests[0].max_tokens == 1


def test_a_compaction_is_one_item_that_opens_again() -> None:
    trigger = [{"role": "user", "content": "a"}, {"type": "compaction_trigger"}]
    _, response, _ = asked([turn(thought("Hm."), said("We did a.", end=EOT))], {"input": trigger})
    (item,) = response["output"]
    assert item["type"] == "compaction"
    assert Blobs(None, "muse").open(item["encrypted_content"]) == "We did a."


# -- tool_choice, and one call at a time -----------------------------------------


def test_a_tool_that_has_to_be_called_is_opened_in_the_prompt() -> None:
    body = READS.removeprefix(" to=read<|message|>")
    _, response, engine = asked([body], {"tools": TOOLS, "tool_choice": {"type": "function", "name": "read"}})  # fmt: skip
    assert prompt(engine, 0).endswith("<|start|>assistant to=read<|message|>")
    assert kinds(response) == ["function_call"]


def test_required_asks_again_then_fails() -> None:
    body = {"tools": TOOLS, "tool_choice": "required"}
    _, response, engine = asked([HI, READS], body)
    assert kinds(response) == ["message", "function_call"]
    assert "A tool has to be called now." in prompt(engine, 1)
    assert prompt(engine, 1).startswith(prompt(engine, 0))
    events, response, _ = asked([HI, HI], body)
    check(events)
    assert response["status"] == "failed"


def test_none_keeps_the_prompt_and_turns_calls_into_text() -> None:
    _, with_tools, engine = asked([READS], {"tools": TOOLS, "tool_choice": "none"})
    _, _, free = asked([READS], {"tools": TOOLS})
    assert prompt(engine, 0) == prompt(free, 0)
    assert kinds(with_tools) == ["message"]
    assert "tool_choice does not allow it" in texts(with_tools)[0]


def test_allowed_tools_reject_the_others() -> None:
    allowed = {"type": "allowed_tools", "mode": "auto", "tools": [{"type": "custom", "name": "patch"}]}  # fmt: skip
    _, response, _ = asked([READS], {"tools": TOOLS, "tool_choice": allowed})
    assert kinds(response) == ["message"]


@pytest.mark.parametrize(
    "text",
    [
        called(invoke("read", path="a"), invoke("read", path="b")),
        turn(called(invoke("read", path="a"), end="<|eom|>"), READS, HI),
    ],
)
def test_without_parallel_calls_the_turn_ends_at_the_first(text: str) -> None:
    events, response, engine = asked([text], {"tools": TOOLS, "parallel_tool_calls": False})
    check(events)
    assert [item["arguments"] for item in response["output"]] == ['{"path": "a"}']
    everything = len(engine.tokenizer.encode(text))
    assert response["usage"]["output_tokens"] <= everything


def test_with_parallel_calls_all_come() -> None:
    _, response, _ = asked([called(invoke("read", path="a"), invoke("read", path="b"))], {"tools": TOOLS})  # fmt: skip
    assert kinds(response) == ["function_call", "function_call"]


# -- calls that are not passed on -----------------------------------------------


def test_a_rejected_call_is_told_to_the_client() -> None:
    _, response, engine = asked([WRONG], {"tools": TOOLS})
    assert kinds(response) == ["message"]
    assert response["output"][0]["phase"] == "commentary"
    assert texts(response)[0].startswith("The model tried to call 'write'.")
    assert len(engine.requests) == 1


def test_a_rejected_call_may_be_told_to_the_model() -> None:
    _, response, engine = asked([WRONG, READS], {"tools": TOOLS}, on_rejected="retry")
    assert kinds(response) == ["function_call"]
    assert "There is no tool called 'write'." in prompt(engine, 1)
    assert prompt(engine, 1).startswith(prompt(engine, 0))


def test_after_the_last_retry_the_client_is_told() -> None:
    turns = [WRONG, WRONG, WRONG]
    _, response, engine = asked(turns, {"tools": TOOLS}, on_rejected="retry", retries=2)
    assert (kinds(response), len(engine.requests)) == (["message"], 3)
    assert response["status"] == "completed"


def test_beside_a_call_that_was_passed_on_nothing_is_asked_again() -> None:
    text = called(invoke("write", path="a"), invoke("read", path="b"), to="write")
    _, response, engine = asked([text], {"tools": TOOLS}, on_rejected="retry")
    assert (kinds(response), len(engine.requests)) == (["function_call", "message"], 1)


def test_strict_arguments_that_miss_the_schema_are_not_passed_on() -> None:
    bad = called(invoke("read", path="a", lines="many"))
    _, strict, _ = asked([bad], {"tools": [STRICT]})
    _, free, _ = asked([bad], {"tools": [READ]})
    assert (kinds(strict), kinds(free)) == (["message"], ["function_call"])
    assert "/lines" in texts(strict)[0]


GRAMMAR = {
    **PATCH,
    "format": {"type": "grammar", "syntax": "regex", "definition": "[a-z]+"},
}


def test_a_custom_input_outside_its_grammar_is_not_passed_on() -> None:
    _, response, _ = asked([called(invoke("patch", input="A1"), to="patch")], {"tools": [GRAMMAR]})
    assert kinds(response) == ["message"]
    assert "regex grammar" in texts(response)[0]
    _, response, _ = asked([called(invoke("patch", input="ab"), to="patch")], {"tools": [GRAMMAR]})
    assert response["output"][0]["input"] == "ab"


def test_the_model_is_told_of_a_grammar_too() -> None:
    turns = [called(invoke("patch", input=text), to="patch") for text in ("A1", "ab")]
    _, response, engine = asked(turns, {"tools": [GRAMMAR]}, on_rejected="retry")
    assert kinds(response) == ["custom_tool_call"]
    assert "does not match the regex grammar" in prompt(engine, 1)


# -- a format ---------------------------------------------------------------------


def test_an_answer_of_the_format_is_shown_once_it_is_whole() -> None:
    events, response, _ = asked([said('{"a": 1}', end=EOT)], FORMAT)
    check(events)
    assert texts(response) == ['{"a": 1}']


def test_an_answer_of_another_format_is_never_shown() -> None:
    events, response, engine = asked([said('{"a": "x"}', end=EOT), said('{"a": 1}', end=EOT)], FORMAT)  # fmt: skip
    check(events)
    assert texts(response) == ['{"a": 1}']
    assert "The answer does not fit its format" in prompt(engine, 1)


def test_a_format_that_is_missed_again_fails() -> None:
    events, response, _ = asked([HI, HI], FORMAT)
    check(events)
    assert (response["status"], response["output"]) == ("failed", [])
    assert "text.format" in response["error"]["message"]


def test_a_cut_answer_of_a_format_is_incomplete() -> None:
    _, response, _ = asked([said('{"a": 1234', end="")], FORMAT)
    assert response["incomplete_details"] == {"reason": "max_output_tokens"}
    assert texts(response) == ['{"a": 1234']


def test_calls_come_before_the_format() -> None:
    text = turn(said("I look."), READS)
    _, response, _ = asked([text], {**FORMAT, "tools": TOOLS})
    assert kinds(response) == ["message", "function_call"]
    assert response["output"][0]["phase"] == "commentary"


def test_a_format_that_is_not_strict_guides() -> None:
    loose = {"text": {"format": {**FORMAT["text"]["format"], "strict": False}}}
    _, response, _ = asked([HI], loose)
    assert texts(response) == ["Hi."]


def test_later_turns_have_what_is_left_of_the_tokens() -> None:
    _, response, engine = asked([HI, HI], {**FORMAT, "max_output_tokens": 50})
    assert engine.requests[1].max_tokens == 50 - 8
    assert response["usage"]["output_tokens"] == 16


def test_no_token_left_for_another_turn_is_incomplete() -> None:
    _, response, engine = asked([HI, HI], {**FORMAT, "max_output_tokens": 8})
    assert len(engine.requests) == 1
    assert response["status"] == "incomplete"


# -- search -------------------------------------------------------------------------

HIDDEN = {**READ, "description": "Weather of a city.", "name": "weather", "defer_loading": True}
SEARCH = called(invoke("tool_search", query="weather"), to="tool_search")
SERVER = {"tools": [{"type": "tool_search", "execution": "server"}, HIDDEN, READ]}


def test_a_search_is_answered_inside_the_response() -> None:
    weather = called(invoke("weather", path="Rome"), to="weather")
    events, response, engine = asked([SEARCH, weather], SERVER)
    check(events)
    assert kinds(response) == ["tool_search_call", "tool_search_output", "function_call"]
    assert [tool["name"] for tool in response["output"][1]["tools"]] == ["weather"]
    assert "Weather of a city." not in prompt(engine, 0)
    assert "Weather of a city." in prompt(engine, 1)


def test_a_tool_that_was_not_found_yet_cannot_be_called() -> None:
    _, response, _ = asked([called(invoke("weather", path="Rome"), to="weather")], SERVER)
    assert kinds(response) == ["message"]


def test_members_of_a_namespace_are_found_inside_it() -> None:
    space = {"type": "namespace", "name": "sky", "description": "The sky.", "tools": [HIDDEN]}
    tools = [{"type": "tool_search"}, space]
    _, response, _ = asked([SEARCH, HI], {"tools": tools})
    (found,) = response["output"][1]["tools"]
    assert (found["name"], found["tools"][0]["name"]) == ("sky", "weather")


def test_searches_without_end_fail() -> None:
    _, response, engine = asked([SEARCH] * 20, SERVER)
    assert response["status"] == "failed"
    assert len(engine.requests) == 9


def test_a_search_beside_a_call_ends_the_turn_with_both() -> None:
    text = turn(SEARCH.replace(EOT, "<|eom|>"), READS)
    _, response, engine = asked([text], SERVER)
    assert kinds(response) == ["tool_search_call", "function_call", "tool_search_output"]
    assert len(engine.requests) == 1


def test_a_client_searches_itself() -> None:
    tools = [{"type": "tool_search", "execution": "client", "parameters": {}, "description": "Find."}]  # fmt: skip
    _, response, engine = asked([SEARCH], {"tools": tools})
    (item,) = response["output"]
    assert (item["execution"], item["arguments"]) == ("client", {"query": "weather"})
    assert item["call_id"].startswith("call_")
    assert len(engine.requests) == 1


# -- log-probabilities ------------------------------------------------------------------


def test_each_token_of_the_answer_has_its_number_once() -> None:
    body = {"include": ["message.output_text.logprobs"], "top_logprobs": 2}
    events, response, _ = asked([turn(thought("Hm."), said("Größe 😀", end=EOT))], body)
    numbers = response["output"][1]["content"][0]["logprobs"]
    assert b"".join(bytes(entry["bytes"]) for entry in numbers).decode() == "Größe 😀"
    assert all(len(entry["top_logprobs"]) == 2 for entry in numbers)
    deltas = [event for event in events if event["type"] == "response.output_text.delta"]
    assert [entry for event in deltas for entry in event["logprobs"]] == numbers
