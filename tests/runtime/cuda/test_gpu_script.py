"""The script prepared for a GPU runs from end to end, in its small form, on a CPU."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest
import torch

ROOT = Path(__file__).resolve().parents[3]


def script(*words):
    return subprocess.run(
        [sys.executable, "-W", "error", ROOT / "tests/bench/runtime/cuda_check.py", *words],
        capture_output=True, text=True, check=False,
    )  # fmt: skip


def test_its_numbers_agree_and_every_figure_is_there():
    run = script("--small")
    assert (run.returncode, run.stderr) == (0, "")
    agreements = re.findall(r"^.+ / .+ (\d\.\d{4})$", run.stdout, re.MULTILINE)
    assert len(agreements) == 4
    rates = re.findall(r"batch (\d), +(\d+) tokens behind: +([\d.]+) tokens/s", run.stdout)
    assert [(batch, behind) for batch, behind, _ in rates] == [
        ("1", "20"), ("8", "20"), ("1", "90"), ("8", "90"),
    ] * 2  # fmt: skip
    assert all(float(rate) > 0 for *_, rate in rates)


@pytest.mark.skipif(torch.cuda.is_available(), reason="there is a CUDA device")
def test_without_a_gpu_it_says_so():
    run = script()
    assert (run.returncode, run.stderr) == (2, "")
    assert "no CUDA device" in run.stdout
