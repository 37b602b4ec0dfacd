"""Every option of the parser: each of its values, its default, and what is refused (docs/parser.md, "Options")."""

from __future__ import annotations

import asyncio
import inspect

import pytest

import atem
from tests.parser.spelling import (
    EOM,
    EOT,
    MESSAGE,
    NEXT,
    TOOLS,
    block,
    call,
    calls,
    codes,
    events,
    invoke,
    read,
    rows,
    to,
    turn,
    verdicts,
)
from tests.parser.strategies import STRING, tool

UNKNOWN = turn(call("launch", site="Kourou", crew="3"))

# ---- unknown ---------------------------------------------------------------------------------


@pytest.mark.parametrize("options", [{}, {"unknown": "reject"}])
def test_an_unknown_tool_is_rejected_with_what_the_model_wrote(options):
    found = read(UNKNOWN, **options)
    assert (found.calls, found.content, codes(found)) == ((), "", [])
    [rejected] = found.rejected
    assert (rejected.reason, rejected.raw_name) == ("unknown_tool", "launch")
    assert rejected.arguments == {"site": "Kourou", "crew": 3}
    assert invoke("launch", site="Kourou", crew="3") in rejected.text


def test_an_unknown_tool_rejects_itself_alone():
    found = read(turn(to("ping", block(invoke("ping"), invoke("launch"), invoke("ping")))))
    assert (calls(found), verdicts(found)) == ([("ping", {}), ("ping", {})], ["unknown_tool"])


def test_forward_keeps_the_emitted_name_and_announces_the_call_at_its_tag():
    assert calls(read(UNKNOWN, unknown="forward")) == [("launch", {"site": "Kourou", "crew": 3})]
    parser = atem.Parser(tools=TOOLS, unknown="forward")
    head = to("launch", '<atem:function_calls>\n<atem:invoke name="launch"')
    assert not any(isinstance(event, atem.CallStart) for event in parser.feed(head))
    [start] = [event for event in parser.feed(">") if isinstance(event, atem.CallStart)]
    assert (start.name, start.raw_name, start.namespace) == ("launch", "launch", None)


def test_forward_still_resolves_names_and_still_rejects_malformed_calls():
    assert calls(read(turn(call("ping.ping")), unknown="forward")) == [("ping", {})]
    nameless = to("launch", block("<atem:invoke>\n</atem:invoke>"))
    assert verdicts(read(turn(nameless), unknown="forward")) == ["malformed"]


def test_content_shows_the_raw_body_of_an_unknown_message_at_its_decision():
    body = block(invoke("launch", site="Kourou"))
    parser = atem.Parser(tools=TOOLS, unknown="content")
    assert rows(parser.feed(to("launch", body))) == [("MessageStart", "launch")]
    assert rows(parser.feed(EOT) + parser.close()) == [
        ("ContentDelta", body),
        ("MessageEnd", EOT),
        ("TurnEnd", "stop", True),
    ]
    found = read(turn(to("launch", body)), unknown="content")
    assert (found.content, found.rejected, found.calls) == (body, (), ())


def test_content_rejects_the_unknown_invokes_of_a_message_with_a_known_one():
    text = turn(to("ping", block(invoke("launch"), invoke("ping"))))
    found = read(text, unknown="content")
    assert (found.content, calls(found), verdicts(found)) == (
        "",
        [("ping", {})],
        ["unknown_tool"],
    )


def test_raise_raises_the_rejection_and_the_parser_stays_usable():
    parser = atem.Parser(tools=TOOLS, unknown="raise")
    before = parser.feed(call("launch"))
    with pytest.raises(atem.UnknownTool, match="launch") as raised:
        parser.feed(f"{NEXT}{call('ping')}{EOT}")
    rejected = raised.value.rejected
    assert (rejected.reason, rejected.raw_name) == ("unknown_tool", "launch")
    found = atem.collect(before + parser.close())
    assert (calls(found), verdicts(found)) == ([("ping", {})], ["unknown_tool"])


def test_raise_comes_from_the_feed_that_decides_and_the_events_with_the_next_call():
    parser = atem.Parser(tools=TOOLS, unknown="raise")
    before = parser.feed(call("launch"))
    with pytest.raises(atem.UnknownTool):
        parser.feed(f"{NEXT} to=user{MESSAGE}hi")
    after = parser.feed("!") + parser.close()
    assert rows(before + after) == [
        ("MessageStart", "launch"),
        ("CallRejected", None, "unknown_tool"),
        ("MessageEnd", EOM),
        ("MessageStart", "user"),
        ("ContentDelta", "hi!"),
        ("MessageEnd", None),
        ("TurnEnd", "stop", True),
    ]


