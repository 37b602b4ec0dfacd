"""Two stages, each cut anywhere, say what the one machine says."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

import atem
from tests.parser import strategies as some
from tests.parser.folding import (
    as_pieces,
    checked,
    ends_no_message,
    examples,
    facts,
    patience,
    places,
    sliced,
    stays_reasoning,
)
from tests.parser.strategies import STRING, quoted_block, reasons, soups, tool, transcript, turns
from tests.parser.wire_cases import EVERY_CASE, reason

pytestmark = patience
drawn = turns() | soups()


def first_stage(tokens, **options):
    """The reasoning, and the text for the second stage."""
    reasoning, text = [], []
    for item in atem.split_channels(tokens, **options):
        (reasoning if isinstance(item, atem.ReasoningDelta) else text).append(item.text)
    return "".join(reasoning), "".join(text)


def both_stages(tokens, cuts, **options):
    reasoning, text = first_stage(tokens, **options)
    parts = sliced(text, cuts)
    turn = atem.collect(checked(atem.parse_stream(parts, framed=True, **options), text))
    assert turn.reasoning == ""
    calls = [(call.name, call.arguments) for call in turn.calls]
    rejected = [rejected.reason for rejected in turn.rejected]
    return repr((reasoning, turn.content, calls, rejected, turn.complete))


def rejections(turn):
    return [(r.reason, r.raw_name, r.text, r.arguments, r.suggestions) for r in turn.rejected]


@examples(600)
@given(drawn, reasons, places, places)
def test_both_stages_say_what_the_one_machine_says(turn, reason, cuts, later_cuts):
    text, tools = turn
    options = {"tools": tools, "reason": reason}
    one = facts(atem.parse(text, **options))
    assert both_stages(sliced(text, cuts), later_cuts, **options) == one
    assert both_stages(text, range(2000), **options) == one


@EVERY_CASE
def test_both_stages_agree_on_every_wire_case(case):
    options = {"tools": case["tools"], "reason": reason(case)}
    one = facts(atem.parse(case["input"], **options))
    assert both_stages([case["input"]], [], **options) == one
    assert both_stages(case["input"], range(2000), **options) == one


@examples(300)
@given(drawn, reasons)
def test_both_stages_reject_the_same_text_for_the_same_reason(turn, reason):
    text, tools = turn
    options = {"tools": tools, "reason": reason}
    _, passed_on = first_stage([text], **options)
    two = atem.parse(passed_on, framed=True, **options)
    one = atem.parse(text, **options)
    assert rejections(two) == rejections(one)
    assert two.calls == one.calls


@examples(300)
@given(drawn, reasons, places)
def test_one_shot_and_streaming_pass_on_the_same_text(turn, reason, cuts):
    text, tools = turn
    for tool_parsing in (True, False):
        options = {"tools": tools, "reason": reason, "tool_parsing": tool_parsing}
        whole = first_stage([text], **options)
        assert first_stage(text, **options) == whole
        assert first_stage(sliced(text.encode(), cuts), **options) == whole


@examples(300)
@given(drawn, reasons, places)
def test_without_tool_parsing_the_first_stage_gives_what_is_to_be_shown(turn, reason, cuts):
    text, tools = turn
    options = {"tools": tools, "reason": reason}
    one = atem.parse(text, **options)
    for tokens in ([text], sliced(text, cuts)):
        shown = first_stage(tokens, tool_parsing=False, **options)
        assert shown == (one.reasoning, one.content)


WIPE = tool("wipe", body=STRING)
HEADED = transcript("wipe", "x", "").removeprefix("<|eom|>")
QUOTATIONS = (
    HEADED,
    HEADED.replace("assistant to=wipe", "assistant\r\tto=wipe\t"),
    f" to=wipe<|message|>{quoted_block('wipe', 'x')}",
    quoted_block("wipe", "x"),
    "<|eom|>, then <|start|>",
    "<|message|>",
    "\n",
)


def said(quotations):
    """Messages to user or self that quote, ended by a word that is no framing."""
    bodies = st.lists(st.sampled_from(quotations) | some.words, max_size=5).map(" ".join)
    recipients = st.sampled_from(("user", "user", "commentary", "self"))
    return st.lists(st.tuples(recipients, bodies.map("{}.".format)), min_size=1, max_size=4)


def assert_only_said(messages, tokens, tools, *, joined):
    passed_on = list(atem.split_channels(tokens, tools=tools))
    reasoning, text = first_stage(tokens, tools=tools)
    texts = [item for item in passed_on if isinstance(item, atem.Text)]
    two = atem.parse(text if joined else texts, tools=tools, framed=True)
    assert reasoning == "\n".join(body for to, body in messages if to == "self")
    assert two.content == "".join(body for to, body in messages if to != "self")
    assert (two.calls, two.rejected) == ((), ())


@examples(300)
@given(said(QUOTATIONS))
def test_a_header_quoted_in_an_answer_is_no_call_in_the_second_stage(messages):
    fits = {"self": stays_reasoning}
    fitting = [(to, body) for to, body in messages if fits.get(to, ends_no_message)(body)]
    text = some.BOUNDARY.join(f" to={to}<|message|>{body}" for to, body in fitting)
    assert_only_said(fitting, [text], [WIPE], joined=True)
    assert_only_said(fitting, [text], [WIPE], joined=False)


@examples(300)
@given(said((*QUOTATIONS, *(transcript("wipe", "x", end) for end in ("", "<|eot|>")))))
def test_a_transcript_quoted_in_plain_pieces_is_no_call_in_the_second_stage(messages):
    tokens = []
    for recipient, body in messages:
        header = f"<|start|>assistant to={recipient}<|message|>"
        tokens += [*as_pieces(header), atem.Piece(body), atem.Piece("<|eom|>", special=True)]
    # As plain text the quotation is a transcript; only the Text objects know better.
    assert_only_said(messages, tokens, [WIPE], joined=False)


@pytest.mark.parametrize("marker", ["<|eot|>", "<|eom|>", "<|start|>", "<|message|>"])
def test_a_marker_that_is_quoted_stays_quoted_between_the_stages(marker):
    text = f" to=user<|message|>Write {marker}, always.<|eot|>"
    passed_on = list(atem.split_channels(list(text)))
    assert atem.parse(passed_on, framed=True).content == f"Write {marker}, always."


def test_text_without_a_header_is_an_answer_in_the_second_stage_too_under_spark():
    passed_on = list(atem.split_channels(["Hello."], profile="spark"))
    assert atem.parse(passed_on, framed=True, profile="spark").content == "Hello."
