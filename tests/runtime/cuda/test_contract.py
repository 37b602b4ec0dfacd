"""The torch engine keeps the contract of engines, in every mode that a CPU can show."""

from __future__ import annotations

from contextlib import closing

import pytest

from atem.testing.contract import EngineContract
from tests.runtime.cuda.models import tiny_engine

MODES = {
    "as it comes": {},
    # Prompts in many pieces, blocks within the window, more requests than seats.
    "small pieces, few seats": {"prefill_chunk": 5, "block": 3, "max_batch": 3},
    # What a GPU records: padded batches, doubled bounds.
    "static shapes": {"block": 16, "static": True},
}


class TestTorchEngine(EngineContract):
    @pytest.fixture(params=MODES)
    def engine(self, request):
        with closing(tiny_engine(**MODES[request.param])) as engine:
            yield engine
