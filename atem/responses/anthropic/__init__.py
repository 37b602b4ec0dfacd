"""Anthropic's Messages as a projection of the Responses API.

Rules: a request is translated into a create body, a response object into a
message, its events into that API's events. Nothing is parsed, rendered or
decided here. Source: responses.md 1.12.
"""

from __future__ import annotations

from .count import token_count
from .faults import error_body
from .message import message
from .request import display, from_messages, in_messages
from .stream import MessagesStream

__all__ = [
    "MessagesStream",
    "display",
    "error_body",
    "from_messages",
    "in_messages",
    "message",
    "token_count",
]
