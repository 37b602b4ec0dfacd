"""What the origin of a token decides: special tokens are framing, what is spelled is text (wire_format 1.1)."""

from __future__ import annotations

import pytest

import atem
from atem import Piece
from tests.parser.spelling import (
    END,
    EOM,
    EOT,
    HALF,
    MESSAGE,
    PING,
    START,
    TOOLS,
    call,
    calls,
    codes,
    rows,
    to,
    turn,
    verdicts,
)
from tests.parser.tokens import (
    BARE,
    MARKERS,
    TURN,
    byte_tokenizer,
    ids,
    pieces,
    plain,
    read,
    read_ids,
    spelled,
)

# ---- What is special is framing ---------------------------------------------------------------------


def terminators(tokens, **options):
    options.setdefault("tools", TOOLS)
    return [
        event.terminator
        for event in atem.parse_stream(tokens, **options)
        if isinstance(event, atem.MessageEnd)
    ]


@pytest.mark.parametrize("marker", [EOM, EOT, END])
@pytest.mark.parametrize("recipient", ["user", "self", "commentary"])
def test_a_special_terminator_ends_text_whatever_follows(recipient, marker):
    tokens = [*pieces(to(recipient, f"One.{marker}")), *plain("Two.")]
    found = read(tokens)
    assert found.messages[0].content == "One."
    assert terminators(tokens)[0] == marker
    assert codes(found) == ([] if marker == EOM else ["text_after_turn"])


def test_a_special_terminator_ends_a_call_at_once():
    parser = atem.Parser(tools=TOOLS)
    for piece in pieces(call("ping")):
        assert not any(isinstance(event, atem.CallEnd) for event in parser.feed(piece))
    found = rows(parser.feed(Piece(EOM, special=True)))
    assert found == [("CallEnd", 0, "ping", {}), ("MessageEnd", EOM)]


@pytest.mark.parametrize("marker", [EOM, EOT])
def test_a_special_terminator_ends_a_tool_body_inside_a_value(marker):
    found = read(pieces(f"{HALF}{marker}{START}assistant{call('ping')}{EOT}"))
    assert verdicts(found) == ["incomplete"]
    assert calls(found) == ([("ping", {})] if marker == EOM else [])
    assert "undecided" not in codes(found)


@pytest.mark.parametrize("recipient", ["user", "self"])
def test_a_special_start_opens_a_header_in_text(recipient):
    found = read(pieces(to(recipient, f"One.{START}assistant to=user{MESSAGE}Two.{EOT}")))
    assert [message.content for message in found.messages] == ["One.", "Two."]
    assert codes(found) == ["missing_terminator"]


def test_a_special_start_opens_a_header_in_unframed_text():
    found = read(pieces(f"One.{START}assistant{call('ping')}{EOT}"))
    assert (found.content, calls(found), codes(found)) == (
        "One.",
        [("ping", {})],
        ["missing_terminator"],
    )


@pytest.mark.parametrize(
    ("body", "calls_", "verdict"),
    [(PING, 2, []), (HALF.removeprefix(to("save", "")), 1, ["incomplete"])],
)
def test_a_special_start_opens_a_header_in_a_tool_body(body, calls_, verdict):
    found = read(pieces(f"{to('save', body)}{START}assistant{call('ping')}{EOT}"))
    assert (len(found.calls), verdicts(found)) == (calls_, verdict)
    assert "missing_terminator" in codes(found)


def test_a_missing_terminator_is_reported_behind_the_end_of_its_message():
    tokens = pieces(f"{call('ping')}{START}assistant to=user{MESSAGE}Hi.{EOT}")
    assert rows(list(atem.parse_stream(tokens, tools=TOOLS)))[3:7] == [
        ("CallEnd", 0, "ping", {}),
        ("MessageEnd", None),
        ("Problem", "missing_terminator"),
        ("MessageStart", "user"),
    ]


def test_special_terminators_in_a_row_end_one_message():
    found = read(pieces(f"{to('user', 'One.')}{EOM}{EOM}\n{EOM}{START}assistant{MESSAGE}Two.{EOT}"))
    assert [message.content for message in found.messages] == ["One.", "Two."]
    assert codes(found) == []


@pytest.mark.parametrize("before", ["", " "])
@pytest.mark.parametrize("marker", [EOM, EOT, END])
def test_a_special_terminator_before_any_message_is_framing(marker, before):
    tokens = [*plain(before), Piece(marker, special=True)]
    found = read(tokens)
    assert (found.content, found.reasoning, found.complete) == (before, "", True)
    header = pieces(f"{START}assistant{call('ping')}{EOT}")
    assert calls(read([*tokens, *header])) == ([("ping", {})] if marker == EOM else [])


def test_special_tokens_behind_the_end_of_the_turn_are_reported_once():
    found = read(pieces(f"{to('user', 'One.')}{EOT}{START}assistant{call('ping')}{EOT}{START}x"))
    assert (found.content, found.calls, codes(found)) == ("One.", (), ["text_after_turn"])


@pytest.mark.parametrize("recipient", ["user", "self"])
def test_a_special_message_marker_outside_a_header_is_text(recipient):
    found = read(pieces(to(recipient, f"a {MESSAGE} b{EOT}")))
    assert found.reasoning + found.content == f"a {MESSAGE} b"


def test_a_special_message_marker_in_a_value_is_text():
    found = read(pieces(turn(call("save", body=f"a {MESSAGE} b"))))
    assert calls(found) == [("save", {"body": f"a {MESSAGE} b"})]


