"""What a slot holds is what was written there, whatever grows, moves or wraps around."""

from __future__ import annotations

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from atem.errors import OutOfMemory
from atem.runtime.cuda.attention import reaches
from atem.runtime.cuda.cache import ALIGN, SHORTEST, Cache, aligned, doubled
from atem.testing.tiny import tiny_config

CONFIG = tiny_config(num_hidden_layers=4, sliding_window=8)


def empty(**options):
    defaults = {"context": 2000, "slack": 100, "max_slots": 6}
    return Cache(CONFIG, device=torch.device("cpu"), dtype=torch.float32, **defaults | options)


def rows(span, seed=0):
    """Different numbers for every layer, head, position and seed."""
    positions = torch.arange(span.start, span.stop, dtype=torch.float32)[None, :, None]
    heads = torch.arange(4)[:, None, None]
    return tuple(
        (positions + 10_000 * heads + 100_000 * layer + seed).expand(4, len(span), 16).contiguous()
        for layer in range(4)
    )


def same(found, expected):
    return all(torch.equal(a, b) for a, b in zip(found, expected, strict=True))


def test_blocks_are_read_back_as_far_as_they_are_needed():
    cache = empty()
    cache.grow(2, 300)
    cache.write(1, [rows(range(start, start + 30)) for start in range(0, 300, 30)])
    assert same(cache.read(1, range(270, 300)), rows(range(270, 300)))
    old = cache.read(1, range(30, 60))
    assert torch.equal(old[3], rows(range(30, 60))[3])  # full: everything is kept
    assert not torch.equal(old[0], rows(range(30, 60))[0])  # a ring: long overwritten


@settings(max_examples=30)
@given(st.lists(st.tuples(st.integers(1, 6), st.integers(1, 1500)), min_size=1, max_size=6))
def test_growing_keeps_what_every_slot_holds(steps):
    cache, held = empty(), {}
    for slots, length in steps:
        if not cache.fits(slots, length):
            cache.grow(slots, max(length, *held.values(), 1) if held else length)
        held = {slot: size for slot, size in held.items() if slot < slots}
        assert all(
            same(cache.read(slot, range(size)), rows(range(size), slot))
            for slot, size in held.items()
        )
        for slot in set(range(slots)) - held.keys():
            held[slot] = min(length, 90)
            cache.write(slot, [rows(range(held[slot]), slot)])


def test_a_moved_slot_is_read_where_it_is_now():
    cache = empty()
    cache.grow(3, 100)
    cache.write(2, [rows(range(80))])
    cache.move(2, 0)
    assert same(cache.read(0, range(80)), rows(range(80)))


def test_sizes_are_doubled_up_to_the_end_and_room_goes_back():
    cache = empty()
    cache.grow(3, 300)
    assert (cache.slots, cache.length) == (4, 512)
    cache.grow(5, 1100)
    assert (cache.slots, cache.length) == (6, aligned(2000))
    cache.grow(1, 10)
    assert (cache.slots, cache.length) == (1, SHORTEST)
    assert all(layer.shape[2] % ALIGN == 0 for layer in cache.layers)


@given(st.integers(0, 5000), st.integers(1, 300), st.integers(1, 5000))
def test_doubling_reaches_what_is_asked_or_the_end(value, least, most):
    size = doubled(value, least, most)
    assert size >= min(value, most)
    assert size in (least, most) or (size < 2 * value and size % least == 0)


def test_the_limit_counts_the_bytes_of_all_buffers_and_changes_nothing():
    cache = empty(limit=2_000_000)
    cache.grow(2, 500)
    assert cache.nbytes(2, 512) == sum(layer.nbytes for layer in cache.layers)
    before = [layer.data_ptr() for layer in cache.layers]
    with pytest.raises(OutOfMemory, match=r"4 requests of up to 2048 tokens .* 2000000"):
        cache.grow(4, 1900)
    assert before == [layer.data_ptr() for layer in cache.layers]
    assert cache.fits(2, 500)


def test_memory_that_ends_halfway_leaves_room_for_those_who_had_it(monkeypatch):
    cache = empty()
    cache.grow(2, 200)
    cache.write(1, [rows(range(90))])
    made = []
    zeros = torch.Tensor.new_zeros

    def failing(self, shape):
        made.append(shape)
        if len(made) == 3:
            raise torch.OutOfMemoryError("no more")
        return zeros(self, shape)

    monkeypatch.setattr(torch.Tensor, "new_zeros", failing)
    with pytest.raises(torch.OutOfMemoryError):
        cache.grow(4, 900)
    assert (cache.fits(2, 200), cache.fits(3, 200), cache.fits(2, 300)) == (True, False, False)
    assert same(cache.read(1, range(90)), rows(range(90)))


@settings(max_examples=50)
@given(st.integers(0, 700), st.integers(1, 90), st.integers(1, 40))
def test_a_row_sees_the_window_behind_it_and_nothing_else(start, size, window):
    config = tiny_config(num_hidden_layers=4, sliding_window=window)
    cache = Cache(
        config, device=torch.device("cpu"), dtype=torch.float32, context=2000, slack=90, max_slots=1
    )
    cache.grow(1, 1000)
    positions = torch.arange(start, start + size)
    found = reaches(cache, positions, positions[-1:], aligned(start + size), torch.float32)
    held = {}
    for position in range(start + size):  # what a ring holds after all of them were written
        held[position % cache.ring] = position
    for row, position in enumerate(positions.tolist()):
        near = {place for place, old in held.items() if position - window < old <= position}
        assert near == set((found[True].bias[row] == 0).nonzero()[:, 0].tolist())
        assert (found[False].bias[row] == 0).sum() == position + 1
