"""atem: an independent SDK for ATEM, the wire format of the Muse Glimmer models.

``parse`` and ``parse_stream`` turn what a model writes into events and calls,
``render`` turns a conversation into a prompt, ``ToolSet`` describes the tools.
Names are loaded on first use: ``import atem`` costs next to nothing.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any, Final

__version__ = "0.1.0"

if TYPE_CHECKING:
    from .engine import Step as Step
    from .errors import AtemError as AtemError
    from .errors import MissingExtra as MissingExtra
    from .errors import UnknownTool as UnknownTool
    from .messages import Message as Message
    from .messages import RejectedCall as RejectedCall
    from .messages import ToolCall as ToolCall
    from .parser.api import Parser as Parser
    from .parser.api import aparse_stream as aparse_stream
    from .parser.api import parse as parse
    from .parser.api import parse_stream as parse_stream
    from .parser.events import ArgumentsDelta as ArgumentsDelta
    from .parser.events import CallEnd as CallEnd
    from .parser.events import CallRejected as CallRejected
    from .parser.events import CallStart as CallStart
    from .parser.events import ContentDelta as ContentDelta
    from .parser.events import Event as Event
    from .parser.events import MessageEnd as MessageEnd
    from .parser.events import MessageStart as MessageStart
    from .parser.events import Problem as Problem
    from .parser.events import ReasoningDelta as ReasoningDelta
    from .parser.events import TurnEnd as TurnEnd
    from .parser.fold import Turn as Turn
    from .parser.fold import collect as collect
    from .parser.two_stage import Text as Text
    from .parser.two_stage import split_channels as split_channels
    from .wire import Piece as Piece

_EXPORTS: Final[dict[str, str]] = {
    "AtemError": "errors",
    "MissingExtra": "errors",
    "UnknownTool": "errors",
    "Message": "messages",
    "RejectedCall": "messages",
    "ToolCall": "messages",
    "Piece": "wire",
    "Step": "engine",
    "Parser": "parser.api",
    "aparse_stream": "parser.api",
    "parse": "parser.api",
    "parse_stream": "parser.api",
    "ArgumentsDelta": "parser.events",
    "CallEnd": "parser.events",
    "CallRejected": "parser.events",
    "CallStart": "parser.events",
    "ContentDelta": "parser.events",
    "Event": "parser.events",
    "MessageEnd": "parser.events",
    "MessageStart": "parser.events",
    "Problem": "parser.events",
    "ReasoningDelta": "parser.events",
    "TurnEnd": "parser.events",
    "Turn": "parser.fold",
    "collect": "parser.fold",
    "Text": "parser.two_stage",
    "split_channels": "parser.two_stage",
}
"""Public name -> the module that holds it."""

__all__ = sorted(_EXPORTS)  # noqa: PLE0605


def __getattr__(name: str) -> Any:
    if name not in _EXPORTS:
        raise AttributeError(f"module 'atem' has no attribute {name!r}")
    value = getattr(import_module(f".{_EXPORTS[name]}", __name__), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted([*globals(), *_EXPORTS])
