"""A server behind this one: what becomes of it, and of us, when something breaks."""

from __future__ import annotations

import contextlib
import time

import pytest

from atem.testing.tiny import tiny_tokenizer
from tests.runtime.remote.asking import engine, hasty
from tests.runtime.remote.test_connections import endless
from tests.runtime.remote.wires import as_json, event, head, text_event, whole, wires
from tests.server.running import running, types, wait
from tests.server.test_endings import BODY, raw_request

NAMED = BODY.replace("scripted", "tiny")


@contextlib.contextmanager
def behind(*answers):
    """A server in front of one that gives ``answers``."""
    made = {"tokenizer": tiny_tokenizer(), "retries": hasty(0)[0]}
    with wires(*answers) as upstream, engine(upstream, **made) as remote, running(remote) as server:
        yield upstream, server


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


@pytest.mark.parametrize(
    "broken",
    [
        whole(text_event(" to=user<|message|>Hel")),
        whole(
            text_event(" to=user<|message|>Hel") + event({"error": {"message": "out of memory"}})
        ),
        as_json({"error": {"message": "busy"}}, "500 Oops"),
    ],
    ids=["cut", "error", "status"],
)
def test_what_breaks_behind_is_a_failure_and_never_an_answer(broken):
    with behind(broken, broken) as (_, server):
        whole_answer = server.create(model="tiny")
        assert whole_answer.status_code in (500, 502)
        assert whole_answer.json()["error"]["type"] == "server_error"
        body = server.http.post(
            "/v1/responses", json={"model": "tiny", "input": "x", "stream": True}
        )
    if body.status_code == 200:
        assert "event: response.failed" in body.text
    else:
        assert body.status_code == 502


def test_a_finish_of_the_server_behind_is_the_finish_of_the_response():
    answer = whole(
        text_event(" to=user<|message|>Hello.") + text_event("", "length") + event("[DONE]")
    )
    with behind(answer) as (_, server):
        events = server.events(model="tiny")
    assert types(events)[-1] == "incomplete"
    assert events[-1]["response"]["incomplete_details"] == {"reason": "max_output_tokens"}
