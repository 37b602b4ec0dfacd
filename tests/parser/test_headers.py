"""Headers: where a message begins, whom it is for, and what is only text (wire_format 3.1 to 3.3)."""

from __future__ import annotations

import pytest

import atem
from tests.parser.spelling import (
    END,
    EOM,
    EOT,
    MESSAGE,
    NEXT,
    START,
    TOOLS,
    block,
    call,
    calls,
    codes,
    invoke,
    parameter,
    read,
    rows,
    to,
    turn,
    verdicts,
)
from tests.parser.strategies import STRING, tool

ROLES = ("user", "tool", "system", "developer")
BLANKS = ("", " ", "\n", "\r\n", " \t\n ")


def recipients(found: atem.Turn) -> list[str | None]:
    return [message.recipient for message in found.messages]


# ---- Rule 1: the leading space is optional ----------------------------------------------------


@pytest.mark.parametrize("blank", BLANKS)
def test_the_first_header_may_begin_with_any_whitespace(blank):
    found = read(f"{blank}to=self{MESSAGE}Hm.{EOT}")
    assert (found.reasoning, found.content) == ("Hm.", "")


@pytest.mark.parametrize("blank", BLANKS)
def test_whitespace_before_the_end_of_a_header_is_framing(blank):
    found = read(f" to=self{blank}{MESSAGE}Hm.{NEXT} to=user{blank}{MESSAGE}Hi.{EOT}")
    assert (found.reasoning, found.content, recipients(found)) == ("Hm.", "Hi.", ["self", "user"])


def test_a_call_whose_leading_space_was_stripped_is_a_call():
    assert calls(read(turn(call("ping")).lstrip())) == [("ping", {})]


@pytest.mark.parametrize("blank", ["\v", "\f", "\u00a0", "\u2028", "\u3000", "\ufeff"])
def test_no_wider_class_of_whitespace_makes_a_header(blank):
    text = f"{blank}to=self{MESSAGE}Hm."
    assert read(text + EOT).content == text


# ---- Rule 2: a missing recipient means the user -------------------------------------------------


@pytest.mark.parametrize("header", [MESSAGE, f" {MESSAGE}", f"{START}assistant{MESSAGE}"])
def test_a_header_without_a_recipient_is_for_the_user(header):
    found = read(f"{header}Hi.{EOT}")
    assert (found.content, recipients(found)) == ("Hi.", [None])


def test_a_later_header_without_a_recipient_is_for_the_user():
    found = read(f" to=self{MESSAGE}Hm.{NEXT}{MESSAGE}Hi.{EOT}")
    assert (found.reasoning, found.content, recipients(found)) == ("Hm.", "Hi.", ["self", None])


# ---- Rule 3: the role word may be missing or glued ------------------------------------------------


@pytest.mark.parametrize(
    "header",
    [
        "assistant to=self",
        "assistantto=self",
        "to=self",
        " assistant to=self",
        "\nassistant\nto=self",
    ],
)
@pytest.mark.parametrize("before", ["", f" to=user{MESSAGE}{EOM}"])
def test_the_role_word_may_be_missing_or_glued(before, header):
    found = read(f"{before}{START}{header}{MESSAGE}Hm.{EOT}")
    assert (found.reasoning, found.content, codes(found)) == ("Hm.", "", [])


def test_a_role_word_without_its_start_opens_nothing():
    text = f"assistant to=user{MESSAGE}Hi."
    assert read(text + EOT).content == text


# ---- Rule 4: whitespace between messages is framing ---------------------------------------------


@pytest.mark.parametrize("blank", BLANKS)
@pytest.mark.parametrize("first", ["self", "user"])
def test_whitespace_between_messages_is_dropped(first, blank):
    text = f" to={first}{MESSAGE}One.{EOM}{blank}{START}{blank}assistant to=user{MESSAGE}Two.{EOT}{blank}"
    found = read(text)
    assert [message.content for message in found.messages] == ["One.", "Two."]


def test_whitespace_inside_a_body_is_kept():
    found = read(f" to=self{MESSAGE} \n{NEXT} to=user{MESSAGE}\n Hi. \n{EOT}")
    assert (found.reasoning, found.content) == (" \n", "\n Hi. \n")


# ---- Rule 5: the turn is over behind its end ----------------------------------------------------


