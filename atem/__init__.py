"""atem: an independent SDK for ATEM, the wire format of the Muse Glimmer models.

``parse`` and ``parse_stream`` turn what a model writes into events and calls,
``render`` turns a conversation into a prompt, ``ToolSet`` describes the tools;
``load`` gives an engine for a checkpoint or a server.
Most names are loaded on first use; ``import atem`` itself loads the renderer
(about 50 ms).
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any, Final

# Not lazy: the package of the same name would take the function's place.
from .render import render as render

__version__ = "0.1.0"

if TYPE_CHECKING:
    from .checkup import doctor as doctor
    from .engine import GREEDY as GREEDY
    from .engine import Engine as Engine
    from .engine import EngineInfo as EngineInfo
    from .engine import Progress as Progress
    from .engine import Request as Request
    from .engine import Sampling as Sampling
    from .engine import Step as Step
    from .errors import AtemError as AtemError
    from .errors import CheckpointError as CheckpointError
    from .errors import ConfigError as ConfigError
    from .errors import ContextOverflow as ContextOverflow
    from .errors import EngineClosed as EngineClosed
    from .errors import EngineError as EngineError
    from .errors import InvalidArguments as InvalidArguments
    from .errors import InvalidTool as InvalidTool
    from .errors import LayoutError as LayoutError
    from .errors import MissingExtra as MissingExtra
    from .errors import OptionError as OptionError
    from .errors import OutOfMemory as OutOfMemory
    from .errors import ParserClosed as ParserClosed
    from .errors import RemoteError as RemoteError
    from .errors import RenderError as RenderError
    from .errors import RopeUndecided as RopeUndecided
    from .errors import TensorError as TensorError
    from .errors import TokenError as TokenError
    from .errors import ToolError as ToolError
    from .errors import UnknownTool as UnknownTool
    from .errors import UnsafeCheckpoint as UnsafeCheckpoint
    from .errors import Unsupported as Unsupported
    from .messages import ImagePart as ImagePart
    from .messages import Message as Message
    from .messages import RejectedCall as RejectedCall
    from .messages import TextPart as TextPart
    from .messages import ToolCall as ToolCall
    from .messages import VideoPart as VideoPart
    from .messages import Violation as Violation
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
    from .parser.options import ParserOptions as ParserOptions
    from .parser.options import Reason as Reason
    from .parser.text import Text as Text
    from .parser.two_stage import split_channels as split_channels
    from .render import Prompt as Prompt
    from .render import Segment as Segment
    from .render import from_chat as from_chat
    from .render import from_items as from_items
    from .render import render_turn as render_turn
    from .runtime.load import load as load
    from .runtime.load import plan as plan
    from .session import Session as Session
    from .tools import Allow as Allow
    from .tools import Ask as Ask
    from .tools import Decision as Decision
    from .tools import Deny as Deny
    from .tools import Opinion as Opinion
    from .tools import Policy as Policy
    from .tools import Tool as Tool
    from .tools import ToolSet as ToolSet
    from .tools import allow_all as allow_all
    from .tools import ask_all as ask_all
    from .tools import by_name as by_name
    from .tools import feedback as feedback
    from .tools import first_of as first_of
    from .tools import tool as tool
    from .tools import validate as validate
    from .wire import Piece as Piece

_EXPORTS: Final[dict[str, str]] = {
    "doctor": "checkup",
    "GREEDY": "engine",
    "Engine": "engine",
    "EngineInfo": "engine",
    "Progress": "engine",
    "Request": "engine",
    "Sampling": "engine",
    "Step": "engine",
    "AtemError": "errors",
    "CheckpointError": "errors",
    "ConfigError": "errors",
    "ContextOverflow": "errors",
    "EngineClosed": "errors",
    "EngineError": "errors",
    "InvalidArguments": "errors",
    "InvalidTool": "errors",
    "LayoutError": "errors",
    "MissingExtra": "errors",
    "OptionError": "errors",
    "OutOfMemory": "errors",
    "ParserClosed": "errors",
    "RemoteError": "errors",
    "RenderError": "errors",
    "RopeUndecided": "errors",
    "TensorError": "errors",
    "TokenError": "errors",
    "ToolError": "errors",
    "UnknownTool": "errors",
    "UnsafeCheckpoint": "errors",
    "Unsupported": "errors",
    "ImagePart": "messages",
    "Message": "messages",
    "RejectedCall": "messages",
    "TextPart": "messages",
    "ToolCall": "messages",
    "VideoPart": "messages",
    "Violation": "messages",
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
    "ParserOptions": "parser.options",
    "Reason": "parser.options",
    "Text": "parser.text",
    "split_channels": "parser.two_stage",
    "Prompt": "render",
    "Segment": "render",
    "from_chat": "render",
    "from_items": "render",
    "render_turn": "render",
    "load": "runtime.load",
    "plan": "runtime.load",
    "Session": "session",
    "Allow": "tools",
    "Ask": "tools",
    "Decision": "tools",
    "Deny": "tools",
    "Opinion": "tools",
    "Policy": "tools",
    "Tool": "tools",
    "ToolSet": "tools",
    "allow_all": "tools",
    "ask_all": "tools",
    "by_name": "tools",
    "feedback": "tools",
    "first_of": "tools",
    "tool": "tools",
    "validate": "tools",
    "Piece": "wire",
}
"""Public name -> the module that holds it."""

__all__ = sorted([*_EXPORTS, "render"])  # noqa: PLE0605


def __getattr__(name: str) -> Any:
    if name not in _EXPORTS:
        raise AttributeError(f"module 'atem' has no attribute {name!r}")
    value = getattr(import_module(f".{_EXPORTS[name]}", __name__), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted([*__all__, *(name for name in globals() if name.startswith("__"))])
