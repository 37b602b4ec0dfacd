"""The shipped checkpoint is of the size and shape that it says, and reads like any other."""

from __future__ import annotations

import json
from pathlib import Path
from random import Random

import numpy as np
import pytest
import torch
from conversations import Draw, conversation, sample
from export import config as exported_config
from export import read
from model import CONFIG
from safetensors.torch import load_file
from tokenizers import Tokenizer

import atem
from atem.render.chat_form import chat_of
from atem.runtime.embedded import located
from atem.runtime.layouts import open_checkpoint
from atem.testing.tiny import SPECIALS
from atem.tokenizer import wrap
from tests.render.oracle import apply, template
from tests.runtime.oracle import oracle, oracle_logits

NANO = Path(located("nano"))
BACKEND = Tokenizer.from_file(str(NANO / "tokenizer.json"))
TOKENIZER = wrap(BACKEND)


def conversations(count: int, seed: int = 11) -> list:
    draws = Random(seed)
    return [conversation(Draw(), draws) for _ in range(count)]


def test_it_is_at_most_six_megabytes() -> None:
    assert sum(path.stat().st_size for path in NANO.glob("*") if path.is_file()) <= 6_000_000


def test_its_config_is_what_the_recipe_writes() -> None:
    assert json.loads((NANO / "config.json").read_text()) == exported_config(BACKEND)


def test_it_opens_as_todays_layout_with_the_configuration_that_was_trained() -> None:
    checkpoint = open_checkpoint(NANO)
    assert checkpoint.config == CONFIG
    assert checkpoint.layout == "hf"


def test_widths_quantise_in_groups_of_64() -> None:
    for name, value in load_file(NANO / "model.safetensors").items():
        assert value.dtype == torch.bfloat16
        assert value.ndim == 1 or value.shape[-1] % 64 == 0, name


def test_every_conversation_is_longer_than_the_window() -> None:
    assert all(
        len(sample(made, TOKENIZER).ids) > CONFIG.sliding_window for made in conversations(60)
    )


def test_the_model_that_was_trained_is_transformers_model() -> None:
    with open_checkpoint(NANO) as checkpoint:
        weights = {name: checkpoint.read(name).astype(np.float32) for name in checkpoint.tensors}
    theirs, described = oracle(CONFIG, weights), json.loads((NANO / "config.json").read_text())
    for name in ("image_token_id", "video_token_id"):  # transformers hides rows of these ids
        setattr(theirs.config, name, described[name])
    for made in conversations(4):
        ids = sample(made, TOKENIZER).ids
        every = torch.ones(1, len(ids), dtype=torch.bool)
        ours = read(NANO)(torch.tensor([ids]), every).numpy()
        assert np.allclose(ours, oracle_logits(theirs, ids), atol=2e-3)


def test_its_full_layers_are_every_fourth_counted_from_the_last() -> None:
    text = json.loads((NANO / "config.json").read_text())["text_config"]
    pairs = zip(text["layer_types"], text["layer_rope_theta"], strict=True)
    found = [(kind, bool(theta)) for kind, theta in pairs]
    full, sliding = ("full_attention", False), ("sliding_attention", True)
    assert found[::-1] == [full, sliding, sliding, sliding, full, sliding]


def test_the_fifteen_named_specials_are_special_and_each_is_one_token() -> None:
    assert len(set(SPECIALS)) == 15
    for text in SPECIALS:
        number = TOKENIZER.special_id(text)
        assert number == BACKEND.token_to_id(text)
        assert TOKENIZER.is_special(number)
    assert sum(map(TOKENIZER.is_special, range(CONFIG.vocab_size))) == 15


def test_its_template_writes_what_atem_renders() -> None:
    compiled = template(NANO / "chat_template.jinja")
    for made in conversations(30):
        if made.untrained:  # the shape has no place for a rejected call's text
            continue
        chat = chat_of(made.messages, made.tools)
        for message in chat["messages"]:
            for call in message.get("tool_calls", ()):
                arguments = json.loads(call["function"]["arguments"])
                call["function"]["arguments"] = arguments
        theirs = apply(
            compiled, chat["messages"], tools=chat["tools"], reasoning_strength=made.strength
        )
        ours = atem.render(made.messages, tools=made.tools, reasoning_strength=made.strength)
        assert theirs == ours.text()


def test_its_template_has_the_date_that_atem_has_by_default() -> None:
    user = [{"role": "user", "content": "Hello"}]
    theirs = apply(template(NANO / "chat_template.jinja"), user)
    assert theirs == atem.render(user).text()


@pytest.mark.parametrize("strength", ["low", "xhigh"])
def test_it_says_hello(strength: str) -> None:
    user = [atem.Message("user", "Hello")]
    prompt = atem.render(user, tools=conversations(1)[0].tools, reasoning_strength=strength)
    engine = atem.load("nano", backend="reference")
    request = atem.Request(prompt, atem.GREEDY, max_tokens=60)
    turn = atem.collect(atem.parse_stream(engine.generate(request)))
    engine.close()
    assert turn.complete
    assert turn.content == "Hello. What can I do?"
    assert bool(turn.reasoning) == (strength == "xhigh")
