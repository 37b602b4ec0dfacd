"""What users of other servers reported about these two APIs, each as a rule that holds here."""

from __future__ import annotations

import json

from atem.responses.anthropic import MessagesStream, from_messages, message, token_count
from atem.responses.chat import ChatStream, completion, from_chat
from atem.responses.request import from_request
from atem.testing.tiny import tiny_tokenizer
from atem.tokenizer import wrap
from tests.responses.projections.told import (
    BLOBS,
    CHAT_TOOLS,
    DONE,
    MESSAGES_TOOLS,
    SAID,
    THOUGHT,
    call,
    replied,
    turn,
)

CHAT = {"model": "muse", "messages": [{"role": "user", "content": "Rain?"}], "tools": CHAT_TOOLS}
MESSAGES = {**CHAT, "tools": MESSAGES_TOOLS, "max_tokens": 2000}
MIXED = turn(THOUGHT, SAID, call(city="Oslo"), call(city="Bergen"))


def chunks(text, **more):
    told = replied(text, from_chat({**CHAT, **more}))
    stream = ChatStream()
    return [chunk for event in told.events for chunk in stream.feed(event)]


def calls(made):
    deltas = [chunk["choices"][0]["delta"] for chunk in made]
    return [part for delta in deltas for part in delta.get("tool_calls", ())]


def test_litellm_32607_all_chunks_have_one_id():
    """C38, BerriAI/litellm#32607."""
    assert len({chunk["id"] for chunk in chunks(MIXED)}) == 1


def test_litellm_21331_parallel_calls_have_an_index_each():
    """C39, BerriAI/litellm#21331."""
    parts = calls(chunks(MIXED))
    assert [part["index"] for part in parts if "id" in part] == [0, 1]
    assert len({part["id"] for part in parts if "id" in part}) == 2
    pieces = {part["index"]: part["function"]["arguments"] for part in parts if "id" not in part}
    assert {index: json.loads(text)["city"] for index, text in pieces.items()} == {
        0: "Oslo",
        1: "Bergen",
    }


def test_litellm_17246_text_and_a_call_in_one_turn_are_both_there():
    """C40, BerriAI/litellm#17246."""
    made = chunks(MIXED)
    assert "".join(c["choices"][0]["delta"].get("content") or "" for c in made) == "One moment."
    assert len({part["index"] for part in calls(made)}) == 2
    told = replied(MIXED, from_messages(MESSAGES))
    kinds = [block["type"] for block in message(told.response)["content"]]
    assert kinds == ["thinking", "text", "tool_use", "tool_use"]


def test_litellm_13252_tokens_are_counted_and_exactly():
    """C44, BerriAI/litellm#13252: the count is what the engine then reads."""
    body = {**MESSAGES, "system": [{"type": "text", "text": "Be brief."}]}
    counted = {key: value for key, value in body.items() if key != "max_tokens"}
    read = replied(DONE, from_messages(body)).response["usage"]["input_tokens"]
    assert token_count(counted, wrap(tiny_tokenizer()), blobs=BLOBS) == {"input_tokens": read}


def test_mlx_vlm_1843_reasoning_and_headers_are_in_no_answer():
    """C54, Blaizzy/mlx-vlm#1843."""
    choice = completion(replied(turn(THOUGHT, DONE, end=""), from_chat(CHAT)).response)["choices"][
        0
    ]
    assert choice["message"]["content"] == "It is so."
    assert choice["message"]["reasoning_content"] == "Look it up."
    told = replied(turn(THOUGHT, DONE, end=""), from_messages(MESSAGES))
    assert [block["type"] for block in message(told.response)["content"]] == ["thinking", "text"]
    stream = MessagesStream()
    sent = json.dumps([made for event in told.events for made in stream.feed(event)])
    assert "<|" not in sent
    assert "to=self" not in sent


def test_mlx_vlm_1843_an_effort_has_the_name_that_the_template_reads():
    """C54, Blaizzy/mlx-vlm#1843."""
    expected = from_request({"model": "muse", "input": "Rain?", "reasoning": {"effort": "low"}})
    plain = {**CHAT, "tools": None}
    chat = from_request(from_chat({**plain, "reasoning_effort": "low"}))
    messages = from_request(
        from_messages({**plain, "max_tokens": 9, "output_config": {"effort": "low"}})
    )
    assert chat.prompt().text() == messages.prompt().text() == expected.prompt().text()
    assert chat.prompt().text() != from_request(from_chat(plain)).prompt().text()