def test_raise_comes_from_close_if_the_stream_decides():
    parser = atem.Parser(tools=TOOLS, unknown="raise")
    parser.feed(turn(call("launch")))
    with pytest.raises(atem.UnknownTool):
        parser.close()
    assert rows(parser.close())[-1] == ("TurnEnd", "stop", True)


@pytest.mark.parametrize("function", [atem.parse, lambda *a, **k: list(atem.parse_stream(*a, **k))])
def test_raise_comes_out_of_a_whole_turn(function):
    with pytest.raises(LookupError, match="launch"):
        function([UNKNOWN], tools=TOOLS, unknown="raise")


def test_raise_raises_for_no_other_verdict():
    nameless = to("ping", block("<atem:invoke>\n</atem:invoke>"))
    assert verdicts(read(turn(nameless), unknown="raise")) == ["malformed"]
    assert calls(read(turn(call("ping")), unknown="raise")) == [("ping", {})]


# ---- names -----------------------------------------------------------------------------------

NAMES = {
    "ping": "ping",
    "ping.ping": "ping",
    "mail.mail.send": "mail.send",
    "functions.ping": "ping",
    "default_api.ping": "ping",
    "mail.list": None,
    "mail.ping": None,
    "send": None,
    "Ping": None,
}


@pytest.mark.parametrize(("written", "meant"), NAMES.items())
@pytest.mark.parametrize("options", [{}, {"names": "safe"}])
def test_safe_names_resolve_where_no_other_tool_could_be_meant(written, meant, options):
    found = read(turn(call(written)), **options)
    assert [(one.name, one.raw_name) for one in found.calls] == (
        [(meant, written)] if meant else []
    )
    assert verdicts(found) == ([] if meant else ["unknown_tool"])


@pytest.mark.parametrize("written", NAMES)
def test_exact_names_are_taken_as_written(written):
    found = read(turn(call(written)), names="exact")
    assert calls(found) == ([("ping", {})] if written == "ping" else [])


@pytest.mark.parametrize(
    ("written", "meant"),
    [("mail.list", "calendar.list"), ("send", "mail.send"), ("ping.ping", "ping"), ("nope", None)],
)
def test_unique_leaf_goes_on_to_the_only_tool_with_that_last_segment(written, meant):
    assert calls(read(turn(call(written)), names="unique-leaf")) == ([(meant, {})] if meant else [])


def test_unique_leaf_refuses_a_leaf_that_two_tools_share():
    tools = [tool("calendar.list"), tool("mail.list")]
    assert verdicts(read(turn(call("x.list")), tools=tools, names="unique-leaf")) == [
        "unknown_tool"
    ]


# ---- arguments -------------------------------------------------------------------------------


@pytest.mark.parametrize("options", [{}, {"arguments": "stream"}])
def test_arguments_stream_by_default(options):
    parser = atem.Parser(tools=TOOLS, **options)
    parser.feed(to("save", '<atem:invoke name="save"><atem:parameter name="body">'))
    assert any(isinstance(event, atem.ArgumentsDelta) for event in parser.feed("high water" * 4))


def test_whole_arguments_come_together_at_the_decision():
    parser = atem.Parser(tools=TOOLS, arguments="whole")
    assert rows(parser.feed(call("save", path="a", body="b"))) == [("MessageStart", "save")]
    assert rows(parser.feed(EOT) + parser.close()) == [
        ("CallStart", 0, "save"),
        ("ArgumentsDelta", 0, '{"path": "a", "body": "b"}'),
        ("CallEnd", 0, "save", {"path": "a", "body": "b"}),
        ("MessageEnd", EOT),
        ("TurnEnd", "tool_calls", True),
    ]


# ---- validate --------------------------------------------------------------------------------

STRICT = [
    {
        "name": "book",
        "parameters": {
            "type": "object",
            "properties": {"seats": {"type": "integer", "maximum": 9}},
            "required": ["seats"],
        },
    }
]
FAULTY = {"seats": "twelve"}, {"seats": "12"}, {}


@pytest.mark.parametrize("values", FAULTY)
@pytest.mark.parametrize("options", [{}, {"validate": "report"}])
def test_violations_are_reported_with_the_call(values, options):
    found = read(turn(call("book", **values)), tools=STRICT, **options)
    [one] = found.calls
    assert [violation.path for violation in one.errors] == (["/seats"] if values else [""])


