"""Stop strings against the plainest search there is, whatever the cuts."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from atem import Piece
from atem.runtime.stops import StopStrings

# Few letters, so that strings overlap themselves and one another.
strings = st.text("ab", min_size=1, max_size=5)
stops = st.lists(strings, max_size=3)
chunks = st.lists(st.text("ab", max_size=4), max_size=10)
EOM = Piece("<|eom|>", special=True)


def before_stop(text: str, wanted: list[str]) -> str | None:
    """What stands before the string that is complete first, the longest of several; None if none."""
    for end in range(1, len(text) + 1):
        ending = [len(stop) for stop in wanted if text[:end].endswith(stop)]
        if ending:
            return text[: end - max(ending)]
    return None


def run(wanted: list[str], pieces: list[Piece]) -> tuple[list[Piece], str | None]:
    search = StopStrings(wanted)
    shown = [piece for given_piece in pieces for piece in search.take([given_piece])]
    return shown + ([] if search.found else search.flush()), search.found


def joined(pieces: list[Piece]) -> str:
    return "".join(piece.text for piece in pieces)


@given(wanted=stops, parts=chunks)
def test_the_text_ends_before_the_string_that_is_complete_first(
    wanted: list[str], parts: list[str]
) -> None:
    shown, found = run(wanted, list(map(Piece, parts)))
    kept = before_stop("".join(parts), wanted)
    assert (found is None) is (kept is None)
    assert found is None or "".join(parts).startswith(f"{kept}{found}")
    assert joined(shown) == ("".join(parts) if kept is None else kept)


@given(wanted=stops, parts=chunks)
def test_no_cut_changes_the_end(wanted: list[str], parts: list[str]) -> None:
    text = "".join(parts)
    whole, found = run(wanted, [Piece(text)])
    chars, also_found = run(wanted, list(map(Piece, text)))
    assert joined(whole) == joined(chars) == joined(run(wanted, list(map(Piece, parts)))[0])
    assert found == also_found


@given(wanted=stops, parts=chunks)
def test_a_piece_is_held_only_while_a_string_may_begin_in_it(
    wanted: list[str], parts: list[str]
) -> None:
    search = StopStrings(wanted)
    text = shown = ""
    for part in parts:
        text += part
        pieces = search.take([Piece(part)])
        shown += joined(pieces)
        if search.found:
            return
        held = text[len(shown) :]
        beginnings = [
            place
            for place in range(len(shown), len(text))
            if any(stop.startswith(text[place:]) for stop in wanted)
        ]
        assert not held or beginnings
        assert text == shown + held


@given(parts=chunks)
def test_without_a_find_the_pieces_are_the_given_ones(parts: list[str]) -> None:
    pieces = [Piece(part) for part in parts]
    shown, found = run(["abX", "bbbbbX"], pieces)
    assert (shown, found) == (pieces, None)


@given(wanted=stops, before=chunks, after=chunks)
def test_a_string_never_reaches_over_a_special_token(
    wanted: list[str], before: list[str], after: list[str]
) -> None:
    pieces = [*map(Piece, before), EOM, *map(Piece, after)]
    shown, found = run(wanted, pieces)
    first, second = (before_stop("".join(parts), wanted) for parts in (before, after))
    assert (found is None) is (first is second is None)
    if first is not None:
        assert joined(shown) == first
    else:
        kept = "".join(after) if second is None else second
        assert joined(shown) == "".join(before) + EOM.text + kept


def test_a_special_token_is_never_cut() -> None:
    assert run(["eom", "|>x"], [EOM, Piece("x")]) == ([EOM, Piece("x")], None)


def test_a_special_token_that_is_a_stop_string_ends_the_text() -> None:
    assert run(["<|eom|>"], [Piece("a"), EOM, Piece("b")]) == ([Piece("a")], "<|eom|>")


def test_text_is_released_before_a_special_token() -> None:
    search = StopStrings(["ab"])
    assert search.take([Piece("a")]) == []
    assert search.take([EOM]) == [Piece("a"), EOM]


def test_a_long_stop_string_costs_no_more_for_looking_like_the_text() -> None:
    stop = "a" * 200_000 + "b"
    search = StopStrings([stop])
    shown = [piece for _ in range(30) for piece in search.take([Piece("a" * 10_000)])]
    assert len(joined(shown)) == 100_000
    assert not search.found
