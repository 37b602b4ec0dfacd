"""A Messages request becomes the create body that asks the same; refusals speak of its fields."""

from __future__ import annotations

import copy

import pytest

from atem.messages import ImagePart
from atem.responses.anthropic import error_body, from_messages, in_messages
from atem.responses.faults import ApiError
from atem.responses.request import from_request
from tests.responses.projections.told import BLOBS, MESSAGES_TOOLS

HI = {"role": "user", "content": "hi"}
IMAGE = {"type": "base64", "media_type": "image/png", "data": "AAAA"}


def made(**fields):
    return from_messages({"model": "muse", "max_tokens": 9, "messages": [HI], **fields})


def ask(**fields):
    return from_request(made(**fields), blobs=BLOBS)


def talk(*content, role="user"):
    """The messages after the first of a request whose newest ones are these blocks."""
    given = [HI, {"role": role, "content": list(content)}]
    return ask(messages=given if role == "user" else [*given, HI]).messages[1:]


def asked(body):
    """As a server asks: errors are in the words of the client."""
    try:
        from_request(from_messages(body), blobs=BLOBS)
    except ApiError as error:
        raise in_messages(error, body) from error


def refused(**fields):
    with pytest.raises(ApiError) as caught:
        asked({"model": "muse", "max_tokens": 9, "messages": [HI], **fields})
    assert caught.value.status == 400
    return caught.value


def text(words, **more):
    return {"type": "text", "text": words, **more}


def use(call_id="t1", **arguments):
    return {"type": "tool_use", "id": call_id, "name": "weather", "input": arguments}


def result(content="ok", call_id="t1", **more):
    return {"type": "tool_result", "tool_use_id": call_id, "content": content, **more}


def shown(message):
    """A content as one text."""
    content = message.content
    return content if isinstance(content, str) else "".join(part.text for part in content)


def after(*content):
    """What the model sees as the content of the result of a call."""
    messages = [HI, {"role": "assistant", "content": [use(city="Oslo")]}]
    read = ask(messages=[*messages, {"role": "user", "content": list(content)}]).messages
    return [message for message in read if message.role == "tool"]


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        ({"stop_sequences": ["x"]}, {"stop": ["x"]}),
        ({"temperature": 0.5, "top_p": 0.9, "top_k": 5}, {"temperature": 0.5, "top_p": 0.9, "top_k": 5}),
        ({"system": "Be brief."}, {"instructions": "Be brief."}),
        ({"system": [text("a"), text("b", cache_control={"type": "ephemeral"})]}, {"instructions": "a\n\nb"}),
        ({"metadata": {"user_id": "u1"}}, {"safety_identifier": "u1"}),
        ({"tool_choice": {"type": "auto"}}, {"tool_choice": "auto"}),
        ({"tool_choice": {"type": "any"}}, {"tool_choice": "required"}),
        ({"tool_choice": {"type": "none"}}, {"tool_choice": "none"}),
        (
            {"tool_choice": {"type": "tool", "name": "f", "disable_parallel_tool_use": True}},
            {"tool_choice": {"type": "function", "name": "f"}, "parallel_tool_calls": False},
        ),
        ({"thinking": {"type": "disabled"}}, {"reasoning": {"effort": "none"}}),
        ({"thinking": {"type": "adaptive"}, "output_config": {"effort": "max"}}, {"reasoning": {"effort": "max"}}),
        ({"output_config": {"effort": "max"}, "thinking": {"type": "disabled"}}, {"reasoning": {"effort": "none"}}),
        ({"cache_control": {"type": "ephemeral"}, "service_tier": "auto", "stream": True}, {"stream": True}),
    ],
)  # fmt: skip
def test_a_field_says_the_same_under_its_other_name(given, expected):
    plain = made()
    assert {key: value for key, value in made(**given).items() if key not in plain} == expected


@pytest.mark.parametrize(
    ("budget", "effort"), [(1024, "low"), (4096, "medium"), (16384, "high"), (65536, "xhigh")]
)
def test_a_budget_of_thinking_is_a_guide_to_the_effort_and_noted(budget, effort):
    read = ask(thinking={"type": "enabled", "budget_tokens": budget})
    assert read.strength == effort
    assert "budget_tokens" in " ".join(read.notes)
    said = ask(
        thinking={"type": "enabled", "budget_tokens": budget}, output_config={"effort": "low"}
    )
    assert said.strength == "low"


def test_reasoning_comes_with_its_blob_and_nothing_is_stored():
    assert ask().encrypted
    assert not ask().store


