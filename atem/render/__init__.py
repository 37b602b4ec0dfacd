"""A conversation as the prompt that the model was trained on, and as its token ids.

Rules: pure functions from data to segments; no IO, no clock, no parsing of
model output. Only framing tokens and image or video placeholders are control
segments. Everything else is text, also header words, tool names and schemas:
text is encoded without special tokens, so that nobody's text can forge framing.

:meth:`Prompt.text` equals the model's own chat template (wire_format 2) byte
for byte on what that template renders faithfully. Where it drops data, fails or
guesses, docs/render.md says what is done instead.
"""

from __future__ import annotations

from .chat import from_chat
from .conversation import render
from .effort import EFFORTS, STRENGTHS, strength_of
from .items import from_items
from .phrases import DEFAULT_DATE, KNOWLEDGE_CUTOFF
from .prompt import Prompt, Segment
from .turn import render_turn

__all__ = [
    "DEFAULT_DATE",
    "EFFORTS",
    "KNOWLEDGE_CUTOFF",
    "STRENGTHS",
    "Prompt",
    "Segment",
    "from_chat",
    "from_items",
    "render",
    "render_turn",
    "strength_of",
]