@pytest.mark.parametrize("end", [EOT, END, f"{EOM}{EOT}", f"{EOT}{EOM}", f"{EOM} {END}\n{EOM}"])
def test_what_follows_the_end_of_the_turn_is_discarded_and_reported_once(end):
    rest = (
        f"{START}assistant{call('ping')}{NEXT} to=user{MESSAGE}More.{EOT}{START}assistant{MESSAGE}x"
    )
    found = read(f" to=user{MESSAGE}Hi.{end}{rest}")
    assert (found.content, found.calls, found.rejected) == ("Hi.", (), ())
    assert (codes(found), found.complete, len(found.messages)) == (["text_after_turn"], True, 1)


@pytest.mark.parametrize("end", [EOT, END])
def test_a_call_that_ends_the_turn_is_the_last_one(end):
    found = read(f"{call('ping')}{end}{START}assistant{call('save', body='x')}{EOT}")
    assert (calls(found), codes(found)) == ([("ping", {})], ["text_after_turn"])


@pytest.mark.parametrize("rest", ["", "\n", EOT, f" {EOM}\n{END} "])
def test_terminators_and_whitespace_behind_the_end_are_no_text(rest):
    found = read(f" to=user{MESSAGE}Hi.{EOT}{rest}")
    assert (found.content, codes(found)) == ("Hi.", [])


def test_an_end_of_message_does_not_end_the_turn():
    found = read(turn(to("user", "One."), to("user", " Two."), end=EOM))
    assert (found.content, codes(found)) == ("One. Two.", [])


# ---- Rule 6: another role ends the turn ---------------------------------------------------------


@pytest.mark.parametrize("role", ROLES)
@pytest.mark.parametrize("blank", ["", "\n"])
def test_a_header_of_another_role_behind_a_boundary_ends_the_turn(role, blank):
    text = (
        f" to=user{MESSAGE}Hi.{EOM}{blank}{START}{blank}{role}{MESSAGE}And I?{NEXT}{call('ping')}"
    )
    found = read(text + EOT)
    assert (found.content, found.calls, found.complete) == ("Hi.", (), True)
    assert codes(found) == ["text_after_turn"]


@pytest.mark.parametrize("role", ROLES)
def test_a_header_of_another_role_ends_the_turn_in_a_tool_body_with_no_invoke_open(role):
    text = f"{call('ping')}{START}{role} ping{MESSAGE}pong{NEXT}{call('save', body='x')}{EOT}"
    found = read(text)
    assert (calls(found), found.content) == ([("ping", {})], "")
    assert "text_after_turn" in codes(found)


@pytest.mark.parametrize("role", ROLES)
def test_a_header_of_another_role_is_text_in_a_value(role):
    value = f"log: {START}{role}{MESSAGE}hello"
    assert calls(read(turn(call("save", body=value)))) == [("save", {"body": value})]


@pytest.mark.parametrize("role", ROLES)
def test_a_header_of_another_role_is_text_in_a_body_that_goes_on(role):
    quoted = f"see {START}{role}{MESSAGE}hello"
    assert read(turn(to("user", quoted))).content == quoted
    assert read(turn(to("self", quoted))).reasoning == quoted
    assert read(f"{START}{role}{MESSAGE}hello").content == f"{START}{role}{MESSAGE}hello"


# ---- Rule 7: at the start only a prefix of a header is held -----------------------------------------


@pytest.mark.parametrize(
    "text",
    [
        "to=harbour means the harbour",
        "to=n<m",
        "to= user",
        "to harbour",
        "To=user<|message|>",
        "<|start|>harbour",
        "<|start|>assistant harbour",
        "<|mess",
        "<b>Ebb</b>",
        "\n\nEbb",
    ],
)
def test_a_beginning_that_is_no_header_is_text(text):
    found = read(text + EOT)
    assert (found.content, recipients(found)) == (text, [None])


@pytest.mark.parametrize(
    ("held", "release"), [("to=harbour ", "m"), ("to=n<", "m"), ("<|start|>ass", "e"), (" to", " ")]
)
def test_a_beginning_is_released_by_the_character_that_disproves_it(held, release):
    parser = atem.Parser()
    assert [event for char in held for event in parser.feed(char)] == []
    assert rows(parser.feed(release)) == [("MessageStart", None), ("ContentDelta", held + release)]


def test_text_that_is_no_header_from_its_first_character_is_not_held():
    assert rows(atem.Parser().feed("E")) == [("MessageStart", None), ("ContentDelta", "E")]


# ---- Rule 8: a header that the end of the stream cuts -------------------------------------------------


