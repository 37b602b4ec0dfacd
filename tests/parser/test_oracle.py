"""The one-shot reading agrees with the wire cases, and with the rules no case pins down.

Rules: inputs are spelled out, answers come from wire_format, never from a run.
"""

from __future__ import annotations

from collections import Counter

import pytest
from hypothesis import given, seed, settings
from hypothesis import strategies as st

from tests.parser.oracle import read
from tests.parser.strategies import reasons, soups, splits, tool, turns
from tests.parser.wire_cases import CASES, EVERY_CASE, assert_answer, reason

TOOLS = [tool("ping"), tool("save", body={"type": "string"}), tool("wipe"), tool("mail.send")]


def block(name: str, **values: str) -> str:
    parameters = "".join(
        f'<atem:parameter name="{k}">{v}</atem:parameter>\n' for k, v in values.items()
    )
    return f'<atem:function_calls>\n<atem:invoke name="{name}">\n{parameters}</atem:invoke>\n</atem:function_calls>'


def message(name: str, **values: str) -> str:
    return f" to={name}<|message|>{block(name, **values)}"


@EVERY_CASE
def test_every_wire_case_is_read_as_expected(case):
    found = read(case["input"], case["tools"], reason(case))
    assert_answer(
        case,
        reasoning=found.reasoning,
        content=found.content,
        calls=found.calls,
        rejected=found.rejected,
        complete=found.complete,
    )


def test_no_wire_case_leaves_all_its_fields_unchecked():
    assert len(CASES) == 154
    assert all(any(value is not None for value in case["expect"].values()) for case in CASES)


# Limits on what is held (wire_format 8).


@pytest.mark.parametrize(("length", "is_header"), [(256, True), (257, False)])
def test_a_first_header_longer_than_256_is_text(length, is_header):
    header = "to=user".ljust(length - len("<|message|>")) + "<|message|>"
    assert read(header + "hi", []).content == ("hi" if is_header else header + "hi")


@pytest.mark.parametrize(("length", "is_header"), [(256, True), (257, False)])
def test_a_header_longer_than_256_behind_a_boundary_is_visible(length, is_header):
    header = "<|start|>assistant to=user".ljust(length - len("<|message|>")) + "<|message|>"
    found = read(f" to=user<|message|>a<|eom|>{header}b", [])
    assert found.content == ("ab" if is_header else f"a{header}b")


def test_a_long_run_of_terminators_is_literal_up_to_its_last_whole_unit():
    # 52 markers of 7 characters: 36 of them fit into 256, the other 16 end the message.
    found = read("to=user<|message|>a" + "<|eom|>" * 52, [])
    assert found.content == "a" + "<|eom|>" * 36


@pytest.mark.parametrize(("spaces", "body"), [(239, "x"), (240, None)])
def test_a_closer_followed_by_too_much_whitespace_is_literal(spaces, body):
    text = f' to=save<|message|><atem:invoke name="save"><atem:parameter name="body">x</atem:parameter>{" " * spaces}</atem:invoke>'
    found = read(text + "<|eot|>", TOOLS)
    assert found.calls == ([] if body is None else [("save", {"body": body})])


@pytest.mark.parametrize(
    ("attributes", "calls"),
    [
        ('name="ping" name="save"', []),
        ('name="" name="ping"', []),
        ('xname="ping"', []),
        ('x="/" name="ping" y', [("ping", {})]),
        ('name="ping" /', []),
        ('name="pi<|message|>ng"', [("ping", {})]),
    ],
)
def test_the_one_attribute_called_name_names_an_invoke(attributes, calls):
    assert (
        read(f" to=ping<|message|><atem:invoke {attributes}></atem:invoke>", TOOLS).calls == calls
    )


@pytest.mark.parametrize(("length", "called"), [(1024, True), (1025, False)])
def test_a_tag_of_more_than_1024_characters_is_malformed(length, called):
    tag = '<atem:invoke name="ping" >'
    tag = tag.replace(" >", " " * (length - len(tag) + 1) + ">")
    assert len(tag) == length
    found = read(f" to=ping<|message|>{tag}</atem:invoke><|eot|>", TOOLS)
    assert (found.calls, found.rejected) == (
        ([("ping", {})], []) if called else ([], ["malformed"])
    )


