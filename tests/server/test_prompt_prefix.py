"""A turn that goes on begins, for the engine, with the prompt before it and its answer: cached."""

from __future__ import annotations

import json

import pytest
from websockets.sync.client import connect

from atem.testing.scripted import ScriptedEngine
from tests.responses.replaying import CASES, begun, bodies
from tests.server.running import answered, running

DONE = " to=user<|message|>It is done.<|eot|>"


def grows(engine, written):
    """Whether the prompt of each request begins with the one before and what was written."""
    before, after = (request.prompt_ids(engine.tokenizer) for request in engine.requests[-2:])
    common, whole = begun(before, written, after)
    return common == whole


def outputs(items):
    """What a client sends back for calls."""
    calls = [item for item in items if item["type"] == "function_call"]
    return [
        {"type": "function_call_output", "call_id": call["call_id"], "output": "42"}
        for call in calls
    ]


def create(socket, **fields):
    socket.send(json.dumps({"type": "response.create", **fields}))
    return answered(socket)[-1]["response"]


def test_over_a_websocket_codex_sends_only_what_is_new_and_the_prompt_is_the_whole():
    """Its first frame brings the tools and no turn, and nothing is to be stored."""
    case = CASES["codex"]
    body, (written,) = bodies(case)[0], case["written"]
    engine = ScriptedEngine([DONE, written, DONE])
    with (
        running(engine) as server,
        connect(f"{server.url.replace('http', 'ws')}/responses", proxy=None) as socket,
    ):
        *before, asked = body["input"]
        warm = create(socket, **body | {"input": before, "generate": False})
        first = create(socket, **body | {"input": [asked], "previous_response_id": warm["id"]})
        new = {"input": outputs(first["output"]), "previous_response_id": first["id"]}
        last = create(socket, **body | new)
    assert last["status"] == "completed"
    assert len(new["input"]) == 2
    assert grows(engine, written)


@pytest.mark.parametrize("store", [True, False])
def test_with_and_without_a_store_the_prompt_is_the_same(store):
    case = CASES["codex"]
    body, (written,) = bodies(case)[0], case["written"]
    engine = ScriptedEngine([written, DONE])
    body |= {"stream": False, "store": store}
    with running(engine) as server:
        first = server.http.post(case["path"], json=body).json()
        if store:
            new = {"input": outputs(first["output"]), "previous_response_id": first["id"]}
        else:
            said = [*body["input"], *first["output"]]
            new = {"input": [*said, *outputs(first["output"])]}
        server.http.post(case["path"], json=body | new).raise_for_status()
    assert grows(engine, written)
