"""The conversation as plain frozen data.

Rules: no IO, no parsing, no rendering. One :class:`Message` is one message of
the wire: an assistant turn that thinks, answers and calls is several of them.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Literal, TypeAlias

from .wire import dotted

Role: TypeAlias = Literal["system", "developer", "user", "assistant", "tool"]
Span: TypeAlias = tuple[int, int]
"""``(start, end)`` in characters of the decoded stream."""

RejectReason: TypeAlias = Literal["unknown_tool", "malformed", "incomplete", "invalid_arguments"]


@dataclass(frozen=True, slots=True)
class TextPart:
    """A run of text in a message's content."""

    text: str


@dataclass(frozen=True, slots=True)
class ImagePart:
    """An image in a message's content. ``source`` is opaque here: bytes, a path, a URL."""

    source: Any = None


@dataclass(frozen=True, slots=True)
class VideoPart:
    """A video in a message's content. ``source`` is opaque here."""

    source: Any = None


Part: TypeAlias = TextPart | ImagePart | VideoPart
Content: TypeAlias = str | tuple[Part | str, ...]
"""A message's content; a string among parts is text."""


@dataclass(frozen=True, slots=True)
class Violation:
    """One way in which arguments differ from a schema. ``path`` is a JSON pointer ("" = root)."""

    path: str
    message: str

    def __str__(self) -> str:
        return f"{self.path or '/'}: {self.message}"


@dataclass(frozen=True, slots=True)
class ToolCall:
    """A call that was decided: complete, well formed, addressed to a declared tool.

    ``index`` is the position in ``Turn.calls``; ``name`` and ``namespace`` are
    the tool as declared, ``raw_name`` is what the model wrote, ``recipient``
    the channel it wrote it in. ``arguments`` are typed by the tool's schema
    (wire_format 7), ``arguments_json`` is their JSON text with non-ASCII kept.
    ``errors`` are the violations of the schema. ``id`` and ``span`` don't
    count in comparisons: two readings of the same text are equal.
    """

    index: int
    id: str = field(compare=False)
    name: str
    namespace: str | None
    raw_name: str
    recipient: str | None
    arguments: dict[str, Any]
    arguments_json: str
    errors: tuple[Violation, ...] = ()
    span: Span = field(default=(0, 0), compare=False)

    @property
    def wire_name(self) -> str:
        """The declared tool's name as the model sees it: ``namespace.name``, or ``name``."""
        return dotted(self.namespace, self.name)


@dataclass(frozen=True, slots=True)
class RejectedCall:
    """A call that must not run, with the reason.

    ``id`` is set if the call had been announced by a ``CallStart``; ``text``
    is what the model wrote; ``arguments`` are set where they could be read;
    ``suggestions`` are the declared tools nearest in name; ``errors`` are set
    for "invalid_arguments".
    """

    reason: RejectReason
    id: str | None = field(compare=False)
    raw_name: str
    arguments: dict[str, Any] | None
    text: str
    suggestions: tuple[str, ...] = ()
    errors: tuple[Violation, ...] = ()
    span: Span = field(default=(0, 0), compare=False)


@dataclass(frozen=True, slots=True)
class Message:
    """One message of a conversation.

    - ``system``, ``developer``, ``user``: ``content``.
    - ``assistant``: ``recipient`` ("self" = reasoning, "user" or None =
      answer, else a tool channel) with ``content``, or with ``calls``.
    - ``tool``: the result ``content`` of the call ``call_id`` to ``name``.

    ``end_turn`` says whether an assistant message ends its turn; None leaves
    it to the position in the conversation.
    """

    role: Role
    content: Content = ""
    recipient: str | None = None
    calls: tuple[ToolCall | RejectedCall, ...] = ()
    name: str | None = None
    call_id: str | None = None
    end_turn: bool | None = None
