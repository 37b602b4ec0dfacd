"""nginx, replicas of atem-serve, and behind each an engine that speaks as SGLang or vLLM does."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack

import pytest

from tests.runtime.remote.dialects import speaking
from tests.server.nginx import behind_nginx
from tests.server.process import Process

pytestmark = pytest.mark.long

KEYS = [f"conversation <{number}>" for number in range(30)]


@pytest.fixture(params=[("sglang", "redis"), ("vllm", "postgres")], ids="-".join)
def behind(request):
    kind, store = request.param
    database = request.getfixturevalue(store)
    shared = ["--store", store, "--store-url", database.url, "--store-name", database.name()]
    with ExitStack() as stack, ThreadPoolExecutor(3) as pool:
        engines = [stack.enter_context(speaking(kind, context=4000)) for _ in range(3)]
        started = pool.map(lambda each: Process("--engine", each.url, *shared), engines)
        replicas = [stack.enter_context(each) for each in started]
        ports = [replica.url.split(":")[2].split("/")[0] for replica in replicas]
        behind = stack.enter_context(behind_nginx(ports))
        behind.engines = engines
        yield behind


def test_all_of_a_conversation_is_asked_of_one_engine(behind):
    for _ in range(2):
        for key in KEYS:
            answer = behind.create(f"Remember {key}.", prompt_cache_key=key, model="tiny").json()
            assert answer["output"][-1]["content"][0]["text"] == "High at noon."
    prompts = [[str(body["prompt"]) for body in engine.bodies] for engine in behind.engines]
    asked = [{key for key in KEYS if any(key in text for text in texts)} for texts in prompts]
    assert all(asked)
    assert sum(map(len, asked)) == len(KEYS)
