"""What the tests of requests share: one way to ask, one way to be refused, the text of a prompt."""

from __future__ import annotations

import base64
import itertools
from typing import Any

import pytest

from atem.responses.faults import ApiError
from atem.responses.request import Ask, from_request


def ask(items: Any = "hi", options: dict[str, Any] | None = None, **body: Any) -> Ask:
    """A request with ``body`` beside the input; ids count from 1."""
    count = itertools.count(1)
    return from_request(
        {"model": "muse", "input": items, **body},
        new_id=lambda prefix: f"{prefix}_{next(count)}",
        **{"history": (), **(options or {})},
    )


def refused(items: Any = "hi", options: dict[str, Any] | None = None, **body: Any) -> ApiError:
    with pytest.raises(ApiError) as caught:
        ask(items, options, **body)
    return caught.value


def talk(made: Ask) -> str:
    """The prompt behind its first system message."""
    return made.prompt().text().partition("<|eot|>")[2]


def system(made: Ask) -> str:
    """The first system message."""
    return made.prompt().text().partition("<|eot|>")[0]


def function(name: str = "read", **fields: Any) -> dict[str, Any]:
    parameters = {"type": "object", "properties": {"path": {"type": "string"}}}
    return {"type": "function", "name": name, "parameters": parameters, **fields}


def call(
    name: str = "read", call_id: str = "c1", arguments: str = "{}", **fields: Any
) -> dict[str, Any]:
    return {
        "type": "function_call",
        "name": name,
        "call_id": call_id,
        "arguments": arguments,
        **fields,
    }


def output(text: Any = "done", call_id: str = "c1") -> dict[str, Any]:
    return {"type": "function_call_output", "call_id": call_id, "output": text}


def user(text: str = "go") -> dict[str, Any]:
    return {"role": "user", "content": text}


PNG = "data:image/png;base64," + base64.b64encode(b"\x89PNG").decode()


class Drawer:
    """Blobs that open what begins with "ours:"."""

    def open(self, blob: str, /) -> str | None:
        return blob.removeprefix("ours:") if blob.startswith("ours:") else None


BLOBS: dict[str, Any] = {"blobs": Drawer()}


def thought(**fields: Any) -> dict[str, Any]:
    return {"type": "reasoning", **fields}


def summary(text: str) -> list[dict[str, Any]]:
    return [{"type": "summary_text", "text": text}]


def content(text: str) -> list[dict[str, Any]]:
    return [{"type": "reasoning_text", "text": text}]


def block(name: str, parameters: str = "") -> str:
    return f'<|start|>assistant to={name}<|message|><atem:function_calls>\n<atem:invoke name="{name}">\n{parameters}</atem:invoke>\n</atem:function_calls>'


def result(name: str, text: str) -> str:
    return (
        f'<|start|>tool {name}<|message|><tool_output name="{name}">\n{text}\n</tool_output><|eot|>'
    )
