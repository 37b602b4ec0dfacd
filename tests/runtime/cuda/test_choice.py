"""Candidates found on the device are those that NumPy finds, ties included."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from atem.runtime.cuda.choice import choose
from atem.runtime.sampling import candidates

# Few different values, as the logits of bfloat16 have them; zeros of both signs.
values = st.sampled_from([-20.0, -1.5, -0.0, 0.0, 1.0, 1.0000001, 3.25, 19.999])
logits = hnp.arrays(np.float32, st.tuples(st.integers(1, 5), st.integers(3, 40)), elements=values)


@given(logits, st.data())
def test_they_are_numpys(rows, data):
    needs = st.one_of(st.none(), st.integers(1, rows.shape[1] - 1))
    asked = data.draw(st.lists(st.integers(0, len(rows) - 1), min_size=1, unique=True))
    wanted = [data.draw(needs) for _ in asked]
    found = choose(torch.from_numpy(rows), asked, wanted)
    for row, need, one in zip(asked, wanted, found, strict=True):
        expected = candidates(rows[row], need)
        assert one.ids.dtype == np.int64
        assert one.logits.dtype == np.float32
        np.testing.assert_array_equal(one.ids, expected.ids)
        np.testing.assert_array_equal(one.logits, expected.logits)
        assert one.log_total == pytest.approx(expected.log_total, abs=1e-5)


@pytest.mark.parametrize("need", [1, 3, None])
@pytest.mark.parametrize("broken", [np.nan, np.inf])
def test_a_row_that_cant_be_sampled_from_says_so(broken, need):
    rows = np.zeros((2, 8), np.float32)
    rows[1, 4] = broken
    sound, unsound = choose(torch.from_numpy(rows), [0, 1], [need, need])
    assert np.isfinite(sound.log_total)
    assert not np.isfinite(unsound.log_total)
