"""What users of other servers complained about, one test for each complaint."""

from __future__ import annotations

from typing import Any

import pytest

from atem.responses.faults import ApiError
from atem.responses.request import input_tokens, truncate
from atem.runtime.generation import FEATURES
from atem.testing.tiny import tiny_tokenizer
from atem.tokenizer import wrap
from tests.responses.request.asking import (
    PNG,
    ask,
    call,
    function,
    output,
    result,
    system,
    talk,
    user,
)
from tests.responses.request.test_engine_request import info

SPACE = {
    "type": "namespace",
    "name": "mcp__docs",
    "description": "Docs.",
    "tools": [function("search", strict=False)],
}
PATCH = {
    "type": "custom",
    "name": "apply_patch",
    "description": "",
    "format": {"type": "grammar", "syntax": "lark", "definition": "start: /x/"},
}


def test_a_response_that_goes_on_keeps_calls_and_outputs() -> None:
    """vllm-project/vllm#43244."""
    earlier = ask([user("a"), call(), output("R"), {"role": "assistant", "content": "b"}]).items
    assert result("read", "R") in talk(
        ask([user("c")], {"history": earlier}, previous_response_id="resp_1")
    )


def test_an_answer_sent_back_with_null_logprobs_is_read() -> None:
    """openai/openai-agents-python#1616."""
    part = {"type": "output_text", "text": "Said", "annotations": None, "logprobs": None}
    assert "Said" in talk(
        ask(
            [
                {
                    "type": "message",
                    "id": "msg_1",
                    "role": "assistant",
                    "status": "completed",
                    "content": [part],
                }
            ]
        )
    )


@pytest.mark.parametrize(
    "items",
    [
        "Said", ["Said"], [user("Said")], [{"type": "message", **user("Said")}], [{"role": "user", "content": ["Said"]}],
        [{"role": "user", "content": [{"type": "input_text", "text": "Said"}]}], [{"role": "user", "content": [{"text": "Said"}]}],
    ],
)  # fmt: skip
def test_every_form_of_input_keeps_its_text(items: Any) -> None:
    """sgl-project/sglang#17853."""
    assert "<|start|>user<|message|>Said<|eot|>" in talk(ask(items))


def test_functions_are_taken_with_and_without_every_field() -> None:
    """sgl-project/sglang#13967, sgl-project/sglang#13292."""
    for tool in (
        function(),
        {"type": "function", "name": "read"},
        function(strict=True, output_schema={}, defer_loading=False, allowed_callers=["direct"]),
    ):
        assert "read" in ask(tools=[tool]).tools.toolset


@pytest.mark.parametrize("truncation", ["disabled", "auto"])
def test_a_prompt_that_is_too_long_is_known_before_anything_is_sent(truncation: str) -> None:
    """sgl-project/sglang#19996."""
    made = ask("x" * 500, truncation=truncation, stream=True)
    with pytest.raises(ApiError) as caught:
        truncate(made, wrap(tiny_tokenizer()), 100)
    assert caught.value.code == "context_length_exceeded"


@pytest.mark.parametrize("kind", ["web_search", "local_shell", "mcp", "of_next_year"])
def test_a_tool_of_another_type_is_no_error(kind: str) -> None:
    """ggml-org/llama.cpp#20156, ggml-org/llama.cpp#22389, openai/codex#10635."""
    made = ask(tools=[{"type": kind}, function()])
    assert (made.tools.dropped, made.tools.toolset.names) == ((kind,), ("read",))


def test_an_output_may_be_an_array_and_a_tool_custom() -> None:
    """ggml-org/llama.cpp#23465."""
    items = [user(), call(), output([{"type": "input_text", "text": "R"}])]
    made = ask(items, tools=[PATCH])
    assert result("read", "R") in talk(made)
    assert "apply_patch" in made.tools.toolset