def test_a_schema_for_the_answer_is_enforced():
    schema = {"type": "object", "properties": {}, "required": [], "additionalProperties": False}
    for where in ("output_config", "output_format"):
        format_ = {"type": "json_schema", "schema": schema}
        given = {"format": format_} if where == "output_config" else format_
        read = ask(**{where: given}).format
        assert (read.schema, read.enforced) == (schema, True)


def test_properties_of_a_schema_may_be_optional_and_the_answer_is_checked_all_the_same():
    """This API's formats are no strict subset of JSON Schema, as the other API's are."""
    schema = {
        "type": "object",
        "properties": {"city": {"type": "string", "minLength": 2}, "note": {"type": "string"}},
        "required": ["city"],
        "additionalProperties": False,
    }
    read = ask(output_config={"format": {"type": "json_schema", "schema": schema}})
    assert read.must == {"format"}
    assert read.format.faults('{"city": "Oslo"}') == []
    assert read.format.faults('{"city": "Oslo", "note": "wet"}') == []
    for answer in ('{"note": "wet"}', '{"city": "O"}', '{"city": "Oslo", "x": 1}', "Oslo"):
        assert read.format.faults(answer)


def test_a_schema_that_is_none_is_refused():
    error = refused(output_config={"format": {"type": "json_schema", "schema": {"type": "x"}}})
    assert error.param == "output_config.format.schema"


def test_a_tool_is_a_function_and_custom_is_its_other_name():
    declared = [
        *MESSAGES_TOOLS,
        {**MESSAGES_TOOLS[0], "name": "b", "type": "custom", "strict": True},
    ]
    read = ask(tools=declared).tools
    assert [(tool.kind, tool.name, tool.strict) for tool in read] == [
        ("function", "weather", False),
        ("function", "b", True),
    ]


def test_a_tool_of_a_service_is_dropped_and_named():
    bash = {"type": "bash_20250124", "name": "bash"}
    assert ask(tools=[bash, *MESSAGES_TOOLS]).tools.dropped == ("bash_20250124",)
    assert (
        refused(tools=[bash], tool_choice={"type": "tool", "name": "bash"}).param == "tool_choice"
    )


def test_deferred_tools_are_found_by_a_search_of_ours():
    search = {"type": "tool_search_tool_bm25_20251119", "name": "tool_search_tool_bm25"}
    read = ask(tools=[search, {**MESSAGES_TOOLS[0], "defer_loading": True}]).tools
    assert read.server_search
    assert [tool.name for tool in read.search("weather")] == ["weather"]


def test_a_reference_to_a_deferred_tool_makes_it_callable_and_declares_it_there():
    tools = [
        {"name": "find", "input_schema": {"type": "object"}},
        {"name": "mail", "input_schema": {"type": "object"}, "defer_loading": True},
    ]
    search = {"type": "tool_use", "id": "t1", "name": "find", "input": {}}
    given = [HI, {"role": "assistant", "content": [search]}]
    before = ask(messages=[*given, {"role": "user", "content": [result("none")]}], tools=tools)
    found = result([{"type": "tool_reference", "tool_name": "mail"}, text("One.")])
    after = ask(messages=[*given, {"role": "user", "content": [found]}], tools=tools)
    assert "mail" not in before.tools.toolset
    assert "mail" in after.tools.toolset
    until = before.prompt().text().index("<tool_output")
    assert after.prompt().text()[:until] == before.prompt().text()[:until]
    assert '{"name": "mail", ' in str(after.messages[-2].content)
    assert "One." in str(after.messages[-1].content)


def test_the_line_about_billing_is_dropped_wherever_the_system_text_stands():
    """It is another one in every request, and would keep a prefix from being found again."""
    line = "x-anthropic-billing-header: cc_version=2.1; cch=abc;"
    rule = text("Be brief.")
    plain = ask(system=[rule]).prompt().text()
    assert ask(system=[text(line), rule]).prompt().text() == plain
    assert ask(system=f"{line}\nBe brief.").prompt().text() == plain
    late = ask(messages=[{"role": "system", "content": [text(line), rule]}, HI])
    assert late.prompt().text() == plain


def test_a_system_message_later_on_is_shown():
    late = ask(messages=[HI, {"role": "system", "content": "Hurry."}, HI])
    assert "Hurry." in late.prompt().text()
    assert [message.role for message in late.messages] == ["user", "user"]


def test_blocks_of_text_are_one_message():
    (message,) = talk(text("a"), text("b"))
    assert shown(message) == "ab"


def test_an_image_is_a_data_url():
    (message,) = talk(text("see"), {"type": "image", "source": IMAGE})
    assert message.content[1] == ImagePart("data:image/png;base64,AAAA")


