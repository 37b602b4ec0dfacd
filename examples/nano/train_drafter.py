"""Trains the drafter on what nano itself writes, and measures how much of it is accepted.

Rules: learnt are turns of training conversations in which every token is nano's
first choice, which makes them what nano writes there, by induction; each is seen
once. Measured is what nano wrote in the agent's loop, greedily, on held-out
tasks, right or wrong. Acceptance is exact: greedy decoding accepts the proposals
that are what nano wrote anyway.

    python train_drafter.py --model build/nano --out build/nano/drafter
"""

from __future__ import annotations

import argparse
import json
import random
from contextlib import closing
from itertools import groupby, islice
from operator import itemgetter
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import torch
from conversations import Draw, Sample, conversation
from conversations import sample as sample_of
from drafter import BLOCK, CAPTURED, LAYERS, WINDOW, Drafter, captured
from evaluate import cases, run_all
from export import BOS, EOS, PAD, read
from families import FAMILIES
from model import CONFIG
from muon import Muon
from recorder import Recorder, conversations
from safetensors.torch import save_file
from tokenizers import Tokenizer
from torch.nn import functional as F  # noqa: N812 - as everybody calls it

import atem
from atem.tokenizer import wrap

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from model import Nano

FADING: Final = 0.85
"""Weight of a proposal beside that of the one before it, without which it is of no use."""

PLACES: Final = 24
"""Blocks that are trained in one conversation."""

TOGETHER: Final = 4
"""Conversations of a step."""

REPORTED: Final = 100
"""Steps between two reports, each the mean loss of all conversations since the last."""


def written_by_nano(model: Path, kind: str, each: int) -> list[Sample]:
    """Conversations of ``each`` tasks of every family, with what nano wrote marked."""
    with closing(Recorder(atem.load(model, backend="torch"))) as engine:
        for family in FAMILIES:
            run_all(engine, cases(kind, family, each))
    return sorted(conversations(engine.turns))  # whichever of them was done first


def starts(sample: Sample) -> list[int]:
    """Places of tokens of nano's behind which it wrote more in the same turn."""
    pairs = zip(sample.learnt, sample.learnt[1:], strict=False)
    return [at for at, both in enumerate(pairs) if all(both)]


def targets(sample: Sample, places: torch.Tensor) -> torch.Tensor:
    """What nano wrote behind each place [N, BLOCK - 1]; -100 behind the end of its turn."""
    ids, learnt = torch.tensor(sample.ids), torch.tensor(sample.learnt)
    ids = F.pad(torch.where(learnt, ids, -100), (0, BLOCK), value=-100)
    found = torch.stack([ids[places + ahead] for ahead in range(1, BLOCK)], 1)
    return torch.where((found == -100).cumsum(1) > 0, -100, found)


def faded(logits: torch.Tensor, wanted: torch.Tensor) -> torch.Tensor:
    """The mean loss of the proposals, each weighing less than the one before it."""
    losses = F.cross_entropy(logits.transpose(1, 2), wanted, reduction="none")
    weights = FADING ** torch.arange(BLOCK - 1) * (wanted >= 0)
    return (losses * weights).sum() / weights.sum()


def confirmed(nano: Nano, drawn: Iterator[Sample]) -> Iterator[tuple[Sample, torch.Tensor]]:
    """Conversations with only those turns marked that nano writes so, and what is read of it."""
    for sample in drawn:
        streams = nano.streams(torch.tensor([sample.ids]))
        first = [-1, *nano.logits(streams[-1][0]).argmax(-1).tolist()]  # at 0 nothing is written
        same = [a == b for a, b in zip(sample.ids, first, strict=False)]
        learnt: list[bool] = []
        for inside, turn in groupby(zip(sample.learnt, same, strict=True), itemgetter(0)):
            agreed = [each for _, each in turn]
            learnt += [inside and all(agreed)] * len(agreed)
        if any(learnt):
            yield Sample(sample.ids, learnt), captured(streams)


def training(tokenizer: atem.Tokenizer, seed: int) -> Iterator[Sample]:
    """Conversations of one task, from the seed."""
    rng = random.Random(seed)  # noqa: S311 - the same every time
    while True:
        yield sample_of(conversation(Draw(tasks=(1,)), rng), tokenizer)


def train(
    nano: Nano, drawn: Iterator[tuple[Sample, torch.Tensor]], steps: int, seed: int, mask_id: int
) -> Drafter:
    """Some conversations a step; the rate falls over the second half."""
    torch.manual_seed(seed)
    rng = random.Random(seed)  # noqa: S311 - the same every time
    drafter = Drafter()
    params = list(drafter.parameters())
    updates = [
        Muon([each for each in params if each.ndim == 2], lr=0.02),
        torch.optim.AdamW([each for each in params if each.ndim == 1], lr=0.003, weight_decay=0.0),
    ]
    losses: list[float] = []
    for step in range(steps):
        for sample, seen in islice(drawn, TOGETHER):
            possible = starts(sample)
            places = torch.tensor(sorted(rng.sample(possible, min(PLACES, len(possible)))))
            logits = drafter(nano, torch.tensor(sample.ids), seen, places, mask_id)
            loss = faded(logits, targets(sample, places))
            (loss / TOGETHER).backward()
            losses.append(loss.item())
        for optimizer in updates:
            for group in optimizer.param_groups:
                rate = group.setdefault("rate", group["lr"])
                group["lr"] = rate * min(1.0, 2 * (1 - step / steps))
            optimizer.step()
            optimizer.zero_grad()
        if (step + 1) % REPORTED == 0:
            recent = losses[-REPORTED * TOGETHER :]
            print(f"step {step + 1} loss {sum(recent) / len(recent):.3f}", flush=True)
    return drafter


