"""A server behind this one: what becomes of it, and of us, when something breaks.

Rules: sockets on both sides, and a server behind that sends exactly the bytes of
the test. Each API tells of a failure in its own words, and none takes what broke
for an answer. Source: responses.md 1.13, 1.14, 2 (T14).
"""

from __future__ import annotations

import contextlib
import json
import logging
import time
from typing import get_args

import openai
import pytest
from openai.types.responses import ResponseError

from atem.cli.serve import main
from atem.testing.scripted import wire_ids
from atem.testing.tiny import tiny_tokenizer
from tests.runtime.remote.asking import TOKENIZER, engine, hasty
from tests.runtime.remote.dialects import speaking, turn_of
from tests.runtime.remote.test_connections import endless
from tests.runtime.remote.wires import (
    DONE,
    Wires,
    as_json,
    chunked,
    event,
    head,
    text_event,
    whole,
    wires,
)
from tests.server.running import BODY, call, raw_request, read_events, running, types, wait

NAMED = BODY.replace("scripted", "tiny")
BEGUN = text_event(" to=user<|message|>Hel")
HELLO = whole(BEGUN + text_event("lo.<|eot|>") + text_event("", "stop") + DONE)
READ = {"type": "function", "name": "read", "parameters": {"type": "object"}}
USER = [{"role": "user", "content": "x"}]


@contextlib.contextmanager
def behind(*answers, tries=0, **options):
    """A server in front of one that gives ``answers``."""
    made = {"tokenizer": tiny_tokenizer(), "retries": hasty(tries)[0], **options}
    with wires(*answers) as upstream, engine(upstream, **made) as remote, running(remote) as server:
        yield upstream, server


@pytest.fixture(scope="module")
def shared():
    with behind() as pair:
        yield pair


@pytest.fixture
def front(shared):
    """The server, once it is told what the one behind answers."""

    def made(*answers):
        shared[0].answers[:] = answers
        return shared[1]

    yield made
    assert wait(lambda: shared[1].service.slots.running == 0)


def deltas(*parts, finish=None):
    """An answer of a server that parses the model's text itself."""
    ends = [({}, finish)] if finish else []
    return whole(b"".join(delta_event(*part) for part in [*((p, None) for p in parts), *ends]))


def delta_event(delta, finish):
    return event({"choices": [{"index": 0, "delta": delta, "finish_reason": finish}]})


@contextlib.contextmanager
def parsed_behind(answer):
    """A server in front of one that parses the model's text itself, and gives ``answer``."""
    probes = [deltas({"content": "Hi."}, finish="stop")]
    with (
        wires(answer, probes=probes) as upstream,
        engine(upstream, form="chat") as remote,
        running(remote) as server,
    ):
        yield server


def asked(server, path, stream, **fields):
    said = {"input": "x"} if path == "responses" else {"messages": USER, "max_tokens": 50}
    body = {"model": "tiny", "stream": stream, **said, **fields}
    return server.http.post(f"/v1/{path}", json=body)


# --- clients that leave ---


def test_c43_a_client_that_leaves_ends_the_work_of_the_server_behind():
    with behind() as (upstream, server):
        upstream.answers.append(endless(upstream))
        link = raw_request(server, NAMED)
        assert wait(lambda: len(upstream.posted()) > 1)
        time.sleep(0.1)
        link.close()
        assert upstream.gone.wait(2)
        assert wait(lambda: server.service.slots.running == 0, 2)


def test_c43_also_while_the_server_behind_has_sent_nothing_yet():
    with behind([head(), None]) as (upstream, server):
        link = raw_request(server, NAMED)
        assert wait(lambda: len(upstream.posted()) > 1)
        time.sleep(0.1)
        link.close()
        assert wait(lambda: server.service.slots.running == 0, 2)
        assert not upstream.go.is_set()


# --- answers that break off ---

