"""A conversation as the prompt that the model was trained on, and as its token ids.

Rules: pure functions from data to segments; no IO, no clock, no parsing of
model output. Only framing tokens and image or video placeholders are control
segments. Everything else is text, also header words, tool names and schemas:
text is encoded without special tokens, so that nobody's text can forge framing.

:meth:`Prompt.text` equals the model's own chat template (wire_format 2) byte
for byte on what that template renders faithfully. Where the template drops
data, fails or guesses, the renderer does this instead:

- **Arguments as a JSON string** (the OpenAI shape; the template raises) are decoded.
- **Content beside tool calls** (the template drops it) is a message of its own before the calls.
- **A rejected call** (the template knows none) is the text that the model wrote, in its channel,
  in a block if it is a bare invoke. :func:`render_turn` refuses it.
- **Reasoning** is read from ``reasoning_content``, ``reasoning`` or ``thinking``; the template
  knows the first. Two that differ are refused.
- **Role developer** has no form in the template (it is dropped). It becomes a system message.
- **Other roles** (dropped) are refused.
- **Content parts** ``input_text``, ``output_text``, ``refusal``, ``image_url``, ``input_image``,
  ``video_url`` and ``input_video`` (dropped) are text, image and video; other types are refused.
- **A tool without description or parameters** (the template fails), or with null, gets ``""``
  and ``{}``.
- **A tool result** takes its name from the nearest earlier call with its id. The template takes
  the last call of the whole conversation, so that ids that repeat per turn rename old results.
  A result whose id matches nothing is named by its id, as in the template; in Responses items it
  is refused.
- **NaN and Infinity** (no JSON) and **names that would break a header or a tag** are refused;
  what the parser gives as a name can always be written.
- **A name in the recipients line**: the template advertises an undotted tool ``read`` as
  ``"read.*"``, which makes models call ``read.read`` (field_reports 56). ``recipients="exact"``
  writes ``"read"``; the default is the template's.
- **The date**: the template writes today's, which changes every prompt every day. Here it is
  :data:`DEFAULT_DATE` unless ``current_date`` says otherwise.

Two of the template's rules to know. A system text that mentions "reasoning
strength" or "reasoning effort" gets no strength line of ours, whatever
``reasoning_strength`` says, and its "effort" becomes "strength". Every system
message repeats tools and recipients.

What the format can't express stays so: there is no escaping, so a string value
or a tool output may hold ``</atem:parameter>`` or ``</tool_output>`` as text.
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
