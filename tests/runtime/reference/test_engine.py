"""The reference engine: transformers' tokens, whatever is remembered, and nothing left behind."""

from __future__ import annotations

import gc
import itertools
import subprocess
import sys
import weakref
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from atem.engine import GREEDY, Request, Sampling
from atem.errors import ContextOverflow, EngineClosed, OptionError, OutOfMemory
from atem.runtime.checkpoint import SideFiles
from atem.runtime.layouts import open_checkpoint
from atem.runtime.reference import Model, ReferenceEngine
from atem.runtime.reference.model import LayerCache
from atem.testing.driving import ids_of, run
from atem.testing.tiny import MemoryCheckpoint, tiny_checkpoint, tiny_config, tiny_tokenizer
from tests.runtime.oracle import oracle
from tests.runtime.reference.models import some_ids, tiny, tiny_engine


def ask(ids, count=12, **changes):
    return Request(ids, **{"sampling": GREEDY, "max_tokens": count} | changes)


@pytest.mark.parametrize("name", ["6 layers", "7 layers", "tied"])
def test_greedy_tokens_are_those_of_transformers_far_beyond_the_window(name):
    config, weights = tiny(name)
    ids = some_ids(21)
    output = oracle(config, weights).generate(
        input_ids=torch.tensor([ids]), attention_mask=torch.ones(1, len(ids), dtype=torch.long),
        do_sample=False, max_new_tokens=40, eos_token_id=-1, pad_token_id=0,
    )  # fmt: skip
    checkpoint = MemoryCheckpoint(config, weights)
    with closing(tiny_engine(checkpoint, block=5)) as engine:
        found = ids_of(run(engine, ask(ids, 40)))
    expected = output[0, len(ids) :].tolist()
    stops = [place for place, number in enumerate(expected) if number in engine.info.stop_ids]
    assert found == expected[: stops[0] + 1 if stops else None]


trunks = st.lists(st.sampled_from([1, 2]), min_size=1, max_size=40)


@settings(max_examples=12)
@given(
    st.lists(trunks, min_size=2, max_size=6),
    st.integers(1, 9),
    st.sampled_from([0, 20_000, 1 << 28]),
)
def test_what_is_remembered_changes_no_token(prompts, block, budget):
    cold = tiny_engine(prefix_bytes=0, block=7)
    warm = tiny_engine(prefix_bytes=budget, block=block)
    for ids in prompts:
        expected, steps = run(cold, ask(ids, 4)), run(warm, ask(ids, 4))
        assert ids_of(steps) == ids_of(expected)
        assert expected[0].cached_tokens == 0
        assert steps[0].cached_tokens % block == 0
        assert warm._prefix.bytes <= budget


def test_a_prompt_is_remembered_in_whole_blocks_but_for_its_last_token():
    with closing(tiny_engine(block=8)) as engine:
        ids = some_ids(24)
        cached = [run(engine, ask(prompt, 1))[0].cached_tokens for prompt in (ids, ids, [*ids, 5])]
        branch = run(engine, ask([*ids[:12], *ids[:12]], 1))[0].cached_tokens
    assert (cached, branch) == ([0, 16, 24], 8)


def test_an_answer_is_remembered_as_well():
    with closing(tiny_engine(block=4)) as engine:
        ids = some_ids(10)
        answer = ids_of(run(engine, ask(ids, 12)))
        steps = run(engine, ask([*ids, *answer, 3], 1))
    assert len(answer) == 12
    assert steps[0].cached_tokens == 20  # 10 and 11: the last one was never fed


def test_an_answer_goes_on_where_it_was_cut():
    ids = some_ids(15)
    with closing(tiny_engine(block=4)) as engine:
        whole = ids_of(run(engine, ask(ids, 20)))
        for cut in range(1, len(whole)):
            assert ids_of(run(engine, ask([*ids, *whole[:cut]], 20 - cut))) == whole[cut:]


def test_images_are_no_feature_of_it():
    assert {"images", "chat"}.isdisjoint(tiny_engine().info.features)


def test_a_declared_end_stops_and_is_part_of_the_last_step():
    checkpoint, ids = MemoryCheckpoint(), some_ids(10)
    whole = ids_of(run(tiny_engine(checkpoint), ask(ids)))
    checkpoint.files = SideFiles(generation_config={"eos_token_id": whole[4]})
    steps = run(tiny_engine(checkpoint), ask(ids))
    assert ids_of(steps) == whole[: whole.index(whole[4]) + 1]
    assert steps[-1].finish == "stop"


def test_logprobs_are_those_of_transformers():
    config, weights = tiny("6 layers")
    ids = some_ids(12)
    steps = run(
        tiny_engine(MemoryCheckpoint(config, weights)),
        ask(ids, 6, sampling=Sampling(temperature=0.7, seed=3, logprobs=2)),
    )
    with torch.no_grad():
        everything = torch.tensor([[*ids, *ids_of(steps)]])
        logprobs = oracle(config, weights)(input_ids=everything).logits[0].log_softmax(-1)
    for place, step in enumerate(steps, len(ids) - 1):
        assert step.logprobs[0] == pytest.approx(float(logprobs[place, step.ids[0]]), abs=2e-5)
        values, best = logprobs[place].topk(2)
        assert [number for number, _ in step.top_logprobs[0]] == best.tolist()
        assert [value for _, value in step.top_logprobs[0]] == pytest.approx(
            values.tolist(), abs=2e-5
        )


