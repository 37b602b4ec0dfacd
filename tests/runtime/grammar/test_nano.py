"""A real model, small as it is, under what requests ask: by itself and behind ``atem-serve``."""

from __future__ import annotations

import json
import re
from functools import cache

import httpx2
import jsonschema
import pytest

import atem
from atem.responses.answer import answer, new_builder
from atem.responses.request import from_request
from tests.server.process import Process

SCHEMA = {
    "type": "object",
    "properties": {
        "answer": {"type": "string", "maxLength": 30},
        "sure": {"type": "boolean"},
        "digits": {"type": "array", "items": {"type": "integer", "minimum": 0, "maximum": 9}, "maxItems": 2},
    },
    "required": ["answer", "sure", "digits"],
    "additionalProperties": False,
}  # fmt: skip
FORMAT = {"format": {"type": "json_schema", "name": "sum", "schema": SCHEMA, "strict": True}}
SUM = "What is 12 + 30?"


def tool(name, key, **schema):
    parameters = {
        "type": "object", "properties": {key: {"type": "string", **schema}}, "required": [key],
        "additionalProperties": False,
    }  # fmt: skip
    return {"type": "function", "name": name, "parameters": parameters, "description": name}


CALCULATE = tool("calculate", "expression")
READ = tool("read_file", "path", pattern="^[a-z]{1,8}\\.txt$")
COUNT = tool("count", "unit", enum=["words", "lines"])


@cache
def nano():
    return atem.load("nano")


def ask(said=SUM, **body):
    common = {"model": "nano", "input": said, "max_output_tokens": 300, "temperature": 0}
    made = from_request({**common, **body})
    builder = new_builder(made, created_at=0)
    for _ in answer(made, nano(), builder, clock=lambda: 1, retries=0):
        pass
    return builder.response


def items(response, kind):
    return [item for item in response["output"] if item["type"] == kind]


def text(response):
    (message,) = items(response, "message")
    return message["content"][0]["text"]


@pytest.mark.parametrize("sampling", [{}, {"temperature": 1.0, "seed": 5, "top_k": 0}])
def test_a_question_is_answered_in_the_form_that_was_asked_for(sampling):
    response = ask(text=FORMAT, **sampling)
    assert response["status"] == "completed"
    jsonschema.validate(json.loads(text(response)), SCHEMA)
    assert items(response, "reasoning")


def test_without_a_grammar_it_answers_in_words():
    with pytest.raises(ValueError, match="Expecting"):
        json.loads(text(ask("Hello!")))


@pytest.mark.parametrize("wanted", [READ, COUNT, CALCULATE])
def test_a_named_tool_is_called_with_arguments_that_fit(wanted):
    choice = {"type": "function", "name": wanted["name"]}
    response = ask(tools=[CALCULATE, READ, COUNT], tool_choice=choice)
    (call,) = items(response, "function_call")
    assert call["name"] == wanted["name"]
    jsonschema.validate(json.loads(call["arguments"]), wanted["parameters"])
    assert not items(response, "message")


def test_one_of_several_has_to_be_called_and_the_model_chooses_which():
    response = ask(tools=[READ, CALCULATE], tool_choice="required", parallel_tool_calls=False)
    (call,) = items(response, "function_call")
    assert (call["name"], json.loads(call["arguments"])) == ("calculate", {"expression": "12 + 30"})
    assert response["output"][0]["type"] == "reasoning"


def test_a_tool_that_must_not_be_called_is_not():
    assert items(ask(tools=[CALCULATE], tool_choice="auto"), "function_call")
    response = ask(tools=[CALCULATE], tool_choice="none")
    assert not items(response, "function_call")
    assert "tried to call" not in text(response)


def test_with_tools_and_a_form_it_may_call_first():
    response = ask(text=FORMAT, tools=[CALCULATE])
    (call,) = items(response, "function_call")
    output = {"type": "function_call_output", "call_id": call["call_id"], "output": "42"}
    said = [{"role": "user", "content": SUM}, *response["output"], output]
    jsonschema.validate(json.loads(text(ask(said, text=FORMAT, tools=[CALCULATE]))), SCHEMA)


def test_a_custom_tool_gets_a_text_of_its_language():
    form = {"type": "grammar", "syntax": "regex", "definition": "[a-z]{2,4}-[0-9]{3}"}
    custom = {"type": "custom", "name": "code", "format": form}
    (call,) = items(ask(tools=[custom], tool_choice="required"), "custom_tool_call")
    assert re.fullmatch("[a-z]{2,4}-[0-9]{3}", call["input"])


def test_json_that_is_cut_is_incomplete_and_counted():
    whole = ask(text=FORMAT)
    limit = whole["usage"]["output_tokens"] - 4
    response = ask(text=FORMAT, max_output_tokens=limit)
    assert response["status"] == "incomplete"
    assert response["incomplete_details"] == {"reason": "max_output_tokens"}
    assert response["usage"]["output_tokens"] == limit
    assert items(response, "message")[0]["status"] == "incomplete"
    assert text(whole).startswith(text(response))


@pytest.mark.slow
def test_a_strict_format_and_a_forced_call_through_the_server():
    with Process("--engine", "nano", ATEM_SERVE_STORE="memory") as served:

        def post(**body):
            asked = {"model": "nano", "input": SUM, "max_output_tokens": 300, **body}
            return httpx2.post(f"{served.url}/responses", json=asked, timeout=30)

        response = post(text=FORMAT).json()
        assert response["status"] == "completed", response
        jsonschema.validate(json.loads(text(response)), SCHEMA)
        streamed = post(text=FORMAT, stream=True).text
        assert (
            json.loads(streamed.rpartition("data: ")[2])["response"]["output"][-1]["content"]
            == (items(response, "message")[0]["content"])
        )
        (call,) = items(post(tools=[READ, COUNT], tool_choice="required").json(), "function_call")
        assert call["name"] in ("read_file", "count")
        lookahead = {"type": "string", "pattern": "(?=a)b"}
        schema = {**SCHEMA, "properties": {"answer": lookahead}, "required": ["answer"]}
        refused = post(text={"format": {**FORMAT["format"], "schema": schema}}, stream=True)
        assert refused.status_code == 400
        assert refused.json()["error"]["code"] == "invalid_json_schema"
        assert "look-around" in refused.json()["error"]["message"]