CUT = {
    "cut between two events": whole(BEGUN),
    "cut in an event": whole(BEGUN + text_event("lo.", "stop")[:-9]),
    "cut in a chunk": [chunked([BEGUN, text_event("lo.", "stop")])[0][:-30]],
    "shorter than it said": whole(BEGUN, Content_Length=4000),
    "no finish": whole(BEGUN + text_event("lo.<|eot|>") + DONE),
    "an error in the stream": whole(BEGUN + event({"error": {"message": "out of memory"}})),
    "bytes that are no UTF-8": whole(BEGUN + b'data: {"choices": [{"text": "\xff\xfe"}]}\n\n'),
    "no JSON": whole(BEGUN + event("{oops")),
    "an unknown finish": whole(BEGUN + text_event("", "bored") + DONE),
    "the client's end of a message as its end": whole(BEGUN + text_event("lo.<|eom|>", "stop")),
}
"""What breaks when something has been written already."""

ENDS = {
    "responses": ("response.failed", '"status":"failed"'),
    "chat/completions": ('data: {"error":', "data: [DONE]"),
    "messages": ("event: error", '"type":"api_error"'),
}
"""How a stream of each API says that it failed."""


@pytest.mark.parametrize("path", ENDS)
@pytest.mark.parametrize("broken", CUT.values(), ids=CUT)
def test_t14_what_breaks_off_behind_is_a_failure_and_never_an_answer(front, broken, path):
    server = front(broken, broken)
    streamed = asked(server, path, stream=True)
    in_one_piece = asked(server, path, stream=False)
    assert streamed.status_code == 200
    assert all(word in streamed.text for word in ENDS[path])
    assert not any(
        word in streamed.text
        for word in ("response.completed", '"finish_reason":"stop"', "message_stop")
    )
    assert in_one_piece.status_code == 502
    assert in_one_piece.json()["error"]["message"]


@pytest.mark.parametrize("broken", CUT.values(), ids=CUT)
def test_t14_what_was_written_before_stays_and_is_incomplete(front, broken):
    events = front(broken).events(model="tiny")
    assert types(events)[-1] == "failed"
    (item,) = events[-1]["response"]["output"]
    assert item["status"] == "incomplete"
    assert item["content"][0]["text"].startswith("Hel")
    assert events[-1]["response"]["error"]["code"] == "server_error"


def test_t14_the_openai_sdk_sees_the_failure_with_what_was_written(front):
    server = front(CUT["no finish"])
    with openai.OpenAI(base_url=server.url, api_key="none", max_retries=0) as client:
        *_, last = client.responses.create(model="tiny", input="x", stream=True)
    assert (last.type, last.response.status) == ("response.failed", "failed")
    assert last.response.output_text.startswith("Hel")


def test_t14_a_background_response_fails_too(front):
    server = front(CUT["no finish"])
    made = server.create(model="tiny", background=True).json()["id"]
    assert wait(lambda: server.http.get(f"/v1/responses/{made}").json()["status"] == "failed")


# --- statuses ---


TOO_LONG = "This model's maximum context length is 512 tokens. However, you requested 900 tokens"


def refusal(code, message="it is so"):
    return as_json({"error": {"message": message}}, f"{code} Status")


STATUSES = {
    429: (429, "rate_limit_exceeded", "rate_limit_error"),
    503: (503, "server_error", "api_error"),
    504: (504, "server_error", "api_error"),
    **dict.fromkeys((401, 500, 502), (502, "server_error", "api_error")),
}
"""Status of the server behind -> ours, the code of the failed response, Anthropic's type."""


@pytest.mark.parametrize("path", ENDS)
@pytest.mark.parametrize("code", STATUSES)
def test_t14_a_status_before_the_first_byte_is_a_status_in_one_piece(front, path, code):
    answered = asked(front(refusal(code)), path, stream=False)
    assert answered.status_code == STATUSES[code][0]
    assert answered.headers["content-type"] == "application/json"
    assert ("retry-after" in answered.headers) is (code in (429, 503))


@pytest.mark.parametrize("path", ENDS)
@pytest.mark.parametrize("code", STATUSES)
def test_t14_a_status_behind_a_stream_that_has_begun_is_its_code(front, path, code):
    """The stream begins before the server behind has answered: it may think for minutes."""
    answered = asked(front(refusal(code)), path, stream=True)
    assert answered.status_code == 200
    _, word, kind = STATUSES[code]
    told = {"responses": f'"code":"{word}"', "messages": f'"type":"{kind}"'}
    assert told.get(path, word) in answered.text
    assert all(word in answered.text for word in ENDS[path] if word != '"type":"api_error"')


