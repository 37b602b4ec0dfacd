"""The shipped drafter is transformers' model of its name, and some of what it says is accepted."""

from __future__ import annotations

import json
from contextlib import closing
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
import torch
from conversations import Sample
from drafter import BLOCK, Drafter, captured
from export import read
from safetensors.torch import load_file
from tokenizers import Tokenizer
from train_drafter import acceptance, confirmed, starts, targets, training, written_by_nano
from transformers import MuseGlimmerAssistantConfig, MuseGlimmerAssistantModel
from transformers.cache_utils import DFlashCache

import atem
from atem.runtime.embedded import located
from atem.tokenizer import wrap

if TYPE_CHECKING:
    from model import Nano

NANO = Path(located("nano"))
DRAFTER = NANO / "drafter"


@pytest.fixture(scope="module")
def nano() -> Nano:
    return read(NANO)


@pytest.fixture(scope="module")
def drafter() -> Drafter:
    model = Drafter()
    stored = load_file(DRAFTER / "model.safetensors")
    model.load_state_dict({name: value.float() for name, value in stored.items()})
    return model.requires_grad_(requires_grad=False).eval()


def test_it_is_at_most_four_megabytes() -> None:
    assert 0 < sum(path.stat().st_size for path in DRAFTER.glob("*")) <= 4_000_000


def test_its_config_fits_nano() -> None:
    own = json.loads((DRAFTER / "config.json").read_text())
    target = json.loads((NANO / "config.json").read_text())["text_config"]
    layers = own["target_layer_ids"]
    assert own["hidden_size"] == target["hidden_size"]
    assert layers == sorted(set(layers))
    assert layers[-1] < target["num_hidden_layers"]
    assert own["mask_token_id"] < target["vocab_size"]
    assert own["mask_token_id"] == Tokenizer.from_file(f"{NANO}/tokenizer.json").token_to_id(
        "<|image|>"
    )


def test_it_is_transformers_model(nano: Nano, drafter: Drafter) -> None:
    """Round by round, with a context shorter and longer than the window."""
    config = MuseGlimmerAssistantConfig(**json.loads((DRAFTER / "config.json").read_text()))
    config._attn_implementation = "eager"
    theirs = MuseGlimmerAssistantModel(config).eval()
    theirs.load_state_dict(drafter.state_dict())
    torch.manual_seed(1)
    ids, places = torch.randint(0, 1000, (400,)), [100, 105, 300, 301]
    context = captured(nano.streams(ids[None]))
    ours = drafter(nano, ids, context, torch.tensor(places), config.mask_token_id)
    cache = DFlashCache(config=config)
    cache.activate_past_recording()
    for behind, place, mine in zip([0, *places], places, ours, strict=False):
        known = torch.tensor([[int(ids[place]), *[config.mask_token_id] * (BLOCK - 1)]])
        cache.set_previous_accepted_tokens(place - behind)
        if behind:
            cache.crop(-BLOCK)
        with torch.no_grad():
            rows = theirs(
                noise_embeds=nano.embed_tokens(known),
                context_hidden_states=context[None, behind:place],
                position_ids=torch.arange(behind, place + BLOCK)[None],
                cache=cache,
            ).last_hidden_state
        assert torch.allclose(mine, nano.lm_head(rows[0, 1:]), atol=1e-3)


def test_its_proposals_for_held_out_tasks_are_often_accepted(nano: Nano, drafter: Drafter) -> None:
    mask_id = json.loads((DRAFTER / "config.json").read_text())["mask_token_id"]
    found = acceptance(drafter, nano, written_by_nano(NANO, "held out", 1), mask_id)
    assert found.tokens_a_pass > 1.5, found  # read wrongly in any way, it is about 1


def test_turns_to_learn_from_are_what_nano_writes_there(nano: Nano) -> None:
    drawn = training(wrap(Tokenizer.from_file(f"{NANO}/tokenizer.json")), 5)
    with closing(atem.load(NANO, backend="reference")) as engine:
        for sample, _ in islice(confirmed(nano, drawn), 6):
            start = sample.learnt.index(True)
            stop = sample.learnt.index(False, start) if False in sample.learnt[start:] else None
            steps = engine.generate(atem.Request(sample.ids[:start], atem.GREEDY, max_tokens=400))
            assert [token for step in steps for token in step.ids] == sample.ids[start:stop]


def test_a_place_is_followed_by_what_nano_wrote_in_the_same_turn() -> None:
    sample = Sample([9, 1, 2, 3, 4, 5], [False, True, True, False, True, True])
    assert starts(sample) == [1, 4]
    assert targets(sample, torch.tensor([1, 4]))[:, :2].tolist() == [[2, -100], [5, -100]]