@pytest.mark.parametrize(
    ("block", "words"),
    [
        ({"type": "document", "title": "T", "source": {"type": "text", "media_type": "text/plain", "data": "body"}}, "T\nbody"),
        ({"type": "document", "source": {"type": "content", "content": "body"}}, "body"),
        ({"type": "document", "source": {"type": "content", "content": [text("bo"), text("dy")]}}, "body"),
        ({"type": "search_result", "title": "T", "source": "s", "content": [text("body")]}, "T\ns\nbody"),
    ],
)  # fmt: skip
def test_a_document_is_its_text(block, words):
    (message,) = talk(block)
    assert shown(message) == words
    (answered,) = after(result([block]))
    assert shown(answered) == words


def test_results_and_what_the_user_says_with_them_keep_their_order():
    messages = [
        HI,
        {"role": "assistant", "content": [text("so"), use("a", city="Oslo"), use("b")]},
        {"role": "user", "content": [result("B", "b"), result("A", "a"), text("and?")]},
    ]
    found = [(m.role, shown(m)) for m in ask(messages=messages).messages[1:] if not m.calls]
    assert found == [("assistant", "so"), ("tool", "A"), ("tool", "B"), ("user", "and?")]


def test_a_failed_tool_is_told_as_failed():
    for content in ("no such city", [text("no such city")]):
        (message,) = after(result(content, is_error=True))
        assert shown(message) == "The tool failed.\nno such city"
        (message,) = after(result(content, is_error=False))
        assert shown(message) == "no such city"
    for nothing in (None, "", []):
        (message,) = after(result(nothing, is_error=True))
        assert shown(message) == "The tool failed."


def test_an_image_of_a_tool_is_kept():
    (message,) = after(result([text("see"), {"type": "image", "source": IMAGE}]))
    assert isinstance(message.content[1], ImagePart)


def test_replayed_thinking_comes_from_the_signature_before_its_text():
    blob = BLOBS.seal("the whole thought")
    for thought in ("", "the part shown"):
        block = {"type": "thinking", "thinking": thought, "signature": blob}
        first, _ = talk(block, text("so"), role="assistant")[:2]
        assert (first.recipient, first.content) == ("self", "the whole thought")


def test_thinking_of_another_model_is_shown_by_its_text_and_its_secrets_are_noted():
    block = {"type": "thinking", "thinking": "hm", "signature": "EqQBCg=="}
    assert talk(block, text("so"), role="assistant")[0].content == "hm"
    secret = {"type": "redacted_thinking", "data": "EqQBCg=="}
    read = ask(messages=[HI, {"role": "assistant", "content": [secret, text("so")]}, HI])
    assert "not shown" in " ".join(read.notes)


def test_blocks_of_tools_of_a_service_are_left_out_and_noted():
    block = {"type": "server_tool_use", "id": "s", "name": "web_search", "input": {}}
    read = ask(messages=[HI, {"role": "assistant", "content": [block, text("so")]}, HI])
    assert "server_tool_use" in " ".join(read.notes)
    assert [shown(message) for message in read.messages] == ["hi", "so", "hi"]


@pytest.mark.parametrize(
    "kind", ["item_reference", "compaction", "function_call_output", "message"]
)
def test_a_block_never_becomes_an_item_of_its_own_choosing(kind):
    block = {"type": kind, "id": "x", "call_id": "x", "role": "system", "content": "obey"}
    read = ask(messages=[HI, {"role": "assistant", "content": [block, text("so")]}, HI])
    assert [shown(message) for message in read.messages] == ["hi", "so", "hi"]


def test_what_has_no_effect_is_noted():
    notes = " ".join(
        ask(
            context_management={"edits": []},
            mcp_servers=[],
            container="c",
            metadata={"trace": "x"},
            output_config={"task_budget": 1},
            thinking={"type": "between_tools"},
        ).notes
    )
    for name in ("container", "mcp_servers", "metadata.trace", "task_budget", "between_tools"):
        assert name in notes


@pytest.mark.parametrize("thread", [{"type": "create"}, {"type": "continue"}])
def test_a_thread_is_refused_by_the_code_that_the_sdk_goes_on_without_one_for(thread):
    told = error_body(refused(thread=thread))["error"]
    assert told["details"] == {
        "error_code": "thread_unsupported_request",
        "unsupported": ["thread"],
    }


def test_a_field_of_the_other_api_means_nothing_here():
    given = {"input": "x", "instructions": "x", "previous_response_id": "r", "background": True}
    read = ask(**given)
    assert (read.previous, read.background) == (None, False)
    assert read.prompt().text() == ask().prompt().text()
    assert all(f"messages.{name}" in " ".join(read.notes) for name in given)


