"""What a stream that ends early gives, state by state (wire_format 4)."""

from __future__ import annotations

import pytest

from tests.parser.spelling import (
    EOM,
    EOT,
    HALF,
    MESSAGE,
    NEXT,
    START,
    block,
    call,
    calls,
    codes,
    invoke,
    parameter,
    read,
    to,
    turn,
    verdicts,
)

REASONS = pytest.mark.parametrize("reason", ["stop", "length", "abort"])
CALL = call("save", path="p", body="b")
INVOKED = CALL.removesuffix("\n</atem:function_calls>")
UNWRAPPED = to("save", invoke("save", path="p", body="b"))
QUOTING = f"see {parameter('k', 'v').removesuffix('</atem:parameter>')}"


def nothing(found):
    return (found.reasoning, found.content, found.calls) == ("", "", ())


# ---- Nothing, text, headers -----------------------------------------------------------------------


@REASONS
@pytest.mark.parametrize("text", ["", " ", "\n\n", "to=sel", " to=self<|mess", "<|m", "Ebb at"])
def test_nothing_whitespace_or_half_a_first_header_is_the_text(text, reason):
    found = read(text, reason=reason)
    assert (found.content, found.reasoning, found.rejected) == (text, "", ())
    assert (found.complete, found.finish_reason) == (
        (True, "stop") if reason == "stop" else (False, "length")
    )


@REASONS
@pytest.mark.parametrize("rest", ["<|sta", START, f"{START}assistant", f"{START}assistant to=x"])
def test_half_a_header_behind_a_boundary_is_nothing(rest, reason):
    found = read(f" to=self{MESSAGE}Hm.{EOM}{rest}", reason=reason)
    assert (found.reasoning, found.content, found.complete) == ("Hm.", "", False)


# ---- Bodies ---------------------------------------------------------------------------------------


TAILS = ["", "<", " to", "<|eo", " to=ping<|mess", f" to=ping{MESSAGE}", f" to=ping{MESSAGE}<atem"]


@REASONS
@pytest.mark.parametrize("tail", [*TAILS, START, f"{START}assistant to=us", "<|start"])
def test_all_of_a_cut_thought_is_reasoning(tail, reason):
    found = read(f" to=self{MESSAGE}Hm.{tail}", reason=reason)
    assert (found.reasoning, found.content, found.calls) == (f"Hm.{tail}", "", ())
    assert found.complete is (reason == "stop")


@REASONS
@pytest.mark.parametrize("tail", [*TAILS, "<|st", START, f"{START}assistant to=us", "<atem:inv"])
def test_all_of_a_cut_answer_is_content(tail, reason):
    found = read(f" to=user{MESSAGE}Ebb at nine{tail}", reason=reason)
    assert (found.content, found.calls) == (f"Ebb at nine{tail}", ())
    assert found.complete is (reason == "stop")


@pytest.mark.parametrize("field", ["reasoning", "content"])
def test_earlier_bodies_of_a_cut_turn_are_kept(field):
    recipient = {"reasoning": "self", "content": "user"}[field]
    found = read(turn(to(recipient, "One."), to(recipient, "Two"), end=""), reason="length")
    assert getattr(found, field) == {"reasoning": "One.\nTwo", "content": "One.Two"}[field]


# ---- Calls ----------------------------------------------------------------------------------------


def cuts(text: str, start: int) -> list[int]:
    return list(range(start, len(text) + 1))


@pytest.mark.parametrize("reason", ["length", "abort"])
def test_a_tool_header_and_nothing_else_is_an_incomplete_call(reason):
    found = read(f" to=save{MESSAGE}", reason=reason)
    assert (verdicts(found), found.complete, found.content) == (["incomplete"], False, "")


@REASONS
@pytest.mark.parametrize(
    "tag", ["<", "<atem:", "<atem:function_calls", "<atem:function_calls>\n<ate"]
)
def test_part_of_a_tag_is_nothing(tag, reason):
    found = read(to("save", tag), reason=reason)
    assert (nothing(found), found.complete, found.finish_reason) == (True, False, "length")


@REASONS
def test_an_invoke_that_is_not_closed_is_never_a_call(reason):
    begin = CALL.index("<atem:invoke") + len("<atem:invoke ")
    for end in range(begin, len(INVOKED)):
        found = read(CALL[:end], reason=reason)
        assert (nothing(found), verdicts(found)) == (True, ["incomplete"]), CALL[:end]
        assert (found.complete, found.finish_reason) == (False, "length"), CALL[:end]


@REASONS
def test_an_invoke_without_its_wrapper_that_is_not_closed_is_never_a_call(reason):
    begin = UNWRAPPED.index("<atem:invoke") + len("<atem:invoke ")
    for end in range(begin, len(UNWRAPPED)):
        found = read(UNWRAPPED[:end], reason=reason)
        assert (nothing(found), verdicts(found)) == (True, ["incomplete"]), UNWRAPPED[:end]


@REASONS
def test_a_closed_invoke_is_a_call_while_its_wrapper_is_open_or_cut(reason):
    for end in range(len(INVOKED), len(CALL) + 1):
        found = read(CALL[:end], reason=reason)
        assert calls(found) == [("save", {"path": "p", "body": "b"})], CALL[:end]
        assert found.content == "", CALL[:end]
        whole = end == len(CALL)
        assert found.complete is (whole and reason == "stop"), CALL[:end]


