"""opencode: its ``opencode.json``, with the server behind both kinds of provider.

Rules: "atem" speaks the Responses API, "atem-chat" Chat Completions. Over
Responses reasoning is shown only as the summary that opencode has to be told to
ask for.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any, Final

from .endpoint import KEY_VARIABLE, NO_KEY

if TYPE_CHECKING:
    from .endpoint import Endpoint

PROVIDERS: Final = {"atem": "@ai-sdk/openai", "atem-chat": "@ai-sdk/openai-compatible"}
"""Provider -> the package that speaks for it."""


def opencode(endpoint: Endpoint) -> str:
    """The file."""
    written = {
        "$schema": "https://opencode.ai/config.json",
        "model": f"atem/{endpoint.model}",
        "small_model": f"atem/{endpoint.model}",
        "provider": {
            name: _provider(endpoint, name, package) for name, package in PROVIDERS.items()
        },
    }
    return json.dumps(written, indent=2, ensure_ascii=False) + "\n"


def _provider(endpoint: Endpoint, name: str, package: str) -> dict[str, Any]:
    key = f"{{env:{KEY_VARIABLE}}}" if endpoint.keyed else NO_KEY
    model: dict[str, Any] = {
        "name": endpoint.model,
        "reasoning": True,
        "tool_call": True,
        "limit": {"context": endpoint.context, "output": endpoint.output},
    }
    if name == "atem":
        model["options"] = {"reasoningSummary": "auto"}
    return {
        "npm": package,
        "name": f"atem-serve ({'Chat Completions' if name == 'atem-chat' else 'Responses'})",
        "options": {"baseURL": endpoint.url, "apiKey": key},
        "models": {endpoint.model: model},
    }
