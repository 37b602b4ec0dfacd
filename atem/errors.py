"""The error tree: whose fault it is, in the type.

::

    AtemError
    ├── OptionError (ValueError)       an impossible option or combination
    ├── TokenError (TypeError)         a token that a parser can't take
    ├── ParserClosed (RuntimeError)    feed() after close()
    ├── ToolError
    │   ├── InvalidTool (ValueError)   a declaration that can't be used
    │   ├── UnknownTool (LookupError)  the model called what is not declared
    │   └── InvalidArguments (ValueError)  a function refused its arguments
    ├── RenderError (ValueError)       a conversation that can't be rendered
    ├── CheckpointError (ValueError)   a checkpoint that can't be used
    │   ├── UnsafeCheckpoint           it names code, leaves its folder, or lies about its sizes
    │   ├── ConfigError                its configuration is missing, contradictory or unknown
    │   ├── LayoutError                its tensors are of no known layout, or some are missing
    │   ├── TensorError                a tensor's shape, type or values can't be right
    │   └── RopeUndecided              today's and an older export can't be told apart
    ├── EngineError (RuntimeError)
    │   ├── Unsupported (ValueError)   a request asks what this engine can't do
    │   ├── ContextOverflow (ValueError)  prompt and answer don't fit the context
    │   ├── OutOfMemory (MemoryError)  no memory for this request; the engine goes on
    │   ├── EngineClosed               generate() after close()
    │   └── RemoteError (ConnectionError)  a server failed, or answered what it must not
    └── MissingExtra (ImportError)     an optional dependency is not installed

Every message says what was found, where, and what to do next. What a *model*
writes never raises, but for :class:`UnknownTool` under ``unknown="raise"``.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from .messages import RejectedCall, Violation


class AtemError(Exception):
    """Base of every error that atem raises on purpose."""


class OptionError(AtemError, ValueError):
    """An option has a value that can't work, alone or with another; the text says why."""


class TokenError(AtemError, TypeError):
    """A token is of a kind that the parser can't take (for example an id without a tokenizer)."""


class ParserClosed(AtemError, RuntimeError):
    """``feed`` was called after ``close``."""


class ToolError(AtemError):
    """Base of the errors about tools."""


class InvalidTool(ToolError, ValueError):
    """A tool declaration can't be used: its name can't be called, or its schema is broken."""


class UnknownTool(ToolError, LookupError):
    """The model called an undeclared tool and ``unknown="raise"`` was set.

    ``rejected`` is the call as it would have been reported.
    """

    def __init__(self, message: str, rejected: RejectedCall | None = None) -> None:
        super().__init__(message)
        self.rejected = rejected


class InvalidArguments(ToolError, ValueError):
    """Arguments don't fit the tool ``name``; ``violations`` says where and how."""

    def __init__(self, name: str, violations: tuple[Violation, ...]) -> None:
        super().__init__(f"arguments of {name!r}: " + "; ".join(map(str, violations)))
        self.violations = violations


class RenderError(AtemError, ValueError):
    """A conversation, tool or value has no faithful form on the wire."""


class CheckpointError(AtemError, ValueError):
    """A checkpoint can't be used; the text names the file and what to do."""


class UnsafeCheckpoint(CheckpointError):
    """A checkpoint names code, points outside its folder, or lies about what it holds."""


class ConfigError(CheckpointError):
    """The configuration is missing, contradicts itself, or asks for what is not implemented."""


class LayoutError(CheckpointError):
    """The tensors are of no known layout, or some are missing or too many."""


class TensorError(CheckpointError):
    """A tensor has a shape, a type or values that can't be right."""


class RopeUndecided(CheckpointError):
    """The rows of q and k may be in the order of an older export; the text says what to set."""


class EngineError(AtemError, RuntimeError):
    """Base of what goes wrong while a model runs."""


class Unsupported(EngineError, ValueError):
    """A request asks for something that this engine can't honour."""


class ContextOverflow(EngineError, ValueError):
    """Prompt and answer don't fit into the context."""


class OutOfMemory(EngineError, MemoryError):
    """There is no memory for this request; others, and later ones, are not affected."""


class EngineClosed(EngineError):
    """The engine was used after ``close``."""


class RemoteError(EngineError, ConnectionError):
    """A server can't be reached, failed, or broke off; ``status`` is its HTTP status, if any.

    ``late`` says that it was waited for, for too long.
    """

    def __init__(self, message: str, status: int | None = None, *, late: bool = False) -> None:
        super().__init__(message)
        self.status = status
        self.late = late


class MissingExtra(AtemError, ImportError):
    """An optional dependency is missing; the text is the line that installs it."""

    def __init__(self, extra: str, needed_for: str) -> None:
        super().__init__(f"{needed_for} needs an extra: pip install 'muse-atem[{extra}]'")
        self.extra = extra