@REASONS
def test_the_first_of_two_calls_stays_when_the_second_is_cut(reason):
    text = turn(call("ping"), CALL, end="")
    begin = text.rindex("<atem:invoke") + len("<atem:invoke ")
    for end in range(begin, len(text) - len("</atem:function_calls>") - 1):
        found = read(text[:end], reason=reason)
        assert (calls(found), verdicts(found)) == ([("ping", {})], ["incomplete"]), text[:end]


@REASONS
def test_the_first_of_two_calls_in_a_message_stays_when_the_second_is_cut(reason):
    found = read(
        to("ping", f"<atem:function_calls>{invoke('ping')}<atem:invoke name="), reason=reason
    )
    assert (calls(found), verdicts(found), found.complete) == (
        [("ping", {})],
        ["incomplete"],
        False,
    )


def test_no_place_of_a_cut_turns_a_turn_into_calls_it_does_not_hold():
    text = turn(
        to("self", "Hm."), call("save", body=f"q {block(invoke('ping'))}"), call("ping"), end=EOT
    )
    whole = calls(read(text))
    for end in range(len(text)):
        found = calls(read(text[:end], reason="length"))
        assert found == whole[: len(found)], text[:end]


# ---- The cut rule ---------------------------------------------------------------------------------


@pytest.mark.parametrize("reason", ["length", "abort"])
@pytest.mark.parametrize("tail", ["", EOM, f"{EOM}\n{EOM}", " Saved.", "\n"])
def test_a_cut_stream_runs_only_what_both_readings_close_at_one_place(tail, reason):
    found = read(call("save", body=QUOTING) + tail, reason=reason)
    assert (found.calls, verdicts(found)) == ((), ["incomplete"])
    found = read(call("save", body="b") + tail, reason=reason)
    assert calls(found) == [("save", {"body": "b"})]


def test_an_open_wrapper_asks_both_readings_whatever_the_reason():
    open_wrapper = call("save", body=QUOTING).removesuffix("</atem:function_calls>")
    assert verdicts(read(open_wrapper)) == ["incomplete"]
    assert calls(read(call("save", body=QUOTING))) == [("save", {"body": QUOTING})]


def test_trailing_prose_at_the_end_of_the_stream_asks_both_readings():
    body = f"</atem:parameter> {QUOTING}"
    assert calls(read(call("save", body=body))) == [("save", {"body": body})]
    assert verdicts(read(call("save", body=body) + " Saved.")) == ["incomplete"]


@pytest.mark.parametrize("reason", ["length", "abort"])
def test_an_undecided_message_of_a_cut_stream_runs_nothing_and_nothing_behind_it_runs(reason):
    found = read(turn(HALF, call("ping"), call("ping")), reason=reason)
    assert (found.calls, verdicts(found)) == ((), ["incomplete"] * 3)


def test_an_undecided_message_of_a_cut_stream_is_not_run_even_if_it_ends_whole():
    value = f"turn: {NEXT}{call('ping')}"
    assert calls(read(turn(call("save", body=value)))) == [("save", {"body": value})]
    found = read(call("save", body=value), reason="length")
    assert (found.calls, verdicts(found)[0]) == ((), "incomplete")


def test_calls_before_an_undecided_message_of_a_cut_stream_are_run():
    found = read(turn(call("ping"), HALF, call("ping")), reason="length")
    assert (calls(found), verdicts(found)) == ([("ping", {})], ["incomplete"] * 2)


def test_closed_invokes_of_an_undecided_message_of_a_cut_stream_are_not_run():
    body = f'{invoke("ping")}<atem:invoke name="save"><atem:parameter name="body">half'
    found = read(turn(to("ping", body), to("user", "Hi.")), reason="length")
    assert (found.calls, found.content) == ((), "Hi.")


# ---- What is reported -----------------------------------------------------------------------------


def test_an_incomplete_call_is_reported_with_what_the_model_wrote():
    text = CALL[: CALL.index("</atem:parameter>\n</atem:invoke>")]
    [rejected] = read(text, reason="length").rejected
    assert (rejected.reason, rejected.raw_name) == ("incomplete", "save")
    assert rejected.text in text
    assert '<atem:parameter name="body">b' in rejected.text


def test_the_arguments_of_an_incomplete_call_are_no_cut_value():
    [rejected] = read(HALF, reason="length").rejected
    assert (rejected.arguments or {}).get("body") is None


def test_a_call_abandoned_at_a_real_boundary_leaves_the_turn_complete():
    found = read(turn(HALF, call("ping")))
    assert (verdicts(found), found.complete, found.finish_reason) == (
        ["incomplete"],
        True,
        "tool_calls",
    )


@pytest.mark.parametrize("text", [to("user", "Hi."), to("self", "Hm."), call("ping"), "Hi."])
def test_a_missing_last_terminator_alone_is_normal(text):
    found = read(text)
    assert (found.complete, codes(found)) == (True, [])


@pytest.mark.parametrize("text", [turn(to("user", "Hi.")), turn(call("ping")), ""])
def test_a_turn_that_was_closed_with_length_is_not_complete(text):
    found = read(text, reason="length")
    assert (found.complete, found.finish_reason) == (False, "length")
