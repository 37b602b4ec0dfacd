"""Requests of real clients, recorded: each goes on where the answer before it ended.

Rules: `python -m tests.clients.node.capture` records them; `make clients` checks
the same of whole requests, which are too long to be kept.
"""

from __future__ import annotations

from itertools import pairwise

import pytest

from atem.responses.blob import Blobs
from atem.runtime.prefix import PrefixCache
from atem.testing.scripted import wire_ids
from tests.clients.node.turns import THOUGHT
from tests.responses.replaying import CASES, ENGINE, asked, bodies, ids_of, kept, prompt_of

PLAIN = [name for name in CASES if not name.endswith("-mcp")]
FOUND = [name for name in CASES if name.endswith("-mcp")]
BLOCK = 64


def steps(case):
    """``(request, answer, next request)``, for each answer that called a tool."""
    return [
        (before, written, after)
        for (before, after), written in zip(pairwise(bodies(case)), case["written"], strict=True)
    ]


def said(content):
    """A content of any of the three APIs as text."""
    return content if isinstance(content, str) else "".join(part["text"] for part in content)


def outputs(path, body):
    """What the newest calls came to, as the client says it."""
    if path == "/v1/responses":
        last = [item for item in body["input"] if item.get("type") == "function_call_output"]
        return [said(item["output"]) for item in last]
    if path == "/v1/chat/completions":
        return [said(m["content"]) for m in body["messages"] if m["role"] == "tool"]
    return [said(block["content"]) for block in body["messages"][-1]["content"]]


def result(name, text):
    return (
        f'<|start|>tool {name}<|message|><tool_output name="{name}">\n{text}\n</tool_output><|eot|>'
    )


@pytest.mark.parametrize("name", CASES)
def test_a_prompt_begins_with_the_one_before_it_and_with_its_answer(name):
    case = CASES[name]
    for before, written, after in steps(case):
        common, whole = kept(case["path"], before, written, after)
        assert common == whole


@pytest.mark.parametrize("name", PLAIN)
def test_behind_that_stand_the_outputs_of_its_calls_and_nothing_else(name):
    case = CASES[name]
    ((before, written, after),) = steps(case)
    text = prompt_of(case["path"], after).text()
    behind = text.removeprefix(prompt_of(case["path"], before).text() + written)
    (tool,) = {
        call.raw_name for message in asked(case["path"], after).messages for call in message.calls
    }
    came = outputs(case["path"], after)
    assert len(came) == 2
    assert behind == "".join(result(tool, each) for each in came) + "<|start|>assistant"


@pytest.mark.parametrize("name", CASES)
def test_the_reasoning_comes_back_once_for_each_answer(name):
    case = CASES[name]
    for place, body in enumerate(bodies(case)):
        messages = asked(case["path"], body).messages
        thoughts = [message.content for message in messages if message.recipient == "self"]
        assert thoughts == [THOUGHT] * place


@pytest.mark.parametrize("name", FOUND)
def test_a_tool_that_was_found_is_declared_behind_what_was_said_before(name):
    case = CASES[name]
    (before, written, after), _ = steps(case)
    known = prompt_of(case["path"], before).text() + written
    text = prompt_of(case["path"], after).text()
    declaration = '"description": "The weather forecast of a city."'
    assert declaration not in known
    assert declaration in text.removeprefix(known)
    names = asked(case["path"], after).tools.toolset.names
    assert [each for each in names if each.endswith("forecast")]


@pytest.mark.parametrize("name", CASES)
def test_the_prefix_cache_finds_every_whole_block_of_it(name):
    case = CASES[name]
    for before, written, after in steps(case):
        known = [*ids_of(case["path"], before), *wire_ids(written, ENGINE.tokenizer)]
        cache = PrefixCache(BLOCK, 1 << 20)
        trail = cache.lookup(known).trail
        while trail.wanted(known, len(known)) is not None:
            trail.store(known, None, 1)
        hit = cache.lookup(ids_of(case["path"], after))
        assert hit.tokens == len(known) // BLOCK * BLOCK > 0


def test_the_line_about_billing_differs_from_request_to_request_and_is_no_part_of_the_prompt():
    case = CASES["claude-code"]
    body = bodies(case)[0]
    (line,) = [block for block in body["system"] if block["text"].startswith("x-anthropic-billing")]
    other = {**line, "text": line["text"] + " cch=12345;"}
    stamped = body | {"system": [other, *[block for block in body["system"] if block != line]]}
    assert prompt_of(case["path"], stamped) == prompt_of(case["path"], body)


def test_calls_written_into_one_block_cost_what_stands_behind_the_first():
    """The template writes a message for each call, and items don't say how they were written."""
    case = CASES["codex"]
    ((before, written, after),) = steps(case)
    between = "</atem:function_calls><|eom|><|start|>assistant to=exec_command<|message|><atem:function_calls>\n"
    assert between in written
    common, _ = kept(case["path"], before, written.replace(between, ""), after)
    first = wire_ids(written[: written.index(between)], ENGINE.tokenizer)
    assert common >= len(ids_of(case["path"], before)) + len(first)


def test_the_blobs_of_the_recorded_requests_are_ours():
    for name in ("codex", "opencode"):
        (item,) = [
            item for item in bodies(CASES[name])[1]["input"] if item.get("type") == "reasoning"
        ]
        assert Blobs(None, "scripted").open(item["encrypted_content"]) == THOUGHT
