"""A chat request becomes the create body that asks the same; refusals speak of the chat's fields."""

from __future__ import annotations

import copy

import pytest
from openai.types.responses import response_create_params
from pydantic import TypeAdapter

import atem
from atem.render.chat import from_chat as rendered
from atem.responses.chat import from_chat, in_chat
from atem.responses.faults import ApiError
from atem.responses.request import from_request
from tests.responses.projections.told import CHAT_TOOLS

HI = {"role": "user", "content": "hi"}
PNG = "data:image/png;base64,AAAA"
CREATE = TypeAdapter(response_create_params.ResponseCreateParamsNonStreaming)


def made(**fields):
    return from_chat({"model": "muse", "messages": [HI], **fields})


def ask(**fields):
    return from_request(made(**fields))


def asked(body):
    """As a server asks: errors are in the words of the client."""
    try:
        from_request(from_chat(body))
    except ApiError as error:
        raise in_chat(error, body) from error


def refused(**fields):
    with pytest.raises(ApiError) as caught:
        asked({"model": "muse", "messages": [HI], **fields})
    assert caught.value.status == 400
    return caught.value


def call(name="weather", call_id="c1", arguments='{"city": "Oslo"}'):
    function = {"name": name, "arguments": arguments}
    return {"id": call_id, "type": "function", "function": function}


def result(content="ok", call_id="c1"):
    return {"role": "tool", "tool_call_id": call_id, "content": content}


TALKS = {
    "one question": [HI],
    "system": [{"role": "system", "content": "Be brief."}, HI],
    "parts": [
        {"role": "user", "content": [{"type": "text", "text": "a"}, {"type": "text", "text": "b"}]}
    ],
    "answer": [HI, {"role": "assistant", "content": "hello"}, HI],
    "reasoning": [HI, {"role": "assistant", "content": "hello", "reasoning_content": "greet"}, HI],
    "call": [HI, {"role": "assistant", "content": None, "tool_calls": [call()]}, result()],
    "text and call": [
        HI,
        {"role": "assistant", "content": "so", "reasoning": "why", "tool_calls": [call()]},
        result([{"type": "text", "text": "x"}]),
        HI,
    ],
    "two calls": [
        HI,
        {"role": "assistant", "content": "", "tool_calls": [call(), call(call_id="c2")]},
        result("one"),
        result("two", "c2"),
    ],
    "refusal": [HI, {"role": "assistant", "content": None, "refusal": "I won't."}, HI],
    "null": [HI, {"role": "assistant", "content": None}, HI],
}


@pytest.mark.parametrize("name", TALKS)
def test_a_chat_renders_to_the_prompt_that_its_messages_are(name):
    """Both readings of a chat that atem has give the model the same tokens."""
    talk = TALKS[name] if name != "null" else [HI, HI]
    expected = atem.render(rendered(talk), tools=CHAT_TOOLS)
    assert ask(messages=TALKS[name], tools=CHAT_TOOLS).prompt().text() == expected.text()


@pytest.mark.parametrize("name", TALKS)
def test_the_body_is_one_that_openais_own_client_could_send(name):
    body = made(
        messages=TALKS[name],
        tools=CHAT_TOOLS,
        tool_choice={"type": "function", "function": {"name": "weather"}},
        max_tokens=9,
        reasoning_effort="low",
        response_format={"type": "json_object"},
        logprobs=True,
        top_logprobs=2,
        temperature=0.5,
    )
    for number, item in enumerate(body["input"]):
        if item["type"] == "reasoning" or item.get("role") == "assistant":
            item |= {"id": f"id_{number}", "status": "completed"}  # wanted there; we don't
    for tool in body["tools"]:
        tool.setdefault("strict", None)
    CREATE.validate_python(body)


def test_results_find_their_calls_by_id():
    talk = [
        HI,
        {"role": "assistant", "tool_calls": [call(call_id="a"), call(call_id="b")]},
        result("of b", "b"),
        result("of a", "a"),
    ]
    found = [(m.call_id, m.content) for m in ask(messages=talk).messages if m.role == "tool"]
    assert found == [("a", "of a"), ("b", "of b")]


def test_a_result_of_a_custom_call_is_one_of_that_kind():
    custom = {"id": "c1", "type": "custom", "custom": {"name": "patch", "input": "text"}}
    body = made(messages=[HI, {"role": "assistant", "tool_calls": [custom]}, result()])
    kinds = [item["type"] for item in body["input"]]
    assert kinds == ["message", "custom_tool_call", "custom_tool_call_output"]
    assert from_request(body).messages[1].calls[0].arguments == {"input": "text"}