class Acceptance(NamedTuple):
    """What greedy decoding takes of the proposals."""

    passes: int
    """Of nano, each over a block, not counting those over prompts."""
    tokens: int
    """Written by these passes."""
    accepted: tuple[int, ...]
    """Passes in which the first, the second ... proposal was taken."""

    @property
    def tokens_a_pass(self) -> float:
        """1 without a drafter."""
        return self.tokens / self.passes

    def __str__(self) -> str:
        shares = " ".join(f"{100 * taken / self.passes:.0f}" for taken in self.accepted)
        return (
            f"{self.tokens_a_pass:.2f} tokens a pass over {self.passes} passes; "
            f"accepted by position: {shares} %"
        )


@torch.no_grad()
def acceptance(drafter: Drafter, nano: Nano, samples: Iterable[Sample], mask_id: int) -> Acceptance:
    """Greedy decoding of everything that is marked, in blocks."""
    passes, tokens, accepted = 0, 0, [0] * (BLOCK - 1)
    for sample in samples:
        places = torch.tensor(starts(sample))
        ids = torch.tensor(sample.ids)
        guesses = drafter(nano, ids, captured(nano.streams(ids[None])), places, mask_id).argmax(-1)
        right = (guesses == targets(sample, places)).int().cumprod(1).sum(1)
        upto = -1
        for place, taken in zip(places.tolist(), right.tolist(), strict=True):
            if place <= upto:  # written by an earlier pass, and not its last
                continue
            upto = place + taken
            another = upto + 1 < len(sample.ids) and sample.learnt[upto + 1]  # nano's own, behind
            passes, tokens = passes + 1, tokens + taken + another
            accepted = [n + (ahead < taken) for ahead, n in enumerate(accepted)]
    return Acceptance(passes, tokens, tuple(accepted))


def export(drafter: Drafter, tokenizer: Tokenizer, mask_id: int, out: Path) -> None:
    """config.json and model.safetensors of the drafter, in bf16."""
    out.mkdir(parents=True, exist_ok=True)
    state = {name: value.to(torch.bfloat16) for name, value in drafter.state_dict().items()}
    save_file(state, str(out / "model.safetensors"), {"format": "pt"})
    config: dict[str, Any] = {
        "architectures": ["MuseGlimmerAssistantModel"],
        "model_type": "muse_glimmer_assistant",
        "dtype": "bfloat16",
        "hidden_size": CONFIG.hidden_size,
        "intermediate_size": CONFIG.intermediate_size,
        "num_hidden_layers": LAYERS,
        "num_attention_heads": CONFIG.num_attention_heads,
        "num_key_value_heads": CONFIG.num_key_value_heads,
        "head_dim": CONFIG.head_dim,
        "rms_norm_eps": CONFIG.rms_norm_eps,
        "hidden_act": "silu",
        "rope_parameters": {"rope_type": "default", "rope_theta": CONFIG.rope_theta},
        "max_position_embeddings": CONFIG.max_position_embeddings,
        "sliding_window": WINDOW,
        "layer_types": ["sliding_attention"] * LAYERS,
        "attention_dropout": 0.0,
        "block_size": BLOCK,
        "mask_token_id": mask_id,
        "target_layer_ids": list(CAPTURED),
        "bos_token_id": tokenizer.token_to_id(BOS),
        "eos_token_id": tokenizer.token_to_id(EOS),
        "pad_token_id": tokenizer.token_to_id(PAD),
    }
    (out / "config.json").write_text(json.dumps(config, indent=1) + "\n")


def main() -> None:
    """Train, measure, export."""
    arguments = argparse.ArgumentParser(description=__doc__)
    arguments.add_argument("--model", type=Path, default=Path("build/nano"))
    arguments.add_argument("--out", type=Path, default=Path("build/nano/drafter"))
    arguments.add_argument("--tasks", type=int, default=10, help="of each family, held out")
    arguments.add_argument("--steps", type=int, default=2000)
    arguments.add_argument("--seed", type=int, default=1)
    given = arguments.parse_args()
    tokenizer = Tokenizer.from_file(str(given.model / "tokenizer.json"))
    mask_id = tokenizer.token_to_id("<|image|>")  # named, and otherwise unused
    nano = read(given.model)
    drawn = confirmed(nano, training(wrap(tokenizer), given.seed))
    drafter = train(nano, drawn, given.steps, given.seed, mask_id)
    held_out = written_by_nano(given.model, "held out", given.tasks)
    drafter.load_state_dict({k: v.bfloat16().float() for k, v in drafter.state_dict().items()})
    print(f"held out: {acceptance(drafter, nano, held_out, mask_id)}")
    export(drafter, tokenizer, mask_id, given.out)


if __name__ == "__main__":
    main()
