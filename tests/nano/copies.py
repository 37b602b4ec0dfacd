"""Copies of nano in other layouts, by other libraries: GGUF with Q8_0 blocks, MLX's four bits.

Rules: nothing is trained or corrected for them; the table stays as it is in
MLX's, as it is in the published conversion. To have them on disk:

    python -m tests.nano.copies --model nano --out build/copies
    python examples/nano/evaluate.py --model build/copies/q8_0
"""

from __future__ import annotations

import argparse
import json
import shutil
from pathlib import Path

import mlx.core as mx
import numpy as np
from safetensors.numpy import save_file

from atem.runtime.embedded import located
from atem.runtime.layouts import open_checkpoint
from tests.runtime.layouts.gguf_writer import write_gguf
from tests.runtime.layouts.quant_writers import NAMES, mlx

SIDE_FILES = ("tokenizer.json", "tokenizer_config.json", "generation_config.json")
GROUP = 64


def q8_0(model: Path, out: Path) -> Path:
    """All matrices in 8 bits, 32 to a scale."""
    out.mkdir(parents=True)
    with open_checkpoint(model) as source:
        weights = {name: source.read(name).astype(np.float32) for name in source.tensors}
        write_gguf(out / "nano.gguf", source.config, weights, encoding=lambda name: "Q8_0")
    return with_side_files(model, out)


def mlx_4bit(model: Path, out: Path) -> Path:
    """All matrices but the table in affine 4 bits, 64 to a scale."""
    out.mkdir(parents=True)
    tensors: dict[str, np.ndarray] = {}
    with open_checkpoint(model) as source:
        for name in source.tensors:
            values, stored_as = source.read(name), NAMES["mlx"](name)
            if values.ndim == 1 or name == "embed":
                tensors[stored_as] = np.ascontiguousarray(values)
                continue
            parts = mlx(values.astype(np.float32), group=GROUP, dtype=mx.bfloat16).stored
            tensors |= {stored_as.removesuffix(".weight") + end: x for end, x in parts.items()}
        save_file(tensors, out / "model.safetensors")
    config = json.loads((model / "config.json").read_text())
    config["quantization"] = {"group_size": GROUP, "bits": 4, "mode": "affine"}
    (out / "config.json").write_text(json.dumps(config))
    return with_side_files(model, out)


def with_side_files(model: Path, out: Path) -> Path:
    for name in SIDE_FILES:
        shutil.copyfile(model / name, out / name)
    return out


MAKERS = {"q8_0": q8_0, "mlx_4bit": mlx_4bit}


def main() -> None:
    arguments = argparse.ArgumentParser(description=__doc__)
    arguments.add_argument("--model", type=str, default="nano")
    arguments.add_argument("--out", type=Path, default=Path("build/copies"))
    given = arguments.parse_args()
    for name, make in MAKERS.items():
        made = make(Path(located(given.model)), given.out / name)
        size = sum(path.stat().st_size for path in made.iterdir())
        print(f"{made}: {size} bytes")  # noqa: T201 - a command line prints


if __name__ == "__main__":
    main()
