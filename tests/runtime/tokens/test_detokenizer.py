"""Ids to text, one at a time: what a whole decode gives, never half a character."""

from __future__ import annotations

from itertools import groupby

from hypothesis import given
from hypothesis import strategies as st

from atem import Piece
from atem.runtime.detokenizer import Detokenizer
from atem.tokenizer import wrap
from tests.parser.tokens import BYTE_IDS, TOKENIZER

KNOWN = wrap(TOKENIZER)
EOM = KNOWN.special_id("<|eom|>")
UNKNOWN = 5000

# Bytes that begin, go on or break characters of every length come often.
awkward = st.sampled_from(b"a\xc3\xa9\xe2\x82\xac\xf0\x9f\x99\x82\xed\xa0\x80\xc0\xf5\xff")
tokens = st.lists(
    st.integers(0, TOKENIZER.get_vocab_size() - 1)
    | awkward.map(BYTE_IDS.__getitem__)
    | st.sampled_from((EOM, UNKNOWN)),
    max_size=30,
)


def data(token: int) -> bytes:
    return b"" if token == UNKNOWN else KNOWN.token_bytes(token)


def whole(ids: list[int]) -> str:
    """Runs between special tokens, each decoded in one go."""
    runs = groupby(ids, KNOWN.is_special)
    return "".join(
        part.decode("utf-8", "replace")
        for special, run in runs
        for part in (map(data, run) if special else [b"".join(map(data, run))])
    )


def taken(ids: list[int]) -> list[tuple[Piece, ...]]:
    detokenizer = Detokenizer(KNOWN)
    last = len(ids) - 1
    return [detokenizer.take(token, last=place == last) for place, token in enumerate(ids)]


@given(ids=tokens)
def test_the_pieces_join_to_a_whole_decode(ids: list[int]) -> None:
    joined = "".join(piece.text for pieces in taken(ids) for piece in pieces)
    assert joined == whole(ids)


@given(ids=tokens)
def test_what_was_shown_is_never_taken_back_and_only_an_unfinished_character_is_held(
    ids: list[int],
) -> None:
    detokenizer = Detokenizer(KNOWN)
    shown = ""
    for count, token in enumerate(ids, 1):
        shown += "".join(piece.text for piece in detokenizer.take(token))
        kept = whole(ids[:count])
        assert kept.startswith(shown)
        # Python also holds the first two of the three bytes of a surrogate, which are never UTF-8.
        assert kept[len(shown) :] in ("", "\ufffd", "\ufffd" * 2)
    assert whole(ids).startswith(shown)


@given(ids=tokens)
def test_special_tokens_are_marked_and_nothing_else_is(ids: list[int]) -> None:
    marked = [piece.text for pieces in taken(ids) for piece in pieces if piece.special]
    assert marked == [data(token).decode() for token in ids if KNOWN.is_special(token)]


@given(ids=tokens)
def test_each_id_has_one_piece_but_for_a_character_that_a_special_token_breaks(
    ids: list[int],
) -> None:
    for token, pieces in zip(ids, taken(ids), strict=True):
        assert len(pieces) == 1 or (
            KNOWN.is_special(token) and set(pieces[0].text) == {"\ufffd"} and len(pieces) == 2
        )


def test_a_character_comes_with_its_last_byte() -> None:
    texts = [pieces[0].text for pieces in taken([BYTE_IDS[byte] for byte in "🙂".encode()])]
    assert texts == ["", "", "", "🙂"]


def test_an_unfinished_character_is_one_replacement_at_the_end() -> None:
    detokenizer = Detokenizer(KNOWN)
    assert [detokenizer.take(BYTE_IDS[byte]) for byte in b"\xf0\x9f\x99"] == [(Piece(""),)] * 3
    assert detokenizer.flush() == (Piece("\ufffd"),)
    assert detokenizer.flush() == ()