def test_an_image_and_a_file_become_parts_of_the_same_meaning():
    file = {"filename": "a.txt", "file_data": "data:text/plain;base64,aGk="}
    content = [
        {"type": "image_url", "image_url": {"url": PNG, "detail": "low"}},
        {"type": "image_url", "image_url": PNG},
        {"type": "file", "file": file},
    ]
    (item,) = made(messages=[{"role": "user", "content": content}])["input"]
    assert item["content"] == [
        {"type": "input_image", "image_url": PNG, "detail": "low"},
        {"type": "input_image", "image_url": PNG, "detail": "auto"},
        {"type": "input_file", **file},
    ]


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        ({"max_completion_tokens": 7}, {"max_output_tokens": 7}),
        ({"max_tokens": 7}, {"max_output_tokens": 7}),
        ({"max_tokens": 7, "max_completion_tokens": 7}, {"max_output_tokens": 7}),
        ({"reasoning_effort": "low"}, {"reasoning": {"effort": "low"}}),
        ({"reasoning": {"effort": "low"}}, {"reasoning": {"effort": "low"}}),
        (
            {"reasoning": {"effort": "low"}, "reasoning_effort": "high"},
            {"reasoning": {"effort": "high"}},
        ),
        ({"verbosity": "low"}, {"text": {"verbosity": "low"}}),
        (
            {"logprobs": True, "top_logprobs": 3},
            {"include": ["message.output_text.logprobs"], "top_logprobs": 3},
        ),
        ({"n": 1, "stop": "x", "seed": 3}, {"stop": "x", "seed": 3}),
        ({"modalities": ["text"], "temperature": None}, {}),
        ({"logprobs": False, "top_logprobs": 0}, {}),
        ({"functions": [], "tool_choice": "none"}, {"tool_choice": "none"}),
    ],
)
def test_a_field_says_the_same_under_its_other_name(given, expected):
    plain = made()
    assert {key: value for key, value in made(**given).items() if key not in plain} == expected


def test_the_form_of_the_answer_is_its_text_format():
    schema = {"type": "object", "properties": {}, "required": [], "additionalProperties": False}
    named = {"name": "out", "schema": schema, "strict": True}
    format_ = ask(response_format={"type": "json_schema", "json_schema": named}).format
    assert (format_.kind, format_.name, format_.strict) == ("json_schema", "out", True)
    assert ask(response_format={"type": "json_object"}).format.kind == "json_object"
    assert ask(response_format={"type": "text"}, verbosity="low").format.kind == "text"


def test_tools_and_choices_lose_their_nesting():
    grammar = {"syntax": "regex", "definition": "a+"}
    custom = {"name": "patch", "format": {"type": "grammar", "grammar": grammar}}
    allowed = {"mode": "required", "tools": [CHAT_TOOLS[0], {"type": "custom", "custom": custom}]}
    body = made(
        tools=[*CHAT_TOOLS, {"type": "custom", "custom": custom}],
        tool_choice={"type": "allowed_tools", "allowed_tools": allowed},
    )
    assert body["tools"][0] == CHAT_TOOLS[0]["function"] | {"type": "function"}
    assert body["tools"][1]["format"] == {"type": "grammar", **grammar}
    assert [entry["name"] for entry in body["tool_choice"]["tools"]] == ["weather", "patch"]
    assert body["tool_choice"]["mode"] == "required"


@pytest.mark.parametrize(
    ("choice", "mode"),
    [
        ("auto", "auto"),
        ("none", "none"),
        ("required", "required"),
        ({"type": "function", "function": {"name": "weather"}}, "named"),
        (
            {"type": "allowed_tools", "allowed_tools": {"mode": "auto", "tools": CHAT_TOOLS}},
            "allowed",
        ),
    ],
)
def test_every_form_of_tool_choice_is_read(choice, mode):
    assert ask(tools=CHAT_TOOLS, tool_choice=choice).choice.mode == mode


def test_what_has_no_effect_is_noted():
    notes = " ".join(
        ask(
            store=True,
            prediction={"type": "content", "content": "x"},
            web_search_options={},
            logit_bias={"5": 1},
            top_a=0.5,
            enable_thinking=True,
        ).notes
    )
    for name in ("store", "prediction", "logit_bias", "top_a", "enable_thinking"):
        assert name in notes