@pytest.mark.parametrize("values", FAULTY)
def test_violations_can_reject_the_call(values):
    found = read(turn(call("book", **values)), tools=STRICT, validate="reject")
    [rejected] = found.rejected
    assert (found.calls, rejected.reason) == ((), "invalid_arguments")
    assert [violation.path for violation in rejected.errors] == (["/seats"] if values else [""])


def test_a_call_rejected_for_its_arguments_is_taken_back_with_its_index():
    found = rows(events(turn(call("book", seats="12")), tools=STRICT, validate="reject"))
    assert found[1:] == [
        ("CallStart", 0, "book"),
        ("ArgumentsDelta", 0, '{"seats": 12}'),
        ("CallRejected", 0, "invalid_arguments"),
        ("MessageEnd", EOT),
        ("TurnEnd", "stop", True),
    ]


@pytest.mark.parametrize("values", FAULTY)
def test_violations_can_be_left_unlooked_for(values):
    [one] = read(turn(call("book", **values)), tools=STRICT, validate="off").calls
    assert one.errors == ()


@pytest.mark.parametrize("validate", ["report", "reject", "off"])
def test_arguments_that_fit_pass_whatever_validate_says(validate):
    [one] = read(turn(call("book", seats="2")), tools=STRICT, validate=validate).calls
    assert (one.arguments, one.errors) == ({"seats": 2}, ())


# ---- channel ---------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("channel", "field"), [("self", "reasoning"), ("user", "content"), ("commentary", "content")]
)
def test_a_channel_opened_by_the_prompt_takes_the_text_from_the_start(channel, field):
    found = read(f"to=user is not a header here{EOT}", channel=channel)
    assert getattr(found, field) == "to=user is not a header here"
    assert [message.recipient for message in found.messages] == [channel]


def test_a_channel_opened_by_the_prompt_has_an_event_without_text():
    [first, *_] = events(f"Hm.{EOT}", channel="self")
    assert first == atem.MessageStart("self", 0, 0)


def test_a_tool_channel_opened_by_the_prompt_takes_a_call():
    text = block(invoke("ping")) + turn("", to("user", "Done."))
    found = read(text, channel="ping")
    assert (calls(found), found.content) == ([("ping", {})], "Done.")


def test_a_channel_and_no_text_is_an_empty_turn():
    found = read("", channel="self")
    assert (found.reasoning, found.content, found.empty) == ("", "", True)


@pytest.mark.parametrize("channel", ["", "two words", "a<b", "\tuser"])
def test_a_channel_that_no_header_can_name_is_refused(channel):
    with pytest.raises(ValueError, match="channel"):
        atem.Parser(channel=channel)


def test_a_channel_excludes_a_framed_stream():
    with pytest.raises(ValueError, match="framed"):
        atem.Parser(channel="self", framed=True)


# ---- profile ---------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("options", "field"),
    [({}, "content"), ({"profile": "glimmer"}, "content"), ({"profile": "spark"}, "reasoning")],
)
def test_a_bare_header_is_the_answer_but_reasoning_to_spark(options, field):
    found = read(f"{MESSAGE}Ebb at nine.{EOT}", **options)
    assert getattr(found, field) == found.reasoning + found.content == "Ebb at nine."


def test_spark_keeps_other_channels_and_strings_as_they_are():
    text = turn(to("self", "Hm."), call("save", body="12345"), to("user", "Done."))
    found = read(text, profile="spark")
    assert (found.reasoning, found.content) == ("Hm.", "Done.")
    assert calls(found) == [("save", {"body": "12345"})]


# ---- new_id and tools ------------------------------------------------------------------------


def test_ids_come_from_new_id():
    given = []

    def new_id():
        given.append(f"id-{len(given)}")
        return given[-1]

    found = atem.parse(turn(call("ping"), call("ping")), tools=TOOLS, new_id=new_id)
    assert [one.id for one in found.calls] == given


def test_ids_are_unique_across_turns_by_default():
    text = turn(call("ping"), call("ping"))
    ids = {one.id for _ in range(50) for one in atem.parse(text, tools=TOOLS).calls}
    assert len(ids) == 100


def save(path: str, body: str = "") -> None:
    """Save a file."""


CHAT = tool("save", path=STRING, body=STRING)
FORMS = {
    "chat": [CHAT],
    "responses": [{"type": "function", **CHAT["function"]}],
    "Tool": [atem.Tool("save", parameters=CHAT["function"]["parameters"])],
    "function": [save],
    "ToolSet": atem.ToolSet([CHAT]),
}


