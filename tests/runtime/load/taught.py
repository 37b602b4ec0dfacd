"""A tiny model that has learnt the probe's text: the least that a loss can judge.

Rules: trained by torch on transformers' own model, so that nothing of atem's runtime says what
the right reading is.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import torch

from atem.runtime.probe_texts import PLAIN
from atem.testing.tiny import hf_name, tiny_config, tiny_tokenizer, tiny_weights
from atem.tokenizer import wrap
from tests.runtime.oracle import oracle

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from atem.runtime.config import ModelConfig

STEPS = 60


def taught(config: ModelConfig | None = None) -> dict[str, NDArray[np.float32]]:
    """Canonical weights after STEPS steps on the text."""
    torch.manual_seed(0)
    config = config or tiny_config()
    weights = tiny_weights(config)
    model = oracle(config, weights)
    ids = torch.tensor([PLAIN.spelt(wrap(tiny_tokenizer())).ids])
    names = {hf_name(name) for name in weights}
    learnt = [p for name, p in model.named_parameters() if name in names]
    optimiser = torch.optim.Adam(learnt, lr=4e-3)
    for _ in range(STEPS):
        logits = model(input_ids=ids[:, :-1]).logits[0]
        loss = torch.nn.functional.cross_entropy(logits, ids[0, 1:])
        optimiser.zero_grad()
        loss.backward()
        optimiser.step()
    state = model.state_dict()
    return {name: state[hf_name(name)].numpy() for name in weights}
