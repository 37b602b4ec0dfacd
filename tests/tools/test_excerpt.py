"""A text in few characters: both ends, and what is missing."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from atem.tools.excerpt import COUNTED, shorten


@given(st.text(max_size=60), st.integers(60, 80))
def test_a_text_that_fits_is_left_alone(text, longest):
    assert shorten(text, longest) == text


@given(
    st.text("01", min_size=61, max_size=500), st.integers(40, 60), st.sampled_from([" … ", COUNTED])
)
def test_a_longer_one_fits_and_keeps_as_much_of_both_ends(text, longest, gap):
    found = shorten(text, longest, gap=gap)
    assert longest - 3 <= len(found) <= longest
    start, end = found.partition(" … ")[0], found.rpartition(" … ")[2]
    assert len(start) == len(end)
    assert text.startswith(start)
    assert text.endswith(end)


@pytest.mark.parametrize("length", [100, 12_345])
def test_a_counted_gap_counts_what_is_missing(length):
    found = shorten("x" * length, 80, gap=COUNTED)
    assert f"({length - found.count('x')} characters left out)" in found
