"""Claude Code: the variables of its environment.

Rules: every kind of model that it asks for by itself is this one; it calls
nobody but this server.
"""

from __future__ import annotations

import shlex
from typing import TYPE_CHECKING

from .endpoint import KEY_VARIABLE, NO_KEY

if TYPE_CHECKING:
    from .endpoint import Endpoint

MODELS = (
    "ANTHROPIC_MODEL",
    "ANTHROPIC_DEFAULT_OPUS_MODEL",
    "ANTHROPIC_DEFAULT_SONNET_MODEL",
    "ANTHROPIC_DEFAULT_HAIKU_MODEL",
    "CLAUDE_CODE_SUBAGENT_MODEL",
)


def claude(endpoint: Endpoint) -> str:
    """The lines."""
    model = shlex.quote(endpoint.model)
    key = f'"${KEY_VARIABLE}"' if endpoint.keyed else NO_KEY
    values = {
        "ANTHROPIC_BASE_URL": endpoint.root,
        "ANTHROPIC_AUTH_TOKEN": key,
        **dict.fromkeys(MODELS, model),
        "CLAUDE_CODE_MAX_CONTEXT_TOKENS": endpoint.context,
        "CLAUDE_CODE_MAX_OUTPUT_TOKENS": endpoint.output,
        "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": 1,
    }
    lines = [f"export {name}={value}" for name, value in values.items()]
    return "\n".join(["# Claude Code: then run claude in the same shell.", *lines]) + "\n"
