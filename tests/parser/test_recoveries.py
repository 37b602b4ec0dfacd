"""Calls that are written wrongly and can only mean one thing: the three recoveries (wire_format 5.3, 5.6, 5.7)."""

from __future__ import annotations

import pytest

import atem
from tests.parser.spelling import (
    EOT,
    MESSAGE,
    PING,
    START,
    block,
    call,
    calls,
    invoke,
    parameter,
    read,
    to,
    turn,
)

RUN_ON = turn(to("self", "So." + call("ping")))


@pytest.mark.parametrize("options", [{}, {"recover": {"reasoning"}}, {"recover": ["reasoning"]}])
def test_a_call_that_reasoning_runs_into_is_recovered_by_default(options):
    found = read(RUN_ON, **options)
    assert (found.reasoning, calls(found)) == ("So. ", [("ping", {})])


@pytest.mark.parametrize("framing", ["", f"{START}assistant"])
def test_recovery_of_reasoning_can_be_switched_off(framing):
    body = f"So.{framing}{call('ping')}"
    found = read(turn(to("self", body)), recover=())
    assert (found.reasoning, found.calls) == (body, ())


@pytest.mark.parametrize("text", [PING, MESSAGE + PING, f"See:\n{PING}"])
def test_a_block_without_a_header_is_content_by_default(text):
    found = read(text + EOT)
    assert (found.content, found.calls) == (text.removeprefix(MESSAGE), ())


@pytest.mark.parametrize(
    ("text", "content"),
    [(PING, ""), (MESSAGE + PING, ""), (f"See:\n{PING}\n", "See:\n")],
)
def test_headerless_reads_a_whole_block_in_a_body_without_recipient(text, content):
    found = read(text + EOT, recover={"headerless"})
    assert (calls(found), found.content) == ([("ping", {})], content)


@pytest.mark.parametrize(
    "text",
    [
        f"{PING} as you see",
        f"{PING} and {PING}",
        invoke("ping"),
        PING.removesuffix("</atem:function_calls>"),
        PING.removeprefix("<atem:function_calls>"),
        block(invoke("ping"), invoke("launch")),
        "<atem:function_calls></atem:function_calls>",
        block(invoke("launch")),
        block(invoke("ping"), "<atem:invoke>"),
        PING[:-3],
        to("user", PING).removeprefix(" "),
    ],
)
def test_headerless_leaves_anything_doubtful_as_content(text):
    found = read(text + EOT, recover={"headerless"})
    assert (found.content, found.calls) == (text.removeprefix(f"to=user{MESSAGE}"), ())


def test_headerless_without_tools_is_refused():
    with pytest.raises(ValueError, match="headerless"):
        atem.Parser(recover={"headerless"})


GLUED = '<atem:invoke name="save.path">a.txt</atem:parameter>\n</atem:invoke>'


def test_a_swallowed_parameter_tag_makes_no_call_by_default():
    found = read(turn(to("save.path", block(GLUED))))
    assert (found.calls, len(found.rejected)) == ((), 1)


def test_glued_restores_a_swallowed_parameter_tag():
    found = read(turn(to("save.path", block(GLUED))), recover={"glued"})
    assert calls(found) == [("save", {"path": "a.txt"})]


@pytest.mark.parametrize(
    "glued",
    [
        GLUED.replace("save.path", "save.mode"),
        GLUED.replace("save.path", "launch.path"),
        GLUED.replace("\n</atem:invoke>", f"\n{parameter('body', 'b')}\n</atem:invoke>"),
        GLUED.replace("</atem:parameter>", ""),
    ],
    ids=["no such property", "no such tool", "a second value", "no closer"],
)
def test_glued_needs_a_declared_tool_its_property_and_exactly_one_value(glued):
    assert read(turn(to("save.path", block(glued))), recover={"glued"}).calls == ()


def test_recoveries_are_independent_of_each_other():
    assert read(RUN_ON, recover={"glued"}).calls == ()
    assert read(PING, recover={"reasoning", "glued"}).calls == ()


@pytest.mark.parametrize("ending", ["", "<|eom|>", "<|eot|>", "\n"])
def test_a_recovered_call_whose_end_was_cut_does_not_run(ending):
    # Whether the reasoning went on behind it, which makes it a quotation, was not seen.
    found = read(to("self", "So." + call("ping")) + ending, reason="length")
    assert (found.calls, [r.reason for r in found.rejected]) == ((), ["incomplete"])


def test_a_recovered_call_whose_block_is_open_at_the_end_does_not_run():
    text = to("self", "So." + call("ping")).removesuffix("</atem:function_calls>")
    found = read(text)
    assert (found.calls, found.complete) == ((), False)
