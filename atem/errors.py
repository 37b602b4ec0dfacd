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


class MissingExtra(AtemError, ImportError):
    """An optional dependency is missing; the text is the line that installs it."""

    def __init__(self, extra: str, needed_for: str) -> None:
        super().__init__(f"{needed_for} needs an extra: pip install 'muse-atem[{extra}]'")
        self.extra = extra
