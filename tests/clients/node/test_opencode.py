"""opencode, over both of its providers."""

from __future__ import annotations

import pytest

from atem.responses.blob import Blobs
from tests.clients.node.opencode import opencode
from tests.clients.node.serving import Server
from tests.clients.node.turns import THOUGHT, answer, block, call, invoke, thinking, turn
from tests.responses.replaying import goes_on

pytestmark = pytest.mark.clients

KEY = "sesame-open-123"
PATHS = {"atem": "/v1/responses", "atem-chat": "/v1/chat/completions"}


@pytest.mark.parametrize("provider", PATHS)
def test_an_answer_and_its_reasoning_are_shown(tmp_path, provider):
    with Server(tmp_path, [turn(answer("Hello from here."))]) as server:
        ran = opencode(server, tmp_path / "opencode", model=f"{provider}/scripted")
    assert ran.said == ["Hello from here."]
    assert ran.thought == [THOUGHT]


@pytest.mark.parametrize("provider", PATHS)
def test_a_call_is_run_and_its_output_and_the_reasoning_come_back(tmp_path, provider):
    turns = [
        turn(answer("It is done."), last="^tool"),
        turn(
            thinking(
                call("bash", command="echo 42 > out.txt; cat out.txt", description="Writes a file")
            )
        ),
    ]
    with Server(tmp_path, turns) as server:
        ran = opencode(server, tmp_path / "opencode", model=f"{provider}/scripted")
        posts = [body for body in server.bodies(PATHS[provider]) if body.get("tools")]
    assert ran.said == ["It is done."], ran.told
    assert (ran.work / "out.txt").read_text() == "42\n"
    first, second = posts
    assert second["tools"] == first["tools"]
    if provider == "atem":
        kinds = [item.get("type") for item in second["input"][len(first["input"]) :]]
        assert kinds == ["reasoning", "function_call", "function_call_output"]
        assert Blobs(None, "scripted").open(second["input"][-3]["encrypted_content"]) == THOUGHT
    else:
        assert second["messages"][-2]["reasoning_content"] == THOUGHT
        assert second["messages"][-1]["content"] == "42\n"
    assert goes_on(PATHS[provider], posts, [turns[1]["write"]])


@pytest.mark.parametrize("provider", PATHS)
def test_two_calls_of_one_turn_are_run(tmp_path, provider):
    calls = [
        invoke("bash", command=f"echo {name} > {name}.txt", description="Writes") for name in "ab"
    ]
    turns = [
        turn(answer("Both are done."), last="^tool"),
        turn(thinking(block(*calls, to="bash"))),
    ]
    with Server(tmp_path, turns) as server:
        ran = opencode(server, tmp_path / "opencode", model=f"{provider}/scripted")
    assert ran.said == ["Both are done."], ran.told
    assert [(ran.work / f"{name}.txt").read_text() for name in "ab"] == ["a\n", "b\n"]


def test_its_edit_tool_changes_a_file(tmp_path):
    turns = [
        turn(answer("It is changed."), last="^tool(?s:.*)Edit applied"),
        turn(
            call("edit", filePath="FOLDER/old.txt", oldString="one", newString="<two>"),
            last="^tool",
        ),
        turn(call("read", filePath="FOLDER/old.txt")),
    ]
    folder = tmp_path / "opencode"
    for each in turns:
        each["write"] = each["write"].replace("FOLDER", str(folder / "work"))
    with Server(tmp_path, turns) as server:
        ran = opencode(server, folder, files={"old.txt": "zero\none\n"})
    assert ran.said == ["It is changed."], ran.told
    assert (ran.work / "old.txt").read_text() == "zero\n<two>\n"


def test_a_key_is_read_from_its_variable_and_a_wrong_one_is_told(tmp_path):
    with Server(tmp_path, [turn(answer("Hello from here."))], key=KEY) as server:
        right = opencode(server, tmp_path / "right", key=KEY)
        wrong = opencode(server, tmp_path / "wrong", key="wrong-key-12345")
    assert right.said == ["Hello from here."], right.told
    assert "Incorrect API key provided." in wrong.told
