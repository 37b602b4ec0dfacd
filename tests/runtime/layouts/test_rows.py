"""Orders of rows: against rope itself, as transformers and as complex numbers compute it."""

from __future__ import annotations

import numpy as np
import torch
from hypothesis import given
from hypothesis import strategies as st
from transformers.models.llama.modeling_llama import rotate_half

from atem.runtime.layouts import rows

HEADS = st.integers(1, 5)
WIDTH = st.integers(1, 8).map(lambda half: 2 * half)


def angles(width: int, position: int) -> np.ndarray:
    return position * 500000.0 ** (-np.arange(0, width, 2) / width)


def turned_in_pairs(head: np.ndarray, position: int) -> np.ndarray:
    """Values (2j, 2j+1) are one complex number, turned by its angle."""
    numbers = head.reshape(-1, 2) @ np.array([1, 1j])
    turned = numbers * np.exp(1j * angles(head.size, position))
    return np.stack([turned.real, turned.imag], axis=1).reshape(-1)


def turned_in_halves(head: np.ndarray, position: int) -> np.ndarray:
    both = torch.from_numpy(np.tile(angles(head.size, position), 2))
    values = torch.from_numpy(head.copy())
    return (values * both.cos() + rotate_half(values) * both.sin()).numpy()


@given(WIDTH, st.integers(0, 2**32 - 1), st.integers(0, 500), st.integers(0, 500))
def test_rope_on_pairs_and_rope_on_reordered_rows_agree(width, seed, here, there):
    q, k = np.random.default_rng(seed).standard_normal((2, width))
    order = rows.half_from_pairs(1, width)
    pairs = turned_in_pairs(q, here) @ turned_in_pairs(k, there)
    halves = turned_in_halves(q[order], here) @ turned_in_halves(k[order], there)
    np.testing.assert_allclose(halves, pairs, atol=1e-9)


@given(HEADS, WIDTH)
def test_heads_stay_apart(heads, width):
    order = rows.half_from_pairs(heads, width).reshape(heads, width)
    np.testing.assert_array_equal(order // width, np.arange(heads)[:, None].repeat(width, 1))


@given(HEADS, WIDTH)
def test_fused_rows_are_shared_out_without_loss(heads, width):
    both = np.concatenate([rows.fused(heads, width, 0), rows.fused(heads, width, 1)])
    np.testing.assert_array_equal(np.sort(both), np.arange(2 * heads * width))
