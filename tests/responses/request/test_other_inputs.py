"""Searches, references, other providers' items, images; limits, and what is stored."""

from __future__ import annotations

import base64
import json
from typing import Any

import pytest

from atem.messages import ImagePart
from atem.responses import hosted
from atem.responses.inputs import PREFIXES
from tests.responses.request.asking import (
    BLOBS,
    PNG,
    ask,
    block,
    call,
    content,
    function,
    output,
    refused,
    result,
    talk,
    thought,
    user,
)

# Tool search, tools that come later


def search_call(**fields: Any) -> dict[str, Any]:
    return {
        "type": "tool_search_call",
        "arguments": {"query": "mail"},
        "execution": "client",
        **fields,
    }


def search_output(*tools: Any, **fields: Any) -> dict[str, Any]:
    return {"type": "tool_search_output", "tools": list(tools), **fields}


MAIL = {
    "type": "namespace",
    "name": "mail",
    "description": "",
    "tools": [function("send", defer_loading=True)],
}
SEARCH = {"type": "tool_search", "execution": "client"}


@pytest.mark.parametrize("call_id", ["s1", None])
def test_found_tools_are_shown_from_then_on(call_id: Any) -> None:
    items = [user(), search_call(call_id=call_id), search_output(MAIL, call_id=call_id)]
    made = ask(items, tools=[SEARCH])
    assert "mail.send" in made.tools.toolset
    assert '<tool_output name="tool_search">\nThese tools can be called now: mail.send\n' in talk(
        made
    )


def test_found_tools_are_declared_where_they_were_found_and_nothing_before_that_changes() -> None:
    items = [user(), search_call(call_id="s1")]
    before = ask(items, tools=[SEARCH, MAIL]).prompt().text()
    after = ask([*items, search_output(MAIL, call_id="s1")], tools=[SEARCH, MAIL]).prompt().text()
    until = before.index('<tool_output name="tool_search">')
    assert after[:until] == before[:until]
    assert '{"name": "mail.send", ' in after[until:]
    assert '# More valid recipients: "mail.*".' in after[until:]


def test_a_tool_that_was_shown_all_along_is_not_declared_again_where_it_is_found() -> None:
    items = [user(), search_call(call_id="s1"), search_output(function("read"), call_id="s1")]
    made = ask(items, tools=[SEARCH, function("read")])
    assert result("tool_search", "These tools can be called now: read") in talk(made)


def test_found_tools_show_those_that_were_declared_and_deferred() -> None:
    assert "mail.send" not in ask(tools=[SEARCH, MAIL]).tools.toolset
    items = [user(), search_call(), search_output(MAIL)]
    assert "mail.send" in ask(items, tools=[SEARCH, MAIL]).tools.toolset


def test_a_search_that_found_nothing_says_so() -> None:
    assert result("tool_search", "No tools were found.") in talk(
        ask([user(), search_call(), search_output()])
    )


def test_found_tools_without_a_search_are_noted_and_shown() -> None:
    made = ask([user(), search_output(MAIL, call_id="gone")], tools=[function("read")])
    assert "mail.send" in made.tools.toolset
    assert '{"name": "mail.send", ' in talk(made)
    assert made.notes


def test_tools_may_come_as_an_item_and_without_any_at_the_top() -> None:
    item = {"type": "additional_tools", "role": "developer", "tools": [function(), MAIL]}
    made = ask([item, user()])
    assert made.tools.toolset.names == ("read",)
    assert made.echo["tools"] == []
    assert refused([{**item, "tools": [5]}]).param == "input[0].tools[0]"


def test_tools_of_earlier_items_stay() -> None:
    item = {"type": "additional_tools", "role": "developer", "tools": [function()]}
    stored = ask([item, user()]).items
    assert ask([user()], {"history": stored}).tools.toolset.names == ("read",)


# References, compaction, configuration


def test_a_reference_is_what_it_refers_to() -> None:
    stored = {
        "msg_9": {
            "id": "msg_9",
            "type": "message",
            "role": "user",
            "content": [{"type": "input_text", "text": "Said"}],
        }
    }
    for reference in (
        {"type": "item_reference", "id": "msg_9"},
        {"id": "msg_9"},
        {"type": None, "id": "msg_9"},
    ):
        made = ask([reference], {"lookup": stored.get})
        assert "Said" in talk(made)
        assert made.items[0]["type"] == "message"


@pytest.mark.parametrize("options", [{}, {"lookup": lambda _: None}])
def test_a_reference_to_nothing_is_a_404(options: dict[str, Any]) -> None:
    error = refused([{"type": "item_reference", "id": "gone"}], options)
    assert (error.status, error.param) == (404, "input[0].id")


def test_our_compaction_is_its_summary() -> None:
    item = {"type": "compaction", "encrypted_content": "ours:They built a boat."}
    assert "[Summary of the conversation before this point]\nThey built a boat." in talk(
        ask([item, user()], BLOBS)
    )


