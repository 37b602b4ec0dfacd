"""Codex CLI: the ways it reaches the server, and tools that it finds only when it looks for them."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from tests.clients.node.codex import PATH, codex
from tests.clients.node.serving import Server
from tests.clients.node.turns import answer, call, thinking, turn
from tests.responses.replaying import goes_on

pytestmark = pytest.mark.clients

TOOL_LOOP = (
    turn(answer("It is done."), last="^tool"),
    turn(thinking(call("exec_command", cmd="echo 42 > out.txt"))),
)


def test_over_a_websocket_it_completes_a_tool_turn_and_posts_nothing(tmp_path):
    with Server(tmp_path, TOOL_LOOP) as server:
        ran = codex(server, tmp_path / "codex")
        posts = server.bodies(PATH)
        upgrades = server.relay.upgrades
    assert ran.said == ["It is done."], ran.told
    assert (ran.work / "out.txt").read_text() == "42\n"
    assert (upgrades, posts) == (1, [])


def test_where_websockets_are_refused_it_goes_on_over_http(tmp_path):
    with Server(tmp_path, TOOL_LOOP, "--no-websocket") as server:
        ran = codex(server, tmp_path / "codex", model_providers__atem__supports_websockets=True)
        posts = server.bodies(PATH)
        upgrades = server.relay.upgrades
    assert ran.said == ["It is done."], ran.told
    assert (ran.work / "out.txt").read_text() == "42\n"
    assert upgrades >= 1
    assert len(posts) == 2


def test_a_tool_of_an_mcp_server_is_found_and_called_by_its_namespace(tmp_path):
    turns = [
        turn(answer("Take a coat."), last="^tool(?s:.*)11 degrees"),
        turn(thinking(call("mcp__weather.forecast", city="Oslo")), last="can be called now"),
        turn(thinking(call("tool_search", query="weather forecast"))),
    ]
    server_of_mcp = Path(__file__).parent / "mcp_server.py"
    with Server(tmp_path, turns, "--no-websocket") as server:
        ran = codex(
            server,
            tmp_path / "codex",
            mcp_servers__weather__command=sys.executable,
            mcp_servers__weather__args=[str(server_of_mcp)],
            mcp_servers__weather__default_tools_approval_mode="approve",
        )
        posts = server.bodies(PATH)
    assert ran.said == ["Take a coat."], ran.told
    (found,) = [item for item in posts[1]["input"] if item["type"] == "tool_search_output"]
    assert [tool["name"] for tool in found["tools"]] == ["mcp__weather"]
    (made,) = [item for item in posts[2]["input"] if item["type"] == "function_call"]
    assert (made["namespace"], made["name"]) == ("mcp__weather", "forecast")
    (came,) = [item for item in posts[2]["input"] if item["type"] == "function_call_output"]
    assert "Rain in Oslo, 11 degrees." in str(came["output"])
    assert goes_on(PATH, posts, [turns[2]["write"], turns[1]["write"]])
