"""The same weights give the same tokens, whatever layout they lie in and whichever engine runs them.

Rules: the expected tokens are transformers' own; a quantised checkpoint is compared with its weights
dequantised first, by the writers' definitions.
"""

from __future__ import annotations

from contextlib import closing

import gguf as library
import pytest
import torch

import atem
from atem.engine import GREEDY
from atem.testing.tiny import tiny_config, tiny_weights
from tests.runtime.layouts import gguf_writer, quant_writers, writers
from tests.runtime.oracle import oracle

CONFIG = tiny_config()
WEIGHTS = tiny_weights(CONFIG)
# Past the window of 8. No image placeholder follows from it: transformers looks those up as id 0.
PROMPT = [1, 60, 61, 62, 63, 64, 65, 66, 67, 68, 69, 70]
TOKENS = 24


def plain(layout, **options):
    """A layout of WEIGHTS as they are."""

    def write(folder):
        tensors, describe = writers.LAYOUTS[layout]
        writers.save(folder, tensors(CONFIG, WEIGHTS), describe(CONFIG), **options)
        return WEIGHTS

    return write


def old(folder):
    tensors, meant = writers.old(CONFIG, WEIGHTS)
    writers.save(folder, tensors, writers.hf_config(CONFIG))
    return meant


def quantised(layout, form, block, key="quantization_config"):
    def write(folder):
        case = quant_writers.quantised(layout, form, block, config=CONFIG, key=key)
        case.save(folder)
        return case.meant

    return write


def gguf(kind):
    """A GGUF file; what is meant comes from gguf's own quantiser and back."""

    def write(folder):
        writers.write_side_files(folder)
        path = folder / "model.gguf"
        gguf_writer.write_gguf(path, CONFIG, WEIGHTS, encoding=lambda name: kind)
        return {name: there_and_back(name, values, kind) for name, values in WEIGHTS.items()}

    return write


def there_and_back(name, values, kind):
    stored = gguf_writer.as_gguf(name, values, CONFIG)
    if values.ndim == 2:
        encoding = library.GGMLQuantizationType[kind]
        quantised = library.quants.quantize(stored, encoding)
        stored = library.quants.dequantize(quantised, encoding)
    return gguf_writer.from_gguf(name, stored, CONFIG)


MLX = {"group_size": 32, "bits": 4}
NVFP4 = {"quant_method": "compressed-tensors", "format": "nvfp4-pack-quantized"}
MODELOPT = {"quant_method": "modelopt", "quant_algo": "NVFP4"}
CASES = {
    "raw": plain("raw"),
    "hf": plain("hf"),
    "hf, three shards": plain("hf", shards=3),
    "hf, old export": old,
    "bare": plain("bare"),
    "packed": plain("packed"),
    "mlx-vlm, 4 bits": quantised(
        "mlx", quant_writers.only_linears(quant_writers.mlx), MLX, key="quantization"
    ),
    "gguf F32": gguf("F32"),
    "gguf Q8_0": gguf("Q8_0"),
    "compressed-tensors NVFP4": quantised(
        "hf", quant_writers.only_linears(quant_writers.compressed_nvfp4), NVFP4
    ),
    "ModelOpt NVFP4": quantised(
        "hf", quant_writers.only_linears(quant_writers.modelopt_nvfp4), MODELOPT
    ),
}


def expected(weights):
    """Greedy tokens of transformers."""
    model = oracle(CONFIG, weights)
    made = model.generate(
        torch.tensor([PROMPT]),
        attention_mask=torch.ones(1, len(PROMPT), dtype=torch.long),
        do_sample=False,
        max_new_tokens=TOKENS,
        eos_token_id=None,
        pad_token_id=0,
    )
    return made[0, len(PROMPT) :].tolist()


@pytest.mark.parametrize("backend", ["reference", "torch"])
@pytest.mark.parametrize("write", CASES.values(), ids=CASES)
def test_every_layout_gives_the_tokens_of_transformers(tmp_path, write, backend):
    meant = write(tmp_path)
    style = {"rope_style": "pairs"} if write is old else {}
    with closing(atem.load(tmp_path, backend=backend, **style)) as engine:
        request = atem.Request(PROMPT, GREEDY, max_tokens=TOKENS)
        tokens = [number for step in engine.generate(request) for number in step.ids]
    assert tokens == until_stop(expected(meant), engine.info.stop_ids)


def until_stop(tokens, stops):
    """The tokens up to and with the first stop."""
    ends = [place + 1 for place, number in enumerate(tokens) if number in stops]
    return tokens[: ends[0]] if ends else tokens
