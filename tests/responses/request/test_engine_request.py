"""What an engine is asked: everything that was asked for, or a refusal, or a note."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from atem.engine import EngineInfo, require_features
from atem.messages import Message
from atem.responses.faults import ApiError
from atem.responses.request import Ask, input_tokens, truncate
from atem.runtime.generation import FEATURES
from atem.testing.scripted import ScriptedEngine
from atem.testing.tiny import tiny_tokenizer
from atem.tokenizer import wrap
from tests.responses.request.asking import PNG, ask, call, function, output, user

ALL = FEATURES | {"images", "chat"}
TOKENIZER = wrap(tiny_tokenizer())
SHOWN = [{"type": "input_image", "image_url": PNG}]


def info(features: Any = ALL, context: int = 4096) -> EngineInfo:
    return EngineInfo("muse", "test", context, frozenset({1}), frozenset(features))


ASKED = {"seed": 7, "top_k": 5, "min_p": 0.1, "repetition_penalty": 1.2, "presence_penalty": 0.5, "frequency_penalty": 0.5, "stop": ["END"]}  # fmt: skip


def test_an_engine_that_can_do_everything_is_asked_everything() -> None:
    made = ask(**ASKED, top_logprobs=3, max_output_tokens=9)
    request = made.engine_request(info())
    assert request.sampling == made.sampling
    assert (request.stop, request.max_tokens, request.sampling.logprobs) == (("END",), 9, 3)
    assert made.lacking(info()) == ()


def test_an_engine_is_never_asked_what_it_lacks_and_the_notes_say_so() -> None:
    made = ask(**ASKED)
    bare = info(())
    require_features(bare, made.engine_request(bare))
    assert [note.partition(" ")[0] for note in made.lacking(bare)] == [
        "seed", "top_k", "min_p", "repetition_penalty", "presence_penalty", "frequency_penalty",
    ]  # fmt: skip
    assert made.stop == ("END",)


def test_what_nobody_asked_for_is_left_out_without_a_note() -> None:
    assert ask().engine_request(info(())).sampling.top_k == 0
    assert ask().lacking(info(())) == ()


@pytest.mark.parametrize(
    "body", [{"top_logprobs": 2}, {"include": ["message.output_text.logprobs"]}]
)
def test_log_probabilities_that_are_not_to_be_had_are_refused(body: dict[str, Any]) -> None:
    with pytest.raises(ApiError) as caught:
        ask(**body).engine_request(info(FEATURES - {"logprobs"}))
    assert (caught.value.status, caught.value.code) == (400, "unsupported_parameter")


def test_an_image_for_a_model_that_sees_none_is_refused() -> None:
    made = ask([{"role": "user", "content": SHOWN}])
    with pytest.raises(ApiError) as caught:
        made.engine_request(info(FEATURES))
    assert (caught.value.status, caught.value.param) == (400, "input")
    assert made.engine_request(info()).prompt.images == (PNG,)  # type: ignore[union-attr]


def test_an_image_in_an_output_is_replaced_by_words_and_noted() -> None:
    made = ask([user(), call(), output(SHOWN)])
    request = made.engine_request(info(FEATURES))
    assert "[an image that this model can't see]" in request.prompt.text()  # type: ignore[union-attr]
    assert made.lacking(info(FEATURES))
    assert made.engine_request(info()).prompt.images == (PNG,)  # type: ignore[union-attr]
    assert not made.lacking(info())


@pytest.mark.parametrize(("asked", "room", "most"), [(None, None, None), (5, None, 5), (None, 7, 7), (5, 7, 5), (9, 7, 7), (9, 0, 1)])  # fmt: skip
def test_the_answer_is_as_long_as_was_asked_and_there_is_room_for(
    asked: Any, room: Any, most: Any
) -> None:
    assert ask(max_output_tokens=asked).engine_request(info(), room=room).max_tokens == most


def test_servers_that_take_nothing_else_get_the_conversation_as_chat() -> None:
    made = ask([user("a"), call(), output("R")], tools=[function()], reasoning={"effort": "low"})
    chat = made.engine_request(info()).chat
    assert chat is not None
    assert [message["role"] for message in chat["messages"]] == ["user", "assistant", "tool"]
    assert chat["chat_template_kwargs"] == {"reasoning_strength": "low"}
    assert made.engine_request(info(FEATURES)).chat is None


def test_an_engine_takes_the_request() -> None:
    engine = ScriptedEngine([" to=user<|message|>Hi<|eot|>"])
    made = ask(**ASKED, tools=[function()])
    steps = list(engine.generate(made.engine_request(engine.info)))
    assert steps[-1].finish == "stop"


def test_more_turns_inside_one_response_are_the_same_request_with_more_messages() -> None:
    made = ask(tools=[{"type": "tool_search"}, function("later", defer_loading=True)])
    more = made.then(
        [Message("user", "x")], tools=made.tools.with_found(made.tools.search("later"))
    )
    assert more.messages == (*made.messages, Message("user", "x"))
    assert "later" in more.tools.toolset
    assert more.echo == made.echo


# Length


def test_tokens_are_those_of_the_prompt() -> None:
    made = ask([user("Ünïcode 😀"), call(), output()], tools=[function()])
    assert input_tokens(made, TOKENIZER) == len(made.prompt().token_ids(TOKENIZER))
    engine = ScriptedEngine([" to=user<|message|>Hi<|eot|>"])
    list(engine.generate(made.engine_request(engine.info)))
    assert len(engine.requests[0].prompt_ids(engine.tokenizer)) == input_tokens(
        made, engine.tokenizer
    )


def test_an_input_that_fits_is_left_alone() -> None:
    made = ask()
    assert truncate(made, TOKENIZER, input_tokens(made, TOKENIZER) + 1) == made


@pytest.mark.parametrize("less", [0, 1, 10])
def test_an_input_that_fills_the_context_is_refused(less: int) -> None:
    made = ask()
    with pytest.raises(ApiError) as caught:
        truncate(made, TOKENIZER, input_tokens(made, TOKENIZER) - less)
    assert (caught.value.status, caught.value.code) == (400, "context_length_exceeded")


LONG = [
    item
    for turn in range(10)
    for item in (
        user(f"question {turn} " + "x" * 50),
        call(call_id=f"c{turn}", arguments=f'{{"path": "{turn}"}}'),
        output("y" * 50, call_id=f"c{turn}"),
        {"role": "assistant", "content": f"answer {turn}"},
    )
]  # fmt: skip


def fitting(context: int) -> Ask:
    made = ask(
        [*LONG, user("newest")], truncation="auto", instructions="Be brief.", max_output_tokens=16
    )
    return truncate(made, TOKENIZER, context)


@pytest.mark.parametrize("share", [0.3, 0.5, 0.9])
def test_truncation_leaves_out_the_oldest_in_whole_groups(share: float) -> None:
    whole = ask([*LONG, user("newest")], instructions="Be brief.")
    context = int(input_tokens(whole, TOKENIZER) * share)
    made = fitting(context)
    dropped = made.left_out
    assert input_tokens(made, TOKENIZER) + 16 <= context
    assert dropped > 0
    assert made.messages[0] == whole.messages[0]
    assert made.messages[1:] == whole.messages[1 + dropped :]
    assert made.messages[1].role != "tool"


def test_truncation_leaves_out_no_more_than_it_has_to() -> None:
    made = fitting(2000)
    whole = ask([*LONG, user("newest")], instructions="Be brief.")
    groups = [place for place, message in enumerate(whole.messages[1:]) if message.role != "tool"]
    before = max((place for place in groups if place < made.left_out), default=0)
    one_more = replace(made, messages=(whole.messages[0], *whole.messages[1 + before :]))
    assert input_tokens(one_more, TOKENIZER) + 16 > 2000


def test_a_tool_whose_search_was_left_out_is_shown_in_the_system_text() -> None:
    search = {"type": "tool_search_call", "call_id": "s", "arguments": {}}
    found = {"type": "tool_search_output", "call_id": "s", "tools": [function("found_later")]}
    items = [user(), search, found, *LONG, user("newest")]
    tools = [{"type": "tool_search", "execution": "client"}]
    whole = ask(items, truncation="auto", tools=tools)
    short = truncate(whole, TOKENIZER, input_tokens(whole, TOKENIZER) * 3 // 4)
    declared = '{"name": "found_later", '
    assert declared not in whole.prompt().text().partition("<|eot|>")[0]
    assert short.left_out > 3
    assert declared in short.prompt().text().partition("<|eot|>")[0]


def test_what_is_newest_stays_even_if_that_does_not_fit() -> None:
    with pytest.raises(ApiError) as caught:
        fitting(20)
    assert caught.value.code == "context_length_exceeded"
