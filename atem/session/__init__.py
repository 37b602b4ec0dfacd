"""The turn loop: conversation to engine, what it writes to the parser, its calls to the tools.

Rules: plain data in and out, events as they come. Nothing here reads a file, a
clock or a socket, starts a thread or asks a person: the engine generates, ``run``
runs a call, ``ask`` asks, and the caller gave all three.
"""

from __future__ import annotations

from .events import Feedback, SessionEvent, TaskEnd, ToolEnd, ToolStart, TurnStart
from .limits import Limits
from .replies import Run, run_functions
from .session import Ask, Session

__all__ = [
    "Ask",
    "Feedback",
    "Limits",
    "Run",
    "Session",
    "SessionEvent",
    "TaskEnd",
    "ToolEnd",
    "ToolStart",
    "TurnStart",
    "run_functions",
]
