"""What every stream of events must be: the invariants of responses.md 1.7, and three contracts."""

from __future__ import annotations

import json
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from jsonschema import Draft202012Validator
from openai.types.responses import Response, ResponseStreamEvent
from openresponses_types import ResponseResource
from pydantic import TypeAdapter
from referencing import Registry, Resource
from referencing.jsonschema import DRAFT202012

if TYPE_CHECKING:
    from .writing import Events

OPENAPI = Path(__file__).parents[2] / "cases" / "openai_responses.json"

ENDS = {
    "response.completed": ("completed",),
    "response.incomplete": ("incomplete", "cancelled"),
    "response.failed": ("failed",),
}
GROWS = {
    "response.output_text": ("text", lambda item: item["content"][0]["text"]),
    "response.reasoning_text": ("text", lambda item: item["content"][0]["text"]),
    "response.reasoning": ("text", lambda item: item["content"][0]["text"]),
    "response.reasoning_summary_text": ("text", lambda item: item["summary"][0]["text"]),
    "response.function_call_arguments": ("arguments", lambda item: item["arguments"]),
    "response.custom_tool_call_input": ("input", lambda item: item["input"]),
}


def check(events: Events) -> dict[str, Any]:
    """Fail unless ``events`` are one whole stream; its response object."""
    assert [event["sequence_number"] for event in events] == list(range(len(events)))
    names = [event["type"] for event in events]
    heads = [name for name in names if name.split(".")[1] in ("created", "queued", "in_progress")]
    assert names[: len(heads)] == heads
    assert heads[0] == "response.created"
    assert heads[-1] == "response.in_progress"
    assert [name for name in names if name in ENDS] == names[-1:]
    last = events[-1]["response"]
    assert last["status"] in ENDS[names[-1]]
    assert {event["response"]["id"] for event in events if "response" in event} == {last["id"]}
    assert _items(events[len(heads) : -1]) == last["output"]
    return dict(last)


def _items(events: Events) -> list[dict[str, Any]]:
    """The finished items of a stream, one open at a time, each grown as it ends."""
    done: list[dict[str, Any]] = []
    item: dict[str, Any] | None = None
    grown: dict[str, list[str]] = {}
    for event in events:
        assert event["output_index"] == len(done)
        kind, _, step = event["type"].rpartition(".")
        if event["type"] == "response.output_item.added":
            assert item is None
            item, grown = event["item"], {}
            continue
        assert item is not None
        if event["type"] == "response.output_item.done":
            _same(item, event["item"], grown)
            done.append(event["item"])
            item = None
            continue
        assert event["item_id"] == item["id"]
        assert event.get("content_index", 0) == event.get("summary_index", 0) == 0
        if step == "delta":
            assert event["delta"]
            grown.setdefault(kind, []).append(event["delta"])
        elif kind in GROWS:
            assert event[GROWS[kind][0]] == "".join(grown.setdefault(kind, []))
    assert item is None
    return done


def _same(added: dict[str, Any], done: dict[str, Any], grown: dict[str, list[str]]) -> None:
    assert added.get("status") in ("in_progress", None)
    assert done.get("status") in ("completed", "incomplete", None)
    fixed = ("id", "type", "call_id", "name", "namespace", "role", "execution")
    assert {key: added.get(key) for key in fixed} == {key: done.get(key) for key in fixed}
    assert len(grown) <= 1
    for kind, pieces in grown.items():
        assert GROWS[kind][1](done) == "".join(pieces)


def comply(events: Events) -> None:
    """Fail unless each event, and the response, is of the three published contracts."""
    for event in events:
        _sdk().validate_json(json.dumps(event), strict=True)
        _openapi("ResponseStreamEvent", event)
    response = events[-1]["response"]
    Response.model_validate_json(json.dumps(response), strict=True)
    ResponseResource.model_validate(
        {
            **response,
            "tools": [tool for tool in response["tools"] if tool["type"] == "function"],
            "output": [item for item in response["output"] if item["type"] not in NOT_OPEN],
        }
    )


NOT_OPEN = {"custom_tool_call", "tool_search_call", "tool_search_output"}
"""Items that Open Responses has no type for; of tools it has functions alone."""


@cache
def _sdk() -> TypeAdapter[Any]:
    return TypeAdapter(ResponseStreamEvent)


@cache
def _document() -> Registry[Any]:
    document = json.loads(OPENAPI.read_text())
    # The service answers null until the end, and the document does not know it (responses.md 1.2).
    usage = document["components"]["schemas"]["Response"]
    _nullable(usage, "usage")
    resource = Resource.from_contents(document, default_specification=DRAFT202012)
    return Registry().with_resource("urn:openai", resource)


def _nullable(schema: Any, name: str) -> None:
    if isinstance(schema, dict):
        properties = schema.get("properties", {})
        if name in properties:
            properties[name] = {"anyOf": [properties[name], {"type": "null"}]}
        for part in schema.get("allOf", ()):
            _nullable(part, name)


def _openapi(name: str, value: Any) -> None:
    by_type = _members(name)
    schema = by_type[value["type"]]
    errors = [
        f"{'/'.join(map(str, error.absolute_path))}: {error.message[:300]}"
        for error in _validator(schema).iter_errors(value)
    ]
    assert not errors, (value["type"], errors)


@cache
def _members(name: str) -> dict[str, str]:
    """Event type -> the name of its schema."""
    document = json.loads(OPENAPI.read_text())
    schemas = document["components"]["schemas"]
    found = {}
    for member in schemas[name].get("anyOf") or schemas[name]["oneOf"]:
        target = member["$ref"].rpartition("/")[2]
        (kind,) = schemas[target]["properties"]["type"]["enum"]
        found[kind] = target
    return found


@cache
def _validator(schema: str) -> Draft202012Validator:
    reference = {"$ref": f"urn:openai#/components/schemas/{schema}"}
    return Draft202012Validator(reference, registry=_document())