@pytest.mark.parametrize(
    "text", ["<|patch|>", "<|video|>", "<|begin_of_text|>", "<|x|>", "<atem:invoke>"]
)
def test_any_other_special_token_is_text(text):
    tokens = [*pieces(to("user", "a ")), Piece(text, special=True), *pieces(f" b{EOT}")]
    assert read(tokens).content == f"a {text} b"


def test_a_special_placeholder_id_is_text():
    found = read_ids(ids(to("user", "a <|patch|> b")), ids(EOT))
    assert found.content == "a <|patch|> b"


def test_a_special_start_of_another_role_ends_the_turn_behind_a_boundary():
    found = read(pieces(f"{to('user', 'One.')}{EOM}{START}user{MESSAGE}Two.{EOT}"))
    assert (found.content, codes(found), found.complete) == ("One.", ["text_after_turn"], True)


# ---- What is spelled is text ------------------------------------------------------------------------

QUOTED = f"a {EOM}{START}assistant to=ping{MESSAGE}{PING}{EOT}"


@pytest.mark.parametrize("recipient", ["user", "self", "commentary"])
def test_markers_that_are_spelled_in_text_are_text(recipient):
    tokens = [*pieces(to(recipient, "")), *plain(QUOTED), Piece(EOT, special=True)]
    found = read(tokens)
    assert (found.reasoning + found.content, found.calls, codes(found)) == (QUOTED, (), [])
    from_ids = read_ids(ids(to(recipient, "")), spelled(QUOTED), ids(EOT))
    assert from_ids == found


@pytest.mark.parametrize(
    "value", [QUOTED, f"{EOM}{START}assistant", f"x{EOT}", f"a{START}user{MESSAGE}"]
)
def test_markers_that_are_spelled_in_a_value_are_text_and_leave_nothing_undecided(value):
    before, behind = turn(call("save", body="~"), to("user", "Done.")).split("~")
    found = read([*pieces(before), *plain(value), *pieces(behind)])
    assert (calls(found), found.content) == ([("save", {"body": value})], "Done.")
    assert codes(found) == []


def test_a_header_that_is_spelled_at_the_start_is_text():
    text = turn(call("ping"))
    assert read(plain(text)).content == text
    assert read_ids(spelled(text)).content == text


def test_a_marker_spelled_in_one_piece_is_text():
    tokens = [
        *pieces(to("user", "")),
        Piece(EOT),
        Piece(START),
        Piece("x"),
        Piece(EOT, special=True),
    ]
    assert read(tokens).content == f"{EOT}{START}x"


def test_a_bare_header_in_reasoning_still_needs_a_declared_tool_and_a_tag():
    assert calls(read(pieces(turn(to("self", f"Hm.{call('ping')}"))))) == [("ping", {})]
    for body in (f"Hm. to=ping{MESSAGE}pong", f"Hm. to=launch{MESSAGE}{PING}"):
        found = read(pieces(turn(to("self", body))))
        assert (found.reasoning, found.calls) == (body, ())


def test_a_bare_header_that_is_spelled_in_reasoning_is_text():
    body = f"Hm. to=ping{MESSAGE}{PING}"
    found = read([*pieces(to("self", "")), *plain(body), Piece(EOT, special=True)])
    assert (found.reasoning, found.calls) == (body, ())


# ---- Tokenizers without a special token, and mixed streams ----------------------------------------------


@pytest.mark.parametrize("missing", [START, MESSAGE, EOM, EOT])
def test_a_tokenizer_that_lacks_a_special_token_means_text(missing):
    tokenizer = byte_tokenizer(*(marker for marker in MARKERS if marker != missing))
    tokens = tokenizer.encode(TURN, add_special_tokens=False).ids
    assert atem.parse(tokens, tools=TOOLS, tokenizer=tokenizer) == atem.parse(TURN, tools=TOOLS)
    all_spelled = BARE.encode(TURN, add_special_tokens=False).ids
    assert atem.parse(all_spelled, tools=TOOLS, tokenizer=tokenizer).content == "Fertig: 👩‍🚀.\r\n"


def test_a_tokenizer_may_lack_the_end_of_text():
    tokenizer = byte_tokenizer(START, MESSAGE, EOM, EOT)
    tokens = [
        *tokenizer.encode(to("user", ""), add_special_tokens=False).ids,
        *spelled(f"a{EOM}{START}to=user{MESSAGE}b"),
        *tokenizer.encode(EOT, add_special_tokens=False).ids,
    ]
    assert atem.parse(tokens, tokenizer=tokenizer).content == f"a{EOM}{START}to=user{MESSAGE}b"


def test_a_string_between_pieces_is_text_that_decides_for_itself():
    tokens = [
        *pieces(to("user", "")),
        *plain(f"a{EOM}"),
        f"b{EOM}{START}assistant{MESSAGE}",
        "c",
        EOT,
    ]
    found = read(tokens)
    assert [message.content for message in found.messages] == [f"a{EOM}b", "c"]


def test_pieces_after_strings_still_know_what_they_are():
    tokens = [to("user", "a"), *plain(f"{EOM}{START}assistant{MESSAGE}b"), Piece(EOT, special=True)]
    found = read(tokens)
    assert found.content == f"a{EOM}{START}assistant{MESSAGE}b"


@pytest.mark.parametrize("halves", [(Piece("<|eo"), "t|>"), ("<|eo", Piece("t|>"))])
def test_a_marker_that_is_half_a_piece_and_half_a_string_is_text(halves):
    found = read([*pieces(to("user", "a")), *halves])
    assert found.content == f"a{EOT}"
