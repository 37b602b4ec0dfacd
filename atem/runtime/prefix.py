"""Remember what was computed for the beginnings of prompts, in blocks of tokens, within a budget.

Rules: plain Python, no tensor is looked at: a payload is whatever an engine
needs to go on after a block, with the size the engine gives it. A block is
known by all that stands before it: its way from the root of a tree whose
branches are the blocks themselves (token ids, and the images that begin in
them), compared as they are. No digest stands for them, so none can collide.
All images share one token id, so their hashes are part of the way (model.md
1.6). Branches share their trunk; the least recently used leaf goes first, so
that no block is ever kept without those before it. Not thread-safe: a cache
belongs to one engine.
"""

from __future__ import annotations

from collections import OrderedDict
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Generic, NamedTuple, TypeAlias, TypeVar

from ..errors import OptionError

if TYPE_CHECKING:
    from collections.abc import Hashable, Iterator, Sequence

    Images: TypeAlias = Sequence[tuple[int, Hashable]]
    """Position of an image's first token, and a hash of what the model sees of it."""
    Key: TypeAlias = tuple[tuple[int, ...], tuple[tuple[int, Hashable], ...]]

P = TypeVar("P")


@dataclass(eq=False, slots=True)
class _Node(Generic[P]):
    """A block. ``path`` counts the bytes from the root to here; the root has no payload."""

    parent: _Node[P] | None = None
    key: Key = ((), ())
    payload: P | None = None
    size: int = 0
    path: int = 0
    children: dict[Key, _Node[P]] = field(default_factory=dict)

    def lineage(self) -> Iterator[_Node[P]]:
        """This node and those above it, without the root."""
        node = self
        while node.parent is not None:
            yield node
            node = node.parent


class Hit(NamedTuple, Generic[P]):
    """What a lookup found: the first ``tokens`` ids are computed, by ``payloads``, one a block.

    ``trail`` stands after them and takes what is computed from there on.
    """

    tokens: int
    payloads: tuple[P, ...]
    trail: Trail[P]


class Stats(NamedTuple):
    """Lookups that found something and nothing, and blocks that had to go."""

    hits: int = 0
    misses: int = 0
    evictions: int = 0


class PrefixCache(Generic[P]):
    """Payloads for blocks of ``block`` tokens, in at most ``budget`` bytes; 0 keeps nothing.

    Raises OptionError for a block below 1 or a negative budget.
    """

    def __init__(self, block: int, budget: int) -> None:
        if not (_is_whole(block, 1) and _is_whole(budget, 0)):
            raise OptionError(
                f"a prefix cache of {budget} bytes in blocks of {block} tokens; "
                "both are whole numbers, a block 1 or more, a budget 0 or more"
            )
        self.block = block
        self.budget = budget
        self.bytes = 0
        self.stats = Stats()
        self._root: _Node[P] = _Node()
        self._used: OrderedDict[_Node[P], None] = OrderedDict()
        """Every block, least recently used first. A parent comes after its children."""

    def __len__(self) -> int:
        """Number of blocks."""
        return len(self._used)

    def lookup(self, ids: Sequence[int], images: Images = ()) -> Hit[P]:
        """The longest known beginning of ``ids`` in whole blocks, and never all of ``ids``.

        At least one id is left to compute: its logits are what the prompt is
        for. What is found counts as used.
        """
        trail = Trail(self, images)
        payloads = tuple(trail.follow(ids, len(ids) - 1))
        self._touch(trail.node)
        hits, misses, evictions = self.stats
        self.stats = Stats(hits + bool(payloads), misses + (not payloads), evictions)
        return Hit(len(payloads) * self.block, payloads, trail)

    def clear(self) -> None:
        """Forget everything."""
        while self._used:
            self._drop(next(iter(self._used)))

    def _touch(self, node: _Node[P]) -> None:
        """Count ``node`` as used, and after it those above it: the oldest is always a leaf."""
        for each in node.lineage():
            self._used.move_to_end(each)

    def _knows(self, node: _Node[P]) -> bool:
        return node is self._root or node in self._used

    def _add(self, parent: _Node[P], key: Key, payload: P, size: int) -> _Node[P] | None:
        """A new block below ``parent``, or None if there is no room for it and those before it."""
        path = parent.path + size
        if not self._knows(parent) or path > self.budget:
            return None
        node = parent.children[key] = _Node(parent, key, payload, size, path)
        self._used[node] = None
        self.bytes += size
        self._touch(node)
        # The path itself fits and is now the newest, so others go and it stays.
        while self.bytes > self.budget:
            self._drop(next(iter(self._used)))
            self.stats = self.stats._replace(evictions=self.stats.evictions + 1)
        return node

    def _drop(self, node: _Node[P]) -> None:
        """Forget a leaf. A trail may still stand on it: its payload goes all the same."""
        assert node.parent is not None
        assert not node.children
        del node.parent.children[node.key], self._used[node]
        self.bytes -= node.size
        node.payload = None


def _is_whole(value: object, least: int) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and value >= least


class Trail(Generic[P]):
    """Where one request stands in a cache: ``blocks`` of its blocks are behind it.

    ::

        while (span := trail.wanted(ids, computed)) is not None:
            trail.store(ids, payload_of(span), size)

    The ids may grow between the calls; those behind the trail must not change.
    """

    def __init__(self, cache: PrefixCache[P], images: Images = ()) -> None:
        self.blocks = 0
        self.node = cache._root  # noqa: SLF001 - a trail is the cache's own walker
        self._cache = cache
        self._lost = False
        self._images: dict[int, tuple[tuple[int, Hashable], ...]] = {}
        for position, digest in sorted(images, key=lambda image: image[0]):
            index, place = divmod(position, cache.block)
            self._images[index] = (*self._images.get(index, ()), (place, digest))

    def wanted(self, ids: Sequence[int], computed: int) -> range | None:
        """Positions of the next block to store, or None if there is none for now.

        Of ``ids``, the first ``computed`` have been through the model. Blocks
        that are known already are passed over.
        """
        for _ in self.follow(ids, computed):
            pass
        start = self.blocks * self._cache.block
        stop = start + self._cache.block
        return None if self._lost or stop > computed else range(start, stop)

    def store(self, ids: Sequence[int], payload: P, size: int) -> bool:
        """Store the block that is wanted; whether the cache has it now.

        It has not if it and those before it exceed the budget, or if those are
        gone; from then on nothing more is wanted for this request. Blocks that
        were used longer ago make room. Raises ValueError for a negative size,
        and if ``ids`` end before the block does.
        """
        key = self._key(ids)
        if size < 0 or len(key[0]) < self._cache.block:
            raise ValueError(f"a block of {len(key[0])} ids and {size} bytes can't be stored")
        node = None if self._lost else self.node.children.get(key)
        if node is None and not self._lost:
            node = self._cache._add(self.node, key, payload, size)  # noqa: SLF001
        if node is None:
            self._lost = True
            return False
        self._step(node)
        return True

    def follow(self, ids: Sequence[int], end: int) -> Iterator[P]:
        """Pass over the known blocks of ``ids`` that end at ``end`` or before; their payloads."""
        while (self.blocks + 1) * self._cache.block <= end:
            node = self.node.children.get(self._key(ids))
            if node is None:
                return
            self._step(node)
            yield node.payload  # type: ignore[misc]  # only the root and dropped leaves have none

    def _step(self, node: _Node[P]) -> None:
        self.node = node
        self.blocks += 1

    def _key(self, ids: Sequence[int]) -> Key:
        start = self.blocks * self._cache.block
        return tuple(ids[start : start + self._cache.block]), self._images.get(self.blocks, ())
