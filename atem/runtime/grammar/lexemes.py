"""Texts on the wire as lexemes: quoted literals, and values that are bare text.

Rules: a bare value ends where the parser ends it (wire_format 5.5, the first
reading): at a closer behind which, blanks between, a parameter or the end of the
invoke follows. So a closer that is quoted cuts nothing, and what can't be told
from an end is one.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Final

from ... import wire

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from ...grammar import Form

_ANYTHING: Final = "(?s:.*)"


def quoted(text: str) -> str:
    """``text`` as a literal."""
    return json.dumps(text)


def choice(options: Sequence[str]) -> str:
    """One of some rules."""
    return options[0] if len(options) == 1 else f"({' | '.join(options)})"


class Lexemes:
    """The lexemes of bare values, each written once into ``rules``."""

    def __init__(self, rules: list[str], escape: Callable[[str], str]) -> None:
        self._rules = rules
        self._names: dict[Form, tuple[str, str]] = {}
        self._escape = escape
        blank = "[" + "".join(f"\\x{ord(char):02x}" for char in wire.WHITESPACE) + "]*"
        closer = escape(wire.PARAMETER_CLOSE) + blank
        self._ends = (closer + wire.PARAMETER_OPEN, closer + escape(wire.INVOKE_CLOSE))

    def bare(self, form: Form) -> tuple[str, str]:
        """Two rules: one that ends in the tag of a further parameter, one in that of the invoke."""
        if form not in self._names:
            place = len(self._names)
            text = self._escape(form.definition) if form.kind == "regex" else _ANYTHING
            more, last = self._ends
            self._add(f"more{place}", f"(?:{text}){more}", last)
            self._add(f"last{place}", f"(?:{text}){last}\\n", more)
            self._names[form] = f"more{place}", f"last{place}"
        return self._names[form]

    def _add(self, name: str, pattern: str, other: str) -> None:
        """The shortest text of ``pattern`` that the parser doesn't end before."""
        self._rules.append(f"{name}[lazy]: {name.upper()}")
        self._rules.append(f"{name.upper()}: /{pattern}/ & ~/{_ANYTHING}{other}{_ANYTHING}/")
