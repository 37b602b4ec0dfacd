"""Draws the diagrams of docs/states.md from the tables that the parser moves by.

``python docs/draw_states.py`` prints the page with its diagrams drawn afresh,
``--write`` rewrites it. A test compares the two.

Rules: an edge comes from a table of the parser, or it is listed here with what
makes it: a table of markers has no row for the end of a tag, for the text
between tags, or for a message that is read again. Ways to "not a header" and "malformed"
are left out, because they start everywhere.
"""
# ruff: noqa: INP001 - a script beside the page it draws

from __future__ import annotations

import re
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Final, NamedTuple

from atem import wire
from atem.parser.header import MARKERS, WORDS, Phase
from atem.parser.states import OPEN, PROSE, STRUCTURE, TRANSITIONS, Place, State

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from enum import Enum

PAGE: Final = Path(__file__).with_name("states.md")
FENCE: Final = re.compile(r"(<!-- diagram: (\w+) -->\n```mermaid\n).*?(?=```)", re.DOTALL)
CODES: Final = {"<": "#lt;", ">": "#gt;", ":": "#58;", '"': "#quot;"}
"""Characters that mean something in Mermaid's own syntax."""

END_OF_TAG: Final = "its >"
IN_A_BLOCK: Final = f"{wire.INVOKE_CLOSE} in a block"


class Move(NamedTuple):
    """One edge of a diagram."""

    source: Enum
    label: str
    target: Enum


class Diagram(NamedTuple):
    """The edges of one machine, where it starts and where it may end."""

    moves: tuple[Move, ...]
    starts: tuple[Enum, ...]
    ends: tuple[Enum, ...]


HEADER_BY_TEXT: Final = (Move(Phase.RECIPIENT, "whitespace", Phase.TAIL),)
READING_BY_TEXT: Final = (
    Move(Place.INVOKE_TAG, END_OF_TAG, Place.INVOKE),
    Move(Place.PARAMETER_TAG, END_OF_TAG, Place.VALUE),
    Move(Place.INVOKE, IN_A_BLOCK, Place.BLOCK),
    Move(Place.INVOKE, "text (recover glued)", Place.VALUE),
    Move(Place.CLOSER, IN_A_BLOCK, Place.BLOCK),
    Move(Place.CLOSER, "anything else", Place.VALUE),
    Move(Place.VALUE, f"{wire.PARAMETER_OPEN} (second reading)", Place.INNER_TAG),
    Move(Place.INNER_TAG, f"{END_OF_TAG}, or a <", Place.VALUE),
)


def machine() -> Diagram:
    """The machine of a turn."""
    moves = [
        Move(state, signal.value, target)
        for state, row in TRANSITIONS.items()
        for signal, target in row.items()
    ]
    return Diagram((*moves,), (State.OPENING,), (State.OVER,))


def header() -> Diagram:
    """A header. It starts as what precedes it says: nothing, ``<|start|>`` or a bare ``to=``."""
    moves = [*_moves(WORDS), *_moves(MARKERS), *HEADER_BY_TEXT]
    starts = (Phase.IMPLICIT, Phase.UNFRAMED, Phase.FRAMED, Phase.RECIPIENT)
    return Diagram(tuple(moves), starts, (Phase.DONE, Phase.OTHER_ROLE))


def reading() -> Diagram:
    """A reading of a tool body. It may end wherever no invoke is open."""
    prose = [Move(place, "prose", target) for place, target in PROSE.items()]
    moves = [*_moves(STRUCTURE), *prose, *READING_BY_TEXT]
    ends = [place for place in Place if place not in OPEN and place is not Place.FAILED]
    return Diagram(tuple(moves), (Place.LEAD,), tuple(ends))


DIAGRAMS: Final = {"machine": machine, "header": header, "reading": reading}


def _moves(
    table: Mapping[Phase, Mapping[str, Phase]] | Mapping[Place, Mapping[str, Place]],
) -> Iterator[Move]:
    for source, row in table.items():
        for label, target in row.items():
            yield Move(source, label, target)


def draw(diagram: Diagram) -> str:
    """``diagram`` in Mermaid's language; edges between the same two states are one."""
    labels: dict[tuple[Enum, Enum], list[str]] = {}
    for source, label, target in diagram.moves:
        labels.setdefault((source, target), []).append(_coded(label))
    states = dict.fromkeys(state for pair in labels for state in pair)
    lines = ["stateDiagram-v2"]
    lines += [f'    state "{_coded(str(state.value))}" as {state.name}' for state in states]
    lines += [f"    [*] --> {state.name}" for state in diagram.starts]
    lines += [
        f"    {source.name} --> {target.name} : {'<br>'.join(texts)}"
        for (source, target), texts in labels.items()
    ]
    lines += [f"    {state.name} --> [*]" for state in diagram.ends]
    return "".join(f"{line}\n" for line in lines)


def _coded(text: str) -> str:
    return "".join(CODES.get(character, character) for character in text)


def page(text: str) -> str:
    """The page ``text`` with every diagram drawn afresh."""
    return FENCE.sub(lambda found: found[1] + draw(DIAGRAMS[found[2]]()), text)


def main() -> None:
    """Print the page, or write it."""
    drawn = page(PAGE.read_text(encoding="utf-8"))
    if sys.argv[1:] == ["--write"]:
        PAGE.write_text(drawn, encoding="utf-8")
    else:
        sys.stdout.write(drawn)


if __name__ == "__main__":
    main()
