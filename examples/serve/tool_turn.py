"""A tool turn with the openai package: the model asks for a tool, and answers with its result.

    atem-serve --engine scripted:examples/serve/script.toml
    pip install openai && python examples/serve/tool_turn.py

With a model of yours in place of the script it is the same.
"""

from __future__ import annotations

import json
import os

from openai import OpenAI


def tide_at(port: str) -> str:
    return f"{port}: 15:02"


TOOLS = [
    {
        "type": "function",
        "name": "tide_at",
        "description": "The time of high water.",
        "parameters": {
            "type": "object",
            "properties": {"port": {"type": "string"}},
            "required": ["port"],
            "additionalProperties": False,
        },
    }
]

client = OpenAI(
    base_url=os.environ.get("OPENAI_BASE_URL", "http://127.0.0.1:8420/v1"),
    api_key=os.environ.get("OPENAI_API_KEY", "none"),
)
model = client.models.list().data[0].id
answer = client.responses.create(model=model, tools=TOOLS, input="When is high water in Vigo?")
results = []
for item in answer.output:
    if item.type == "function_call":
        print("call", item.name, item.arguments)
        result = tide_at(**json.loads(item.arguments))
        results.append({"type": "function_call_output", "call_id": item.call_id, "output": result})
answer = client.responses.create(
    model=model, tools=TOOLS, input=results, previous_response_id=answer.id
)
print(answer.output_text)
