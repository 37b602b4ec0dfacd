"""Events and objects against contracts that others published."""

from __future__ import annotations

from typing import Any

import pytest

from atem.errors import EngineError
from tests.responses.output.contract import check, comply
from tests.responses.output.writing import (
    EOT,
    READ,
    TOOLS,
    asked,
    builder,
    called,
    fed,
    invoke,
    said,
    streamed,
    thought,
    turn,
)

EVERYTHING = turn(
    thought("Two files."),
    said("I look."),
    called(
        invoke("read", path="a.txt", lines="3"), invoke("patch", input='say "hi"\n'), end="<|eom|>"
    ),
    called(invoke("mail.send", path="b"), to="mail.send", end="<|eom|>"),
    called(invoke("nothing", x="1"), to="nothing", end="<|eom|>"),
    said("Done.", end=EOT),
)


@pytest.mark.parametrize("summary", [False, True])
@pytest.mark.parametrize("arguments", ["whole", "stream"])
def test_every_kind_of_item_complies(*, summary: bool, arguments: str) -> None:
    events = streamed(builder(summary=summary, arguments=arguments), list(EVERYTHING))
    check(events)
    comply(events)


@pytest.mark.parametrize("end", ["length", "failed", "cancelled", "queued"])
def test_every_end_complies(end: str) -> None:
    made = builder()
    events = made.start(queued=end == "queued")
    if end == "queued":
        events += made.start()
    events += fed(made, said("Half of an ans", end=""))
    events += {
        "length": lambda: made.finish(1001, reason="max_output_tokens"),
        "failed": lambda: made.fail(EngineError("It broke.")),
        "cancelled": made.cancel,
        "queued": lambda: made.finish(1001),
    }[end]()
    check(events)
    comply(events)


BODIES: list[tuple[list[str], dict[str, Any]]] = [
    ([said("Hi.", end=EOT)], {}),
    ([turn(thought("So."), said("Hi.", end=EOT))], {"include": ["reasoning.encrypted_content"]}),
    ([said("Hi.", end=EOT)], {"include": ["message.output_text.logprobs"], "top_logprobs": 2}),
    ([called(invoke("read", path="a"))], {"tools": TOOLS, "tool_choice": "required"}),
    ([called(invoke("read", path="a"))], {"tools": [READ], "reasoning": {"effort": "low"}}),
    (
        [called(invoke("tool_search", query="read"), to="tool_search"), said("No.", end=EOT)],
        {"tools": [{"type": "tool_search"}, {**READ, "defer_loading": True}]},
    ),
    (
        [called(invoke("tool_search", query="read"), to="tool_search")],
        {"tools": [{"type": "tool_search", "execution": "client", "parameters": {}}]},
    ),
    ([said("Sum.", end=EOT)], {"input": [{"role": "user", "content": "a"}, {"type": "compaction_trigger"}]}),
    ([said("Hi.", end=EOT)], {"metadata": {"a": "b"}, "user": "u", "temperature": 0, "top_p": 0.5}),
]  # fmt: skip


@pytest.mark.parametrize(("turns", "body"), BODIES)
def test_every_answer_complies(turns: list[str], body: dict[str, Any]) -> None:
    events, response, _ = asked(turns, body)
    assert check(events) == response
    comply(events)


def test_a_bare_response_has_every_key_of_open_responses() -> None:
    from openresponses_types import ResponseResource

    response = builder([]).response
    assert set(ResponseResource.model_fields) <= set(response)
    assert "user" not in response
