"""The README and the pages under docs/ are true: snippets run, tables are the code's, links lead somewhere."""

from __future__ import annotations

import contextlib
import io
import re
import shlex
import subprocess
import sys
from dataclasses import MISSING, fields
from typing import get_args

import pytest

import atem
from atem.messages import RejectReason
from atem.parser.events import Event
from atem.parser.options import CHOICES, RECOVERIES, Options
from atem.render import EFFORTS
from tests.golden.expectation import ROOT
from tests.parser.wire_cases import BY_ID

PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]
FENCE = re.compile(r"^```(\w+).*\n((?s:.*?))^```$(?:\n```text\n((?s:.*?))^```$)?", re.MULTILINE)
LINK = re.compile(r"(?<!!)\[[^\]]*\]\(([^)\s]+)\)")
README = PAGES[0].read_text(encoding="utf-8")
PARSER = (ROOT / "docs" / "parser.md").read_text(encoding="utf-8")
TOOLS = (ROOT / "docs" / "tools.md").read_text(encoding="utf-8")
RENDER = (ROOT / "docs" / "render.md").read_text(encoding="utf-8")


def snippets(page):
    """``(code, output)`` of each Python block; output is None if the page doesn't show any."""
    found = FENCE.findall(page.read_text(encoding="utf-8"))
    return [(code, shown or None) for kind, code, shown in found if kind == "python"]


def rows(page, heading):
    """The cells of the table whose first column has this heading, backticks left on."""
    table = re.search(rf"^\| {re.escape(heading)} \|.*\n\|[-|]+\n((?:\|.*\n)+)", page, re.MULTILINE)
    assert table, heading
    return [
        [cell.strip() for cell in re.split(r"(?<!\\)\|", line)[1:-1]]
        for line in table[1].splitlines()
    ]


def names(page, heading):
    return [row[0].strip("`") for row in rows(page, heading)]


def anchors(page):
    """The anchors of a page's headings, as GitHub makes them."""
    text = re.sub(r"^```(?s:.*?)^```$", "", page.read_text(encoding="utf-8"), flags=re.MULTILINE)
    headings = re.findall(r"^#+ (.*)$", text, re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}


# ---------------------------------------------------------------- snippets


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_the_snippets_of_a_page_run_in_order_and_print_what_it_shows(page, monkeypatch):
    monkeypatch.chdir(ROOT)  # where a reader runs them
    namespace = {"__name__": "page"}
    for code, shown in snippets(page):
        printed = io.StringIO()
        with contextlib.redirect_stdout(printed):
            exec(compile(code, page.name, "exec"), namespace)
        if shown is not None:
            assert printed.getvalue() == shown


def test_the_pages_have_snippets_that_show_their_output():
    shown = {page.stem: [out for _, out in snippets(page) if out] for page in PAGES}
    assert min(len(shown[stem]) for stem in ("README", "parser", "tools", "render")) >= 1


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_what_a_page_shows_of_atem_run_is_what_it_writes(page):
    text = page.read_text(encoding="utf-8")
    runs = re.findall(r"^\$ atem-run (.* -p .*)\n((?:(?![$`]).*\n)+)", text, re.MULTILINE)
    for arguments, shown in runs:
        done = subprocess.run(
            [sys.executable, "-m", "atem.cli.run", *shlex.split(arguments)],
            cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, check=False,
        )  # fmt: skip
        assert (done.returncode, done.stdout.decode()) == (0, shown)
    assert runs or page.stem not in ("README", "nano")


# ------------------------------------------------------------------- links


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_every_link_of_a_page_leads_to_a_file_and_a_heading(page):
    for link in LINK.findall(re.sub(r"`[^`\n]*`", "", page.read_text(encoding="utf-8"))):
        if not link.startswith("https://"):
            path, _, anchor = link.partition("#")
            target = (page.parent / path).resolve() if path else page
            assert target.exists(), link
            assert not anchor or anchor in anchors(target), link


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_every_path_that_a_page_names_exists(page):
    text = page.read_text(encoding="utf-8")
    named = re.findall(r"`((?:docs|examples|tests|atem)/[\w./-]+)`", text)
    assert not [path for path in named if not (ROOT / path).exists()]


def test_every_page_is_linked_from_the_readme():
    assert {page.name for page in PAGES[1:]} <= {
        link.split("/")[-1] for link in LINK.findall(README)
    }