@pytest.mark.parametrize("options", [{}, BLOBS])
@pytest.mark.parametrize("blob", ["foreign", None, 5])
def test_a_foreign_compaction_is_refused(options: dict[str, Any], blob: Any) -> None:
    error = refused([{"type": "compaction", "encrypted_content": blob}], options)
    assert (error.status, error.code, error.param) == (400, "invalid_encrypted_content", "input[0].encrypted_content")  # fmt: skip


def test_a_trigger_asks_for_a_summary_and_no_call() -> None:
    made = ask([user(), {"type": "compaction_trigger"}], tools=[function()], tool_choice="required")
    assert made.compact
    assert made.choice.mode == "none"
    assert "Write a summary of this conversation" in talk(made)


def test_a_trigger_is_the_last_item() -> None:
    assert refused([user(), {"type": "compaction_trigger"}, user()]).param == "input[1]"


def test_a_summary_stands_for_what_the_model_did_before_it() -> None:
    turn = [
        user("First."),
        thought(content=content("Hm.")),
        call(arguments='{"path": "boat.txt"}'),
        output("planks"),
        {"role": "assistant", "content": "Built."},
        {"role": "developer", "content": "Stay dry."},
        {"type": "compaction_trigger"},
        {"type": "compaction", "encrypted_content": "ours:They built a boat."},
    ]
    history = ask(turn[:-2], tools=[function()]).items + tuple(turn[-2:])
    made = ask([user("And now?")], {**BLOBS, "history": history}, tools=[function()])
    shown = talk(made)
    for said in ("First.", "They built a boat.", "Stay dry.", "And now?"):
        assert said in shown
    for gone in ("Hm.", "boat.txt", "planks", "Built.", "Write a summary"):
        assert gone not in shown
    assert not made.compact


def test_what_an_update_leaves_open_stays_as_it_is() -> None:
    update = {"type": "configuration_update", "reasoning": {"effort": None}, "text": None}
    assert ask([user(), update, user()], reasoning={"effort": "max"}).strength == "xhigh"


def test_an_update_of_earlier_holds_until_another_one() -> None:
    def update(effort: str) -> dict[str, Any]:
        return {"type": "configuration_update", "reasoning": {"effort": effort}}

    history = ask([update("low"), user()]).items
    later = {"history": history}
    assert ask([user()], later, reasoning={"effort": "max"}).strength == "low"
    assert ask([update("high"), user()], later).strength == "high"


def test_a_configuration_holds_from_then_on() -> None:
    update = {
        "type": "configuration_update",
        "reasoning": {"effort": "low"},
        "text": {"format": {"type": "json_object"}},
    }
    made = ask([user(), update, user()], reasoning={"effort": "max", "summary": "auto"})
    assert (made.strength, made.format.kind, made.summary) == ("low", "json_object", True)


# History of other providers


@pytest.mark.parametrize("kind", hosted.TYPES)
def test_no_item_of_another_provider_is_refused(kind: str) -> None:
    bare = {"type": kind}
    full = {"type": kind, "id": "x1", "call_id": "c9", "action": {"command": ["ls"]}, "operation": {"type": "create_file"}, "code": "1", "name": "n", "server_label": "s", "arguments": "{}", "output": "R", "outputs": None, "result": "R"}  # fmt: skip
    for item in (bare, full):
        ask([user(), item]).prompt()


def test_a_shell_of_another_provider_is_shown_with_its_output() -> None:
    items = [
        {
            "type": "local_shell_call",
            "id": "a",
            "call_id": "c1",
            "action": {"type": "exec", "command": ["ls"]},
        },
        {"type": "local_shell_call_output", "id": "c1", "output": "notes.txt"},
    ]
    text = talk(ask([user(), *items]))
    assert '<atem:parameter name="command">["ls"]</atem:parameter>' in text
    assert result("local_shell", "notes.txt") in text


def test_an_mcp_call_holds_its_own_output() -> None:
    item = {
        "type": "mcp_call",
        "id": "m1",
        "server_label": "docs",
        "name": "find",
        "arguments": '{"q": "x"}',
        "output": "R",
    }
    text = talk(ask([user(), item]))
    assert block("docs.find", '<atem:parameter name="q">x</atem:parameter>\n') in text
    assert result("docs.find", "R") in text


def test_what_cannot_be_shown_is_noted() -> None:
    assert ask([user(), {"type": "web_search_call", "id": "w", "status": "completed"}]).notes


def test_an_unknown_type_is_left_out_and_noted() -> None:
    made = ask([user(), {"type": "hologram", "beam": 1}])
    assert len(made.items) == 1
    assert "hologram" in made.notes[0]


# Images and files


def test_an_image_is_a_data_url() -> None:
    made = ask(
        [{"role": "user", "content": [{"type": "input_image", "image_url": PNG, "detail": "auto"}]}]
    )
    assert made.prompt().images == (PNG,)
    made = ask([{"role": "user", "content": [{"type": "image_url", "image_url": {"url": PNG}}]}])
    assert made.prompt().images == (PNG,)