@pytest.mark.parametrize("text", ["", " ", "to=sel", " to=", "to=user <|mess", "<|sta", "t", "\n"])
@pytest.mark.parametrize("reason", ["stop", "length"])
def test_a_cut_header_before_any_message_is_text(text, reason):
    found = read(text, reason=reason)
    assert (found.content, found.complete) == (text, reason == "stop")


@pytest.mark.parametrize("rest", ["", "ass", "assistant", " assistant to=us", "to=self<|messag"])
def test_a_cut_header_that_begins_with_a_start_is_dropped(rest):
    found = read(START + rest)
    assert (found.content, found.complete, found.finish_reason) == ("", False, "length")


@pytest.mark.parametrize("rest", ["<", "<|sta", START, f"{START}assi", f"{START}assistant to=us"])
@pytest.mark.parametrize("end", [EOM, f"{EOM}\n"])
def test_a_cut_header_behind_a_boundary_is_dropped(end, rest):
    found = read(f" to=user{MESSAGE}Hi.{end}{rest}")
    assert (found.content, found.complete, found.finish_reason) == ("Hi.", False, "length")


def test_a_cut_start_is_text_where_no_terminator_stands_before_it():
    assert read(f" to=user{MESSAGE}Ebb at nine<|st").content == "Ebb at nine<|st"


@pytest.mark.parametrize(("length", "header"), [(256, True), (257, False)])
def test_a_later_header_is_given_up_at_256_characters(length, header):
    text = f"{START}assistant to=user".ljust(length - len(MESSAGE)) + MESSAGE
    found = read(f" to=user{MESSAGE}a{EOM}{text}b{EOT}")
    assert found.content == ("ab" if header else f"a{text}b")
    assert codes(found) == ([] if header else ["bad_header"])


# ---- Rule 9: a header that stops being one --------------------------------------------------------


@pytest.mark.parametrize(
    "bad",
    [
        "<|start|>assistant to=user format=json<|message|>{}",
        "<|start|>assistant to=x<y<|message|>b",
        "<|start|>assistant to= user<|message|>b",
        "<|start|>to=a<|start|>assistant<|message|>b",
        f"<|start|>assistant {'x' * 300}",
    ],
)
def test_a_bad_header_behind_a_boundary_is_visible_from_its_start(bad):
    found = read(f" to=self{MESSAGE}a{EOM}{bad}{EOT}")
    assert (found.reasoning, found.content) == ("a", bad)
    assert (recipients(found), codes(found)) == (["self", None], ["bad_header"])


@pytest.mark.parametrize("end", [EOM, EOT, END])
def test_a_bad_header_that_stops_at_a_terminator_is_dropped(end):
    found = read(f" to=user{MESSAGE}a{EOM}{START}assistant to=user {end}")
    assert (found.content, codes(found), found.complete) == ("a", ["bad_header"], True)


def test_a_bad_header_that_stops_at_the_end_of_the_stream_is_dropped_with_the_same_problem():
    found = read(f" to=user{MESSAGE}a{EOM}{START}assistant to=use")
    assert (found.content, codes(found), found.complete) == ("a", ["bad_header"], False)


def test_the_turn_goes_on_behind_a_header_that_stopped_at_a_terminator():
    found = read(f" to=user{MESSAGE}a{EOM}{START}assistant to=x{NEXT}{call('ping')}{EOT}")
    assert (found.content, calls(found), codes(found)) == ("a", [("ping", {})], ["bad_header"])


def test_a_call_behind_a_bad_header_is_text():
    bad = f"{START}assistant to=ping now{MESSAGE}{block(invoke('ping'))}"
    found = read(f" to=self{MESSAGE}a{EOM}{bad}{EOT}")
    assert (found.calls, found.content) == ((), bad)


# ---- Recipients (3.2) -----------------------------------------------------------------------------


def test_self_is_reasoning_even_if_a_tool_is_called_self():
    found = read(turn(call("self", body="x")), tools=[tool("self", body=STRING)])
    assert (found.reasoning, found.calls) == (block(invoke("self", body="x")), ())


def test_commentary_is_visible_with_its_recipient():
    found = read(turn(to("commentary", "Looking. "), to("user", "Found.")))
    assert (found.content, recipients(found)) == ("Looking. Found.", ["commentary", "user"])


def test_a_declared_commentary_tool_wins():
    found = read(turn(call("commentary", body="x")), tools=[tool("commentary", body=STRING)])
    assert (calls(found), found.content) == ([("commentary", {"body": "x"})], "")