@pytest.mark.parametrize("summary", [None, [], "absent"])
def test_reasoning_without_a_summary_is_nothing(summary: Any) -> None:
    """ggml-org/llama.cpp#29159."""
    item = {"type": "reasoning", "id": "rs_1", "summary": summary}
    if summary == "absent":
        del item["summary"]
    assert talk(ask([user(), item])) == talk(ask([user()]))


@pytest.mark.parametrize("role", ["assistant", "user", "system", "developer"])
def test_a_message_of_any_role_needs_no_type(role: str) -> None:
    """ggml-org/llama.cpp#26394."""
    assert "Said" in ask([{"role": role, "content": "Said"}]).prompt().text()


@pytest.mark.parametrize("role", ["system", "developer"])
def test_a_system_message_in_the_middle_is_shown(role: str) -> None:
    """ggml-org/llama.cpp#27367."""
    assert "Said" in talk(
        ask(
            [
                user(),
                {"role": "assistant", "content": "x"},
                {"role": role, "content": "Said"},
                user(),
            ]
        )
    )


def test_namespace_and_name_stay_two_fields() -> None:
    """ollama/ollama#18284, ollama/ollama#15921."""
    made = ask(tools=[SPACE])
    (tool,) = made.tools
    assert tool.key == ("mcp__docs", "search")
    assert made.echo["tools"][0]["tools"][0]["name"] == "search"


def test_a_namespace_can_be_rendered() -> None:
    """ollama/ollama#17618, lmstudio-ai/lmstudio-bug-tracker#1810."""
    assert '"name": "mcp__docs.search"' in system(ask(tools=[SPACE]))


def test_an_image_is_shown_or_refused() -> None:
    """ollama/ollama#13717."""
    made = ask([{"role": "user", "content": [{"type": "input_image", "image_url": PNG}]}])
    assert made.engine_request(info()).prompt.images  # type: ignore[union-attr]
    with pytest.raises(ApiError, match="images"):
        made.engine_request(info(FEATURES))


def test_instructions_are_in_the_system_text() -> None:
    """lmstudio-ai/lmstudio-bug-tracker#1154."""
    assert "<|start|>system<|message|>Speak Latin.\n\n" in system(ask(instructions="Speak Latin."))


def test_a_developer_is_heard() -> None:
    """lmstudio-ai/lmstudio-bug-tracker#669."""
    assert "<|start|>system<|message|>Speak Latin.\n\n" in system(
        ask([{"role": "developer", "content": "Speak Latin."}, user()])
    )


def test_no_tool_is_dropped_without_a_word() -> None:
    """jundot/omlx#3371."""
    made = ask(
        tools=[
            SPACE,
            PATCH,
            function(),
            {"type": "web_search"},
            {**SPACE, "name": "b", "tools": [{"type": "mcp"}]},
        ]
    )
    assert {*made.tools.toolset.names, *made.tools.dropped} == {
        "mcp__docs.search",
        "apply_patch",
        "read",
        "web_search",
        "mcp",
    }


def test_two_system_texts_are_one_block() -> None:
    """raullenchai/Rapid-MLX#549."""
    made = ask(
        [{"role": "developer", "content": "a"}, {"role": "system", "content": "b"}, user()],
        instructions="c",
    )
    assert made.prompt().text().count("<|start|>system") == 1
    assert "c\n\na\n\nb" in system(made)


def test_a_custom_tool_is_native() -> None:
    """unslothai/unsloth#9121."""
    made = ask(tools=[PATCH])
    (tool,) = made.tools
    assert tool.kind == "custom"
    assert made.echo["tools"] == [PATCH]
    assert "start: /x/" in system(made)


def test_counting_counts_system_text_tools_and_template() -> None:
    """BerriAI/litellm#13252: counts that leave them out come too late."""
    tokenizer = wrap(tiny_tokenizer())
    bare, full = ask(), ask(tools=[SPACE], instructions="Be brief.")
    assert input_tokens(full, tokenizer) - input_tokens(bare, tokenizer) > 100
