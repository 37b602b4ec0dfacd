"""What a layer's cache keeps: everything, or a ring, against a list of all that came."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from atem.runtime.reference.model import LayerCache
from atem.testing.tiny import tiny_config

CONFIG = tiny_config(sliding_window=5)
SLACK = 6


def numbered(start, count):
    """Keys and values that say their position: [2, T, K, D]."""
    values = np.arange(start, start + count, dtype=np.float32)[None, :, None, None]
    return np.broadcast_to(values, (2, count, 2, 16)) + np.float32([0, 0.5])[:, None, None, None]


def filled(kind, sizes):
    cache = LayerCache(CONFIG, kind, SLACK)
    for size in sizes:
        cache.append(numbered(cache.length, size))
    return cache


pieces = st.lists(st.integers(1, SLACK), min_size=1, max_size=12)


@given(pieces)
def test_a_ring_holds_the_last_positions_each_with_its_own_values(sizes):
    cache = filled("sliding_attention", sizes)
    kept, positions = cache.all()
    expected = range(max(0, sum(sizes) - 5 - SLACK), sum(sizes))
    assert sorted(positions.tolist()) == list(expected)
    assert np.array_equal(kept[0, :, 0, 0], positions)
    assert np.array_equal(kept[1, :, 1, 15], positions + 0.5)


@given(pieces)
def test_a_ring_never_lacks_what_the_first_of_the_newest_tokens_sees(sizes):
    cache = filled("sliding_attention", sizes)
    first = sum(sizes) - sizes[-1]
    assert set(range(max(0, first - 5 + 1), sum(sizes))) <= set(cache.all()[1].tolist())


@given(pieces)
def test_a_full_layer_holds_everything_in_order(sizes):
    kept, positions = filled("full_attention", sizes).all()
    assert positions.tolist() == list(range(sum(sizes)))
    assert np.array_equal(kept[0, :, 0, 0], positions)


@given(pieces, st.sampled_from(["full_attention", "sliding_attention"]), st.data())
def test_a_span_of_the_newest_is_a_copy_in_order(sizes, kind, data):
    cache = filled(kind, sizes)
    start = data.draw(st.integers(max(0, sum(sizes) - SLACK), sum(sizes) - 1))
    span = cache.span(range(start, sum(sizes)))
    assert span[0, :, 0, 0].tolist() == list(range(start, sum(sizes)))
    span[:] = -1
    assert -1 not in cache.all()[0]


def test_a_ring_does_not_grow():
    sizes = {filled("sliding_attention", [SLACK] * count)._kept.nbytes for count in (1, 50)}
    assert len(sizes) == 1
