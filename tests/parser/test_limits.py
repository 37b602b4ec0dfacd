"""How long a header and a call may be, and how strict a reader is about a message."""

from __future__ import annotations

import pytest

import atem
from tests.parser.spelling import (
    EOM,
    EOT,
    MESSAGE,
    TOOLS,
    block,
    call,
    calls,
    codes,
    invoke,
    read,
    rows,
    to,
    turn,
    verdicts,
)

# ---- limits ----------------------------------------------------------------------------------


@pytest.mark.parametrize(("limit", "options"), [(256, {}), (64, {"max_header": 64})])
@pytest.mark.parametrize(("excess", "header"), [(0, True), (1, False)])
def test_a_header_longer_than_max_header_is_text(limit, options, excess, header):
    text = "to=user".ljust(limit + excess - len(MESSAGE)) + MESSAGE
    assert read(f"{text}hi", **options).content == ("hi" if header else f"{text}hi")


@pytest.mark.parametrize(
    "option", [{"max_header": 0}, {"max_header": -1}, {"max_call_chars": 0}, {"max_call_chars": -1}]
)
def test_limits_that_admit_nothing_are_refused(option):
    with pytest.raises(ValueError, match=next(iter(option))):
        atem.Parser(**option)


def test_a_call_past_max_call_chars_is_rejected_at_once():
    parser = atem.Parser(tools=TOOLS, max_call_chars=200)
    parser.feed(to("save", '<atem:invoke name="save"><atem:parameter name="body">'))
    found = rows(parser.feed("x" * 200))
    assert ("CallRejected", 0, "malformed") in found
    assert ("Problem", "call_too_long") in found
    assert parser.feed("y" * 1000) == []


@pytest.mark.parametrize("length", [10, 10_000])
def test_a_long_body_is_rejected_and_the_turn_goes_on(length):
    text = turn(call("save", body="x" * length), to("user", "Saved?"))
    found = read(text, max_call_chars=200)
    assert (verdicts(found), found.content) == ([] if length == 10 else ["malformed"], "Saved?")
    assert codes(found) == ([] if length == 10 else ["call_too_long"])
    assert [one.name for one in found.calls] == (["save"] if length == 10 else [])


@pytest.mark.parametrize("end", [EOT, EOM, ""])
@pytest.mark.parametrize("excess", [0, 1])
def test_max_call_chars_counts_the_body_without_its_terminator(end, excess):
    body = block(invoke("save", body="x" * 100))
    found = read(to("save", body) + end, max_call_chars=len(body) - excess)
    assert verdicts(found) == ["malformed"] * excess


@pytest.mark.parametrize(
    ("length", "verdict"), [((16 << 20) - 1000, []), (16 << 20, ["malformed"])]
)
def test_sixteen_mebibytes_are_the_default_limit(length, verdict):
    assert verdicts(atem.parse(turn(call("save", body="x" * length)), tools=TOOLS)) == verdict


# ---- strictness ------------------------------------------------------------------------------


@pytest.mark.parametrize("strict", [False, True])
def test_an_invoke_of_another_tool_than_the_recipient_runs_unless_strict(strict):
    text = turn(to("save", block(invoke("ping"), invoke("save", body="x"))))
    found = read(text, strict_recipient=strict)
    if strict:
        assert (found.calls, set(verdicts(found))) == ((), {"malformed"})
    else:
        assert calls(found) == [("ping", {}), ("save", {"body": "x"})]
        assert codes(found) == ["recipient_mismatch"]


@pytest.mark.parametrize("recipient", ["mail", "atem:function_calls", "mail.list"])
def test_a_strict_recipient_must_resolve_to_the_invoked_tool_itself(recipient):
    text = turn(to(recipient, block(invoke("mail.send", body="x"))))
    assert calls(read(text)) == [("mail.send", {"body": "x"})]
    assert verdicts(read(text, strict_recipient=True)) == ["malformed"]


@pytest.mark.parametrize("recipient", ["mail.send", "mail.mail.send"])
def test_a_strict_recipient_may_be_any_spelling_of_the_tool(recipient):
    text = turn(to(recipient, block(invoke("mail.send", body="x"))))
    assert calls(read(text, strict_recipient=True)) == [("mail.send", {"body": "x"})]


@pytest.mark.parametrize("one", [False, True])
@pytest.mark.parametrize("joint", ["", "</atem:function_calls>\n<atem:function_calls>"])
def test_several_invokes_in_a_message_run_unless_one_is_asked_for(joint, one):
    text = turn(to("ping", block(invoke("ping"), joint, invoke("ping"))))
    found = read(text, one_invoke_per_message=one)
    expected = ((), {"malformed"}) if one else (2 * [("ping", {})], set())
    assert (calls(found) or (), set(verdicts(found))) == expected


def test_one_invoke_per_message_allows_several_messages():
    found = read(turn(call("ping"), call("ping")), one_invoke_per_message=True)
    assert calls(found) == [("ping", {}), ("ping", {})]
