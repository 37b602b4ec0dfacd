"""Claude Code, which speaks the Messages API."""

from __future__ import annotations

import pytest

from tests.clients.node.claude_code import claude
from tests.clients.node.serving import Server
from tests.clients.node.turns import THOUGHT, answer, call, thinking, turn

pytestmark = pytest.mark.clients

PATH = "/v1/messages"


def test_an_answer_and_its_thinking_are_shown(tmp_path):
    with Server(tmp_path, [turn(answer("Hello from here."))]) as server:
        ran = claude(server, tmp_path / "claude")
        print(ran.told[:6000])
        for a in server.asked:
            print(a.method, a.path, a.headers)
            if a.raw:
                print({k: (str(v)[:300]) for k, v in a.body.items()})
    assert (ran.result["subtype"], ran.result["result"]) == ("success", "Hello from here.")