def test_closing_a_generation_frees_its_caches_at_once():
    def caches():
        return sum(type(each) is LayerCache for each in gc.get_objects())

    with closing(tiny_engine()) as engine:
        before = caches()
        steps = engine.generate(ask(some_ids(30)))
        next(steps)
        assert caches() > before
        gc.disable()
        try:
            steps.close()
            assert caches() == before
        finally:
            gc.enable()


def test_closing_the_engine_frees_the_weights_even_under_a_running_generation():
    engine = tiny_engine()
    steps = engine.generate(ask(some_ids(30)))
    next(steps)
    model = weakref.ref(engine._model)
    engine.close()
    assert model() is None
    assert (engine._prefix.bytes, len(engine._prefix)) == (0, 0)
    with pytest.raises(EngineClosed):
        next(steps)


def test_no_memory_ends_one_generation_and_not_the_engine(monkeypatch):
    with closing(tiny_engine()) as engine:
        expected = ids_of(run(engine, ask(some_ids(9))))
        with monkeypatch.context() as patch:

            def fail(*_):
                raise MemoryError

            patch.setattr(Model, "hidden", fail)
            with pytest.raises(OutOfMemory, match="context="):
                run(engine, ask(some_ids(9)))
        assert ids_of(run(engine, ask(some_ids(9)))) == expected


def test_threads_may_share_what_is_remembered():
    sizes = {"hidden_size": 4, "intermediate_size": 4, "head_dim": 4, "num_hidden_layers": 1}
    heads = {"num_attention_heads": 1, "num_key_value_heads": 1}
    checkpoint = MemoryCheckpoint(tiny_config(**sizes, **heads))
    engine = tiny_engine(checkpoint, block=1, prefix_bytes=10 * 32)  # bytes for ten positions
    prompts = [some_ids(9, seed) for seed in range(3)]
    prompts += [[*ids[:4], *some_ids(5)] for ids in prompts]
    expected = [ids_of(run(engine, ask(ids, 1))) for ids in prompts]

    def several(first):
        order = [(first + place) % len(prompts) for place in range(30)]
        return [ids_of(run(engine, ask(prompts[n], 1))) == expected[n] for n in order]

    before = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    try:
        with ThreadPoolExecutor(8) as threads:
            assert all(itertools.chain(*threads.map(several, range(16))))
    finally:
        sys.setswitchinterval(before)
    assert engine._prefix.bytes == 32 * len(engine._prefix) <= engine._prefix.budget


def test_the_prompt_of_a_request_is_not_changed():
    ids = some_ids(9)
    run(tiny_engine(), ask(ids))
    assert ids == some_ids(9)


@pytest.mark.parametrize("context", [0, -1, 513, 20.0, "20", True])
def test_a_context_that_the_model_has_not_is_refused(context):
    with pytest.raises(OptionError, match="512"):
        tiny_engine(context=context)


def test_a_smaller_context_is_kept():
    engine = tiny_engine(context=20)
    assert engine.info.context == 20
    assert len(run(engine, ask(some_ids(15), None))) == 5
    with pytest.raises(ContextOverflow):
        engine.generate(ask(some_ids(20)))


@pytest.mark.parametrize("options", [{"block": 0}, {"block": 1.5}, {"prefix_bytes": -1}])
def test_an_impossible_prefix_cache_is_refused(options):
    with pytest.raises(OptionError):
        tiny_engine(**options)


def test_progress_counts_the_stored_bytes_to_the_end():
    heard, checkpoint = [], MemoryCheckpoint()
    tiny_engine(checkpoint, progress=heard.append)
    total = sum(info.stored_bytes for info in checkpoint.tensors.values())
    assert len(heard) == len(checkpoint.tensors)
    assert [each.done for each in heard] == sorted({each.done for each in heard})
    assert heard[-1] == ("read", total, total)


@pytest.mark.parametrize("dtype", ["float32", "float16", "bfloat16"])
def test_a_stored_checkpoint_runs_with_its_own_tokenizer_after_it_was_closed(tmp_path, dtype):
    config, weights = tiny("7 layers")
    folder = tiny_checkpoint(tmp_path, config=config, weights=weights, dtype=dtype)
    with closing(open_checkpoint(folder)) as checkpoint:
        stored = {name: np.array(checkpoint.read(name)) for name in checkpoint.tensors}
        engine = ReferenceEngine(checkpoint)
    expected = tiny_engine(MemoryCheckpoint(config, stored))
    assert ids_of(run(engine, ask(some_ids(12)))) == ids_of(run(expected, ask(some_ids(12))))
    assert (engine.info.layout, engine.info.dtype, engine.info.model) == (
        "hf",
        "float32",
        folder.name,
    )
    assert engine.info.stop_ids == {
        tiny_tokenizer().token_to_id(t) for t in ("<|end_of_text|>", "<|eot|>")
    }


def test_it_runs_without_a_tensor_library():
    code = """
import sys
from atem.engine import Request
from atem.runtime.reference import ReferenceEngine
from atem.testing.tiny import MemoryCheckpoint, tiny_tokenizer
engine = ReferenceEngine(MemoryCheckpoint(), tokenizer=tiny_tokenizer())
assert list(engine.generate(Request([1, 2, 3], max_tokens=2)))
assert not {"torch", "mlx", "transformers", "httpx2"} & set(sys.modules)
"""
    subprocess.run([sys.executable, "-c", code], check=True)


def test_a_tied_head_is_not_read_twice():
    config = tiny_config(tie_word_embeddings=True)
    assert "head" not in MemoryCheckpoint(config).tensors
    assert run(tiny_engine(MemoryCheckpoint(config)), ask(some_ids(5), 2))
