"""``atem render``: the prompt of the library, byte for byte."""

from __future__ import annotations

import hashlib
import json

import pytest

import atem as library
from tests.cli.process import ROOT, TOOLS, atem, complaint, lines

CHAT = [
    {"role": "user", "content": "Read a.txt — please.\n"},
    {
        "role": "assistant",
        "reasoning_content": "A file.",
        "tool_calls": [
            {
                "id": "call_1",
                "type": "function",
                "function": {"name": "read_file", "arguments": '{"path": "a.txt"}'},
            }
        ],
    },
    {"role": "tool", "tool_call_id": "call_1", "content": "Buy rope.<|eot|>"},
]
ITEMS = [
    {"type": "message", "role": "user", "content": [{"type": "input_text", "text": "Read a.txt"}]},
    {
        "type": "function_call",
        "call_id": "call_1",
        "name": "read_file",
        "arguments": '{"path": "a.txt"}',
    },
    {"type": "function_call_output", "call_id": "call_1", "output": "Buy rope."},
]


@pytest.fixture
def write(tmp_path):
    """Write a value as JSON; the path."""

    def write(value, name="conversation.json"):
        (tmp_path / name).write_text(json.dumps(value), encoding="utf-8")
        return str(tmp_path / name)

    return write


@pytest.mark.parametrize("conversation", [CHAT, ITEMS, []], ids=["chat", "items", "empty"])
def test_the_prompt_comes_out_byte_for_byte(conversation, write, tools):
    run = atem("render", write(conversation), "--tools", tools)
    assert run.stdout == library.render(conversation, tools=TOOLS).text().encode()
    assert (run.returncode, run.stderr) == (0, b"")


def flags(options):
    """The options of a genuine prompt as a shell gives them."""
    for key, value in options.items():
        if key == "add_generation_prompt":
            yield from [] if value else ["--no-generation-prompt"]
        else:
            yield from [f"--{key.replace('_', '-').replace('current-', '')}", value]


GENUINE = [
    case
    for case in json.loads((ROOT / "tests/render/genuine.json").read_text("utf-8"))["cases"]
    if "tool_namespace_descriptions" not in case["options"]
]


@pytest.mark.parametrize("case", GENUINE, ids=lambda case: case["name"])
def test_the_prompt_is_what_the_models_own_template_wrote(case, write):
    given = {"messages": case["messages"], "tools": case["tools"] or []}
    run = atem("render", write(given), *flags(case["options"]))
    assert hashlib.sha256(run.stdout).hexdigest() == case["sha256"]


def test_one_file_may_hold_messages_and_tools(write):
    run = atem("render", write({"messages": CHAT, "tools": TOOLS}))
    assert run.stdout == library.render(CHAT, tools=TOOLS).text().encode()


def test_the_conversation_may_come_through_a_pipe():
    run = atem("render", data=json.dumps(CHAT))
    assert run.stdout == library.render(CHAT).text().encode()


OPTIONS = {
    "strength": (["--reasoning-strength", "xhigh"], {"reasoning_strength": "xhigh"}),
    "effort": (["--effort", "minimal"], {"effort": "minimal"}),
    "recipients": (["--recipients", "exact"], {"recipients": "exact"}),
    "date": (["--date", "2027-01-31"], {"current_date": "2027-01-31"}),
    "cutoff": (["--knowledge-cutoff", "2025"], {"knowledge_cutoff": "2025"}),
    "end": (["--no-generation-prompt"], {"add_generation_prompt": False}),
    "channel": (["--channel", "self"], {"channel": "self"}),
}


@pytest.mark.parametrize(("words", "options"), OPTIONS.values(), ids=OPTIONS)
def test_an_option_is_the_librarys(words, options, write, tools):
    found = atem("render", write(CHAT), "--tools", tools, *words).stdout.decode()
    assert found == library.render(CHAT, tools=TOOLS, **options).text()
    assert found != library.render(CHAT, tools=TOOLS).text()


def test_segments_tell_control_tokens_from_text_that_spells_them(write):
    found = lines(atem("render", "--segments", write(CHAT)))
    assert "".join(line["text"] for line in found) == library.render(CHAT).text()
    spelled = [line for line in found if "<|eot|>" in line["text"] and line["kind"] == "text"]
    assert [line["text"].endswith("Buy rope.<|eot|>\n</tool_output>") for line in spelled] == [True]
    assert {line["text"] for line in found if line["kind"] == "control"} == {
        "<|begin_of_text|>", "<|start|>", "<|message|>", "<|eom|>", "<|eot|>",
    }  # fmt: skip


def test_a_segment_of_an_image_has_its_source(write):
    image = {"type": "image_url", "image_url": {"url": "file:///boat.png"}}
    found = lines(atem("render", "--segments", write([{"role": "user", "content": [image]}])))
    (segment,) = [line for line in found if line["kind"] == "image"]
    assert segment["text"] == "<|patch|>"
    assert "file:///boat.png" in json.dumps(segment["source"])


def test_half_a_character_has_no_text_but_a_segment(write):
    path = write([{"role": "user", "content": "half \ud83d"}])
    assert "lone surrogate" in complaint(atem("render", path))
    assert "half \ud83d" in [line["text"] for line in lines(atem("render", "--segments", path))]


REFUSED = {
    "nothing": ({}, "expected a list of messages"),
    "text": ("Hello", "expected a list of messages"),
    "messages": ({"messages": "Hello"}, "expected a list of messages"),
    "unread": ({"messages": [], "model": "m", "instructions": "x"}, "take out instructions, model"),
    "role": ([{"role": "wizard", "content": ""}], "messages[0] has the role 'wizard'"),
    "item": ([{"type": "reference"}], "items[0] has type 'reference'"),
    "no dict": (["Hello"], "conversation[0]"),
    "tools": ({"messages": [], "tools": {}}, "the tools must be a list of tools, not an object"),
    "tool": ({"messages": [], "tools": [{"name": 3, "parameters": {}}]}, "tools[0].name must be"),
}


@pytest.mark.parametrize(("value", "said"), REFUSED.values(), ids=REFUSED)
def test_what_cannot_be_rendered_is_one_line_that_names_the_file(value, said, write):
    path = write(value)
    found = complaint(atem("render", path))
    assert found.startswith(f"{path}: ")
    assert said in found


def test_tools_in_two_places_are_refused(write, tools):
    path = write({"messages": CHAT, "tools": TOOLS})
    assert "leave out --tools" in complaint(atem("render", path, "--tools", tools))


def test_options_that_differ_are_refused(write):
    found = complaint(
        atem("render", write(CHAT), "--effort", "low", "--reasoning-strength", "high")
    )
    assert "differ" in found
