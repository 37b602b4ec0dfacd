"""Codex CLI: what it is asked to do through the server, it does."""

from __future__ import annotations

import pytest

from tests.clients.node.codex import PATH, codex
from tests.clients.node.serving import Server
from tests.clients.node.turns import THOUGHT, answer, block, call, invoke, thinking, turn
from tests.responses.replaying import goes_on

pytestmark = pytest.mark.clients


def over_http(folder, turns, *options, **more):
    """A server without WebSockets: each request is whole, and can be looked at."""
    return Server(folder, turns, "--no-websocket", *options, **more)


def test_an_answer_and_its_reasoning_are_shown(tmp_path):
    with over_http(tmp_path, [turn(answer("Hello from here."))]) as server:
        ran = codex(server, tmp_path / "codex")
    assert (ran.code, ran.end) == (0, "turn.completed")
    assert ran.said == ["Hello from here."]
    assert ran.thought == [THOUGHT]


def outputs(body, kind="function_call_output"):
    """Call id -> what came of it, in a request's body."""
    return {item["call_id"]: str(item["output"]) for item in body["input"] if item["type"] == kind}


def test_a_call_is_run_and_its_output_comes_back(tmp_path):
    turns = [
        turn(answer("It is done."), last="^tool"),
        turn(thinking(call("exec_command", cmd="echo 6*7 | bc > out.txt; cat out.txt"))),
    ]
    with over_http(tmp_path, turns) as server:
        ran = codex(server, tmp_path / "codex")
        first, second = server.bodies(PATH)
    assert ran.said == ["It is done."], ran.told
    assert (ran.work / "out.txt").read_text() == "42\n"
    assert [out for out in outputs(second).values() if "42" in out]
    assert [item["type"] for item in second["input"][len(first["input"]) :]] == [
        "reasoning",
        "function_call",
        "function_call_output",
    ]
    assert goes_on(PATH, [first, second], [turns[1]["write"]])


def test_two_calls_of_one_turn_are_run_side_by_side(tmp_path):
    # Each waits for the other's file: one after the other they would never end.
    waits = "touch {0}; for i in $(seq 100); do [ -e {1} ] && break; sleep 0.05; done; [ -e {1} ] && echo met {1}"
    calls = [
        invoke("exec_command", cmd=waits.format("a", "b")),
        invoke("exec_command", cmd=waits.format("b", "a")),
    ]
    turns = [
        turn(answer("Both are done."), last="^tool"),
        turn(thinking(block(*calls, to="exec_command"))),
    ]
    with over_http(tmp_path, turns) as server:
        ran = codex(server, tmp_path / "codex")
        _, second = server.bodies(PATH)
    assert ran.said == ["Both are done."], ran.told
    found = "".join(outputs(second).values())
    assert ("met a" in found, "met b" in found, len(outputs(second))) == (True, True, 2)


PATCH = """*** Begin Patch
*** Add File: notes/new.txt
+first
+second
*** Update File: old.txt
@@
-one
+<two & "three">
*** End Patch"""


def test_apply_patch_writes_the_files(tmp_path):
    turns = [
        turn(answer("It is patched."), last="^tool"),
        turn(thinking(call("apply_patch", input=PATCH))),
    ]
    with over_http(tmp_path, turns) as server:
        ran = codex(server, tmp_path / "codex", files={"old.txt": "zero\none\n"})
        first, second = server.bodies(PATH)
    assert ran.said == ["It is patched."], ran.told
    assert (ran.work / "notes" / "new.txt").read_text() == "first\nsecond\n"
    assert (ran.work / "old.txt").read_text() == 'zero\n<two & "three">\n'
    assert "apply_patch" in [
        tool.get("name") for tool in first["tools"] if tool["type"] == "custom"
    ]
    (made,) = [item for item in second["input"] if item["type"] == "custom_tool_call"]
    assert made["input"] == PATCH
    assert goes_on(PATH, [first, second], [turns[1]["write"]])
    assert outputs(second, "custom_tool_call_output").keys() == {made["call_id"]}
