"""Items of tools that only another service runs, as calls and outputs of this conversation.

Rules: history from another provider is never refused (responses.md 1.4). What
has a result is shown as a call of a function and its output; what has none to
show is left out, with a note.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from typing import Any, Final, TypeAlias

Fields: TypeAlias = Mapping[str, Any]
Converter: TypeAlias = Callable[[Fields], list[dict[str, Any]]]

SCREENSHOT: Final = "[screenshot]"


def _call(name: str, key: str) -> Converter:
    """A call whose arguments stand under ``key``; its output comes as an item of its own."""

    def convert(item: Fields) -> list[dict[str, Any]]:
        given = item.get(key)
        arguments = given if isinstance(given, Mapping) else {key: given}
        return [_function_call(item, name, arguments)]

    return convert


def _output(key: str, fallback: str) -> Converter:
    def convert(item: Fields) -> list[dict[str, Any]]:
        given = item.get(key)
        said = given if isinstance(given, str) else json.dumps(given, ensure_ascii=False)
        return [_function_output(item, said if given else fallback)]

    return convert


def _screenshot(item: Fields) -> list[dict[str, Any]]:
    return [_function_output(item, SCREENSHOT)]


def _mcp_call(item: Fields) -> list[dict[str, Any]]:
    call = _function_call(item, item.get("name"), item.get("arguments"))
    said = item.get("output") or item.get("error")
    text = said if isinstance(said, str) else json.dumps(said, ensure_ascii=False)
    return [{**call, "namespace": item.get("server_label")}, _function_output(item, text)]


def _code(item: Fields) -> list[dict[str, Any]]:
    call = _function_call(item, "code_interpreter", {"code": item.get("code") or ""})
    outputs = item.get("outputs")
    parts = outputs if isinstance(outputs, list) else []
    logs = [part.get("logs") for part in parts if isinstance(part, Mapping)]
    text = "\n".join(log for log in logs if isinstance(log, str))
    return [call, _function_output(item, text)]


def _left_out(item: Fields) -> list[dict[str, Any]]:
    return []


def _function_call(item: Fields, name: Any, arguments: Any) -> dict[str, Any]:
    return {
        "type": "function_call",
        "call_id": _call_id(item),
        "name": name if isinstance(name, str) and name else "tool",
        "arguments": arguments,
    }


def _function_output(item: Fields, text: str) -> dict[str, Any]:
    return {"type": "function_call_output", "call_id": _call_id(item), "output": text}


def _call_id(item: Fields) -> str:
    """The call's id; some items have it as their own."""
    found = item.get("call_id") or item.get("id")
    return found if isinstance(found, str) else ""


TYPES: Final[dict[str, Converter]] = {
    "local_shell_call": _call("local_shell", "action"),
    "local_shell_call_output": _output("output", "no output"),
    "shell_call": _call("shell", "action"),
    "shell_call_output": _output("output", "no output"),
    "apply_patch_call": _call("apply_patch", "operation"),
    "apply_patch_call_output": _output("output", "done"),
    "computer_call": _call("computer", "action"),
    "computer_call_output": _screenshot,
    "program": _call("program", "code"),
    "program_output": _output("result", "no output"),
    "mcp_call": _mcp_call,
    "code_interpreter_call": _code,
    "web_search_call": _left_out,
    "file_search_call": _left_out,
    "image_generation_call": _left_out,
    "mcp_list_tools": _left_out,
    "mcp_approval_request": _left_out,
    "mcp_approval_response": _left_out,
}
"""Item type -> the function calls and outputs that stand for it."""