@pytest.mark.parametrize(
    "begin", [[None], [head(), None], [head() + BEGUN, None]], ids=["silent", "head", "begun"]
)
def test_a_server_behind_that_is_waited_for_too_long_is_a_504(begin):
    with behind(begin, timeout=0.2) as (_, server):
        answered = server.create(model="tiny")
    assert answered.status_code == 504
    assert answered.json()["error"]["type"] == "server_error"


@pytest.mark.parametrize("code", [429, 502, 503, 504])
def test_t14_a_busy_server_is_asked_again_before_the_first_byte(code):
    with behind(refusal(code), HELLO, tries=1) as (_, server):
        events = server.events(model="tiny")
    assert types(events)[-1] == "completed"
    assert events[-1]["response"]["output"][0]["content"][0]["text"] == "Hello."


def test_t14_nothing_is_asked_again_after_the_first_byte():
    with behind(CUT["cut in an event"], HELLO, tries=3) as (upstream, server):
        events = server.events(model="tiny")
        assert len(upstream.answers) == 1
    assert types(events)[-1] == "failed"
    assert "".join(event.get("delta", "") for event in events) == "Hel"


def test_t14_an_input_that_only_the_server_behind_can_count_is_too_long_in_our_words():
    refused = refusal(400, TOO_LONG)
    with behind(refused, refused, tokenizer=None) as (_, server):
        answered = server.create(model="tiny")
        events = server.events(model="tiny")
    assert answered.status_code == 400
    assert answered.json()["error"]["code"] == "context_length_exceeded"
    assert events[-1]["response"]["error"]["code"] == "context_length_exceeded"


def test_the_one_code_that_the_type_of_the_sdk_lacks_is_read_by_it(front):
    """Codex knows by it that it has to compact."""
    server = front(refusal(400, TOO_LONG))
    with openai.OpenAI(base_url=server.url, api_key="none", max_retries=0) as client:
        *_, last = client.responses.create(model="tiny", input="x", stream=True)
    code = last.response.error.code
    assert (last.type, code) == ("response.failed", "context_length_exceeded")
    assert code not in get_args(ResponseError.model_fields["code"].annotation)


def test_a_finish_of_the_server_behind_is_the_finish_of_the_response(front):
    answer = whole(
        text_event(" to=user<|message|>Hello.") + text_event("", "length") + event("[DONE]")
    )
    events = front(answer).events(model="tiny")
    assert types(events)[-1] == "incomplete"
    assert events[-1]["response"]["incomplete_details"] == {"reason": "max_output_tokens"}


# --- a server that counts, where there is no tokenizer ---

SPOKEN = " to=user<|message|>High at noon.<|eot|>"


@contextlib.contextmanager
def counting(kind="vllm", **fields):
    """A server in front of one that counts, without a tokenizer."""
    said = {"context": 4096, "script": turn_of(SPOKEN), **fields}
    with (
        speaking(kind, **said) as upstream,
        engine(upstream) as remote,
        running(remote) as server,
    ):
        yield upstream, server


@pytest.mark.parametrize("stream", [True, False])
@pytest.mark.parametrize("kind", ["vllm", "sglang", "llama.cpp"])
def test_without_a_tokenizer_the_usage_is_what_the_server_behind_has_counted(kind, stream):
    with counting(kind, cached=5) as (upstream, server):
        body = {"max_output_tokens": 200}
        made = (
            server.events(model="tiny", **body)[-1]["response"]
            if stream
            else server.create(model="tiny", **body).json()
        )
        sent = wire_ids(upstream.bodies[-1]["prompt"], TOKENIZER)
    written = len(wire_ids(SPOKEN, TOKENIZER))
    assert made["usage"]["input_tokens"] == len(sent)
    assert made["usage"]["input_tokens_details"]["cached_tokens"] == 5
    assert made["usage"]["output_tokens"] == written
    assert made["usage"]["total_tokens"] == len(sent) + written