# ------------------------------------------------------------------ README


def test_the_readme_is_short():
    assert len(README.splitlines()) < 120


def test_the_make_targets_that_pages_name_exist():
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
    targets = set(re.findall(r"^([a-z]+):", makefile, re.MULTILINE))
    wanted = {
        target
        for page in PAGES
        for target in re.findall(r"\bmake ([a-z]+)`|^make ([a-z]+)", page.read_text(), re.MULTILINE)
    }
    assert {first or second for first, second in wanted} <= targets
    assert {"demo", "test"} <= {first or second for first, second in wanted}


def test_the_test_command_of_the_readme_is_the_one_that_ci_calls():
    script = (ROOT / ".ci" / "run").read_text(encoding="utf-8")
    assert re.search(r"^make test\b", script, re.MULTILINE)
    assert re.search(r"^make test\b", README, re.MULTILINE)


# ------------------------------------------------------------------ tables


def test_the_table_of_events_has_every_event_with_its_fields_in_order():
    table = [(row[0].strip("`"), re.findall(r"`(\w+)`", row[1])) for row in rows(PARSER, "event")]
    told = [
        (event.__name__, [name for name in event._fields if name not in ("start", "end")])
        for event in get_args(Event)
    ]
    assert table == told


def test_the_table_of_options_has_every_option_with_its_default():
    shown = {"none": MISSING, "random": MISSING, '`{"reasoning"}`': "frozenset({'reasoning'})"}
    table = {
        row[0].strip("`"): shown.get(row[1], row[1].strip("`").replace('"', "'"))
        for row in rows(PARSER, "option")
    }
    told = {field.name: repr(field.default) for field in fields(Options)}
    told |= {"tools": MISSING, "tokenizer": MISSING, "new_id": MISSING}
    assert table == told


def test_every_choice_of_an_option_is_told():
    options = {row[0].strip("`"): " ".join(row[1:]) for row in rows(PARSER, "option")}
    for name, choices in {**CHOICES, "recover": tuple(RECOVERIES)}.items():
        if name != "reason":
            assert not [choice for choice in choices if f'"{choice}"' not in options[name]]


def test_the_table_of_problems_has_every_code():
    codes = re.findall(r'"(\w+)"', atem.Problem.__doc__)
    assert names(PARSER, "code") == codes
    sources = "".join(path.read_text() for path in (ROOT / "atem" / "parser").glob("*.py"))
    used = set(re.findall(r'(?:_problem\(|Problem,|append\()\s*\(?\s*"(\w+)",', sources))
    assert used == set(codes)


def test_the_table_of_rejections_has_every_reason():
    assert names(PARSER, "`reason`") == list(get_args(RejectReason))


def test_the_table_of_a_turn_has_every_field():
    assert names(PARSER, "field") == [*(field.name for field in fields(atem.Turn)), "empty"]


def test_the_cases_that_the_comparison_names_exist():
    told = [name for row in rows(PARSER, "input") for name in re.findall(r"\(`([\w-]+)`\)", row[0])]
    assert len(told) > 8
    assert BY_ID.keys() >= set(told)


def test_the_table_of_efforts_is_the_one_that_is_used():
    told = {
        word.strip('`"'): row[1].strip('`"')
        for row in rows(RENDER, "effort")
        for word in row[0].split(", ")
    }
    assert told == EFFORTS


# ------------------------------------------------------------------ citations

CITED = {"wire_format": "format", "model.md": "model"}


@pytest.mark.parametrize("name", CITED)
def test_every_section_that_the_code_cites_exists(name):
    page = (ROOT / "docs" / f"{CITED[name]}.md").read_text(encoding="utf-8")
    sections = set(re.findall(r"^#+ (\d+(?:\.\d+)*)\.? ", page, re.MULTILINE))
    files = [path for folder in ("atem", "tests") for path in (ROOT / folder).rglob("*.py")]
    texts = [path.read_text(encoding="utf-8") for path in files]
    cited = {
        number.rstrip(".")
        for text in texts
        for number in re.findall(rf"{re.escape(name)} (\d+(?:\.\d+)*)", text)
    }
    assert len(cited) > 10
    # "7.4" may be the fourth point of a list in section 7.
    assert not {number for number in cited if not {number, number.split(".")[0]} & sections}
