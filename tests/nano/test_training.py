"""Training follows from its seed and its steps, and starts where it says."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
import torch
from model import CONFIG, WIDTH, Nano, near
from muon import Muon, orthogonal
from start import set_by_hand
from tokenizers import Tokenizer
from train import TOKENS, Plan, batches, share, tensors, train

from atem.runtime.embedded import located
from atem.tokenizer import wrap

if TYPE_CHECKING:
    from pathlib import Path

TOKENIZER = wrap(Tokenizer.from_file(f"{located('nano')}/tokenizer.json"))


def test_going_on_from_a_saved_state_is_not_having_stopped(tmp_path: Path) -> None:
    plan = Plan(stage=2, steps=4, decay=2, seed=5, keep=2)
    whole = train(TOKENIZER, tmp_path, plan)
    train(TOKENIZER, tmp_path, plan._replace(stop=2))
    again = train(TOKENIZER, tmp_path, plan, resume=tmp_path / "resume.pt")
    for one, other in zip(whole.parameters(), again.parameters(), strict=True):
        assert torch.equal(one, other)


def test_a_step_takes_no_more_tokens_than_it_says_unless_one_conversation_is_longer() -> None:
    stream = batches(TOKENIZER, 3, stage=2)
    for _ in range(12):
        batch = next(stream)
        ids, wanted, targets = tensors(batch)
        assert ids.numel() <= TOKENS or len(batch) == 1
        assert wanted.sum() == len(targets) == sum(sum(each.learnt) for each in batch)


def test_the_next_token_is_what_is_wanted() -> None:
    batch = next(batches(TOKENIZER, 4, stage=2))
    _, _, targets = tensors(batch)
    learnt = [
        token
        for each in batch
        for token, wanted in zip(each.ids, each.learnt, strict=True)
        if wanted
    ]
    assert targets.tolist() == learnt


def test_the_rate_rises_stays_and_falls() -> None:
    plan = Plan(stage=2, steps=1000, decay=400, seed=1, keep=1000)
    rates = [share(step, plan) for step in range(1000)]
    assert rates[0] < 0.1
    assert set(rates[100:600]) == {1.0}
    assert rates[800] == pytest.approx(0.5)
    assert rates[-1] == 0.02


def test_an_update_is_orthogonal() -> None:
    torch.manual_seed(0)
    for shape in [(3, 64, 128), (2, 128, 64)]:
        sizes = torch.linalg.svdvals(orthogonal(torch.randn(shape)))
        assert sizes.min() > 0.6
        assert sizes.max() < 1.3


def test_muon_follows_the_gradient() -> None:
    torch.manual_seed(0)
    target, param = torch.randn(8, 8), torch.nn.Parameter(torch.zeros(8, 8))
    optimizer = Muon([param], lr=0.05)
    before = (param - target).norm()
    for _ in range(60):
        optimizer.zero_grad()
        (param - target).square().sum().backward()
        optimizer.step()
    assert (param - target).norm() < 0.5 * before


def test_muon_refuses_a_closure() -> None:
    optimizer = Muon([torch.nn.Parameter(torch.zeros(2, 2))], lr=0.05)
    with pytest.raises(TypeError, match="backward"):
        optimizer.step(lambda: 0.0)


@pytest.mark.parametrize("length", [5, 128, 129, 300])
def test_attention_in_blocks_is_attention_under_the_windows_mask(length: int) -> None:
    torch.manual_seed(length)
    q, k, v = (torch.randn(2, 4, length, WIDTH) for _ in range(3))
    behind = torch.arange(length)[:, None] - torch.arange(length)
    mask = (behind >= 0) & (behind < CONFIG.sliding_window)
    whole = torch.nn.functional.scaled_dot_product_attention(q, k, v, attn_mask=mask)
    assert torch.allclose(near(q, k, v), whole, atol=1e-5)


def test_by_hand_the_model_copies_a_little_before_it_learns_anything() -> None:
    torch.manual_seed(0)
    model = Nano()
    set_by_hand(model)
    once = torch.randperm(900)[:40]
    ids = torch.cat((once, once))[None]
    every = torch.ones_like(ids, dtype=torch.bool)
    with torch.no_grad():
        scores = model(ids, every)[40:79]
    following = scores.gather(1, ids[0, 41:, None])[:, 0]
    better = (scores > following[:, None]).sum(1).float()
    assert better.mean() < 100  # of 1024; by chance it would be about 512
