"""Every example in docs/format.md is what the parser, and the renderer, really do.

The page is the expectation: a fenced ``atem`` block is parsed, a ``prompt``
block rendered, and the ``json`` block after it says what must come out.
"""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from typing import Any

import pytest

import atem
from tests.golden.expectation import ROOT, check, without_last_newline
from tests.parser.folding import as_pieces

PAGE = (ROOT / "docs" / "format.md").read_text(encoding="utf-8")
FENCE = re.compile(r"^```(\w+) ?(.*)\n((?s:.*?))^```$", re.MULTILINE)
NOT_OPTIONS = {"name", "tools", "reason", "plain"}
SECTIONS = ["1", "1.1", "2", "3", "3.1", "3.2", "3.3", "4"]
SECTIONS += ["5", "5.1", "5.2", "5.3", "5.4", "5.5", "5.6", "5.7", "6", "7", "8"]


@dataclass(frozen=True)
class Example:
    """One fenced block, the words after its kind, and the JSON after it."""

    kind: str
    words: dict[str, str]
    text: str
    expected: Any

    @property
    def tools(self) -> list[dict[str, Any]]:
        return [TOOLS[name] for name in filter(None, self.words.get("tools", "").split(","))]

    @property
    def options(self) -> dict[str, Any]:
        return {
            key: option(key, word) for key, word in self.words.items() if key not in NOT_OPTIONS
        }

    def parse(self, tokens: Any) -> Any:
        reason = self.words.get("reason", "stop")
        return atem.parse(tokens, tools=self.tools, reason=reason, **self.options)


def option(key: str, word: str) -> Any:
    """An option of the parser as the page writes it: a set, a number, ``true`` or a word."""
    if key == "recover":
        return frozenset(word.split(",")) - {"none"}
    return int(word) if word.isdigit() else {"true": True}.get(word, word)


def examples() -> list[Example]:
    blocks = FENCE.findall(PAGE)
    pairs = zip(blocks, [*blocks[1:], ("", "", "")], strict=True)
    return [
        Example(kind, words(line), without_last_newline(text), json.loads(answer))
        for (kind, line, text), (answer_kind, _, answer) in pairs
        if kind in ("atem", "prompt") and answer_kind == "json"
    ]


def words(line: str) -> dict[str, str]:
    return dict(word.split("=", 1) for word in line.split())


def declared() -> dict[str, dict[str, Any]]:
    lists = [json.loads(text) for kind, line, text in FENCE.findall(PAGE) if line == "tools"]
    return {
        tool["name"]: {"type": "function", "function": tool} for tools in lists for tool in tools
    }


def pieces(example: Example) -> list[Any]:
    """The tokens that ``plain=`` describes: a special one for each marker, else single characters."""
    literal = {int(number) for number in example.words["plain"].split(",")}
    tokens: list[Any] = []
    number = 0
    for run in as_pieces(example.text):
        number += run.special
        if run.special and number not in literal:
            tokens.append(run)
        else:
            tokens.extend(map(atem.Piece, run.text))
    return tokens


TOOLS = declared()
EXAMPLES = examples()
TEXTS = [each for each in EXAMPLES if each.kind == "atem" and "plain" not in each.words]
TOKENS = [each for each in EXAMPLES if "plain" in each.words]
PROMPTS = [each for each in EXAMPLES if each.kind == "prompt"]


def named(each: Example) -> str:
    return each.words["name"]


@pytest.mark.parametrize("example", TEXTS, ids=named)
def test_an_example_parsed_whole_gives_what_the_page_says(example):
    check(example.parse(example.text), example.expected)


@pytest.mark.parametrize("example", TEXTS, ids=named)
def test_an_example_parsed_one_character_at_a_time_gives_what_the_page_says(example):
    check(example.parse(list(example.text)), example.expected)


@pytest.mark.parametrize("example", TOKENS, ids=named)
def test_an_example_fed_as_tokens_gives_what_the_page_says(example):
    check(example.parse(pieces(example)), example.expected)


@pytest.mark.parametrize("example", PROMPTS, ids=named)
def test_a_rendered_message_is_what_the_page_shows(example):
    tools = [TOOLS["tide_at"], TOOLS["list_ports"]]
    assert example.text in atem.render(example.expected, tools=tools).text()


def test_no_block_is_left_without_an_expectation_and_no_name_is_used_twice():
    kinds = [kind for kind, _, _ in FENCE.findall(PAGE)]
    names = [named(each) for each in EXAMPLES]
    assert len(names) == kinds.count("atem") + kinds.count("prompt") == len(set(names)) >= 30


def test_the_sections_have_the_numbers_that_comments_cite():
    assert re.findall(r"^#{2,3} ([\d.]+?)\.? ", PAGE, re.MULTILINE) == SECTIONS


def test_every_section_about_what_a_model_writes_has_an_example():
    parts = re.split(r"^#{2,3} ([\d.]+?)\.? .*$", PAGE, flags=re.MULTILINE)
    shown = {
        number for number, part in zip(parts[1::2], parts[2::2], strict=True) if "```atem" in part
    }
    assert shown == set(SECTIONS) - {"1", "2", "5", "8"}
