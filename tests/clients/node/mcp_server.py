"""A small MCP server over standard input and output: one tool that tells the weather.

Rules: JSON-RPC by the line, as much of it as a client needs to find the tool and call it.
"""

from __future__ import annotations

import json
import sys

TOOL = {
    "name": "forecast",
    "description": "The weather forecast of a city.",
    "inputSchema": {
        "type": "object",
        "properties": {"city": {"type": "string"}},
        "required": ["city"],
    },
}


def initialize(params):
    return {
        "protocolVersion": params.get("protocolVersion", "2025-06-18"),
        "capabilities": {"tools": {}},
        "serverInfo": {"name": "weather", "version": "1"},
    }


def call_tool(params):
    text = f"Rain in {params['arguments']['city']}, 11 degrees."
    return {"content": [{"type": "text", "text": text}]}


ANSWERS = {
    "initialize": initialize,
    "ping": lambda params: {},
    "tools/list": lambda params: {"tools": [TOOL]},
    "tools/call": call_tool,
}

if __name__ == "__main__":
    for line in sys.stdin:
        asked = json.loads(line)
        if "id" in asked:
            method = ANSWERS.get(asked["method"])
            said = (
                {"result": method(asked.get("params") or {})}
                if method
                else {"error": {"code": -32601, "message": "no such method"}}
            )
            sys.stdout.write(json.dumps({"jsonrpc": "2.0", "id": asked["id"], **said}) + "\n")
            sys.stdout.flush()
