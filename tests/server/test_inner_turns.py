"""Responses with more than the model's one turn in them: a search for tools, a summary."""

from __future__ import annotations

from tests.server.running import HELLO, call, running, types

HIDDEN = {
    "type": "function",
    "name": "weather",
    "description": "How the weather is in a city.",
    "defer_loading": True,
    "parameters": {"type": "object", "properties": {"city": {"type": "string"}}},
}
TOOLS = [{"type": "tool_search", "execution": "server"}, HIDDEN]


def prompts(server):
    return [request.prompt.text() for request in server.engine.requests]


def test_a_search_is_answered_here_and_the_client_goes_on_from_it():
    turns = [call("tool_search", query="weather"), call("weather", city="Vigo"), HELLO]
    with running(turns) as server:
        events = server.events("How is Vigo?", tools=TOOLS)
        first = events[-1]["response"]
        result = {"type": "function_call_output", "call_id": first["output"][-1]["call_id"]}
        second = server.create(
            [{**result, "output": "wet"}], tools=TOOLS, previous_response_id=first["id"]
        ).json()
        before, found, after = prompts(server)
    kinds = [item["type"] for item in first["output"]]
    assert kinds == ["tool_search_call", "tool_search_output", "function_call"]
    assert types(events).count("created") == types(events).count("completed") == 1
    assert "How the weather is in a city." not in before
    assert "How the weather is in a city." in found
    assert after.startswith(found.removesuffix("<|start|>assistant"))
    assert second["output"][-1]["content"][0]["text"] == "Hello there."


def test_a_summary_takes_the_place_of_what_was_done_in_the_chain():
    turns = [
        " to=user<|message|>A long story.<|eot|>",
        " to=user<|message|>In short.<|eot|>",
        HELLO,
    ]
    with running(turns) as server:
        told = server.create("Tell me.").json()["id"]
        trigger = [{"type": "compaction_trigger"}]
        made = server.create(trigger, previous_response_id=told).json()
        assert [item["type"] for item in made["output"]] == ["compaction"]
        server.create("Go on.", previous_response_id=made["id"])
        _, asked, after = prompts(server)
    assert "A long story." in asked
    assert "A long story." not in after
    assert [word in after for word in ("Tell me.", "In short.", "Go on.")] == [True] * 3
