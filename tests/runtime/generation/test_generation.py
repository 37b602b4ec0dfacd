"""One request from logits to steps: what it shows, and how it ends."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

import atem
from atem.engine import Sampling, Step
from atem.errors import ContextOverflow, EngineError, OptionError
from atem.runtime.sampling import candidates
from atem.tokenizer import wrap
from tests.parser.folding import examples, facts, merged
from tests.parser.strategies import turns
from tests.parser.tokens import BARE, TOKENIZER, ids, spelled
from tests.runtime.generation.playing import (
    EOM,
    EOT,
    KNOWN,
    PROMPT,
    SELF,
    V,
    begun,
    decoded,
    play,
    row,
    said,
    shown,
)

if TYPE_CHECKING:
    from collections.abc import Sequence

NEVER = ("<|startle\0", "<atem:functional\0", "to=selfish\0")
"""Stop strings that look like wire text for long."""

tokens = st.lists(st.integers(0, V - 1), min_size=1, max_size=40)


def until_end(wanted: Sequence[int]) -> list[int]:
    """``wanted`` as far as a generation goes."""
    ends = [place for place, token in enumerate(wanted, 1) if KNOWN.is_special(token)]
    stops = [
        place for place in ends if wanted[place - 1] in (EOT, KNOWN.special_id("<|end_of_text|>"))
    ]
    return list(wanted[: stops[0]] if stops else wanted)


@given(wanted=tokens, stop=st.sampled_from(((), NEVER)))
def test_the_pieces_join_to_the_library_s_decoding(
    wanted: list[int], stop: tuple[str, ...]
) -> None:
    wanted = until_end(wanted)
    steps = play(wanted, stop=stop, max_tokens=len(wanted))
    assert said(steps) == wanted
    known = [token for token in wanted if token < TOKENIZER.get_vocab_size()]
    assert shown(steps) == "".join(part.decode("utf-8", "replace") for part in runs(known))


def runs(known: list[int]) -> list[bytes]:
    """Bytes between special tokens, and theirs."""
    parts = [b""]
    for token in known:
        data = KNOWN.token_bytes(token)
        if KNOWN.is_special(token):
            parts += [data, b""]
        else:
            parts[-1] += data
    return parts


@given(wanted=tokens, limit=st.integers(1, 45))
def test_exactly_the_last_step_has_a_finish(wanted: list[int], limit: int) -> None:
    steps = play(wanted, max_tokens=limit)
    over = len(until_end(wanted))
    finished = [step.finish for step in steps if step.finish]
    if over <= limit and until_end(wanted)[-1] in (EOT, KNOWN.special_id("<|end_of_text|>")):
        assert (len(steps), finished) == (over, ["stop"])
    elif limit <= len(wanted):
        assert (len(steps), finished) == (limit, ["length"])
    else:
        assert finished == []
    assert all(step.finish is None for step in steps[:-1])


@examples(60)
@given(case=turns(), stop=st.sampled_from(((), NEVER)), limit=st.integers(1, 400))
def test_steps_give_a_parser_the_events_that_the_ids_give(
    case: Any, stop: tuple[str, ...], limit: int
) -> None:
    text, tools = case
    wanted = ids(text)[:limit]
    steps = play(wanted, stop=stop, max_tokens=limit)
    if not steps:
        return
    reason = "length" if steps[-1].finish == "length" else "stop"
    if steps[-1].finish is None:  # the model fell silent, with text held
        steps = play(wanted, stop=stop, max_tokens=len(wanted))
        reason = "length"
    by_ids = atem.parse_stream(said(steps), tools=tools, tokenizer=TOKENIZER, reason=reason)
    assert merged(atem.parse_stream(steps, tools=tools)) == merged(by_ids)


@given(case=turns())
@examples(30)
def test_an_export_without_special_tokens_gives_text_that_reads_as_text(case: Any) -> None:
    text, tools = case
    wanted = spelled(text)
    if not wanted:
        return
    steps = play(wanted, tokenizer=wrap(BARE), stops=frozenset(), max_tokens=len(wanted))
    assert all(isinstance(step.piece, str) for step in steps)
    read = atem.parse(steps, tools=tools)
    assert facts(read) == facts(atem.parse(text, tools=tools, reason="length"))


def test_the_stop_token_and_its_piece_are_in_the_last_step() -> None:
    last = play([*ids("Hi"), EOT])[-1]
    assert (last.ids, last.finish) == ((EOT,), "stop")
    assert last.piece == (atem.Piece("<|eot|>", special=True),)


def test_the_end_of_a_message_ends_nothing() -> None:
    steps = play([EOM, *ids("<|start|>assistant to=user<|message|>Hi."), EOT])
    assert [step.finish for step in steps].count(None) == len(steps) - 1
    assert atem.parse(steps).content == "Hi."


def test_a_stop_token_at_the_limit_is_a_stop() -> None:
    assert play([*ids("Hi"), EOT], max_tokens=3)[-1].finish == "stop"


@pytest.mark.parametrize(("context", "limit", "made"), [(5, None, 5), (5, 9, 5), (9, 3, 3)])
def test_the_first_of_limit_and_context_ends_it(context: int, limit: int | None, made: int) -> None:
    steps = play(ids("abcdefghijkl"), context=len(PROMPT) + context, max_tokens=limit)
    assert (len(steps), steps[-1].finish) == (made, "length")


@pytest.mark.parametrize("context", [len(PROMPT), len(PROMPT) - 1, 1])
def test_a_prompt_that_leaves_no_room_is_refused(context: int) -> None:
    with pytest.raises(ContextOverflow, match=f"{len(PROMPT)} tokens and the context {context}"):
        begun(context=context)
    begun(context=len(PROMPT) + 1)


@pytest.mark.parametrize("prompt", [[], [V], [3, -1]])
def test_a_prompt_that_no_model_can_read_is_refused(prompt: list[int]) -> None:
    with pytest.raises(OptionError, match="prompt="):
        begun(prompt)


def test_reused_tokens_stand_on_the_first_step_alone() -> None:
    steps = play(ids("abc"), cached_tokens=4)
    assert [step.cached_tokens for step in steps] == [4, None, None]


@pytest.mark.parametrize("count", [0, 2])
def test_log_probabilities_stand_beside_each_id(count: int) -> None:
    wanted = ids("ab")
    steps = play(wanted, sampling=Sampling(temperature=0, logprobs=count))
    for token, step in zip(wanted, steps, strict=True):
        logprobs = torch.from_numpy(row(token)).double().log_softmax(-1)
        assert step.logprobs == (pytest.approx(logprobs[token].item(), abs=1e-9),)
        if count:
            best = logprobs.topk(count).indices.tolist()
            assert [number for number, _ in step.top_logprobs[0]] == best
        else:
            assert step.top_logprobs is None


def test_a_stop_string_ends_the_text_before_it_and_keeps_its_ids() -> None:
    steps = play(ids("one END two"), stop=("END",))
    assert shown(steps) == "one "
    assert decoded(said(steps)) == "one END"
    assert (steps[-1].finish, steps[-1].stop) == ("stop", "END")


def test_what_is_held_comes_with_the_end() -> None:
    for end, finish in ((EOT, "stop"), (ids("E")[0], "length")):
        wanted = [*ids("one EN"), end]
        steps = play(wanted, stop=("ENDE",), max_tokens=len(wanted))
        assert steps[-2].piece == ()
        assert shown(steps) == decoded(wanted)
        assert steps[-1].finish == finish


def test_a_seed_makes_the_same_generation_again() -> None:
    def once(seed: int | None) -> list[int]:
        free = begun(sampling=Sampling(seed=seed, top_k=0, top_p=1.0), stops=frozenset())
        flat = candidates(np.zeros(V, np.float32), free.need)
        return said([free.take(flat) for _ in range(30)])

    assert once(7) == once(7)
    assert once(7) != once(8)
    assert once(None) != once(None)


def test_broken_logits_raise_and_make_no_step() -> None:
    generation = begun()
    with pytest.raises(EngineError):
        generation.take(candidates(np.full(V, np.nan, np.float32), generation.need))
    assert generation.length == len(PROMPT)
    assert isinstance(generation.take(candidates(row(3), generation.need)), Step)


def test_reasoning_and_answer_are_told_apart_by_their_pieces() -> None:
    steps = play(ids(f"{SELF}Hm.<|eom|><|start|>assistant to=user<|message|>Yes.<|eot|>"))
    turn = atem.parse(steps)
    assert (turn.reasoning, turn.content, turn.finish_reason) == ("Hm.", "Yes.", "stop")
