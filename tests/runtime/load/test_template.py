"""Chat templates of checkpoints: rendered as they say, and unable to do harm."""

from __future__ import annotations

import pytest

from atem.errors import CheckpointError, UnsafeCheckpoint
from atem.runtime import template
from atem.runtime.template import render_template

# Each takes time, memory or a way out of the sandbox that no template needs.
HOSTILE = {
    "the class of a string": "{{ ''.__class__.__mro__ }}",
    "the globals of a function": "{{ raise_exception.__globals__.keys() }}",
    "a frame of a generator": "{{ (messages | map('upper')).gi_frame.f_globals }}",
    "a change of the conversation": "{{ messages.append(1) }}",
    "much memory": "{{ 'a' * 10**10 }}",
    "much output": "{% for i in range(99999) %}{{ 'x' * 1000 }}{% endfor %}",
    "a file": "{% include '/etc/passwd' %}",
}


def test_a_template_is_rendered_with_its_variables():
    text = "{% for m in messages %}<{{ m.role }}>{{ m.content | trim }}{% endfor %}"
    messages = [{"role": "user", "content": " é "}, {"role": "tool", "content": "b"}]
    assert render_template(text, {"messages": messages}) == "<user>é<tool>b"


def test_blocks_are_trimmed_as_chat_templates_expect():
    assert render_template("a\n  {% if true %}\nb\n  {% endif %}\n", {}) == "a\nb\n"


def test_tojson_writes_json_without_escaping_for_html():
    assert render_template("{{ v | tojson }}", {"v": {"a": "<é>"}}) == '{"a": "<é>"}'


@pytest.mark.parametrize("text", HOSTILE.values(), ids=HOSTILE)
def test_what_no_template_needs_is_a_typed_error(text):
    with pytest.raises(CheckpointError):
        render_template(text, {"messages": []})


@pytest.mark.parametrize("name", ["the class of a string", "much memory", "much output"])
def test_a_way_out_or_without_end_is_named_unsafe(name):
    with pytest.raises(UnsafeCheckpoint, match="no template needs"):
        render_template(HOSTILE[name], {"messages": []})


def test_a_template_that_never_ends_is_stopped(monkeypatch):
    monkeypatch.setattr(template, "SECONDS", 1)
    loops = "{% for a in range(99999) %}{% for b in range(99999) %}{% endfor %}{% endfor %}"
    with pytest.raises(UnsafeCheckpoint, match="more time or memory"):
        render_template(loops, {})


def test_what_a_template_words_itself_is_quoted():
    with pytest.raises(CheckpointError) as refused:
        render_template("{{ raise_exception('\x1b[31m') }}", {})
    assert str(refused.value).isprintable()


def test_a_template_that_refuses_says_why():
    with pytest.raises(CheckpointError, match="roles must alternate"):
        render_template("{{ raise_exception('roles must alternate') }}", {})


def test_a_template_that_is_too_large_is_not_run():
    with pytest.raises(UnsafeCheckpoint, match="characters"):
        render_template("x" * (template.MAX_TEMPLATE + 1), {})
