"""The prefix cache against a dict of all prefixes, and its promises one by one."""

from __future__ import annotations

import gc
import time
import weakref

import pytest
from hypothesis import given
from hypothesis import strategies as st

from atem.errors import OptionError
from atem.runtime.prefix import PrefixCache, Stats

BLOCK = 2


class Naive:
    """Every stored prefix by its whole text, searched from end to end each time."""

    def __init__(self, budget):
        self.budget, self.clock, self.known = budget, 0, {}

    def prefixes(self, ids, images):
        for stop in range(BLOCK, len(ids) + 1, BLOCK):
            yield tuple(ids[:stop]), tuple(sorted(image for image in images if image[0] < stop))

    def find(self, ids, images, end):
        found = []
        for prefix in self.prefixes(ids[:end], images):
            if prefix not in self.known:
                break
            found.append(prefix)
        return found

    def use(self, prefixes):
        self.clock += 1
        for prefix in prefixes:
            self.known[prefix][2] = self.clock

    def lookup(self, ids, images):
        found = self.find(ids, images, len(ids) - 1)
        self.use(found)
        return [self.known[prefix][0] for prefix in found]

    def store(self, ids, index, images, payload, size):
        *before, new = list(self.prefixes(ids, images))[: index + 1]
        if not all(prefix in self.known for prefix in before):
            return False
        if new not in self.known:
            if sum(self.known[prefix][1] for prefix in before) + size > self.budget:
                return False
            self.known[new] = [payload, size, 0]
            self.use([*before, new])
        while self.bytes > self.budget:
            del self.known[min(self.leaves(), key=lambda prefix: self.known[prefix][2])]
        return True

    def leaves(self):
        parents = {
            (ids[:-BLOCK], tuple(i for i in images if i[0] < len(ids) - BLOCK))
            for ids, images in self.known
        }
        return [prefix for prefix in self.known if prefix not in parents]

    @property
    def bytes(self):
        return sum(size for _, size, _ in self.known.values())


prompts = st.lists(st.integers(0, 1), min_size=1, max_size=9)
pictures = st.lists(
    st.tuples(st.integers(0, 8), st.sampled_from("ab")), max_size=2, unique_by=lambda i: i[0]
)
requests = st.lists(
    st.tuples(prompts, pictures, st.lists(st.integers(0, 4), max_size=4)), max_size=12
)