@pytest.mark.parametrize("tools", FORMS.values(), ids=FORMS)
def test_tools_may_be_declared_in_any_form(tools):
    text = turn(call("save", path="12345", body=" null"))
    assert calls(read(text, tools=tools)) == [("save", {"path": "12345", "body": " null"})]


def test_a_tool_in_a_namespace_is_called_by_both_names_and_reports_them_apart():
    member = {"type": "function", "name": "post", "parameters": {"type": "object"}}
    tools = [{"type": "namespace", "name": "ledger", "tools": [member]}]
    [one] = read(turn(call("ledger.post")), tools=tools).calls
    assert (one.namespace, one.name, one.raw_name) == ("ledger", "post", "ledger.post")


@pytest.mark.parametrize("tools", [{}, {"tools": None}, {"tools": []}])
def test_without_tools_nothing_is_callable_and_no_markup_is_shown(tools):
    found = atem.parse(turn(call("ping"), to("user", "Hi.")), **tools)
    assert (found.calls, found.content, verdicts(found)) == ((), "Hi.", ["unknown_tool"])


# ---- refusals --------------------------------------------------------------------------------


@pytest.mark.parametrize("option", ["unknown", "names", "arguments", "validate", "profile"])
def test_a_value_that_an_option_lacks_is_refused_with_those_it_has(option):
    with pytest.raises(atem.OptionError, match=option) as raised:
        atem.Parser(**{option: "maybe"})
    default = {"unknown": "reject", "names": "safe", "arguments": "stream"}.get(option, "")
    assert default in str(raised.value)


def test_a_recovery_that_does_not_exist_is_refused():
    with pytest.raises(ValueError, match="headerless"):
        atem.Parser(recover={"reasonning"})
    with pytest.raises(ValueError, match="recover"):
        atem.Parser(recover=[["reasoning"]])


@pytest.mark.parametrize("start", [atem.Parser, atem.parse, atem.parse_stream, atem.aparse_stream])
def test_an_unknown_option_is_refused_before_anything_is_read(start):
    tokens = () if start is atem.Parser else ([],)
    with pytest.raises(TypeError, match="repair"):
        start(*tokens, repair=True)
    with pytest.raises(ValueError, match="names"):
        start(*tokens, names="fuzzy")


@pytest.mark.parametrize("function", [atem.parse, atem.parse_stream, atem.aparse_stream])
def test_everything_but_the_tokens_is_keyword_only(function):
    kinds = [parameter.kind for parameter in inspect.signature(function).parameters.values()]
    assert inspect.Parameter.POSITIONAL_OR_KEYWORD not in kinds[1:]
    with pytest.raises(TypeError):
        function([], TOOLS)


# ---- reason ----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("reason", "finish"), [("stop", "stop"), ("length", "length"), ("abort", "length")]
)
@pytest.mark.parametrize("ask", [False, True])
def test_the_reason_is_given_or_asked_at_the_end(reason, finish, ask):
    found = read(to("user", "Ebb at"), reason=(lambda: reason) if ask else reason)
    assert (found.finish_reason, found.complete) == (finish, finish == "stop")


def test_the_reason_is_stop_by_default():
    assert read(to("user", "Ebb at")).complete


def test_a_callable_reason_is_asked_once_and_after_the_last_token():
    seen = []

    def tokens():
        yield to("user", "Ebb")
        seen.append("last token")

    def reason():
        seen.append("asked")
        return "length"

    events = list(atem.parse_stream(tokens(), reason=reason))
    assert seen == ["last token", "asked"]
    assert events[-1].complete is False


def test_a_reason_that_does_not_exist_is_refused():
    with pytest.raises(ValueError, match="tool_calls"):
        atem.parse("hi", reason="tool_calls")


def test_an_asynchronous_source_gives_the_same_events():
    text = turn(to("self", "Hm."), to("user", "Ebb at nine."))

    async def tokens():
        for char in text:
            yield char

    async def gather():
        return [event async for event in atem.aparse_stream(tokens(), reason="length")]

    assert asyncio.run(gather()) == list(atem.parse_stream(text, reason="length"))


# ---- closing ---------------------------------------------------------------------------------


def test_a_closed_parser_takes_no_token_and_closes_again_in_silence():
    parser = atem.Parser()
    assert parser.close()
    assert parser.close() == []
    with pytest.raises(atem.ParserClosed):
        parser.feed("x")
