"""An engine that is held to a grammar: its answer is told as it comes, and checked all the same."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

from atem.responses.answer import answer, new_builder
from atem.responses.request import from_request
from atem.testing.scripted import ScriptedEngine
from tests.responses.output.contract import check
from tests.responses.output.writing import EOT, FORMAT, READ, called, invoke, said, thought, turn

if TYPE_CHECKING:
    from collections.abc import Iterator

    from atem.engine import Request, Step


class HeldEngine(ScriptedEngine):
    """Claims grammars, and writes what the script says whatever they are."""

    def __init__(self, turns: list[str]) -> None:
        super().__init__(turns)
        self.info = replace(self.info, features=self.info.features | {"grammar"})
        self.asked: list[Request] = []

    def generate(self, request: Request, /) -> Iterator[Step]:
        self.asked.append(request)
        return super().generate(replace(request, grammar=None))


def told(engine: ScriptedEngine, **body: Any) -> tuple[list[list[dict[str, Any]]], dict[str, Any]]:
    """The batches of events, and the response."""
    ask = from_request({"model": "muse", "input": "Hi", **body})
    builder = new_builder(ask, created_at=0)
    batches = list(answer(ask, engine, builder, clock=lambda: 1))
    check([event for batch in batches for event in batch])
    return batches, builder.response


def deltas(batches: list[list[dict[str, Any]]]) -> list[int]:
    return [
        place
        for place, batch in enumerate(batches)
        if any(event["type"] == "response.output_text.delta" for event in batch)
    ]


FITTING = turn(thought("Hm."), said('{"a": 12345}', end=EOT))


def test_an_answer_that_must_fit_is_told_as_it_comes_where_a_grammar_holds_it() -> None:
    batches, response = told(HeldEngine([FITTING]), **FORMAT)
    assert response["status"] == "completed"
    assert len(deltas(batches)) > 3


def test_and_is_held_back_where_none_does() -> None:
    batches, response = told(ScriptedEngine([FITTING]), **FORMAT)
    assert response["status"] == "completed"
    assert len(deltas(batches)) == 1


def test_one_that_does_not_fit_all_the_same_fails_and_is_not_written_twice() -> None:
    engine = HeldEngine([said('{"a": "x"}', end=EOT), FITTING])
    _, response = told(engine, **FORMAT)
    assert response["status"] == "failed"
    assert "does not fit text.format" in response["error"]["message"]
    assert len(engine.asked) == 1


def test_the_engine_gets_the_grammar_and_a_prompt_that_opens_no_channel() -> None:
    engine = HeldEngine([called(invoke("read", path="a"))])
    _, response = told(engine, tools=[READ], tool_choice="required")
    (request,) = engine.asked
    assert request.grammar is not None
    assert request.grammar.answer is None
    assert request.prompt.text().endswith("<|start|>assistant")  # type: ignore[union-attr]
    assert response["output"][0]["type"] == "function_call"


def test_a_call_that_had_to_be_and_is_not_there_is_still_asked_for_again() -> None:
    engine = HeldEngine([said("No.", end=EOT), called(invoke("read", path="a"))])
    _, response = told(engine, tools=[READ], tool_choice="required")
    assert response["status"] == "completed"
    assert len(engine.asked) == 2


def test_an_unfit_call_of_a_strict_function_is_still_rejected() -> None:
    engine = HeldEngine([called(invoke("read", path="a", lines="many"))])
    _, response = told(engine, tools=[{**READ, "strict": True}])
    assert [item["type"] for item in response["output"]] == ["message"]
