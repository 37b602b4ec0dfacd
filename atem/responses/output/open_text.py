"""Items that are text: an answer, and reasoning in its two forms.

Rules: one part in each item, at place 0, announced with the item, grown by
deltas and closed with the whole text. The deltas joined are the text.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, Literal, NamedTuple, TypeAlias

from .open_item import OpenItem

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from .outbox import Outbox

EventNames: TypeAlias = Literal["openai", "openresponses"]
"""Whose name raw reasoning has in events (responses.md 1.7)."""


class Form(NamedTuple):
    """How the one part of an item is told: its type, its place, its events."""

    part: str
    field: str
    place: str
    part_events: str
    text_events: str


ANSWER: Final = Form("output_text", "content", "content_index", "content_part", "output_text")
SUMMARY: Final = Form(
    "summary_text",
    "summary",
    "summary_index",
    "reasoning_summary_part",
    "reasoning_summary_text",
)
THOUGHTS: Final[dict[EventNames, Form]] = {
    "openai": Form("reasoning_text", "content", "content_index", "content_part", "reasoning_text"),
    "openresponses": Form(
        "reasoning_text", "content", "content_index", "content_part", "reasoning"
    ),
}


class OpenText(OpenItem):
    """An item with one part of text."""

    def __init__(
        self, out: Outbox, index: int, item: dict[str, Any], form: Form, part: dict[str, Any]
    ) -> None:
        super().__init__(out, index, item)
        self._form = form
        self._part = part
        self._pieces: list[str] = []
        self._put(f"{form.part_events}.added", **{form.place: 0}, part=self._copy())

    def grow(self, text: str, logprobs: Sequence[dict[str, Any]] = ()) -> None:
        """The next piece of the text."""
        self._pieces.append(text)
        self._text_event("delta", delta=text, logprobs=list(logprobs))

    @property
    def text(self) -> str:
        """What was written so far."""
        return "".join(self._pieces)

    def _finish(self) -> None:
        self._part["text"] = self.text
        self._text_event("done", text=self.text, logprobs=list(self._part.get("logprobs", ())))
        self._put(f"{self._form.part_events}.done", **{self._form.place: 0}, part=self._copy())
        self.item[self._form.field] = [self._part]

    def _text_event(self, kind: str, *, logprobs: list[dict[str, Any]], **fields: Any) -> None:
        if self._form is ANSWER:  # the only one whose events have them, and there they must be
            fields["logprobs"] = logprobs
        self._put(f"{self._form.text_events}.{kind}", **{self._form.place: 0}, **fields)

    def _copy(self) -> dict[str, Any]:
        return {key: list(v) if isinstance(v, list) else v for key, v in self._part.items()}


class OpenMessage(OpenText):
    """An answer, or something said to the user on the way to one."""

    def __init__(self, out: Outbox, index: int, item_id: str) -> None:
        item: dict[str, Any] = {
            "id": item_id,
            "type": "message",
            "status": "in_progress",
            "role": "assistant",
            "content": [],
        }
        part = {"type": ANSWER.part, "text": "", "annotations": [], "logprobs": []}
        super().__init__(out, index, item, ANSWER, part)

    def grow(self, text: str, logprobs: Sequence[dict[str, Any]] = ()) -> None:
        """The next piece, with the log-probabilities of its tokens if they were asked for."""
        self._part["logprobs"].extend(logprobs)
        super().grow(text, logprobs)


class OpenReasoning(OpenText):
    """Reasoning. ``seal`` turns its text into ``encrypted_content``."""

    def __init__(
        self,
        out: Outbox,
        index: int,
        item_id: str,
        form: Form,
        seal: Callable[[str], str] | None = None,
    ) -> None:
        item: dict[str, Any] = {
            "id": item_id,
            "type": "reasoning",
            "status": "in_progress",
            "summary": [],
            "content": [],
        }
        super().__init__(out, index, item, form, {"type": form.part, "text": ""})
        self._seal = seal

    def _finish(self) -> None:
        super()._finish()
        if self._seal is not None:
            self.item["encrypted_content"] = self._seal(self.text)
