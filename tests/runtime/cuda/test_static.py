"""Decoding in shapes that come again: what a GPU would record, and when it has to forget it.

Nothing can be recorded here, so a recording is played by doing its step again.
"""

from __future__ import annotations

import pytest
import torch

from atem.runtime.cuda.graphs import Graphs
from atem.testing.driving import ids_of, in_turns, run
from tests.runtime.cuda.models import ask, some_ids, tiny_engine, tiny_runner

IDS = some_ids(400)


class Recorder(Graphs):
    """Counts recordings, and which buffers they hold on to."""

    def __init__(self, cache):
        super().__init__()
        self.cache = cache
        self.recorded: list[tuple[int, int]] = []

    def run(self, key, step):
        if key not in self._graphs:
            self.recorded.append(key)
        super().run(key, step)

    def _record(self, step):
        return Recording(step, self.cache)


class Recording:
    def __init__(self, step, cache):
        self.step, self.cache = step, cache
        self.buffers = [layer.data_ptr() for layer in cache.layers]

    def replay(self):
        assert self.buffers == [layer.data_ptr() for layer in self.cache.layers]
        self.step()


def recording(runner):
    runner._static = True
    runner._graphs = Recorder(runner.cache)
    return runner._graphs


def test_batches_are_padded_and_bounds_doubled_so_that_few_shapes_are_recorded():
    runner = tiny_runner(length=512)
    graphs = recording(runner)
    for slot in range(8):
        runner.fill(slot, 0, IDS[:16])
    for wanted in range(1, 9):
        for place in (16, 17, 18):
            runner.decode([(5, place)] * 8, wanted)
    for place in (255, 256, 257, 400):
        runner.decode([(5, place)], 1)
    assert graphs.recorded == [(1, 256), (2, 256), (4, 256), (8, 256), (1, 512)]


@pytest.mark.parametrize("wanted", range(1, 6))
def test_rows_that_pad_a_batch_change_nothing_and_are_not_given_back(wanted):
    found = []
    for static in (False, True):
        runner = tiny_runner(static=static, slots=6)
        for slot in range(5):
            runner.fill(slot, 0, IDS[slot : 40 + slot])
        rows = [(IDS[slot], 40) for slot in range(5)]
        found.append(runner.decode(rows, wanted).clone())
        # The slots beyond go on as if nothing had happened to them.
        found.append(runner.decode(rows).clone())
    for one, other in zip(found[:2], found[2:], strict=True):
        torch.testing.assert_close(one, other, rtol=0, atol=1e-5)
    assert len(found[2]) == wanted
    assert len(found[3]) == 5


def test_buffers_that_grow_are_forgotten_and_recorded_again():
    requests = [ask(IDS[n : n + 249], 20) for n in range(3)]
    expected = [ids_of(run(tiny_engine(stops=False), request)) for request in requests]
    engine = tiny_engine(stops=False)
    graphs = recording(engine._runner)
    assert in_turns(engine, requests) == expected
    assert (4, 256) in graphs.recorded
    assert (4, 512) in graphs.recorded
    assert ids_of(run(engine, requests[0])) == expected[0]
