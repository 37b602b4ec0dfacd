"""Logs, errors and metrics hold no word of a conversation, and no key.

Rules: one word goes in everywhere a client can put one, at the level of logs
that tells most, and is then looked for. Source: responses.md 2 (T16), 5.
"""

from __future__ import annotations

import json
import logging

import httpx2
import pytest
from websockets.sync.client import connect

from atem.errors import EngineError
from atem.server.store.memory import MemoryStore
from tests.runtime.remote.asking import engine, hasty
from tests.runtime.remote.wires import as_json, wires
from tests.server.process import Process
from tests.server.running import HELLO, Broken, block, invoke, running, types

WORD = "sesame"
KEY = "atem-test-key-0123456789"
UPSTREAM_KEY = "atem-upstream-key-0123456789"

TOOL = {"type": "function", "name": "open", "description": WORD, "parameters": {"type": "object"}}
CHAT_TOOL = {"type": "function", "function": {"name": "open", "description": WORD}}
SAID = [{"role": "user", "content": WORD}]
REQUESTS = {
    "plain": ("responses", {"input": WORD, "instructions": WORD, "user": WORD}),
    "items": (
        "responses",
        {
            "input": [
                *SAID,
                {"type": "reasoning", "summary": [{"type": "summary_text", "text": WORD}]},
                {"type": "function_call", "name": "open", "call_id": "c", "arguments": WORD},
                {"type": "function_call_output", "call_id": "c", "output": WORD},
            ],
            "tools": [TOOL],
            "metadata": {"note": WORD},
        },
    ),
    "a stream": ("responses", {"input": WORD, "stream": True}),
    "in the background": ("responses", {"input": WORD, "background": True}),
    "counted": ("responses/input_tokens", {"input": WORD}),
    "compacted": ("responses/compact", {"input": SAID}),
    "a conversation": ("conversations", {"items": SAID, "metadata": {"note": WORD}}),
    "a chat": ("chat/completions", {"messages": SAID, "tools": [CHAT_TOOL]}),
    "a chat's stream": ("chat/completions", {"messages": SAID, "stream": True}),
    "a message": ("messages", {"messages": SAID, "system": WORD, "max_tokens": 50}),
    "a message's count": ("messages/count_tokens", {"messages": SAID}),
    "a wrong role": ("chat/completions", {"messages": [{"role": WORD, "content": WORD}]}),
    "a wrong value": ("responses", {"input": WORD, "temperature": WORD}),
    "a wrong item": ("responses", {"input": [{"type": "item_reference", "id": WORD}]}),
    "an unknown id": ("responses", {"input": WORD, "previous_response_id": WORD}),
    "an unknown model": ("responses", {"input": WORD, "model": WORD}),
    "no JSON": ("responses", WORD),
}

ANSWER = block(invoke("open", door=WORD), invoke("shut", door=WORD), to="open")
SCRIPT = {"turns": [{"write": f" to=self<|message|>{WORD}<|eom|><|start|>assistant{ANSWER}"}]}


def ask(http, path, body):
    if isinstance(body, str):
        return http.post(path, content=body, headers={"content-type": "application/json"})
    return http.post(path, json={"model": "scripted", **body})


@pytest.fixture(scope="module")
def told(tmp_path_factory):
    """Everything that a server wrote while all of that was asked of it, and its metrics."""
    folder = tmp_path_factory.mktemp("privacy")
    (folder / "script.json").write_text(json.dumps(SCRIPT))
    options = ("--engine", f"scripted:{folder / 'script.json'}", "--log-level", "debug")
    store = ("--store-path", str(folder / "store.db"))
    with Process(*options, *store, ATEM_SERVE_API_KEY=KEY) as process:
        headers = {"authorization": f"Bearer {KEY}"}
        with httpx2.Client(base_url=process.url, headers=headers, trust_env=False) as http:
            answers = {name: ask(http, *asked) for name, asked in REQUESTS.items()}
            http.get(f"/{WORD}?{WORD}={WORD}")
            http.get(f"/responses/{WORD}?after={WORD}")
            http.get("/responses/x", headers={"authorization": f"Bearer {WORD}"})
            metrics = http.get("/metrics").text
        over_websocket(process.url, headers)
        assert process.end() == 0
        return answers, "".join(process.lines), metrics