# Headers (wire_format 3.1).


def test_a_start_cut_behind_a_terminator_is_a_cut_header():
    for tail in (
        "<",
        "<|sta",
        "<|start|>",
        "<|start|> ass",
        "<|start|>to",
        "<|start|>assistant to=x",
    ):
        found = read(f" to=user<|message|>Hi<|eom|>{tail}", [])
        assert (found.content, found.complete) == ("Hi", False), tail


def test_the_turn_is_over_behind_an_end_of_turn_within_a_run():
    found = read(
        f" to=user<|message|>Hi<|eom|> <|eot|><|eom|><|start|>assistant{message('wipe')}", TOOLS
    )
    assert (found.content, found.calls, found.problems) == ("Hi", [], ["text_after_turn"])


def test_a_bad_header_that_stops_at_a_terminator_is_dropped():
    found = read(
        " to=user<|message|>a<|eom|><|start|>assistant to=x <|eom|><|start|>assistant to=user<|message|>b",
        [],
    )
    assert (found.content, found.problems, found.complete) == ("ab", ["bad_header"], True)


def test_a_role_word_opens_nothing_at_the_start_of_the_stream():
    assert read("<|start|>user<|message|>x", []).content == "<|start|>user<|message|>x"


# Reasoning (wire_format 5.3).


def test_a_call_recovered_from_reasoning_with_prose_behind_it_is_malformed():
    text = f" to=self<|message|>so{message('wipe')} would be wrong<|eom|><|start|>assistant to=user<|message|>ok"
    found = read(text, TOOLS)
    assert (found.reasoning, found.calls, found.rejected, found.content) == (
        "so ",
        [],
        ["malformed"],
        "ok",
    )


def test_recovery_can_be_switched_off():
    text = f" to=self<|message|>so{message('ping')}<|eot|>"
    assert read(text, TOOLS).calls == [("ping", {})]
    assert read(text, TOOLS, recover=frozenset()).reasoning == f"so{message('ping')}"


def test_a_bare_header_within_a_word_stays_reasoning():
    text = f" to=self<|message|>auto=ping<|message|>{block('ping')}"
    assert read(text, TOOLS).reasoning == text.removeprefix(" to=self<|message|>")


# Candidates, refutation, the cut rule (wire_format 4, 5.4).

ABANDONED = ' to=save<|message|><atem:function_calls>\n<atem:invoke name="save">\n<atem:parameter name="body">half'
NEXT = "<|eom|><|start|>assistant"


def test_an_invoke_in_a_message_that_another_follows_is_refuted_at_most_three_times():
    for times in range(6):
        found = read((ABANDONED + NEXT) * times + message("ping") + "<|eot|>", TOOLS)
        assert found.calls == ([("ping", {})] if times <= 3 else [])
        assert found.rejected == ["incomplete"] * (times if times <= 3 else times + 1)


def test_an_undecided_message_runs_nothing_in_a_cut_stream():
    found = read(ABANDONED + NEXT + message("ping") + "<|eot|>", TOOLS, "length")
    assert (found.calls, found.rejected) == ([], ["incomplete", "incomplete"])


QUOTING = ' to=save<|message|><atem:invoke name="save"><atem:parameter name="body">see <atem:parameter name="k">v</atem:parameter></atem:invoke>'


def test_a_cut_stream_runs_only_what_both_readings_close_at_the_same_place():
    # Look-ahead closes the value at its only closer; nested, that closer belongs to the quotation.
    for tail in ("", "<|eom|>", "<|eom|>\n<|eot|>"):
        found = read(QUOTING + tail, TOOLS, "length")
        assert (found.calls, found.rejected) == ([], ["incomplete"]), tail
    value = 'see <atem:parameter name="k">v'
    assert read(QUOTING + "<|eom|>", TOOLS).calls == [("save", {"body": value})]