def test_reasoning_is_counted_where_a_parser_behind_tells():
    told = {
        "prompt_tokens": 40,
        "completion_tokens": 9,
        "completion_tokens_details": {"reasoning_tokens": 6},
        "prompt_tokens_details": {"cached_tokens": 32},
    }
    answer = whole(
        delta_event({"reasoning_content": "Hm."}, None)
        + delta_event({"content": "Yes."}, None)
        + delta_event({}, "stop")
        + event({"choices": [], "usage": told})
        + DONE
    )
    with parsed_behind(answer) as server:
        usage = server.create(model="tiny").json()["usage"]
    assert (usage["input_tokens"], usage["output_tokens"]) == (40, 9)
    assert usage["input_tokens_details"]["cached_tokens"] == 32
    assert usage["output_tokens_details"]["reasoning_tokens"] == 6


@pytest.mark.parametrize(
    ("path", "said"),
    [("responses/input_tokens", {"input": "x"}), ("messages/count_tokens", {"messages": USER})],
)
def test_tokens_that_only_a_tokenizer_could_count_name_the_option(path, said):
    with counting() as (_, server):
        refused = server.http.post(f"/v1/{path}", json={"model": "tiny", **said})
    assert refused.status_code == 400
    assert "--tokenizer" in refused.json()["error"]["message"]


@pytest.mark.parametrize(("truncation", "noted"), [("auto", True), ("disabled", False)])
def test_that_nothing_is_left_out_without_a_tokenizer_is_noted(truncation, noted, caplog):
    caplog.set_level(logging.INFO, "atem.server")
    with counting() as (_, server):
        answered = server.create(model="tiny", truncation=truncation)
    assert answered.status_code == 200
    assert ("truncation has no effect" in answered.headers.get("x-atem-notes", "")) is noted
    assert ("truncation has no effect" in caplog.text) is noted


def test_with_a_tokenizer_truncation_has_its_effect_and_no_note(front):
    answered = front(HELLO).create(model="tiny", truncation="auto")
    assert (answered.status_code, answered.headers.get("x-atem-notes")) == (200, None)


# --- is it ready? ---


def ready(server):
    """The answer of /ready, as if the last one was some seconds ago."""
    server.service.reaching._until = 0.0
    return server.http.get("/ready")


def test_ready_says_whether_the_server_behind_works():
    with behind() as (upstream, server):
        assert (ready(server).status_code, ready(server).json()["status"]) == (200, "ready")
        upstream.get["/health"] = as_json({"error": "loading"}, "503 Busy")
        refused = ready(server)
        assert (refused.status_code, refused.json()["status"]) == (503, "unreachable")
        assert refused.json()["reason"] == "The engine answers HTTP 503."
        assert server.http.get("/health").status_code == 200
        upstream.get["/health"] = as_json({})
        assert ready(server).status_code == 200


@pytest.mark.parametrize("kind", ["vllm", "sglang", "llama.cpp"])
def test_ready_shows_how_the_server_behind_is_asked_and_that_special_tokens_are_kept(kind):
    with counting(kind) as (_, server):
        told = ready(server).json()["upstream"]
    shown = {"form": "completions", "prompt": "text", "answer": "text"}
    assert told == {"server": kind, **shown, "special_tokens": "kept"}


def test_ready_shows_that_the_server_behind_parses_itself():
    with parsed_behind(HELLO) as server:
        told = ready(server).json()["upstream"]
    assert (told["form"], told["special_tokens"]) == ("chat", "parsed")


def test_an_engine_without_a_server_behind_has_no_upstream():
    with running(lambda request: " to=user<|message|>Hello.<|eot|>") as server:
        assert (ready(server).status_code, "upstream" in ready(server).json()) == (200, False)


