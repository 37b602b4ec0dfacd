r"""Trains nano: conversations on the fly, Muon and AdamW, a checkpoint every few hundred steps.

Rules: everything follows from the seed and the step count; time decides
nothing. There are four stages, each begun with the weights of the one before;
the first learns copying alone before all families. In a stage the rate is
constant and then falls, to 2 % at the lowest, over the last ``--decay`` steps;
more of them than ``--steps`` begin at a part of the full rate. A run that was
stopped, or is to be longer, goes on from its last state with ``--resume``.

    OMP_WAIT_POLICY=passive GOMP_SPINCOUNT=0 OMP_NUM_THREADS=2 \
        python train.py --stage 1 --out build/1 --steps 6000 --decay 3250
"""

from __future__ import annotations

import argparse
import random
import time
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import torch
from conversations import STAGES, Draw, Sample, conversation, sample
from model import CONFIG, Nano
from muon import Muon
from start import set_by_hand
from tokenizers import Tokenizer
from torch.nn import functional as F  # noqa: N812 - as everybody calls it

from atem.tokenizer import wrap

if TYPE_CHECKING:
    from collections.abc import Iterator

    import atem

TOKENS: Final = 2048
"""Of a step, padding included."""

POOL: Final = 48
"""Conversations that are drawn, sorted by length and cut into batches at a time."""

WARM_UP: Final = 40
LOWEST: Final = 0.02
"""Of the full rate."""

COPYING: Final = 150
"""Steps of copying alone, with which the first stage begins."""

COPY: Final = Draw(families=("chat",), tasks=(6,), stage=STAGES[1])
RATES: Final = {"matrices": 0.02, "head": 0.003, "norms": 0.003, "embedding": 0.04}


def batches(tokenizer: atem.Tokenizer, seed: int, stage: int) -> Iterator[list[Sample]]:
    """Batches without end. The first of stage 1 are of copying alone."""
    rng = random.Random(seed)  # noqa: S311 - the same every time
    usual = Draw(stage=STAGES[stage], pieces=letter_pieces(tokenizer))
    made = 0
    while True:
        draw = COPY if stage == 1 and made < COPYING else usual
        pool = [sample(conversation(draw, rng), tokenizer) for _ in range(POOL)]
        cut = list(_cut(sorted(pool, key=lambda each: len(each.ids))))
        rng.shuffle(cut)
        made += len(cut)
        yield from cut


def letter_pieces(tokenizer: atem.Tokenizer) -> tuple[str, ...]:
    """The pieces of two letters or more that a word can be made of."""
    ids = (n for n in range(CONFIG.vocab_size) if not tokenizer.is_special(n))
    texts = [tokenizer.token_bytes(n).decode(errors="replace") for n in ids]
    return tuple(text for text in texts if len(text) > 1 and text.isalpha() and text.islower())


def _cut(pool: list[Sample]) -> Iterator[list[Sample]]:
    """Runs of samples of about the same length that fit into a step."""
    batch: list[Sample] = []
    for each in pool:
        if batch and (len(batch) + 1) * len(each.ids) > TOKENS:
            yield batch
            batch = []
        batch.append(each)
    yield batch


def tensors(batch: list[Sample]) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    """Ids [B, T], where the next token is to be learnt [B, T], and those tokens [N]."""
    longest = max(len(each.ids) for each in batch)
    ids = torch.zeros(len(batch), longest, dtype=torch.long)
    wanted = torch.zeros(len(batch), longest, dtype=torch.bool)
    for row, each in enumerate(batch):
        ids[row, : len(each.ids)] = torch.tensor(each.ids)
        wanted[row, : len(each.ids) - 1] = torch.tensor(each.learnt[1:])
    return ids, wanted, ids.roll(-1, 1)[wanted]


def optimizers(model: Nano) -> list[torch.optim.Optimizer]:
    """Muon for the matrices inside the layers, AdamW for the rest."""
    layers = list(model.layers.parameters())
    matrices = [each for each in layers if each.ndim == 2]
    rest = {
        "head": [model.lm_head.weight],
        "norms": [model.norm.weight, *(each for each in layers if each.ndim == 1)],
        "embedding": [model.embed_tokens.weight],
    }
    groups: list[dict[str, Any]] = [
        {"params": params, "lr": RATES[name]} for name, params in rest.items()
    ]
    adam = torch.optim.AdamW(groups, betas=(0.9, 0.95), weight_decay=0.0)
    made = [Muon(matrices, lr=RATES["matrices"]), adam]
    for optimizer in made:
        for group in optimizer.param_groups:
            group["rate"] = group["lr"]
    return made