@pytest.mark.parametrize(
    "part",
    [
        {"image_url": "https://host/a.png"}, {"image_url": "http://169.254.169.254/"}, {"image_url": "file:///etc/passwd"},
        {"image_url": "/etc/passwd"}, {"file_id": "file_1"}, {}, {"image_url": None}, {"image_url": "data:image/png,xx"},
        {"image_url": "data:image/png;base64,!"}, {"image_url": "data:text/plain;base64,eA=="}, {"image_url": 5},
    ],
)  # fmt: skip
def test_an_image_that_is_elsewhere_or_none_is_refused(part: dict[str, Any]) -> None:
    error = refused([{"role": "user", "content": [{"type": "input_image", **part}]}])
    assert error.status == 400
    assert (error.param or "").startswith("input[0].content[0]")


def test_an_image_in_an_output_is_kept() -> None:
    made = ask([user(), call(), output([{"type": "input_image", "image_url": PNG}])])
    assert ImagePart(PNG) in made.messages[-1].content


def test_a_text_file_is_its_text() -> None:
    data = "data:text/markdown;base64," + base64.b64encode("# Ä".encode()).decode()
    part = {"type": "input_file", "filename": "a.md", "file_data": data}
    assert '<file name="a.md">\n# Ä\n</file>' in talk(ask([{"role": "user", "content": [part]}]))


@pytest.mark.parametrize("fields", [{"file_id": "f"}, {"file_url": "https://host"}, {"file_data": "data:application/pdf;base64,eA=="}, {"file_data": "data:text/plain;base64,/w=="}])  # fmt: skip
def test_another_file_is_refused(fields: dict[str, Any]) -> None:
    error = refused([{"role": "user", "content": [{"type": "input_file", **fields}]}])
    assert (error.param or "").startswith("input[0].content[0]")


@pytest.mark.parametrize("part", [5, None, {}, {"type": "input_audio"}, {"type": ["x"]}, {"type": "input_text", "text": 5}])  # fmt: skip
def test_a_part_that_cannot_be_shown_is_refused(part: Any) -> None:
    assert refused([{"role": "user", "content": [part]}]).status == 400


# Limits, storage, history


def test_more_than_20000_items_are_refused() -> None:
    assert refused([user()] * 20001).param == "input"
    assert len(ask([user()] * 20000).items) == 20000


@pytest.mark.parametrize("items", [5, {}, True, [5], [None], [{}], [{"type": 5}], [{"content": "x"}], [{"type": "item_reference"}]])  # fmt: skip
def test_what_is_no_item_is_refused(items: Any) -> None:
    assert (refused(items).param or "").startswith("input")


def test_depth_is_limited() -> None:
    deep: Any = "x"
    for _ in range(65):
        deep = [deep]
    assert "64" in refused(deep).message
    assert refused(metadata={"x": json.loads("[" * 70 + "]" * 70)}).status == 400


def test_half_a_character_is_replaced_everywhere_and_noted() -> None:
    items = [user("a\ud83d"), call(arguments='{"path": "\\ud83d"}'), output("\udc00")]
    made = ask(items, metadata={"k\ud800": "v"}, tools=[function("t\ud800")])
    made.prompt().text().encode()
    json.dumps([made.items, made.echo], ensure_ascii=False).encode()
    assert any("U+FFFD" in note for note in made.notes)


@pytest.mark.parametrize("number", [float("nan"), float("inf"), 1 << 5000])
def test_numbers_that_json_cannot_express_are_refused(number: float) -> None:
    assert refused(client_metadata={"x": number}).status == 400


def test_stored_items_have_a_type_an_id_and_parts() -> None:
    stored = ask([user("a"), {"role": "assistant", "content": "b"}, call(), output()]).items
    assert [item["type"] for item in stored] == [
        "message",
        "message",
        "function_call",
        "function_call_output",
    ]
    assert [item["id"] for item in stored] == ["msg_1", "msg_2", "fc_3", "fco_4"]
    assert [part["type"] for item in stored[:2] for part in item["content"]] == [
        "input_text",
        "output_text",
    ]
    assert all(item["status"] == "completed" for item in stored)


def test_ids_in_one_request_are_different() -> None:
    made = ask([{**user(), "id": "same"}, {**user(), "id": "same"}])
    assert len({item["id"] for item in made.items}) == 2


def test_stored_items_read_again_are_the_same_conversation() -> None:
    items = [
        user("a"),
        thought(content=content("T")),
        call(),
        output([{"type": "input_text", "text": "R"}]),
        {"role": "assistant", "content": "b"},
    ]
    first = ask(items)
    again = ask([user("c")], {"history": first.items})
    assert talk(again) == talk(ask([*items, user("c")]))
    assert len(again.items) == 1


def test_a_call_of_the_history_may_be_answered_now() -> None:
    stored = ask([user(), call()]).items
    assert result("read", "R") in talk(ask([output("R")], {"history": stored}))


def test_every_known_type_has_a_prefix_or_a_converter() -> None:
    assert not set(PREFIXES) & set(hosted.TYPES)
