"""The literals of the ATEM wire format, each written once.

Rules: nothing here reads or writes a stream. Every other module takes a
marker from this one, so a change of the format is a change of this file.
Sources: wire_format 1 (tokens), 2 (template), 3 (grammar).
"""

from __future__ import annotations

from typing import Final, NamedTuple

VERSION: Final = "glimmer-1"
"""Name of the wire version that these literals describe (not the package's version)."""

# Framing: single special tokens in current checkpoints (wire_format 1).
BEGIN_OF_TEXT: Final = "<|begin_of_text|>"
END_OF_TEXT: Final = "<|end_of_text|>"
EOM: Final = "<|eom|>"
EOT: Final = "<|eot|>"
START: Final = "<|start|>"
MESSAGE: Final = "<|message|>"

# Placeholders, prompt only.
PATCH: Final = "<|patch|>"
VIDEO: Final = "<|video|>"
IMAGE_START: Final = "<|image_start|>"
IMAGE_END: Final = "<|image_end|>"

TERMINATORS: Final = (EOM, EOT, END_OF_TEXT)
"""End a message; the last two also end the turn."""

TURN_ENDS: Final = (EOT, END_OF_TEXT)
"""The stop tokens of a generation. ``<|eom|>`` is never one (wire_format 1)."""

FRAMING: Final = (START, MESSAGE, EOM, EOT, END_OF_TEXT)
"""The markers that mean something in a generated turn."""

REQUIRED_SPECIALS: Final = (START, MESSAGE, EOM, EOT)
"""A tokenizer without one of these as a single token forces text mode (wire_format 1.1)."""

CONTROL: Final = (BEGIN_OF_TEXT, *FRAMING, PATCH, VIDEO, IMAGE_START, IMAGE_END)
"""Every control token that untrusted text must never turn into."""

# ATEM tags: ordinary text on the wire.
TAG_PREFIX: Final = "<atem:"
BLOCK_OPEN: Final = "<atem:function_calls>"
BLOCK_CLOSE: Final = "</atem:function_calls>"
INVOKE_OPEN: Final = "<atem:invoke"
INVOKE_CLOSE: Final = "</atem:invoke>"
PARAMETER_OPEN: Final = "<atem:parameter"
PARAMETER_CLOSE: Final = "</atem:parameter>"

# Headers.
ASSISTANT: Final = "assistant"
OTHER_ROLES: Final = ("user", "tool", "system", "developer")
TO: Final = "to="
SELF: Final = "self"
USER: Final = "user"
COMMENTARY: Final = "commentary"

WHITESPACE: Final = " \t\r\n"
"""What "blank" means everywhere in the format (wire_format 3); never a wider class."""

BREAKS_TAG: Final = '<>"'
"""Characters that end or reopen a tag or a quoted name (wire_format 3)."""

BREAKS_HEADER: Final = "<" + WHITESPACE
"""Characters that end a recipient (wire_format 3)."""

MAX_TAG: Final = 1024
"""Characters within which a tag must reach its ``>`` (wire_format 3)."""

MAX_HEADER: Final = 256
"""Characters after which a header is given up by default (wire_format 3.1, rule 8)."""


class Piece(NamedTuple):
    """One token's text with its provenance (wire_format 1.1).

    ``special`` is True for a real special token of the tokenizer. A framing
    marker spelled by a piece that is not special is text.
    """

    text: str
    special: bool = False


def dotted(namespace: str | None, name: str) -> str:
    """The name of a tool as the model sees and writes it: ``namespace.name``, or ``name``."""
    return f"{namespace}.{name}" if namespace else name


def invoke_open(name: str) -> str:
    """The opening tag of a call to ``name`` as the template writes it (wire_format 2)."""
    return f'{INVOKE_OPEN} name="{name}">'


def parameter_open(key: str) -> str:
    """The opening tag of the parameter ``key`` as the template writes it (wire_format 2)."""
    return f'{PARAMETER_OPEN} name="{key}">'
