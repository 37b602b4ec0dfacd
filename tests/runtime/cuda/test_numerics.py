"""Each piece of the arithmetic against its definition in float64."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from atem.runtime.cuda import numerics
from atem.runtime.cuda.numerics import attend, attend_split, norm, project, rms, rotate, rotation


def random(*shape, seed=0, dtype=torch.float32):
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed)).to(dtype)


def exact_rms(x, eps):
    x = x.double()
    return x / (x.pow(2).mean(-1, keepdim=True) + eps).sqrt()


@pytest.mark.parametrize("scale", [1e-6, 1.0, 1e4])
def test_rms_divides_by_the_root_of_the_mean_square(scale):
    x = random(5, 3, 24) * scale
    torch.testing.assert_close(rms(x, 1e-8).double(), exact_rms(x, 1e-8), rtol=1e-6, atol=0)


def test_a_norm_of_bfloat16_is_rounded_once():
    x, weight = random(50, 64, dtype=torch.bfloat16), 1 + random(64, seed=1)
    exact = exact_rms(x, 1e-5) * weight.double()
    found = norm(x, weight, 1e-5)
    assert found.dtype == torch.bfloat16
    # Of 3200 values, float32 arithmetic may tip a handful that lie between two bfloat16 numbers.
    assert (found != exact.to(torch.bfloat16)).sum() < 10


@given(st.integers(1, 2 * numerics.FEW), st.sampled_from([torch.float32, torch.bfloat16]))
def test_projecting_is_multiplying_by_the_transpose(rows, dtype):
    x, weight = random(rows, 24, dtype=dtype), random(40, 24, seed=1, dtype=dtype)
    found = project(x, weight)
    exact = x.double() @ weight.double().t()
    assert found.is_contiguous()
    assert found.dtype == dtype
    close = {torch.float32: 1e-5, torch.bfloat16: 0.05}[dtype]
    torch.testing.assert_close(found.double(), exact, rtol=close, atol=close)


def test_rotation_turns_each_pair_by_its_angle():
    x, positions = random(6, 2, 8), torch.tensor([0, 1, 2, 7, 100, 511])
    cos, sin = rotation(positions, 8, 10_000.0)
    found = rotate(x, cos, sin)
    pairs = torch.complex(x[..., :4].double(), x[..., 4:].double())
    speeds = 10_000.0 ** (-torch.arange(4, dtype=torch.float64) / 4)
    turned = pairs * torch.exp(1j * positions[:, None].double() * speeds)[:, None]
    expected = torch.cat((turned.real, turned.imag), -1).float()
    torch.testing.assert_close(found, expected, rtol=0, atol=1e-4)


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
@pytest.mark.parametrize("parts", [1, 2, 8])
def test_keys_in_parts_give_the_same_attention(parts, dtype):
    q, k = random(3, 2, 4, 16, dtype=dtype), random(3, 2, 64, 16, seed=1, dtype=dtype)
    v = random(3, 2, 64, 16, seed=2, dtype=dtype)
    hidden = torch.arange(64) > torch.tensor([5, 30, 63])[:, None]
    bias = torch.where(hidden, -torch.inf, 0.0).to(dtype)[:, None, None]
    close = {torch.float32: 1e-6, torch.bfloat16: 0.02}[dtype]
    found = attend_split(q, k, v, bias, parts)
    assert found.dtype == dtype
    torch.testing.assert_close(found, attend(q, k, v, bias), rtol=close, atol=close)


def test_nothing_global_is_changed_by_a_pass():
    code = (
        "import torch; before = torch.get_num_threads(), torch.get_default_dtype(), "
        "torch.is_grad_enabled(), torch.backends.cuda.matmul.allow_tf32\n"
        "from tests.runtime.cuda.models import *\n"
        "engine = tiny_engine(); list(engine.generate(ask([1, 2, 3], 4)))\n"
        "after = torch.get_num_threads(), torch.get_default_dtype(), "
        "torch.is_grad_enabled(), torch.backends.cuda.matmul.allow_tf32\n"
        "assert before == after, (before, after)"
    )
    import subprocess
    import sys

    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert (run.returncode, run.stdout, run.stderr) == (0, "", "")


def test_numpy_and_torch_round_bfloat16_alike():
    import ml_dtypes

    values = np.random.default_rng(0).standard_normal(10_000).astype(np.float32)
    theirs = values.astype(ml_dtypes.bfloat16).view(np.int16)
    ours = torch.from_numpy(values).to(torch.bfloat16).view(torch.int16).numpy()
    np.testing.assert_array_equal(ours, theirs)