def over_websocket(url, headers):
    address = f"{url.replace('http', 'ws')}/responses"
    with connect(address, additional_headers=headers, proxy=None) as socket:
        for said in (WORD, [{"role": WORD}]):
            asked = {"type": "response.create", "model": "scripted", "input": said}
            socket.send(json.dumps(asked))
            while json.loads(socket.recv(10))["type"] not in ("response.completed", "error"):
                pass


def test_t16_what_was_asked_was_answered_and_told(told):
    answers, log, _ = told
    statuses = {name: answer.status_code for name, answer in answers.items()}
    wrong = {name for name, status in statuses.items() if status != 200}
    assert wrong == {name for name in REQUESTS if name.startswith(("a wrong", "an unk", "no JS"))}
    assert log.count("POST /v1/responses ") >= 5
    assert WORD in answers["plain"].text


def test_t16_logs_hold_no_word_and_no_key(told):
    _, log, _ = told
    assert WORD not in log
    assert KEY not in log


def test_t16_metrics_hold_no_word_and_no_key(told):
    _, _, metrics = told
    assert WORD not in metrics
    assert KEY not in metrics


def test_t16_errors_hold_no_key_and_no_more_than_a_few_words(told):
    answers, _, _ = told
    for answer in answers.values():
        assert KEY not in answer.text
    long = "ab " * 500
    with running(lambda request: HELLO) as server:
        for fields in ({"temperature": long}, {"model": long}, {"tool_choice": long}):
            assert len(server.create(long, **fields).text) < 600


@pytest.fixture
def logged(caplog):
    """What our own loggers and the server's wrote."""
    caplog.set_level(logging.DEBUG)

    def lines():
        ours = ("atem", "uvicorn", "websockets", "httpx2", "asyncio")
        records = [record for record in caplog.records if record.name.startswith(ours)]
        formatter = logging.Formatter()
        return "\n".join(formatter.format(record) for record in records)

    return lines


@pytest.mark.parametrize("error", [EngineError(WORD), RuntimeError(WORD), ValueError(WORD)])
def test_t16_an_engine_that_breaks_is_logged_without_its_words(logged, error):
    with running(Broken(error)) as server:
        assert types(server.events(WORD))[-1] == "failed"
        assert server.create(WORD).status_code == 500
    assert type(error).__name__ in logged()
    assert WORD not in logged()


def test_t16_an_error_that_nobody_meant_is_not_told_to_clients_either():
    with running(Broken(RuntimeError(WORD))) as server:
        assert WORD not in json.dumps(server.events())
        assert WORD not in server.create().text


class Full(MemoryStore):
    """A store that can't keep anything, and quotes what it was given."""

    async def put(self, record):
        raise OSError(f"no room for {record}")


def test_t16_a_store_that_breaks_is_logged_without_what_it_was_given(logged):
    with running(lambda request: HELLO, store=Full()) as server:
        server.create(WORD)
    assert "OSError" in logged()
    assert WORD not in logged()


def test_t16_a_server_behind_that_repeats_prompt_and_key_is_not_repeated_in_logs(logged):
    said = {"error": {"message": f"{WORD}: the key {UPSTREAM_KEY} may not ask that"}}
    refused = as_json(said, "403 No")
    options = {"retries": hasty(0)[0], "api_key": UPSTREAM_KEY}
    with (
        wires(refused, refused) as upstream,
        engine(upstream, **options) as remote,
        running(remote) as server,
    ):
        answers = [server.create(WORD, model="tiny").text, json.dumps(server.events(model="tiny"))]
    assert "RemoteError" in logged()
    assert WORD not in logged()
    assert UPSTREAM_KEY not in logged() + "".join(answers)


def test_t16_the_key_of_a_client_does_not_go_to_the_server_behind():
    options = {"retries": hasty(0)[0], "api_key": UPSTREAM_KEY}
    with (
        wires() as upstream,
        engine(upstream, **options) as remote,
        running(remote, api_key=(KEY,)) as server,
    ):
        server.http.headers["authorization"] = f"Bearer {KEY}"
        server.create(WORD, model="tiny")
        sent = [headers for line, headers, _ in upstream.requests if line.startswith("POST")]
    assert {headers["authorization"] for headers in sent} == {f"Bearer {UPSTREAM_KEY}"}
    assert KEY not in str(sent)
