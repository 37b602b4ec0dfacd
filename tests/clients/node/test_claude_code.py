"""Claude Code, which speaks the Messages API."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest

from tests.clients.node.claude_code import claude
from tests.clients.node.serving import Server
from tests.clients.node.turns import THOUGHT, answer, block, call, invoke, thinking, turn
from tests.responses.replaying import goes_on

pytestmark = pytest.mark.clients

KEY = "sesame-open-123"
SAID = "Hello from here."
PATH = "/v1/messages"


def results(body):
    """What came of calls, in the last message of a request."""
    return [block for block in body["messages"][-1]["content"] if block["type"] == "tool_result"]


def test_an_answer_and_its_thinking_are_shown(tmp_path):
    with Server(tmp_path, [turn(answer(SAID))]) as server:
        ran = claude(server, tmp_path / "claude")
    assert (ran.result["subtype"], ran.result["result"]) == ("success", SAID)
    assert [block["thinking"] for block in ran.blocks("thinking")] == [THOUGHT]


def test_a_call_is_run_and_its_output_and_the_thinking_come_back(tmp_path):
    command = "echo 42 > out.txt; cat out.txt"
    turns = [
        turn(answer("It is done."), last="^tool"),
        turn(thinking(call("Bash", command=command, description="Writes a file"))),
    ]
    with Server(tmp_path, turns) as server:
        ran = claude(server, tmp_path / "claude")
        first, second = server.bodies(PATH)
    assert ran.result["result"] == "It is done.", ran.told
    assert (ran.work / "out.txt").read_text() == "42\n"
    thought, made = second["messages"][-2]["content"]
    assert (thought["type"], thought["thinking"]) == ("thinking", THOUGHT)
    assert thought["signature"].startswith("atem-r1.")
    assert (made["type"], made["name"]) == ("tool_use", "Bash")
    assert [(result["tool_use_id"], result["content"]) for result in results(second)] == [
        (made["id"], "42")
    ]
    assert goes_on(PATH, [first, second], [turns[1]["write"]])


def test_two_calls_of_one_turn_are_run(tmp_path):
    calls = [
        invoke("Bash", command=f"echo {name} > {name}.txt", description="Writes") for name in "ab"
    ]
    turns = [
        turn(answer("Both are done."), last="^tool"),
        turn(thinking(block(*calls, to="Bash"))),
    ]
    with Server(tmp_path, turns) as server:
        ran = claude(server, tmp_path / "claude")
        _, second = server.bodies(PATH)
    assert ran.result["result"] == "Both are done.", ran.told
    assert [(ran.work / f"{name}.txt").read_text() for name in "ab"] == ["a\n", "b\n"]
    assert len(results(second)) == 2


def test_its_edit_tool_changes_a_file(tmp_path):
    folder = tmp_path / "claude"
    file = folder / "work" / "old.txt"
    turns = [
        turn(answer("It is changed."), last="^tool(?s:.*)has been updated"),
        turn(call("Edit", file_path=file, old_string="one", new_string="<two>"), last="^tool"),
        turn(call("Read", file_path=file)),
    ]
    with Server(tmp_path, turns) as server:
        ran = claude(server, folder, files={"old.txt": "zero\none\n"})
    assert ran.result["result"] == "It is changed.", ran.told
    assert file.read_text() == "zero\n<two>\n"


def test_a_tool_of_an_mcp_server_is_called(tmp_path):
    turns = [
        turn(answer("Take a coat."), last="^tool(?s:.*)11 degrees"),
        turn(call("mcp__weather__forecast", city="Oslo"), last="^tool"),
        turn(thinking(call("ToolSearch", query="select:mcp__weather__forecast", max_results=5))),
    ]
    file = Path(__file__).parent / "mcp_server.py"
    servers = {"weather": {"command": sys.executable, "args": [str(file)]}}
    with Server(tmp_path, turns) as server:
        ran = claude(
            server,
            tmp_path / "claude",
            "Do it.",
            f"--mcp-config={json.dumps({'mcpServers': servers})}",
        )
        posts = server.bodies(PATH)
    assert ran.result["result"] == "Take a coat.", ran.told
    assert goes_on(PATH, posts, [turns[2]["write"], turns[1]["write"]])


def test_a_key_is_read_from_its_variable_and_a_wrong_one_is_told(tmp_path):
    with Server(tmp_path, [turn(answer(SAID))], key=KEY) as server:
        right = claude(server, tmp_path / "right", key=KEY)
        wrong = claude(server, tmp_path / "wrong", key="wrong-key-12345")
    assert right.result["result"] == SAID, right.told
    assert "401 Incorrect API key provided." in wrong.told


def test_a_prompt_that_is_too_long_is_told_as_that_and_not_sent_again(tmp_path):
    # What is printed names the room that the server has, and the server is then given less.
    small = {"context": 500}
    with Server(tmp_path, [turn(answer(SAID))], "--context", "131072", script=small) as server:
        ran = claude(server, tmp_path / "claude")
        requests = len(server.bodies(PATH))
    assert requests == 1
    assert "Prompt is too long" in ran.told


def test_a_response_that_fails_on_the_way_is_told(tmp_path):
    with Server(tmp_path, [turn(answer("It begins well."), fail="No power.")]) as server:
        ran = claude(server, tmp_path / "claude", CLAUDE_CODE_MAX_RETRIES="1")
    assert ran.result["is_error"] is True
    assert "Server error mid-response" in ran.told


def test_an_answer_that_was_cut_is_told_as_that(tmp_path):
    with Server(tmp_path, [turn(" to=user<|message|>It begins and")]) as server:
        ran = claude(server, tmp_path / "claude")
    assert ran.result["is_error"] is True
    assert "max_output_tokens" in ran.told