def run(cache, ids, images, sizes, name):
    """One request: look up, then store what is wanted as long as sizes are given."""
    hit = cache.lookup(ids, images)
    kept = []
    for size in sizes:
        if (span := hit.trail.wanted(ids, len(ids))) is None:
            break
        kept.append((span.start // BLOCK, hit.trail.store(ids, (name, span), size)))
    return list(hit.payloads), kept


@given(requests, st.integers(0, 12))
def test_it_answers_as_a_dict_of_all_prefixes_does(asked, budget):
    cache, naive = PrefixCache(BLOCK, budget), Naive(budget)
    for name, (ids, images, sizes) in enumerate(asked):
        expected = naive.lookup(ids, images)
        found, kept = run(cache, ids, images, sizes, name)
        assert found == expected
        for (index, was_kept), size in zip(kept, sizes, strict=False):
            span = range(index * BLOCK, (index + 1) * BLOCK)
            assert naive.store(ids, index, images, (name, span), size) == was_kept
        assert cache.bytes == naive.bytes <= budget
        assert len(cache) == len(naive.known)


@given(requests, st.integers(0, 12))
def test_no_block_is_kept_without_those_before_it(asked, budget):
    cache = PrefixCache(BLOCK, budget)
    for name, (ids, images, sizes) in enumerate(asked):
        run(cache, ids, images, sizes, name)
        reachable, waiting = [], [cache._root]
        while waiting:
            below = list(waiting.pop().children.values())
            reachable += below
            waiting += below
        assert set(reachable) == set(cache._used)
        assert cache.bytes == sum(node.size for node in reachable) <= budget


@given(st.lists(st.tuples(prompts, prompts), max_size=12), st.integers(0, 12))
def test_requests_that_run_at_the_same_time_keep_it_whole(pairs, budget):
    cache = PrefixCache(BLOCK, budget)
    for first, second in pairs:
        trails = [(ids, cache.lookup(ids).trail) for ids in (first, second)]
        for _ in range(4):
            for ids, trail in trails:
                if trail.wanted(ids, len(ids)) is not None:
                    trail.store(ids, tuple(ids[: (trail.blocks + 1) * BLOCK]), 1)
                assert cache.bytes == len(cache) <= budget
    for ids in (ids for pair in pairs for ids in pair):
        payloads = cache.lookup(ids).payloads
        assert payloads == tuple(
            tuple(ids[:stop]) for stop in range(BLOCK, len(payloads) * BLOCK + 1, BLOCK)
        )


def fill(cache, ids, size=1, images=()):
    return run(cache, ids, images, [size] * (len(ids) // BLOCK), "".join(map(str, ids)))


def test_a_lookup_leaves_at_least_one_id_to_compute():
    cache = PrefixCache(BLOCK, 100)
    fill(cache, [1, 2, 3, 4])
    assert cache.lookup([1, 2, 3, 4]).tokens == 2
    assert cache.lookup([1, 2, 3, 4, 5]).tokens == 4
    assert cache.lookup([1]).tokens == cache.lookup([]).tokens == 0


def test_a_block_that_was_left_to_compute_is_not_wanted_again():
    cache = PrefixCache(BLOCK, 100)
    fill(cache, [1, 2, 3, 4])
    trail = cache.lookup([1, 2, 3, 4]).trail
    assert trail.wanted([1, 2, 3, 4], 4) is None
    assert trail.blocks == 2


def test_only_what_is_computed_is_wanted():
    cache = PrefixCache(BLOCK, 100)
    trail = cache.lookup([1, 2, 3, 4]).trail
    assert trail.wanted([1, 2, 3, 4], 1) is None
    assert trail.wanted([1, 2, 3, 4], 3) == range(2)


def test_a_block_after_another_beginning_is_another_block():
    cache = PrefixCache(BLOCK, 100)
    fill(cache, [1, 1, 5, 6])
    fill(cache, [2, 2])
    assert cache.lookup([2, 2, 5, 6, 0]).tokens == 2


def test_branches_share_their_trunk():
    cache = PrefixCache(BLOCK, 100)
    fill(cache, [1, 2, 3, 4, 5, 6])
    fill(cache, [1, 2, 3, 4, 7, 8])
    assert (len(cache), cache.bytes) == (4, 4)


@pytest.mark.parametrize("other", [[], [(1, "b")], [(0, "a")], [(1, "a"), (2, "a")]])
def test_other_images_are_another_prefix_from_their_block_on(other):
    ids = [1, 9, 9, 9, 9, 9, 9]
    cache = PrefixCache(BLOCK, 100)
    fill(cache, ids, images=[(1, "a")])
    assert cache.lookup(ids, [(1, "a")]).tokens == 6
    assert cache.lookup(ids, other).tokens == (2 if len(other) == 2 else 0)


def test_an_image_after_the_blocks_does_not_matter_to_them():
    cache = PrefixCache(BLOCK, 100)
    fill(cache, [1, 2])
    assert cache.lookup([1, 2, 9, 9], [(2, "a")]).tokens == 2


def test_the_least_recently_used_leaf_goes_first():
    cache = PrefixCache(BLOCK, 3)
    for ids in ([1, 1], [2, 2], [3, 3]):
        fill(cache, ids)
    cache.lookup([1, 1, 0])
    fill(cache, [4, 4])
    assert [cache.lookup([n, n, 0]).tokens for n in (1, 2, 3, 4)] == [2, 0, 2, 2]


def test_a_trunk_is_as_fresh_as_its_freshest_branch():
    cache = PrefixCache(BLOCK, 3)
    fill(cache, [1, 1, 2, 2])
    fill(cache, [3, 3])
    cache.lookup([1, 1, 2, 2, 0])
    fill(cache, [4, 4])
    assert cache.lookup([1, 1, 2, 2, 0]).tokens == 4
    assert cache.lookup([3, 3, 0]).tokens == 0


def test_what_does_not_fit_is_not_stored_and_costs_nobody_a_place():
    cache = PrefixCache(BLOCK, 3)
    fill(cache, [1, 1])
    trail = cache.lookup([2, 2, 3, 3]).trail
    assert not trail.store([2, 2, 3, 3], "big", 4)
    assert trail.wanted([2, 2, 3, 3], 4) is None
    assert cache.lookup([1, 1, 0]).tokens == 2


def test_a_prefix_longer_than_the_budget_keeps_its_beginning():
    cache = PrefixCache(BLOCK, 2)
    fill(cache, [1, 1, 2, 2, 3, 3])
    assert cache.lookup([1, 1, 2, 2, 3, 3, 0]).tokens == 4
    assert cache.stats.evictions == 0


def test_a_trail_whose_block_went_wants_nothing_more():
    cache = PrefixCache(BLOCK, 2)
    ids = [1, 1, 2, 2]
    trail = cache.lookup(ids).trail
    trail.store(ids, "x", 1)
    fill(cache, [7, 7, 8, 8])
    assert not trail.store(ids, "y", 1)
    assert trail.wanted(ids, 4) is None
    assert cache.lookup([*ids, 0]).tokens == 0


class Payload:
    """Something whose end can be seen."""


def test_what_is_evicted_is_released_at_once_even_under_a_trail():
    gc.disable()
    try:
        cache, payload = PrefixCache(BLOCK, 1), Payload()
        gone = weakref.ref(payload)
        trail = cache.lookup([1, 1]).trail
        trail.store([1, 1], payload, 1)
        del payload
        assert gone() is not None
        fill(cache, [2, 2])
        assert gone() is None
    finally:
        gc.enable()


def test_clear_releases_everything_at_once():
    gc.disable()
    try:
        cache, payload = PrefixCache(BLOCK, 1), Payload()
        gone = weakref.ref(payload)
        cache.lookup([1, 1]).trail.store([1, 1], payload, 1)
        del payload
        cache.clear()
        assert gone() is None
        assert (len(cache), cache.bytes) == (0, 0)
    finally:
        gc.enable()


def test_storing_what_is_known_changes_nothing():
    cache = PrefixCache(BLOCK, 9)
    first, second = (cache.lookup([1, 1]).trail for _ in range(2))
    assert first.store([1, 1], "first", 1)
    assert second.store([1, 1], "second", 1)
    assert cache.lookup([1, 1, 0]).payloads == ("first",)
    assert cache.bytes == 1


def test_hits_misses_and_evictions_are_counted():
    cache = PrefixCache(BLOCK, 1)
    fill(cache, [1, 1])
    cache.lookup([1, 1, 0])
    fill(cache, [2, 2])
    assert cache.stats == Stats(hits=1, misses=2, evictions=1)


def test_half_a_block_and_a_negative_size_are_refused():
    trail = PrefixCache(BLOCK, 9).lookup([1]).trail
    with pytest.raises(ValueError, match="1 ids"):
        trail.store([1], "x", 1)
    with pytest.raises(ValueError, match="-1 bytes"):
        trail.store([1, 2], "x", -1)


@pytest.mark.parametrize(
    ("block", "budget"), [(0, 1), (1, -1), (1.5, 1), (1, 1.5), ("1", 1), (1, None), (True, 1)]
)
def test_impossible_sizes_are_refused(block, budget):
    with pytest.raises(OptionError, match="prefix cache"):
        PrefixCache(block, budget)


def test_a_prompt_of_thousands_of_blocks_is_stored_within_a_second():
    ids, cache = list(range(16 * 2000)), PrefixCache(16, 1 << 40)
    start = time.process_time()
    trail = cache.lookup(ids).trail
    for computed in range(16, len(ids) + 1, 16):
        assert trail.wanted(ids, computed) is not None
        trail.store(ids, None, 1)
    assert time.process_time() - start < 1
