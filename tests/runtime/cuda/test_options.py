"""Options are honoured or refused."""

from __future__ import annotations

import math

import ml_dtypes
import numpy as np
import pytest
import torch

from atem.engine import Sampling
from atem.errors import OptionError
from atem.runtime.cuda import TorchEngine
from atem.runtime.cuda.device import dtype_of
from atem.runtime.layouts import open_checkpoint
from atem.testing.driving import ids_of, run
from atem.testing.tiny import MemoryCheckpoint, tiny_checkpoint, tiny_config, tiny_weights
from tests.runtime.cuda.models import CPU, ask, some_ids, tiny_engine

BFLOAT16 = MemoryCheckpoint(
    weights={k: v.astype(ml_dtypes.bfloat16) for k, v in tiny_weights(tiny_config()).items()}
)


@pytest.mark.parametrize(
    ("options", "text"),
    [
        ({"device": "abacus"}, "abacus"),
        ({"device": "meta"}, "cpu and cuda"),
        ({"dtype": "float16"}, "bfloat16"),
        ({"context": 513}, "at most this model's 512"),
        ({"context": 0}, "1 or more"),
        ({"cache_bytes": 0}, "cache_bytes=0"),
        ({"max_batch": "8"}, "max_batch='8'"),
        ({"max_batch": 0}, "max_batch=0"),
        ({"prefill_chunk": 0}, "prefill_chunk=0"),
        ({"prefix_bytes": -1}, "budget"),
        ({"block": 0}, "block"),
        ({"cuda_graphs": True, "device": "cpu"}, "cuda_graphs"),
    ],
)
def test_what_cant_work_is_refused(options, text):
    with pytest.raises(OptionError, match=text):
        tiny_engine(**options)


@pytest.mark.skipif(torch.cuda.is_available(), reason="there is a CUDA device")
def test_a_device_that_isnt_there_is_refused_and_auto_is_the_cpu():
    with pytest.raises(OptionError, match="sees 0 CUDA devices"):
        tiny_engine(device="cuda:1")
    assert tiny_engine()._runner._device == CPU


def test_auto_is_float32_on_the_cpu_and_bfloat16_on_a_gpu_unless_stored_wide():
    gpu = torch.device("cuda")
    assert dtype_of("auto", CPU, BFLOAT16) == "float32"
    assert dtype_of("auto", gpu, BFLOAT16) == "bfloat16"
    assert dtype_of("auto", gpu, MemoryCheckpoint()) == "float32"
    assert dtype_of("float32", gpu, BFLOAT16) == "float32"


def test_bfloat16_is_what_runs_when_it_is_asked_for():
    engine = tiny_engine(BFLOAT16, dtype="bfloat16")
    assert engine.info.dtype == "bfloat16"
    assert engine._runner.cache.layers[0].dtype == torch.bfloat16
    assert engine._runner._model.weights.head.dtype == torch.bfloat16
    assert ids_of(run(engine, ask(some_ids(30), 5)))


def test_a_plan_hears_what_the_options_would_use():
    needs = TorchEngine.needs(BFLOAT16, device="cpu", dtype="bfloat16", context=99, max_batch=2)
    assert (needs.dtype, needs.context) == ("bfloat16", 99)
    assert needs.available is None or needs.available > 0
    engine = tiny_engine()
    needs = TorchEngine.needs(MemoryCheckpoint())
    assert (needs.context, needs.prefix_bytes) == (engine.info.context, engine._prefix.budget)


def test_logprobs_are_those_of_the_whole_vocabulary():
    steps = run(tiny_engine(), ask(some_ids(9), 3, sampling=Sampling(temperature=0, logprobs=20)))
    unseen = run(
        tiny_engine(), ask(some_ids(9), 3, sampling=Sampling(temperature=0, logprobs=20, top_k=0))
    )
    for step in [*steps, *unseen]:
        [top] = step.top_logprobs
        assert step.logprobs == (top[0][1],)
        assert sum(math.exp(value) for _, value in top) < 1
        assert sorted((value for _, value in top), reverse=True) == [value for _, value in top]


def test_a_checkpoint_on_disk_runs_with_its_own_tokenizer_and_may_be_closed(tmp_path):
    config = tiny_config(num_hidden_layers=7)
    with open_checkpoint(tiny_checkpoint(tmp_path / "it", config=config, seed=5)) as checkpoint:
        engine = TorchEngine(checkpoint)
    assert (engine.info.model, engine.info.layout) == ("it", "hf")
    memory = tiny_engine(MemoryCheckpoint(config, tiny_weights(config, 5)))
    request = ask(some_ids(30), 20)
    assert ids_of(run(engine, request)) == ids_of(run(memory, request))


def test_the_reference_gives_the_same_tokens():
    from atem.runtime.reference import ReferenceEngine
    from atem.testing.tiny import tiny_tokenizer

    request = ask(np.arange(50).tolist(), 30)
    reference = ReferenceEngine(MemoryCheckpoint(), tokenizer=tiny_tokenizer())
    assert ids_of(run(tiny_engine(), request)) == ids_of(run(reference, request))
