"""The contract of engines, in front of each kind of server that can answer with ids."""

from __future__ import annotations

import random

import pytest

from atem.testing.contract import EngineContract
from tests.runtime.remote.asking import engine as connected
from tests.runtime.remote.dialects import BACKEND, END, TOKENIZER, speaking


def babble(request):
    """Ids that depend on the prompt and the seed: bytes, merges, specials, soon an end."""
    drawn = random.Random(repr((request.prompt, request.sampling.seed)))
    ids = [drawn.randrange(268) for _ in range(60)]
    for special in ("<|eom|>", "<|start|>", "<|message|>"):
        ids[drawn.randrange(60)] = TOKENIZER.special_id(special)
    return [*ids[: drawn.randrange(10, 60)], END]


@pytest.fixture(scope="module", params=["vllm", "sglang", "llama.cpp"])
def server(request):
    with speaking(request.param, script=babble) as running:
        yield running


class TestRemoteEngine(EngineContract):
    @pytest.fixture
    def engine(self, server):
        with connected(server, tokenizer=BACKEND) as remote:
            assert (remote.probe.server, remote.probe.answer) == (server.kind, "ids")
            yield remote
