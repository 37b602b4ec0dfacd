"""What is asked for and not done, the date, and the tokens that are known before the answer."""

from __future__ import annotations

import json
import logging
import re
from dataclasses import replace
from datetime import UTC, datetime

import openai
import pytest
from websockets.sync.client import connect

from atem.errors import OptionError
from atem.server.noting import LONGEST, plain
from atem.server.settings import Settings
from atem.testing.scripted import ScriptedEngine
from tests.server.running import HELLO, MODEL, running

USER = [{"role": "user", "content": "Hi"}]
PATHS = {
    "/v1/responses": {"input": "Hi"},
    "/v1/chat/completions": {"messages": USER},
    "/v1/messages": {"messages": USER, "max_tokens": 99},
}


@pytest.fixture(scope="module")
def served():
    with running(lambda request: HELLO) as server:
        yield server


@pytest.mark.parametrize("stream", [False, True])
@pytest.mark.parametrize("path", PATHS)
def test_what_has_no_effect_is_named_in_a_header_and_in_the_log(served, path, stream, caplog):
    body = {"model": MODEL, "stream": stream, "wishes": "three of them", **PATHS[path]}
    with caplog.at_level(logging.INFO, "atem.server"):
        answered = served.http.post(path, json=body)
    assert answered.status_code == 200
    assert answered.headers["x-atem-notes"] == "'wishes' is no field of a request"
    (line,) = [entry.getMessage() for entry in caplog.records if "not done" in entry.getMessage()]
    assert "'wishes' is no field of a request" in line
    assert "three of them" not in line


@pytest.fixture(scope="module")
def made(served):
    return served.create(background=True).json()["id"]


@pytest.mark.parametrize("path", ["", "/input_items"])
@pytest.mark.parametrize("key", ["include", "include[]", "include[0]"])
def test_an_include_of_reading_is_named_with_the_known_ones(served, made, key, path):
    query = [(key, "reasoning.encrypted_content"), (key, "wishes"), ("limit", "5")]
    answered = served.http.get(f"/v1/responses/{made}{path}", params=query)
    assert answered.status_code == 200
    assert answered.headers["x-atem-notes"] == "; ".join(
        f"include {name!r} has no effect: a response is read as it was made"
        for name in ("reasoning.encrypted_content", "wishes")
    )


def test_it_is_named_to_the_sdk_too_and_for_a_stream(served, made, caplog):
    with openai.OpenAI(base_url=served.url, api_key="none", max_retries=0) as client:
        retrieve = client.responses.with_raw_response.retrieve
        with caplog.at_level(logging.INFO, "atem.server"):
            answered = retrieve(made, include=["file_search_call.results"])
        streamed = served.http.get(
            f"/v1/responses/{made}", params={"stream": "true", "include_obfuscation": "true"}
        )
    assert "include 'file_search_call.results'" in answered.headers["x-atem-notes"]
    assert any("file_search_call.results" in entry.getMessage() for entry in caplog.records)
    assert streamed.headers["x-atem-notes"].startswith("include_obfuscation has no effect")
    assert b"response.completed" in streamed.content


def test_nothing_is_said_of_a_response_that_is_read_without(served, made):
    assert "x-atem-notes" not in served.http.get(f"/v1/responses/{made}").headers


def test_what_an_engine_lacks_is_named_too():
    engine = ScriptedEngine(lambda request: HELLO)
    engine.info = replace(engine.info, features=engine.info.features - {"seed"})
    with running(engine) as server:
        answered = server.create(seed=5)
    assert answered.headers["x-atem-notes"] == "seed has no effect: the engine lacks seed"


def test_on_a_websocket_it_is_in_the_log(served, caplog):
    frame = {"type": "response.create", "model": MODEL, "input": "Hi", "logit_bias": {"5": 1}}
    with (
        caplog.at_level(logging.INFO, "atem.server"),
        connect(served.url.replace("http", "ws") + "/responses", proxy=None) as socket,
    ):
        socket.send(json.dumps(frame))
        while json.loads(socket.recv(10))["type"] != "response.completed":
            pass
    assert any("logit_bias has no effect" in entry.getMessage() for entry in caplog.records)


def test_nothing_is_said_where_everything_was_done(served):
    assert not [name for name in served.create().headers if name.startswith("x-atem")]


def test_a_long_note_ends_in_dots_and_holds_no_line_break():
    assert plain("a\r\nx-evil: 1\x00é") == "a??x-evil: 1??"
    assert plain("x" * 5000) == "x" * (LONGEST - 3) + "..."


def told_date(settings, **fields):
    with running(lambda request: HELLO, **settings) as server:
        before = datetime.now(UTC).date().isoformat()
        assert server.create(**fields).status_code == 200
        prompt = server.engine.requests[-1].prompt.text()
    return before, re.findall(r"Current date: (\S+)\.", prompt)


def test_the_model_is_told_the_date_of_today():
    before, (said,) = told_date({})
    assert said in (before, datetime.now(UTC).date().isoformat())


def test_a_date_can_be_fixed_and_left_to_the_template():
    assert told_date({"current_date": "2031-02-03"})[1] == ["2031-02-03"]
    assert told_date({"current_date": "off"})[1] == ["2026-08-10"]


def test_a_system_text_of_the_client_has_no_date_in_it():
    assert told_date({}, instructions="Be brief.")[1] == []


def test_what_is_no_date_is_refused_at_the_start():
    for odd in ("tomorrow", "20260810", "2026-W33-1"):
        with pytest.raises(OptionError, match=f"current_date='{odd}'"):
            Settings(current_date=odd)


class Counting:
    """A tokenizer that counts how often it encodes."""

    def __init__(self, tokenizer):
        self.tokenizer, self.encoded = tokenizer, []

    def __getattr__(self, name):
        return getattr(self.tokenizer, name)

    def encode(self, text):
        self.encoded.append(text)
        return self.tokenizer.encode(text)


@pytest.mark.parametrize("path", PATHS)
def test_a_prompt_is_encoded_once_whoever_wants_its_ids(path):
    engine = ScriptedEngine(lambda request: HELLO)
    with running(engine) as server:
        engine.tokenizer = counting = Counting(engine.tokenizer)
        said = [{"role": "user", "content": "a marked word"}]
        key = "input" if "input" in PATHS[path] else "messages"
        server.http.post(path, json={"model": MODEL, **PATHS[path], key: said, "stream": True})
    assert sum("a marked word" in text for text in counting.encoded) == 1


def test_a_message_starts_with_the_tokens_of_its_prompt(served):
    body = {"model": MODEL, **PATHS["/v1/messages"]}
    counted = served.http.post("/v1/messages/count_tokens", json=body).json()["input_tokens"]
    raw = served.http.post("/v1/messages", json={**body, "stream": True}).text
    start = json.loads(raw.partition("data: ")[2].partition("\n")[0])
    assert start["message"]["usage"]["input_tokens"] == counted > 0
