"""Chat Completions as a projection of the Responses API.

Rules: a request is translated into a create body, a response object into a
completion, its events into chunks. Nothing is parsed, rendered or decided here.
Source: responses.md 1.11.
"""

from __future__ import annotations

from .completion import completion
from .request import from_chat, in_chat, wants_usage
from .stream import ChatStream

__all__ = ["ChatStream", "completion", "from_chat", "in_chat", "wants_usage"]