def test_trailing_prose_at_the_end_of_a_stream_asks_both_readings():
    # Balanced, for the first value holds a closer too many.
    value = 'q </atem:parameter> r <atem:parameter name="k">v'
    text = f' to=save<|message|><atem:invoke name="save"><atem:parameter name="body">{value}</atem:parameter></atem:invoke>'
    for whole in (text, f"{text} done<|eot|>"):
        assert read(whole, TOOLS).calls == [("save", {"body": value})]
    assert read(f"{text} done", TOOLS).rejected == ["incomplete"]


def test_another_role_ends_the_turn_only_with_no_invoke_open():
    quoted = message("save", body="a <|start|>user<|message|>b")
    assert read(quoted, TOOLS).calls == [("save", {"body": "a <|start|>user<|message|>b"})]
    over = read(f"{message('ping')}<|start|>user<|message|>b{NEXT}{message('wipe')}", TOOLS)
    assert over.calls == [("ping", {})]


# Names and rejections (wire_format 6, docs/parser.md).


@pytest.mark.parametrize(
    ("name", "meant"),
    [("ping.ping", "ping"), ("mail.mail.send", "mail.send"), ("functions.ping", "ping")]
    + [(name, None) for name in ("mail.ping", "send", "Ping", "x.mail.send", "ping.send")],
)
def test_names_resolve_by_the_rules_and_no_further(name, meant):
    found = read(message(name), TOOLS)
    assert (found.calls, found.rejected) == (
        ([(meant, {})], []) if meant else ([], ["unknown_tool"])
    )


def test_text_to_a_tool_is_rejected_and_text_to_nobody_is_a_problem():
    declared = read(" to=ping<|message|>please<|eot|>", TOOLS)
    assert (declared.rejected, declared.content) == (["malformed"], "")
    cut = read(" to=ping<|message|>please", TOOLS, "length")
    assert cut.rejected == ["incomplete"]
    nobody = read(" to=nobody<|message|>please<|eot|>", TOOLS)
    assert (nobody.rejected, nobody.problems) == ([], ["undeclared_channel"])


# Laws that hold for whatever is drawn.


@settings(max_examples=300, deadline=None)
@given(turns() | soups())
def test_a_cut_stream_runs_no_call_that_the_same_text_would_not(turn):
    text, tools = turn
    whole, cut = read(text, tools), read(text, tools, "length")
    remaining = iter(map(repr, whole.calls))
    assert all(repr(call) in remaining for call in cut.calls)
    assert not cut.complete


@settings(max_examples=300, deadline=None)
@given(turns() | soups())
def test_bodies_and_string_arguments_stand_in_the_text_as_they_are(turn):
    text, tools = turn
    found = read(text, tools)
    notes = [arguments for name, arguments in found.calls if name == "note"]
    strings = [
        notes[i][key] for i in range(len(notes)) for key in ("title", "body") if key in notes[i]
    ]
    assert all(value in text for value in strings)
    assert len(found.reasoning) + len(found.content) <= len(text)
    assert {name for name, _ in found.calls} <= {t["function"]["name"] for t in tools}


KINDS = {
    *("call", "quoting", "late end"),
    *("malformed", "incomplete", "unknown_tool"),
    *("undecided", "bad_header", "text_after_turn", "undeclared_channel"),
}


def test_the_strategies_reach_every_kind_of_outcome():
    seen: Counter[str] = Counter()

    def look(turn, reason):
        found = read(*turn, reason)
        seen.update({*found.rejected, *found.problems, *(["call"] if found.calls else [])})
        seen.update(["quoting"] if any("<" in str(call) for call in found.calls) else [])
        seen.update(["late end"] if "undecided" in found.problems and found.calls else [])

    # What is drawn depends on the modules that the process has loaded: hypothesis takes constants
    # from them. So one seed is not enough everywhere.
    several = settings(max_examples=300, deadline=None, database=None)
    for number in range(10):
        if not seen.keys() >= KINDS:
            seed(number)(several(given(turns() | soups(), reasons)(look)))()
    assert seen.keys() >= KINDS


@given(st.data(), st.text(max_size=30))
def test_a_split_loses_nothing(data, text):
    assert "".join(data.draw(splits(text))) == text
