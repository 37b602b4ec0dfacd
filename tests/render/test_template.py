"""The text of a prompt is the chat template's, byte for byte."""

from __future__ import annotations

import hashlib
import json
import os
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given

from atem.render import render
from tests.render import oracle
from tests.render import strategies as some

# The project's own template, and a checkpoint's where one is at hand.
SOURCES = [oracle.TEMPLATE, *map(Path, filter(None, [os.environ.get("ATEM_CHAT_TEMPLATE")]))]
TEMPLATES = {source.name: oracle.template(source) for source in SOURCES}
GENUINE = json.loads(Path(__file__).with_name("genuine.json").read_text(encoding="utf-8"))


@pytest.mark.parametrize("name", TEMPLATES)
@given(messages=some.conversations(), tools=some.toolsets(), options=some.options)
def test_the_text_is_the_template_s(
    name: str, messages: list[Any], tools: list[Any], options: dict[str, Any]
) -> None:
    expected = oracle.apply(TEMPLATES[name], messages, tools=tools, **options)
    assert render(messages, tools=tools, **options).text() == expected


@pytest.mark.parametrize("case", GENUINE["cases"], ids=lambda case: case["name"])
def test_the_text_has_the_digest_of_the_genuine_template_s(case: dict[str, Any]) -> None:
    text = render(case["messages"], tools=case["tools"], **case["options"]).text()
    assert len(text) == case["characters"]
    assert hashlib.sha256(text.encode()).hexdigest() == case["sha256"]


@pytest.mark.parametrize("case", GENUINE["cases"], ids=lambda case: case["name"])
def test_the_test_template_has_the_digest_of_the_genuine_one_s(case: dict[str, Any]) -> None:
    own = TEMPLATES[oracle.TEMPLATE.name]
    text = oracle.apply(own, case["messages"], tools=case["tools"], **case["options"])
    assert hashlib.sha256(text.encode()).hexdigest() == case["sha256"]
