"""A rendered prompt: segments that are control or text, and what becomes of them.

Rules: nothing here knows what a message looks like. Adjacent texts are one
segment, because a tokenizer must see them as one: the same characters in two
pieces are other tokens than the model was trained on.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, Literal, TypeAlias

from .. import wire
from ..errors import RenderError
from ..messages import Content, ImagePart, Part, TextPart, VideoPart
from ..tokenizer import Tokenizer, wrap
from .accepted import TEXT_PART, check_object

if TYPE_CHECKING:
    from collections.abc import Iterator

Kind: TypeAlias = Literal["control", "text", "image", "video"]

ACCEPTED: Final = (
    "content is a string, or a tuple of strings, TextPart, ImagePart and VideoPart "
    "(from_chat and from_items make them from dicts)"
)


@dataclass(frozen=True, slots=True)
class Segment:
    """A run of a prompt. ``source`` is the image or video that a placeholder stands for."""

    text: str
    kind: Kind = "text"
    source: Any = None

    @property
    def control(self) -> bool:
        """True for a special token: framing or a placeholder."""
        return self.kind != "text"


@dataclass(frozen=True, slots=True)
class Prompt:
    """What the model is asked with, as segments in order.

    An image or video is one placeholder token here; a processor expands it to
    as many as the picture needs.
    """

    segments: tuple[Segment, ...]

    def __iter__(self) -> Iterator[Segment]:
        return iter(self.segments)

    def __len__(self) -> int:
        return len(self.segments)

    def text(self) -> str:
        """The prompt as the model's chat template writes it.

        Its control tokens can't be told from text that spells them: for
        display, and for servers that take nothing else.
        """
        return "".join(segment.text for segment in self.segments)

    @property
    def images(self) -> tuple[Any, ...]:
        """The sources of the images, in order."""
        return tuple(segment.source for segment in self.segments if segment.kind == "image")

    @property
    def videos(self) -> tuple[Any, ...]:
        """The sources of the videos, in order."""
        return tuple(segment.source for segment in self.segments if segment.kind == "video")

    def token_ids(self, tokenizer: object, *, legacy: bool = False) -> list[int]:
        """The prompt's ids, ``<|begin_of_text|>`` included: add no special tokens to them.

        ``tokenizer`` is anything that :func:`atem.tokenizer.wrap` takes. Raises
        RenderError if it lacks a special token that the prompt needs. With
        ``legacy=True`` framing that is no special token is spelled with
        ordinary pieces, as exports without these tokens were trained; text
        can forge framing there, because there is no difference.
        Raises TokenError for text that has no UTF-8 form.
        """
        known = wrap(tokenizer)
        ids: list[int] = []
        pending: list[str] = []
        for segment in self.segments:
            special = _special(known, segment, legacy=legacy) if segment.control else None
            if special is None:
                pending.append(segment.text)
            else:
                ids += _encoded(known, pending)
                ids.append(special)
                pending.clear()
        return ids + _encoded(known, pending)


def _special(tokenizer: Tokenizer, segment: Segment, *, legacy: bool) -> int | None:
    special = tokenizer.special_id(segment.text)
    if special is not None or (legacy and segment.kind == "control"):
        return special
    raise RenderError(
        f"the tokenizer has no special token {segment.text!r}, which the prompt needs; use the "
        "tokenizer of the checkpoint, or legacy=True for an export that spells framing as text"
    )


def _encoded(tokenizer: Tokenizer, texts: list[str]) -> list[int]:
    return tokenizer.encode("".join(texts)) if texts else []


class Writer:
    """Collects segments; adjacent texts become one, empty ones none."""

    def __init__(self) -> None:
        self._done: list[Segment] = []
        self._open: list[str] = []

    def control(self, token: str) -> None:
        """A framing token."""
        self._put(Segment(token, "control"))

    def text(self, text: str) -> None:
        """Anything else."""
        if text:
            self._open.append(text)

    def content(self, content: Content) -> None:
        """A message's content; an image or video becomes its placeholder."""
        for part in as_parts(content):
            if isinstance(part, TextPart):
                self.text(part.text)
            elif isinstance(part, ImagePart):
                self._put(Segment(wire.PATCH, "image", part.source))
            else:
                self._put(Segment(wire.VIDEO, "video", part.source))

    def prompt(self) -> Prompt:
        """What was written so far."""
        self._flush()
        return Prompt(tuple(self._done))

    def _put(self, segment: Segment) -> None:
        self._flush()
        self._done.append(segment)

    def _flush(self) -> None:
        if self._open:
            self._done.append(Segment("".join(self._open)))
            self._open.clear()


def as_parts(content: Content, where: str = "a message") -> tuple[Part, ...]:
    """``content`` in its long form. Raises RenderError for anything else, naming ``where``."""
    if isinstance(content, str):
        return (TextPart(content),)
    if not isinstance(content, tuple | list):
        raise RenderError(f"the content of {where} is a {type(content).__name__}; {ACCEPTED}")
    return tuple(_as_part(part, where) for part in content)


def _as_part(part: object, where: str) -> Part:
    if isinstance(part, TextPart):
        check_object(part, TEXT_PART, f"a text part of {where}")
        return part
    if isinstance(part, ImagePart | VideoPart):
        return part
    if isinstance(part, str):
        return TextPart(part)
    raise RenderError(f"the content of {where} holds a {type(part).__name__}; {ACCEPTED}")