def share(step: int, plan: Plan) -> float:
    """The rate at ``step`` as a part of the full one."""
    return min(1.0, (step + 1) / WARM_UP, max(LOWEST, (plan.steps - step) / plan.decay))


class Plan(NamedTuple):
    """One stage of training."""

    stage: int
    steps: int
    """In all."""
    decay: int
    """Steps over which the rate falls."""
    seed: int
    keep: int
    """Steps between two saved states."""
    stop: int | None = None
    """The step to stop at before the end."""


def train(
    tokenizer: atem.Tokenizer,
    out: Path,
    plan: Plan,
    *,
    start: Path | None = None,
    resume: Path | None = None,
) -> Nano:
    """Train as planned, from weights or a state if given; writes a state every ``keep`` steps."""
    torch.manual_seed(plan.seed)
    model = Nano()
    set_by_hand(model)
    if start:
        model.load_state_dict(torch.load(start, weights_only=True))
    updates = optimizers(model)
    first = _resume(resume, model, updates) if resume else 0
    mean, seen, begun = None, 0, time.monotonic()
    end = plan.stop or plan.steps
    stream = islice(batches(tokenizer, plan.seed, plan.stage), first, end)
    for step, batch in enumerate(stream, first):
        ids, wanted, targets = tensors(batch)
        loss = F.cross_entropy(model(ids, wanted), targets)
        loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        for optimizer in updates:
            for group in optimizer.param_groups:
                group["lr"] = group["rate"] * share(step, plan)
            optimizer.step()
            optimizer.zero_grad()
        seen += ids.numel()
        mean = loss.item() if mean is None else mean + 0.03 * (loss.item() - mean)
        if step % 25 == 0:
            _report(step, mean, seen, time.monotonic() - begun)
        if (step + 1) % plan.keep == 0 or step + 1 == end:
            torch.save(model.state_dict(), out / f"step{step + 1}.pt")
            _save(out / "resume.pt", step + 1, model, updates)
    return model


def _save(path: Path, step: int, model: Nano, updates: list[torch.optim.Optimizer]) -> None:
    """Everything that going on takes, put in place all at once."""
    states = [optimizer.state_dict() for optimizer in updates]
    whole = {"step": step, "model": model.state_dict(), "optimizers": states}
    torch.save(whole, path.with_suffix(".new"))
    path.with_suffix(".new").replace(path)


def _resume(path: Path, model: Nano, updates: list[torch.optim.Optimizer]) -> int:
    saved = torch.load(path, weights_only=True)
    model.load_state_dict(saved["model"])
    for optimizer, state in zip(updates, saved["optimizers"], strict=True):
        optimizer.load_state_dict(state)
    return int(saved["step"])


def _report(step: int, loss: float, seen: int, seconds: float) -> None:
    cpu = time.process_time() / 3600
    print(
        f"step {step} loss {loss:.4f} tokens {seen / 1e6:.2f}M "
        f"{seen / (seconds + 1e-9):.0f}/s {seconds / 60:.1f} min {cpu:.2f} CPU-hours",
        flush=True,
    )


def main() -> None:
    """Train from the command line."""
    arguments = argparse.ArgumentParser(description=__doc__)
    arguments.add_argument("--tokenizer", type=Path, default=Path("build/tokenizer/tokenizer.json"))
    arguments.add_argument("--out", type=Path, default=Path("build/train"))
    arguments.add_argument("--steps", type=int, default=6000)
    arguments.add_argument("--decay", type=int, default=2500, help="steps, the last ones")
    arguments.add_argument("--seed", type=int, default=1)
    arguments.add_argument("--keep", type=int, default=250, help="steps between two saved states")
    arguments.add_argument("--stop", type=int, help="the step to stop before the end at")
    arguments.add_argument("--stage", type=int, choices=STAGES, required=True)
    arguments.add_argument("--start", type=Path, help="weights to begin with, of another stage")
    arguments.add_argument("--resume", type=Path, help="a resume.pt to go on from")
    given = arguments.parse_args()
    given.out.mkdir(parents=True, exist_ok=True)
    tokenizer = wrap(Tokenizer.from_file(str(given.tokenizer)))
    plan = Plan(given.stage, given.steps, given.decay, given.seed, given.keep, given.stop)
    train(tokenizer, given.out, plan, start=given.start, resume=given.resume)


if __name__ == "__main__":
    main()