@pytest.mark.parametrize(
    "recipient", ["developer", "assistant", "User", "selfish", "Self", "nobody"]
)
def test_text_to_an_undeclared_recipient_is_a_problem_and_not_shown(recipient):
    found = read(turn(to(recipient, "Psst."), to("user", "Hi.")))
    assert (found.content, found.reasoning, found.rejected) == ("Hi.", "", ())
    assert codes(found) == ["undeclared_channel"]
    assert "Psst." in found.problems[0].message


@pytest.mark.parametrize("recipient", ["ping", "ping.ping"])
def test_text_to_a_declared_tool_is_a_malformed_call(recipient):
    [rejected] = read(turn(to(recipient, '{"a": 1}'))).rejected
    assert (rejected.reason, rejected.raw_name, rejected.text) == (
        "malformed",
        recipient,
        '{"a": 1}',
    )


@pytest.mark.parametrize(
    "name", ["é-潮汐", "a/b:c", "x" * 200, 'say"hi', "a=b", "to=ping", "|>", "{}"]
)
def test_a_recipient_is_anything_but_whitespace_and_markers(name):
    text = turn(to(name, block(invoke("ping"))))
    found = read(text)
    assert (calls(found), recipients(found)) == ([("ping", {})], [name])
    assert found.calls[0].recipient == name


# ---- Several messages (3.3) -------------------------------------------------------------------------


def test_reasoning_bodies_are_joined_by_one_newline():
    found = read(turn(to("self", "One.\n"), to("self", ""), to("self", " Two."), to("user", "Hi.")))
    assert found.reasoning == "One.\n\n Two."
    assert [message.content for message in found.messages] == ["One.\n", "", " Two.", "Hi."]


def test_reasoning_around_a_call_is_joined_too():
    found = read(turn(to("self", "One."), call("ping"), to("self", "Two."), call("ping")))
    assert (found.reasoning, len(found.calls)) == ("One.\nTwo.", 2)


def test_answers_are_concatenated_verbatim():
    found = read(
        turn(to("user", " One. "), to("self", "Hm."), to("commentary", "\n"), to("user", "2"))
    )
    assert found.content == " One. \n2"


@pytest.mark.parametrize(
    "messages",
    [
        (call("ping"),),
        (to("user", "Hi."), call("ping")),
        (call("ping"), to("user", "Hi.")),
        (to("self", "Hm."), call("ping"), to("self", "Hm.")),
        (call("ping"), call("ping"), to("user", "Hi."), call("ping")),
    ],
)
def test_messages_may_come_in_any_order(messages):
    found = read(turn(*messages))
    assert len(found.calls) == sum("to=ping" in message for message in messages)
    assert found.content == ("Hi." if any("Hi." in message for message in messages) else "")
    assert [len(message.calls) for message in found.messages] == [
        int("to=ping" in message) for message in messages
    ]


def test_indices_follow_the_order_of_appearance():
    both = to("save", block(invoke("save", body="2"), invoke("count", n="3")))
    found = read(turn(call("ping"), both, call("save", body="4")))
    assert [(one.index, one.name) for one in found.calls] == [
        (0, "ping"),
        (1, "save"),
        (2, "count"),
        (3, "save"),
    ]


def test_several_blocks_in_a_message_are_several_calls():
    body = f"{block(invoke('ping'))}\n{block(invoke('save', body='x'))}"
    assert calls(read(turn(to("ping", body)))) == [("ping", {}), ("save", {"body": "x"})]


def test_messages_without_a_header_follow_only_a_boundary():
    found = read(f"Ebb at nine.{NEXT}{call('ping')}{EOT}")
    assert (found.content, calls(found)) == ("Ebb at nine.", [("ping", {})])


def test_a_terminator_and_nothing_else_is_an_empty_message():
    found = read(f" to=user{MESSAGE}{EOT}")
    assert (found.content, recipients(found), found.complete) == ("", ["user"], True)


def test_a_message_to_a_tool_without_a_body_is_malformed_or_cut():
    assert verdicts(read(f" to=ping{MESSAGE}{EOT}")) == ["malformed"]
    assert verdicts(read(f" to=ping{MESSAGE}", reason="length")) == ["incomplete"]


def test_a_header_never_becomes_an_argument():
    head = f'<atem:invoke name="save">{parameter("body", "x")}'
    found = read(
        f" to=save{MESSAGE}{head}</atem:invoke>{NEXT} to=user{MESSAGE}Hi.{EOT}", tools=TOOLS
    )
    assert (calls(found), found.content) == ([("save", {"body": "x"})], "Hi.")