def test_a_server_behind_that_is_silent_or_gone_is_not_ready_and_its_address_is_not_told(caplog):
    made = {"tokenizer": tiny_tokenizer(), "retries": hasty(3)[0], "timeout": 0.2}
    with contextlib.ExitStack() as going:
        upstream = going.enter_context(wires(get={**Wires().get, "/health": [None]}))
        with engine(upstream, **made) as remote, running(remote) as server:
            silent = ready(server)
            going.close()
            gone = ready(server)
    for refused in (silent, gone):
        assert refused.status_code == 503
        assert refused.json()["reason"] == "The engine doesn't answer."
        assert "127.0.0.1" not in refused.text
    assert upstream.url in caplog.text


def test_the_server_behind_is_asked_once_in_some_seconds_however_many_want_to_know():
    with behind() as (upstream, server):
        assert {server.http.get("/ready").status_code for _ in range(5)} == {200}
        asked = [line for line, _, _ in upstream.requests if line.startswith("GET /health ")]
    assert len(asked) == 1


# --- special tokens and characters ---


@pytest.mark.parametrize("kind", ["vllm", "sglang", "llama.cpp"])
def test_t14_a_server_that_strips_special_tokens_is_not_served(kind, capfd):
    with speaking(kind, strips=True) as upstream:
        assert main(["--engine", upstream.url, "--port", "0", "--store", "memory"]) == 3
    (line,) = capfd.readouterr().err.splitlines()
    assert "special tokens are dropped" in line


def test_t14_markers_without_their_special_tokens_make_no_call(front):
    stripped = call("read", path="a").replace("<|message|>", "").replace("<|eot|>", "")
    answer = whole(text_event(stripped) + text_event("", "stop") + DONE)
    made = front(answer).create(model="tiny", tools=[READ]).json()
    assert "function_call" not in [item["type"] for item in made.get("output", [])]


SAID = "Grüße, 東京 — \N{WATER WAVE}\N{WOMAN}\N{ZERO WIDTH JOINER}\N{PERSONAL COMPUTER}!"


@pytest.mark.parametrize("escaped", [True, False])
def test_t14_characters_that_come_in_halves_are_whole(front, escaped):
    """Each byte in a chunk of its own, and each text in events of one character."""
    spelled = [json.dumps(letter, ensure_ascii=escaped) for letter in SAID]
    texts = [event(f'{{"choices": [{{"index": 0, "text": {text}}}]}}') for text in spelled]
    begin, end = text_event(" to=user<|message|>"), text_event("<|eot|>", "stop")
    raw = b"".join([begin, *texts, end, DONE])
    answer = chunked([raw[place : place + 1] for place in range(len(raw))])
    answered = asked(front(answer), "responses", stream=True)
    events = read_events(answered.content)
    assert events[-1]["response"]["output"][0]["content"][0]["text"] == SAID
    assert "".join(event.get("delta", "") for event in events) == SAID


# --- a server behind that parses the text itself ---

TOOL_CALL = {"index": 0, "id": "c1", "function": {"name": "read", "arguments": '{"path": "a'}}


@pytest.mark.parametrize(
    ("answer", "end"),
    [
        (deltas({"tool_calls": [TOOL_CALL]}, finish="length"), "incomplete"),
        (deltas({"tool_calls": [TOOL_CALL]}), "failed"),
        (deltas({"reasoning_content": "Hm."}, {"content": "Hel"}), "failed"),
        (deltas({"content": 7}, finish="stop"), "failed"),
    ],
)
def test_t14_what_breaks_off_behind_a_parser_of_its_own_makes_no_call(answer, end):
    with parsed_behind(answer) as server:
        events = server.events(model="tiny", tools=[READ])
    assert types(events)[-1] == end
    assert "function_call" not in [item["type"] for item in events[-1]["response"]["output"]]


def test_t14_a_whole_call_of_a_parser_behind_is_a_call():
    rest = {"index": 0, "function": {"arguments": '"}'}}
    answer = deltas({"tool_calls": [TOOL_CALL]}, {"tool_calls": [rest]}, finish="tool_calls")
    with parsed_behind(answer) as server:
        (item,) = server.create(model="tiny", tools=[READ]).json()["output"]
    assert (item["type"], json.loads(item["arguments"])) == ("function_call", {"path": "a"})
