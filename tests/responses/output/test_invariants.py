"""The laws of a stream, for whatever a model writes."""

from __future__ import annotations

from typing import Any

from hypothesis import given
from hypothesis import strategies as st

import atem
from tests.responses.output.contract import check
from tests.responses.output.drawing import REASONS, TURNS
from tests.responses.output.writing import builder, streamed

MODES = st.sampled_from(["whole", "stream"])


@given(TURNS, REASONS, MODES, st.booleans(), st.integers(1, 40))
def test_every_stream_keeps_the_laws(
    text: str, reason: str, arguments: str, summary: bool, width: int
) -> None:
    made = builder(arguments=arguments, summary=summary)
    tokens = [text[at : at + width] for at in range(0, len(text), width)]
    response = check(streamed(made, tokens, reason=reason))
    assert response == made.response
    assert response["status"] == ("completed" if reason == "stop" else "incomplete")


@given(TURNS, REASONS)
def test_only_calls_that_the_parser_licenses_are_completed(text: str, reason: Any) -> None:
    """Whatever was shown on the way: what a client may run is what may run."""
    made = builder(arguments="stream")
    streamed(made, list(text), reason=reason)
    licensed = atem.parse(text, reason=reason, tools=made.tools.toolset).calls
    shown = [
        item
        for item in made.response["output"]
        if item["type"] == "function_call" and item["status"] == "completed"
    ]
    functions = [call for call in licensed if made.tools.kind(call) == "function"]
    assert [item["arguments"] for item in shown] == [call.arguments_json for call in functions]


@given(TURNS)
def test_what_is_taken_back_is_never_json(text: str) -> None:
    import json

    made = builder(arguments="stream")
    streamed(made, list(text), reason="length")
    for item in made.response["output"]:
        if item["type"] == "function_call" and item["status"] == "incomplete":
            try:
                json.loads(item["arguments"])
            except ValueError:
                continue
            raise AssertionError(item)