def test_a_field_of_the_other_api_means_nothing_here():
    """``previous_response_id`` in a chat must not make it go on from a stored response."""
    given = {
        "input": "other",
        "instructions": "x",
        "previous_response_id": "resp_1",
        "background": True,
        "include": ["reasoning.encrypted_content"],
        "text": {"format": {"type": "json_object"}},
    }
    read = ask(**given)
    assert (read.previous, read.background, read.encrypted) == (None, False, False)
    assert read.prompt().text() == ask().prompt().text()
    assert all(f"chat.{name}" in " ".join(read.notes) for name in given)


def test_nothing_is_stored():
    assert not ask(store=True).store
    assert not ask().store


LEGACY = {"role": "assistant", "content": None, "function_call": {"name": "f", "arguments": ""}}


@pytest.mark.parametrize(
    ("param", "fields"),
    [
        ("n", {"n": 2}),
        ("functions", {"functions": [{"name": "f"}]}),
        ("function_call", {"function_call": "auto"}),
        ("audio", {"audio": {"voice": "x", "format": "wav"}}),
        ("modalities", {"modalities": ["text", "audio"]}),
        ("max_tokens", {"max_tokens": 1, "max_completion_tokens": 2}),
        ("max_tokens", {"max_tokens": 0}),
        ("top_logprobs", {"top_logprobs": 2}),
        ("logprobs", {"logprobs": 3}),
        ("temperature", {"temperature": 9}),
        ("reasoning_effort", {"reasoning_effort": 3}),
        ("verbosity", {"verbosity": "much"}),
        ("response_format.type", {"response_format": {"type": "xml"}}),
        ("response_format.json_schema.schema", {"response_format": {"type": "json_schema", "json_schema": {"name": "a"}}}),
        ("stream_options", {"stream_options": 1}),
        ("stream_options.include_usage", {"stream_options": {"include_usage": 1}}),
        ("tool_choice", {"tool_choice": "required"}),
        ("tools[0].function.name", {"tools": [{"type": "function", "function": {}}]}),
        ("tools[0].function.parameters", {"tools": [{"type": "function", "function": {"name": "f", "parameters": {"type": "x"}}}]}),
        ("tools[0]", {"tools": [{"type": "tool_search", "execution": "client"}]}),
        ("messages", {"messages": None}),
        ("messages", {"messages": []}),
        ("messages", {"messages": "hi"}),
        ("messages[0]", {"messages": ["hi"]}),
        ("messages[0].role", {"messages": [{"content": "hi"}]}),
        ("messages[0].role", {"messages": [{"role": "robot"}]}),
        ("messages[0].role", {"messages": [{"role": "function", "name": "f", "content": ""}]}),
        ("messages[1].function_call", {"messages": [HI, LEGACY]}),
        ("messages[0].audio", {"messages": [{"role": "assistant", "audio": {"id": "a"}}]}),
        ("messages[0]", {"messages": [{"role": "assistant", "reasoning": "a", "thinking": "b"}]}),
        ("messages[0].tool_calls[0].id", {"messages": [{"role": "assistant", "tool_calls": [call(call_id=None)]}]}),
        ("messages[0].tool_calls[0].function", {"messages": [{"role": "assistant", "tool_calls": [{"id": "c"}]}]}),
        ("messages[0].tool_calls[0].type", {"messages": [{"role": "assistant", "tool_calls": [{"id": "c", "type": "x"}]}]}),
        ("messages[0].tool_call_id", {"messages": [{"role": "tool", "content": "x"}]}),
        ("messages[1].tool_call_id", {"messages": [HI, result()]}),
        ("messages[2].content[0]", {"messages": [HI, {"role": "assistant", "tool_calls": [call()]}, {"role": "user", "content": [{"type": "input_audio"}]}]}),
        ("messages[0].content[0].image_url", {"messages": [{"role": "user", "content": [{"type": "image_url", "image_url": {"url": "https://example.com/a.png"}}]}]}),
    ],
)  # fmt: skip
def test_a_refusal_names_the_clients_own_field(param, fields):
    error = refused(**fields)
    assert error.param == param
    assert "input[" not in error.message


def test_a_refusal_of_the_old_forms_says_what_to_send():
    assert "tools" in refused(functions=[{"name": "f"}]).message
    assert "tool_calls" in refused(messages=[LEGACY]).message
    assert "tool_call_id" in refused(messages=[{"role": "function"}]).message


def test_a_body_that_is_no_object_is_refused():
    with pytest.raises(ApiError):
        from_chat([1])


def test_a_request_is_left_as_it_is():
    body = {"model": "muse", "messages": TALKS["two calls"], "tools": CHAT_TOOLS}
    before = copy.deepcopy(body)
    from_request(from_chat(body))
    assert body == before
