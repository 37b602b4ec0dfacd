"""What the first of two stages knows of a tool message and the second can't see.

Rules: the second stage reads text without the reasoning that stood between its
messages, so an end that hung on that reasoning has to be told. It is told in
the whitespace of the header, which means nothing in the format (wire_format
3.1): nothing is added to the text, and a header without a note reads as ever.
A note is believed: ``framed=True`` is for what :func:`split_channels` passed on,
which writes every header anew, and for nothing else.
"""

from __future__ import annotations

import re
from typing import Final, NamedTuple

from .. import wire

_SIGN: Final = "\r"
_FLAGS: Final = {"barred": "\t", "recovered": "\n", "cut": " "}
_DIGITS: Final = " \t"
_NOTE: Final = re.compile(
    f"{re.escape(wire.START + wire.ASSISTANT)}{_SIGN}([\t\n ]*){wire.TO}[^\\s<]+([ \t]*)"
    f"{re.escape(wire.MESSAGE)}"
)


class Handover(NamedTuple):
    """A note on one tool message.

    ``refused`` is the number of candidates that the body goes on behind,
    ``barred`` says that none of its calls may run, ``recovered`` that the
    header was recovered from reasoning (wire_format 5.3), ``cut`` that the
    cut rule holds although a terminator follows (wire_format 4).
    """

    refused: int = 0
    barred: bool = False
    recovered: bool = False
    cut: bool = False

    def header(self, recipient: str) -> str:
        """The header of a message to ``recipient`` that carries this note."""
        flags = "".join(sign for flag, sign in _FLAGS.items() if getattr(self, flag))
        count = "".join(_DIGITS[bit == "1"] for bit in f"{self.refused:b}")
        return (
            f"{wire.START}{wire.ASSISTANT}{_SIGN}{flags}{wire.TO}{recipient}{count}{wire.MESSAGE}"
        )


def header(recipient: str | None) -> str:
    """The plain header of a message to ``recipient``, as the template writes it."""
    to = "" if recipient is None else f" {wire.TO}{recipient}"
    return f"{wire.START}{wire.ASSISTANT}{to}{wire.MESSAGE}"


def read_note(header_text: str) -> Handover | None:
    """The note in a header, or None if it carries none."""
    found = _NOTE.fullmatch(header_text)
    if found is None:
        return None
    flags, count = found.groups()
    bits = "".join(str(_DIGITS.index(digit)) for digit in count)
    return Handover(int(bits or "0", 2), *(sign in flags for sign in _FLAGS.values()))
