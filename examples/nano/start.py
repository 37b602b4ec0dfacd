"""A start set by hand: four attention heads that copy, so that training need not find them first.

Rules: only starting values; everything is trained afterwards. The residual
stream is divided at the start: dimension 0 holds a constant, the rest of the
first half the token, the third quarter the token before, the last the one
before that.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Final

import torch
from model import CONFIG, WIDTH, frequencies

if TYPE_CHECKING:
    from model import Nano
    from torch import Tensor

HIDDEN: Final = CONFIG.hidden_size
TOKEN: Final = slice(1, HIDDEN - 2 * WIDTH)
BEFORE: Final = slice(TOKEN.stop, TOKEN.stop + WIDTH)
BEFORE_THAT: Final = slice(BEFORE.stop, HIDDEN)
CODED: Final = TOKEN.stop - TOKEN.start
"""Dimensions that hold the token; behind it, WIDTH hold a code of it."""
PAIRS: Final = 4
"""Fast pairs of rope that tell neighbours apart."""


@torch.no_grad()
def set_by_hand(model: Nano) -> None:
    """Heads 0 and 1 of layer 0 look one and two back; two of layer 1 look up what followed."""
    for layer in model.layers:
        layer.post_attention_layernorm.weight.fill_(-0.6)
        layer.post_feedforward_layernorm.weight.fill_(-0.6)
        layer.self_attn.gate_proj.weight.zero_()
    _embed(model)
    code = torch.randn(WIDTH, CODED) / math.sqrt(CODED)
    _look_back(model, code)
    _look_up(model, code)


def _embed(model: Nano) -> None:
    rows = torch.randn(model.embed_tokens.weight.shape)
    rows[:, 0] = 3.0
    rows[:, TOKEN.stop :] = 0.0
    model.embed_tokens.weight.copy_(rows)
    model.lm_head.weight.normal_(std=0.02)
    model.lm_head.weight[:, TOKEN] += 0.05 * rows[:, TOKEN]


def _look_back(model: Nano, code: Tensor) -> None:
    """Queries and keys are constants, turned so that they meet one, or two, positions back."""
    layer = model.layers[0]
    layer.post_attention_layernorm.weight.fill_(0.0)
    attention = layer.self_attn
    attention.o_proj.weight.mul_(0.05)
    for head in (0, 1):
        attention.q_proj.weight[head * WIDTH : (head + 1) * WIDTH] = _constant(-head)
    attention.k_proj.weight[:WIDTH] = _constant(1)
    attention.v_proj.weight[:WIDTH] = 0.0
    attention.v_proj.weight[:WIDTH, TOKEN] = code
    attention.o_proj.weight[BEFORE, :WIDTH] += torch.eye(WIDTH)
    attention.o_proj.weight[BEFORE_THAT, WIDTH : 2 * WIDTH] += torch.eye(WIDTH)


def _constant(turned: int) -> Tensor:
    """Weights [D, d] that read the constant and point where ``turned`` positions lead."""
    weights = 0.01 * torch.randn(WIDTH, HIDDEN)
    angles = frequencies()[:PAIRS] * turned
    weights[:PAIRS, 0] = angles.cos()
    weights[WIDTH // 2 : WIDTH // 2 + PAIRS, 0] = angles.sin()
    return weights


def _look_up(model: Nano, code: Tensor) -> None:
    """Head 0 matches two tokens with the two before a key, head 2 one with the one before it."""
    layer = model.layers[1]
    layer.post_attention_layernorm.weight.fill_(0.0)
    attention, half = layer.self_attn, WIDTH // 2
    attention.o_proj.weight.mul_(0.05)
    q, k = attention.q_proj.weight, attention.k_proj.weight
    q[:WIDTH], k[:WIDTH] = 0.0, 0.0
    q[:half, TOKEN], q[half:WIDTH, BEFORE] = code[:half], torch.eye(WIDTH)[half:]
    k[:half, BEFORE], k[half:WIDTH, BEFORE_THAT] = torch.eye(WIDTH)[:half], torch.eye(WIDTH)[half:]
    q[2 * WIDTH : 3 * WIDTH], k[WIDTH:] = 0.0, 0.0
    q[2 * WIDTH : 3 * WIDTH, TOKEN], k[WIDTH:, BEFORE] = code, torch.eye(WIDTH)
    halves = (0, 0, TOKEN.start), (2, 1, TOKEN.stop - WIDTH)
    for head, kv, first in halves:  # each copies one of the token
        copied = torch.eye(HIDDEN)[first : first + WIDTH]
        attention.v_proj.weight[kv * WIDTH : (kv + 1) * WIDTH] = copied
        attention.o_proj.weight[:, head * WIDTH : (head + 1) * WIDTH] += copied.T
