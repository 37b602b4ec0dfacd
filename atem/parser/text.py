"""Text between the two stages, with its provenance.

Rules: a plain ``str`` in every respect but one: it remembers whether it is framing.
"""

from __future__ import annotations

from typing import Self


class Text(str):
    """What the first stage passes on: equal to its ``str``.

    ``framing`` says that the markers in it are real ones; those of any other
    ``Text`` are quoted. A parser that is fed the object itself goes by that;
    one that is fed the same characters as a plain ``str`` goes by wire_format 5.
    """

    __slots__ = ("framing",)
    __match_args__ = ("text",)
    framing: bool

    def __new__(cls, text: str, *, framing: bool = False) -> Self:
        """``text`` as it is passed on."""
        self = super().__new__(cls, text)
        self.framing = framing
        return self

    @property
    def text(self) -> str:
        """The text as a plain ``str``."""
        return "".join(self)
