"""The options for a server behind: its form, how long it is waited for, how often it is asked."""

from __future__ import annotations

import contextlib
import time

import pytest

from atem.cli.serve.engines import open_engine
from atem.server.settings import Settings
from tests.runtime.remote.wires import (
    head,
    wires,
)
from tests.server.running import running, types
from tests.server.test_upstream import HELLO, deltas, refusal


@contextlib.contextmanager
def opened(upstream, **settings):
    """The engine that atem-serve has with these settings."""
    with contextlib.closing(open_engine(Settings(engine=upstream.url, **settings))) as remote:
        yield remote


def asked_lines(upstream):
    return [line for line, _, _ in upstream.requests if line.startswith("POST")]


def test_the_form_of_a_server_behind_can_be_chosen():
    probes = [deltas({"content": "Hi."}, finish="stop")]
    with (
        wires(deltas({"content": "Hello."}, finish="stop"), probes=probes) as upstream,
        opened(upstream, form="chat") as remote,
        running(remote) as server,
    ):
        made = server.create(model="tiny").json()
        assert all(" /v1/chat/completions " in line for line in asked_lines(upstream))
    assert made["output"][0]["content"][0]["text"] == "Hello."


def test_an_answer_of_a_server_behind_is_waited_for_as_long_as_the_timeout_says():
    with (
        wires([head(), None]) as upstream,
        opened(upstream, timeout=0.2, retries=0) as remote,
        running(remote) as server,
    ):
        begun = time.monotonic()
        assert types(server.events(model="tiny"))[-1] == "failed"
        assert time.monotonic() - begun < 5


@pytest.mark.parametrize("tries", [0, 1])
def test_a_server_behind_is_asked_again_as_often_as_retries_say(tries):
    with (
        wires(refusal(503), HELLO) as upstream,
        opened(upstream, retries=tries) as remote,
        running(remote) as server,
    ):
        end = types(server.events(model="tiny"))[-1]
        assert len(asked_lines(upstream)) == 1 + 1 + tries  # with the probe
    assert end == ("completed" if tries else "failed")
