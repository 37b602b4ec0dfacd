"""Where a body ends, and what in it is a call (wire_format 5.1 to 5.7)."""

from __future__ import annotations

import pytest

from tests.parser.spelling import (
    END,
    EOM,
    EOT,
    MESSAGE,
    NEXT,
    PING,
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
from tests.parser.strategies import STRING, tool

TERMINATORS = (EOM, EOT, END)
ANSWER = to("user", "Done.")

# ---- 5.1 Terminators quoted in text ---------------------------------------------------------------


@pytest.mark.parametrize("marker", TERMINATORS)
@pytest.mark.parametrize(
    "quoted", ["{} ends", "a {} b", "{}{}b", "a{}\n\nb", "{}<b>", "a {}<|sta b", "{}<|message|>"]
)
def test_a_terminator_that_no_header_or_end_follows_is_literal(marker, quoted):
    body = quoted.replace("{}", marker)
    assert read(turn(to("user", body))).content == body
    assert read(turn(to("self", body))).reasoning == body
    assert calls(read(turn(call("save", body=body)))) == [("save", {"body": body})]


@pytest.mark.parametrize(
    "quoted",
    [f"{EOM}{START}, twice", f"{EOT}{START}assist", f"{EOM}\n{START} the", f"{EOM}{START}{EOM} x"],
)
def test_a_quoted_pair_of_terminator_and_start_is_literal(quoted):
    assert read(turn(to("user", quoted))).content == quoted


@pytest.mark.parametrize("run", [EOM, f"{EOM}{EOM}", f"{EOM} \r\n\t{EOM}", f"{EOM}\n"])
@pytest.mark.parametrize("start", [START, f"{START}\n "])
@pytest.mark.parametrize("header", ["assistant to=user", "to=user", "", "assistant"])
def test_a_terminator_before_a_header_is_structural(run, start, header):
    found = read(f" to=self{MESSAGE}Hm.{run}{start}{header}{MESSAGE}Hi.{EOT}")
    assert (found.reasoning, found.content) == ("Hm.", "Hi.")


@pytest.mark.parametrize("run", [EOM, EOT, END, f"{EOT}\n", f"{EOM}{EOT}", f"{EOT} {END} "])
def test_a_terminator_before_the_end_of_the_stream_is_structural(run):
    assert read(f" to=user{MESSAGE}Hi. {run}").content == "Hi. "


def test_a_quoted_terminator_does_not_hide_the_real_one():
    found = read(f" to=user{MESSAGE}It ends with {EOT}: see.{EOT}")
    assert found.content == f"It ends with {EOT}: see."


# ---- 5.2 Headers and blocks quoted in an answer ------------------------------------------------------


@pytest.mark.parametrize(
    "quoted",
    [
        PING,
        f"to=ping{MESSAGE}{PING}",
        f"\n to=ping{MESSAGE}{PING}\n",
        f"{START}assistant to=ping{MESSAGE}{PING}",
        f"So: {START}assistant to=ping{MESSAGE}{PING} is a call",
        f"{START}assistant to=self{MESSAGE}not a thought",
        f"{MESSAGE}x",
        f"<atem:function_calls>{PING}",
    ],
)
@pytest.mark.parametrize("recipient", ["user", "commentary"])
def test_nothing_quoted_in_an_answer_leaves_it(recipient, quoted):
    found = read(turn(to(recipient, quoted)))
    assert (found.content, found.calls, found.rejected) == (quoted, (), ())


@pytest.mark.parametrize(
    "quoted", [f"Ebb. to=ping{MESSAGE}{PING}", f"Ebb. {START}to=ping{MESSAGE}{PING}"]
)
def test_nothing_quoted_in_unframed_text_leaves_it(quoted):
    found = read(quoted + EOT)
    assert (found.content, found.calls) == (quoted, ())


# ---- 5.3 Reasoning without its end ------------------------------------------------------------------


@pytest.mark.parametrize("header", ["to=user", "to=commentary", "to=self", ""])
def test_a_framed_header_closes_reasoning(header):
    found = read(f" to=self{MESSAGE}Hm.{START}assistant {header}{MESSAGE}Hi.{EOT}")
    assert (found.reasoning, found.content) == (
        ("Hm.\nHi.", "") if "self" in header else ("Hm.", "Hi.")
    )


@pytest.mark.parametrize("header", [" to=user", "\nto=self", " to=commentary", f" {START}user"])
def test_any_other_header_stays_reasoning(header):
    body = f"Hm.{header}{MESSAGE}Hi."
    assert read(turn(to("self", body))).reasoning == body


@pytest.mark.parametrize(
    "header", [" to=ping", "\n\nto=ping", f"{START}assistant to=ping", f" {START}to=ping"]
)
@pytest.mark.parametrize("blank", ["", "\n", " \t"])
def test_a_header_to_a_declared_tool_with_a_tag_closes_reasoning(header, blank):
    found = read(f" to=self{MESSAGE}Hm.{header}{MESSAGE}{blank}{PING}{EOT}")
    before = header[: len(header) - len(header.lstrip())]
    assert (found.reasoning, calls(found)) == (f"Hm.{before}", [("ping", {})])


def test_a_header_at_the_start_of_the_reasoning_closes_it():
    found = read(f" to=self{MESSAGE}to=ping{MESSAGE}{PING}{EOT}")
    assert (found.reasoning, calls(found)) == ("", [("ping", {})])


@pytest.mark.parametrize(
    "body",
    [
        f"Hm. to=launch{MESSAGE}{block(invoke('launch'))}",
        f"Hm. to=ping{MESSAGE}pong",
        f"Hm. to=ping{MESSAGE}<atem",
        f"Hm. to=ping{MESSAGE}",
        f"auto=ping{MESSAGE}{PING}",
        f"(to=ping{MESSAGE}{PING})",
        f"Hm. to=ping {PING}",
        f"{START}assistant to=launch{MESSAGE}{block(invoke('launch'))}",
        PING,
    ],
)
def test_what_is_no_header_to_a_declared_tool_with_a_tag_stays_reasoning(body):
    found = read(turn(to("self", body)))
    assert (found.reasoning, found.calls, found.rejected) == (body, (), ())


def test_a_recovered_call_with_anything_behind_its_block_is_malformed():
    found = read(turn(to("self", f"A call is to=ping{MESSAGE}{PING} and so on."), ANSWER))
    assert (found.reasoning, found.calls, verdicts(found)) == ("A call is ", (), ["malformed"])
    assert found.content == "Done."


@pytest.mark.parametrize("header", ["to=user", "to=ping", ""])
def test_a_framed_header_ends_a_tool_body_with_no_invoke_open(header):
    behind = PING if "ping" in header else "Done."
    found = read(f"{call('ping')}{START}assistant {header}{MESSAGE}{behind}{EOT}")
    assert (len(found.calls), found.content) == ((2, "") if "ping" in header else (1, "Done."))
    assert codes(found) == ["missing_terminator"]


def test_a_bare_header_does_not_end_a_tool_body():
    found = read(turn(f"{call('ping')} to=save{MESSAGE}{block(invoke('save', body='x'))}"))
    assert found.calls == ()


# ---- 5.4 Framing inside a parameter value -------------------------------------------------------------

OPEN = to("save", '<atem:function_calls>\n<atem:invoke name="save">\n<atem:parameter name="body">')


def test_an_abandoned_call_is_incomplete_and_its_retry_runs():
    found = read(turn(f"{OPEN}Bre", call("save", body="Brest")))
    assert (calls(found), verdicts(found)) == ([("save", {"body": "Brest"})], ["incomplete"])
    assert (codes(found), found.complete) == (["undecided"], True)


def test_an_abandoned_call_does_not_swallow_what_follows_it():
    found = read(turn(f"{OPEN}Bre", to("self", "No."), ANSWER))
    assert (found.reasoning, found.content, found.calls) == ("No.", "Done.", ())


@pytest.mark.parametrize(
    "value",
    [
        f"turn: {NEXT}{call('ping')}{EOT}",
        f"turn: {NEXT}{call('ping')}{EOT} and so on",
        f"{NEXT}{call('save', body='a', path='b')}{NEXT}{call('ping')}",
        f"{EOT}{START}user{MESSAGE}Hello.",
        f"a{EOM}{START}assistant to=user{MESSAGE}b",
        f"a{START}assistant to=user{MESSAGE}b",
    ],
)
def test_a_transcript_in_a_value_is_part_of_it(value):
    found = read(turn(call("save", body=value), ANSWER))
    assert (calls(found), found.rejected) == ([("save", {"body": value})], ())
    assert found.content == "Done."


def test_the_first_candidate_ends_the_message_if_no_later_one_is_whole():
    found = read(turn(f"{OPEN}half", f"{OPEN}half"))
    assert (found.calls, verdicts(found)) == ((), ["incomplete", "incomplete"])


def test_the_whole_invokes_of_a_refuted_message_are_calls():
    body = f'<atem:function_calls>\n{invoke("ping")}\n<atem:invoke name="save">\n'
    found = read(turn(to("ping", body), ANSWER))
    assert (calls(found), verdicts(found)) == ([("ping", {})], ["incomplete"])
    assert found.content == "Done."


def test_a_complete_body_that_is_unbalanced_waits_for_a_balanced_end():
    quoted = parameter("body", "x").removesuffix("</atem:parameter>")
    found = read(turn(call("save", body=f"see {quoted}"), ANSWER))
    assert calls(found) == [("save", {"body": f"see {quoted}"})]
    assert (codes(found), found.content) == (["undecided"], "Done.")


@pytest.mark.parametrize("times", range(6))
def test_a_turn_is_read_again_three_times_and_then_runs_nothing_more(times):
    found = read(turn(*[f"{OPEN}half"] * times, call("ping"), call("ping")))
    trusted = times <= 3
    assert calls(found) == ([("ping", {})] * 2 if trusted else [])
    assert codes(found).count("untrusted") == int(not trusted)
    assert len(found.rejected) == times + (0 if trusted else 2)


def test_what_is_no_call_is_still_read_behind_the_third_time():
    found = read(turn(*[f"{OPEN}half"] * 4, to("self", "Hm."), ANSWER))
    assert (found.reasoning, found.content, found.calls) == ("Hm.", "Done.", ())


def test_an_undecided_message_is_bounded():
    text = turn(f"{OPEN}half", call("save", body="x" * 600), ANSWER)
    found = read(text, max_call_chars=400)
    assert (found.calls, found.content) == ((), "Done.")
    assert verdicts(found)[0] == "incomplete"


# ---- 5.5 Where a value ends ---------------------------------------------------------------------------


@pytest.mark.parametrize(
    "value",
    [
        "",
        " ",
        "\n",
        "  two  \r\n",
        "</atem:parameter>",
        "a</atem:parameter>b",
        "a</atem:parameter>\n\nb",
        "a</atem:invoke>b",
        "</atem:invoke>\n</atem:function_calls>",
        "<atem:function_calls>",
        "<atem:parameters>",
        "</atem:parameter",
        "<atem:parameter",
        "a</atem:parameter></atem:parameter>",
        "x</atem:parameter>\n<atem:parameters>",
        '{"a": "<b>&amp;</b>"}',
        "<![CDATA[x]]>",
        "</parameter></invoke>",
    ],
)
def test_a_value_is_verbatim(value):
    found = read(turn(call("save", path="p", body=value)))
    assert (calls(found), found.rejected) == ([("save", {"path": "p", "body": value})], ())


@pytest.mark.parametrize(
    "value", [PING, block(invoke("save", path="a", body="b")), parameter("k", "v")]
)
@pytest.mark.parametrize(("before", "behind"), [("", ""), ("see ", " there"), ("\n", "\n")])
def test_a_block_quoted_in_a_value_is_part_of_it(before, behind, value):
    quoted = f"{before}{value}{behind}"
    found = read(turn(call("save", path="p", body=quoted)))
    assert calls(found) == [("save", {"path": "p", "body": quoted})]


def test_a_block_may_be_quoted_in_a_value_that_another_follows():
    quoted = block(invoke("save", body="b"))
    assert calls(read(turn(call("save", body=quoted, path="p")))) == [
        ("save", {"body": quoted, "path": "p"})
    ]


@pytest.mark.parametrize("prose", ["Saving: ", "", "\n\n"])
@pytest.mark.parametrize("behind", [" Saved.", "", "\n"])
def test_prose_around_the_blocks_of_a_balanced_message_is_tolerated(prose, behind):
    found = read(turn(to("ping", f"{prose}{PING}{behind}")))
    assert (calls(found), found.content) == ([("ping", {})], "")


@pytest.mark.parametrize(
    "body",
    [
        f"{PING} and {PING}",
        block(invoke("ping"), "and", invoke("ping")),
        block(invoke("ping").replace("\n", "and")),
        f"{PING}</atem:invoke>",
        f"</atem:parameter>{PING}",
        block("<atem:invoke>\n</atem:invoke>", invoke("ping")),
    ],
    ids=["between blocks", "between invokes", "in an invoke", "closer", "early closer", "nameless"],
)
def test_what_neither_reading_reads_to_its_end_is_malformed_as_a_whole(body):
    found = read(turn(to("ping", body), ANSWER))
    assert (found.calls, found.content) == ((), "Done.")
    assert set(verdicts(found)) == {"malformed"}


def test_the_irreducible_value_reads_as_two_calls():
    value = 'a</atem:parameter>\n</atem:invoke>\n<atem:invoke name="save">\n<atem:parameter name="path">b'
    found = read(turn(call("save", body=value)))
    assert calls(found) == [("save", {"body": "a"}), ("save", {"path": "b"})]


def test_parameters_quoted_in_a_row_read_as_parameters():
    value = parameter("k", "1") + parameter("m", "2")
    found = read(turn(call("save", body=value)))
    assert calls(found) == [
        ("save", {"body": '<atem:parameter name="k">1', "m": "2</atem:parameter>"})
    ]


def test_one_invoke_per_message_refuses_the_irreducible_value():
    value = 'a</atem:parameter>\n</atem:invoke>\n<atem:invoke name="save">\n<atem:parameter name="path">b'
    assert read(turn(call("save", body=value)), one_invoke_per_message=True).calls == ()


@pytest.mark.parametrize("blank", ["", " ", "\n", "\r\n\t"])
def test_whitespace_between_tags_does_not_matter(blank):
    tags = [
        "<atem:function_calls>",
        '<atem:invoke name="save">',
        parameter("path", "p"),
        parameter("body", "b"),
        "</atem:invoke>",
        "</atem:function_calls>",
    ]
    found = read(turn(to("save", blank.join(tags))))
    assert calls(found) == [("save", {"path": "p", "body": "b"})]


# ---- 5.6 Blocks without a header, or with another one ----------------------------------------------


@pytest.mark.parametrize(
    "text", [PING, f"See: {PING}", f"{MESSAGE}{PING}", f"to=user{MESSAGE}{PING}"]
)
def test_a_block_that_is_not_in_a_tool_channel_is_content(text):
    found = read(text + EOT)
    assert (found.content, found.calls) == (text.split(MESSAGE)[-1], ())


@pytest.mark.parametrize("recipient", ["mail", "atem:function_calls", "nobody", "developer"])
def test_the_invoke_names_the_tool_whatever_the_channel(recipient):
    found = read(turn(to(recipient, block(invoke("mail.send", body="x")))))
    assert (calls(found), found.rejected) == ([("mail.send", {"body": "x"})], ())


def test_a_call_to_another_declared_tool_runs_and_is_flagged():
    found = read(turn(to("save", PING)))
    assert (calls(found), codes(found)) == ([("ping", {})], ["recipient_mismatch"])


@pytest.mark.parametrize("recipient", ["ping", "ping.ping", "functions.ping"])
def test_another_spelling_of_the_same_tool_is_no_mismatch(recipient):
    assert codes(read(turn(to(recipient, PING)))) == []


# ---- 5.7 Irregular invokes ------------------------------------------------------------------------


@pytest.mark.parametrize(
    "body",
    [
        '<atem:invoke name="ping"></atem:invoke>',
        invoke("ping"),
        f"<atem:function_calls>{invoke('ping')}",
        '<atem:invoke id="1" name="ping"></atem:invoke>',
        '<atem:invoke name="ping" id="1"></atem:invoke>',
        '<atem:invoke\n\tname="ping"\n></atem:invoke>',
        '<atem:invoke name="ping<|message|>"></atem:invoke>',
        '<atem:invoke name="pi<|message|>ng"></atem:invoke>',
    ],
)
def test_an_irregular_invoke_that_can_only_mean_one_thing_is_a_call(body):
    found = read(turn(to("ping", body)))
    assert (calls(found), found.rejected) == ([("ping", {})], ())


def test_a_block_left_open_before_a_terminator_is_a_call():
    assert calls(read(turn(to("ping", f"<atem:function_calls>{invoke('ping')}"), ANSWER))) == [
        ("ping", {})
    ]


@pytest.mark.parametrize(
    "body",
    [
        "<atem:invoke name='ping'></atem:invoke>",
        '<atem:invoke name="ping"/>',
        '<atem:invoke name="ping" /></atem:invoke>',
        "<atem:invoke></atem:invoke>",
        "<atem:invoke ></atem:invoke>",
        '<atem:invoke name=""></atem:invoke>',
        '<atem:invoke name="ping" name="ping"></atem:invoke>',
        '<atem:invoke name="ping" name="save"></atem:invoke>',
        "<atem:invoke name=ping></atem:invoke>",
        '<atem:invoke name = "ping"></atem:invoke>',
        '<atem:invoke xname="ping"></atem:invoke>',
        '<atem:invoke id="a>b" name="ping"></atem:invoke>',
        '<atem:invoke name="<|message|>"></atem:invoke>',
        '<atem:invoke name="ping</atem:invoke>',
        '<atem:invoke name="a<b"></atem:invoke>',
        f'<atem:invoke name="{"x" * 1100}"></atem:invoke>',
        '<atem:invoke/name="ping"></atem:invoke>',
    ],
)
def test_a_tag_that_is_not_the_wire_form_makes_no_call(body):
    found = read(turn(to("ping", f"<atem:function_calls>{body}</atem:function_calls>"), ANSWER))
    assert (found.calls, set(verdicts(found))) == ((), {"malformed"})
    assert found.content == "Done."


@pytest.mark.parametrize(
    "tag",
    [
        "<atem:parameter>",
        '<atem:parameter name="">',
        "<atem:parameter name='body'>",
        '<atem:parameter name="body" name="path">',
        "<atem:parameter body>",
    ],
)
def test_a_parameter_that_is_not_the_wire_form_makes_no_call(tag):
    whole = f'<atem:invoke name="save">{tag}x</atem:parameter></atem:invoke>'
    second = (
        f'<atem:invoke name="save">{parameter("path", "p")}{tag}x</atem:parameter></atem:invoke>'
    )
    for body in (whole, second):
        found = read(turn(to("save", body)))
        assert (found.calls, set(verdicts(found))) == ((), {"malformed"})


def test_a_control_token_in_the_name_of_a_parameter_is_dropped():
    tag = '<atem:parameter name="bo<|message|>dy">'
    body = f'<atem:invoke name="save">{tag}x</atem:parameter></atem:invoke>'
    assert calls(read(turn(to("save", body)))) == [("save", {"body": "x"})]


def test_an_extra_attribute_of_a_parameter_is_harmless():
    tag = '<atem:parameter type="string" name="body" x>'
    body = f'<atem:invoke name="save">{tag}x</atem:parameter></atem:invoke>'
    assert calls(read(turn(to("save", body)))) == [("save", {"body": "x"})]


@pytest.mark.parametrize(
    "body",
    [
        '{"path": "a"}',
        '[{"name": "save", "arguments": {}}]',
        '<function name="save"><parameter name="body">x</parameter></function>',
        '<args>["x"]</args>',
        '<invoke name="save"></invoke>',
        "<atem:invokes></atem:invokes>",
        "<ATEM:INVOKE NAME='save'></ATEM:INVOKE>",
    ],
)
def test_another_dialect_in_a_tool_channel_makes_no_call(body):
    found = read(turn(to("save", body), ANSWER))
    assert (found.calls, verdicts(found), found.content) == ((), ["malformed"], "Done.")


def test_a_repeated_parameter_takes_the_last_value_at_the_first_place():
    invoked = invoke("save", body="1", path="p").replace(
        "</atem:invoke>", f"{parameter('body', '2')}\n</atem:invoke>"
    )
    found = read(turn(to("save", block(invoked))))
    assert [one.arguments_json for one in found.calls] == ['{"body": "2", "path": "p"}']
    assert codes(found) == ["duplicate_parameter"]


def test_undeclared_parameters_are_kept_in_their_place():
    found = read(
        turn(call("save", mode="5", body="x", note="hi")), tools=[tool("save", body=STRING)]
    )
    assert [one.arguments_json for one in found.calls] == ['{"mode": 5, "body": "x", "note": "hi"}']