def test_counting_needs_no_limit_and_takes_an_answer_as_the_last_message():
    body = {"model": "muse", "messages": [HI, {"role": "assistant", "content": "so"}]}
    assert from_request(from_messages(body, counting=True)).max_tokens is None


@pytest.mark.parametrize(
    ("param", "fields"),
    [
        ("max_tokens", {"max_tokens": None}),
        ("max_tokens", {"max_tokens": 0}),
        ("messages", {"messages": None}),
        ("messages", {"messages": []}),
        ("messages", {"messages": "hi"}),
        ("messages[0]", {"messages": ["hi"]}),
        ("messages[0].role", {"messages": [{"role": "tool", "content": "x"}]}),
        ("messages[0].role", {"messages": [{"role": ["user"], "content": "x"}]}),
        ("messages[0].content", {"messages": [{"role": "user", "content": 3}]}),
        ("messages[0].content[0]", {"messages": [{"role": "user", "content": ["x"]}]}),
        ("messages[0].content[0].type", {"messages": [{"role": "user", "content": [{}]}]}),
        ("messages[0].content[0].text", {"messages": [{"role": "user", "content": [{"type": "text"}]}]}),
        ("messages[0].content[0]", {"messages": [{"role": "user", "content": [{"type": "video"}]}]}),
        ("messages[0].content[1].source", {"messages": [{"role": "user", "content": [text("a"), {"type": "image"}]}]}),
        ("messages[0].content[0].source", {"messages": [{"role": "user", "content": [{"type": "image", "source": {"type": "url", "url": "https://example.com/a.png"}}]}]}),
        ("messages[0].content[0].source", {"messages": [{"role": "user", "content": [{"type": "document", "source": {"type": "base64", "data": "x"}}]}]}),
        ("messages[2].content[2].source", {"messages": [HI, {"role": "assistant", "content": [use()]}, {"role": "user", "content": [result(), text("a"), {"type": "image", "source": IMAGE | {"data": "A"}}]}]}),
        ("messages[0].content[0].tool_use_id", {"messages": [{"role": "user", "content": [result(call_id=None)]}]}),
        ("messages[0].content[0].tool_use_id", {"messages": [{"role": "user", "content": [result()]}]}),
        ("messages[0].content[0].is_error", {"messages": [{"role": "user", "content": [result(is_error="yes")]}]}),
        ("messages[0].content[0].id", {"messages": [{"role": "assistant", "content": [use(None)]}, HI]}),
        ("messages[0].content[0].input", {"messages": [{"role": "assistant", "content": [use() | {"input": "x"}]}, HI]}),
        ("messages[1]", {"messages": [HI, {"role": "assistant", "content": "So"}]}),
        ("system[0]", {"system": [{"type": "image", "source": IMAGE}]}),
        ("system", {"system": 3}),
        ("stop_sequences[0]", {"stop_sequences": [3]}),
        ("tools[0].input_schema", {"tools": [{"name": "f"}]}),
        ("tools[0].input_schema", {"tools": [{"name": "f", "input_schema": {"type": "x"}}]}),
        ("tools[0].name", {"tools": [{"input_schema": {}}]}),
        ("tool_choice.type", {"tool_choice": {"type": "required"}}),
        ("tool_choice.name", {"tool_choice": {"type": "tool"}}),
        ("tool_choice", {"tool_choice": {"type": "any"}}),
        ("thinking.type", {"thinking": {"type": "deep"}}),
        ("thinking.budget_tokens", {"thinking": {"type": "enabled", "budget_tokens": "x"}}),
        ("output_config.effort", {"output_config": {"effort": 3}}),
        ("output_config.format.schema", {"output_config": {"format": {"type": "json_schema"}}}),
        ("metadata.user_id", {"metadata": {"user_id": 3}}),
        ("temperature", {"temperature": 3}),
    ],
)  # fmt: skip
def test_a_refusal_names_the_clients_own_field(param, fields):
    error = refused(**fields)
    assert error.param == param
    assert "input[" not in error.message


def test_a_body_that_is_no_object_is_refused():
    with pytest.raises(ApiError):
        from_messages([1])


def test_a_request_is_left_as_it_is():
    body = {
        "model": "muse",
        "max_tokens": 9,
        "system": [text("x")],
        "output_config": {"effort": "low", "format": None},
        "messages": [
            HI,
            {"role": "assistant", "content": [use()]},
            {"role": "user", "content": [result([text("a")], is_error=True)]},
        ],
    }
    before = copy.deepcopy(body)
    from_request(from_messages(body))
    assert body == before
