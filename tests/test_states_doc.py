"""The diagrams of docs/states.md are those of the tables, and the parser keeps to them.

The second half watches the parser read every turn of the format page and of the wire cases,
a character at a time, and looks for a move that is not drawn.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys

import pytest

import atem
from atem.parser import calls, header, machine, states
from docs import draw_states
from tests.golden.expectation import ROOT
from tests.parser.wire_cases import CASES, reason
from tests.test_format_doc import TEXTS, TOKENS, pieces

PAGE = (ROOT / "docs" / "states.md").read_text(encoding="utf-8")

TOOL = {"name": "t", "parameters": {"properties": {"a": {"type": "string"}}}}
CALL = '<atem:function_calls>\n<atem:invoke name="t">\n</atem:invoke>\n</atem:function_calls>'
HALF = ' to=t<|message|><atem:function_calls>\n<atem:invoke name="t">\n<atem:parameter name="a">'
# Corners that neither the page nor the cases turn.
MORE = [
    " to=self<|message|>A turn ends with <|eot|> and no sooner.<|eot|>",
    f" to=t<|message|>{CALL}<|start|>assistant to=self<|message|>Now wait.<|eot|>",
    f"{HALF}b<|eot|><|start|>assistant to=t<|message|>{CALL}",
    f"<|start|> assistant<|message|>{CALL}",
    f"{HALF}b</atem:parameter><atem:function_calls></atem:parameter></atem:invoke>",
    f'{HALF}<atem:parameter <|message|> name="x">c</atem:parameter></atem:parameter></atem:invoke>',
    f" to=t<|message|>{CALL}<|message|>",
]


def drawn(name):
    """``(source, target)`` of each edge of a diagram on the page."""
    (diagram,) = re.findall(rf"<!-- diagram: {name} -->\n```mermaid\n(.*?)```", PAGE, re.DOTALL)
    return set(re.findall(r"^    (\w+) --> (\w+)", diagram, re.MULTILINE))


def rows(table):
    return {(a.name, b.name) for a, row in table.items() for b in row.values()}


def test_the_page_holds_what_the_script_draws():
    run = subprocess.run(
        [sys.executable, "-W", "error", str(ROOT / "docs" / "draw_states.py")],
        env=os.environ | {"PYTHONPATH": str(ROOT), "PYTHONUTF8": "1"},
        capture_output=True,
        check=True,
        encoding="utf-8",
    )
    assert run.stdout == PAGE, "run: python docs/draw_states.py --write"


def test_writing_changes_the_page_and_nothing_else_of_it(tmp_path, monkeypatch):
    copy = tmp_path / "states.md"
    copy.write_text(PAGE.replace(" --> ", " <-- "), encoding="utf-8")
    monkeypatch.setattr(draw_states, "PAGE", copy)
    monkeypatch.setattr(sys, "argv", ["draw_states.py", "--write"])
    draw_states.main()
    assert copy.read_text(encoding="utf-8") == PAGE


def test_every_row_of_the_tables_is_drawn():
    assert rows(states.TRANSITIONS) <= drawn("machine")
    assert rows(header.WORDS) | rows(header.MARKERS) <= drawn("header")
    assert rows(states.STRUCTURE) <= drawn("reading")
    assert {(a.name, b.name) for a, b in states.PROSE.items()} <= drawn("reading")


@pytest.mark.parametrize("name", list(draw_states.DIAGRAMS))
def test_a_diagram_can_be_read_by_mermaid(name):
    lines = draw_states.draw(draw_states.DIAGRAMS[name]()).splitlines()
    assert lines[0] == "stateDiagram-v2"
    declared = {line.split()[-1] for line in lines if line.startswith("    state ")}
    for line in lines[1:]:
        found = re.fullmatch(r'    (?:state "[^":<>]+" as \w+|(\S+) --> (\S+)(?: : (.+))?)', line)
        assert found, line
        assert {found[1], found[2]} <= {None, "[*]", *declared}
        assert not set(":<>") & set((found[3] or "").replace("<br>", ""))


@pytest.fixture
def moves(monkeypatch):
    """Every move that the parser makes while a test runs, by machine."""
    seen = {"machine": set(), "header": set(), "reading": set()}

    def note(which, before, after):
        if before is not None and before is not after:
            seen[which].add((before.name, after.name))

    def state(self):
        return vars(self)["_watched"]

    def set_state(self, value):
        note("machine", vars(self).get("_watched"), value)
        vars(self)["_watched"] = value

    take, marker = header.Header.take, header.Header.marker
    tag, text = calls.Reading.tag, calls.Reading.text

    def watched_take(self, text, pos, end, **how):
        reached = pos
        while reached == pos < end:
            before = self.phase
            reached = take(self, text, pos, pos + 1, **how)
            note("header", before, self.phase)
            pos += 1
        return reached

    def watched_marker(self, literal):
        before = self.phase
        fits = marker(self, literal)
        note("header", before, self.phase)
        return fits

    def watched_tag(self, literal, start):
        # The "<" of a tag ends a tag that is open inside a value; then the value meets the tag.
        before = states.Place.VALUE if self.place is states.Place.INNER_TAG else self.place
        tag(self, literal, start)
        note("reading", before, self.place)

    def watched_text(self, characters, start):
        for number, character in enumerate(characters):
            before = self.place
            text(self, character, start + number)
            note("reading", before, self.place)

    monkeypatch.setattr(machine.Machine, "state", property(state, set_state), raising=False)
    monkeypatch.setattr(header.Header, "take", watched_take)
    monkeypatch.setattr(header.Header, "marker", watched_marker)
    monkeypatch.setattr(calls.Reading, "tag", watched_tag)
    monkeypatch.setattr(calls.Reading, "text", watched_text)
    return seen


def test_the_parser_makes_no_move_that_is_not_drawn(moves):
    for example in TEXTS:
        example.parse(list(example.text))
    for example in TOKENS:
        example.parse(pieces(example))
    for case in CASES:
        atem.parse(list(case["input"]), tools=case["tools"], reason=reason(case))
    for text in MORE:
        atem.parse(list(text), tools=[TOOL], reason="stop")
        atem.parse(f"{text} and {text}", tools=[TOOL], recover={"headerless", "glued"})
    outside = {
        name: {move for move in made - drawn(name) if move[1] != "FAILED"}
        for name, made in moves.items()
    }
    assert outside == {"machine": set(), "header": set(), "reading": set()}
    # The watchers saw the parser, not nothing.
    assert min(len(made & drawn(name)) for name, made in moves.items()) > 8, moves["header"]
