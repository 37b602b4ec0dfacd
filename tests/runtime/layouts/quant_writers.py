"""Weights in the quantised formats, and what those bytes mean by the formats' definitions.

Rules: encoders are crude on purpose, and only have to use the whole range of codes; values are
worked out from the stored bytes, in plain Python and float64, by nothing of atem's.
"""

from __future__ import annotations

import json
from functools import wraps
from typing import TYPE_CHECKING, Any, NamedTuple

import ml_dtypes
import mlx.core as mx
import numpy as np
from safetensors.numpy import save_file

from atem.testing.tiny import hf_config, hf_name, tiny_config, tiny_weights, write_side_files
from tests.runtime.layouts import writers

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from atem.runtime.config import ModelConfig
    from atem.testing.tiny import Weights

CONFIG = tiny_config(num_hidden_layers=4, intermediate_size=128)
"""Every width is a multiple of 64: of any group size that is tested."""


class Parts(NamedTuple):
    """The stored tensors of one matrix, by the end of their names, and the values they mean."""

    stored: dict[str, np.ndarray]
    values: np.ndarray


def remembered(form: Callable[..., Parts]) -> Callable[..., Parts]:
    """``form``, done once for the same weights: plain Python is slow, and most tests share them."""
    done: dict[Any, Parts] = {}

    @wraps(form)
    def again(weight: np.ndarray, **options: Any) -> Parts:
        key = (weight.tobytes(), weight.shape, *sorted(options.items()))
        if key not in done:
            done[key] = form(weight, **options)
        return Parts(dict(done[key].stored), done[key].values)

    return again


def e2m1(code: int) -> float:
    size = (0.0, 0.5, 1.0, 1.5, 2.0, 3.0, 4.0, 6.0)[code & 7]
    return -size if code & 8 else size


def e4m3(code: int) -> float:
    sign, exponent, mantissa = code >> 7, code >> 3 & 15, code & 7
    if exponent == 15 and mantissa == 7:
        return float("nan")
    size = mantissa / 8 * 2**-6 if exponent == 0 else (1 + mantissa / 8) * 2.0 ** (exponent - 7)
    return -size if sign else size


def e8m0(code: int) -> float:
    return float("nan") if code == 255 else 2.0 ** (code - 127)


def codes_of(row: bytes, bits: int) -> list[int]:
    """Codes of ``bits``, one after another from the lowest bit of the first byte."""
    number = int.from_bytes(row, "little")
    return [number >> at & (2**bits - 1) for at in range(0, 8 * len(row), bits)]


def pack(codes: np.ndarray, bits: int) -> np.ndarray:
    """Rows of codes as rows of bytes."""
    numbers = [sum(code << bits * at for at, code in enumerate(row)) for row in codes.tolist()]
    length = codes.shape[1] * bits // 8
    return np.array([list(number.to_bytes(length, "little")) for number in numbers], np.uint8)


def meaning(rows: np.ndarray, bits: int, value, scale_codes: np.ndarray, scale) -> np.ndarray:
    """value(code) * scale(code of its group): exact in float64 for every format here."""
    values = np.array([[value(c) for c in codes_of(bytes(row), bits)] for row in rows.tolist()])
    scales = np.array([[scale(code) for code in row] for row in scale_codes.tolist()])
    return values * np.repeat(scales, values.shape[1] // scales.shape[1], axis=1)


def nearest(weight: np.ndarray, scales: np.ndarray, value, codes: int) -> np.ndarray:
    """The code whose value is nearest to each weight, under the scale of its group."""
    table = np.nan_to_num([value(code) for code in range(codes)], nan=np.inf)
    relative = weight / np.repeat(scales, weight.shape[1] // scales.shape[1], axis=1)
    return np.abs(relative[..., None] - table).argmin(-1).astype(np.uint8)


def largest(weight: np.ndarray, group: int) -> np.ndarray:
    """The largest size in each group, [out, in / group]."""
    return np.abs(weight.reshape(len(weight), -1, group)).max(-1).astype(np.float64)


def _nvfp4(weight: np.ndarray, factor: np.float32) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    scales = (largest(weight, 16) / 6 / factor).astype(ml_dtypes.float8_e4m3fn)
    codes = nearest(weight / factor, scales.astype(np.float64), e2m1, 16)
    packed = pack(codes, 4)
    return packed, scales, meaning(packed, 4, e2m1, scales.view(np.uint8), e4m3)


@remembered
def compressed_nvfp4(weight: np.ndarray, *, activations: bool = True) -> Parts:
    """As compressed-tensors stores it: values are divided by the global scale."""
    number = np.float32(448 * 6 / np.abs(weight).max())
    packed, scales, values = _nvfp4(weight, np.float32(1) / number)
    stored = {
        ".weight_packed": packed,
        ".weight_scale": scales,
        ".weight_global_scale": np.array([number]),
    }
    if activations:
        stored[".input_global_scale"] = np.array([123.0], np.float32)
    return Parts(stored, (values / np.float64(number)).astype(np.float32))


@remembered
def modelopt_nvfp4(weight: np.ndarray, *, activations: bool = True) -> Parts:
    """As ModelOpt stores it: values are multiplied by ``weight_scale_2``."""
    factor = np.float32(np.abs(weight).max() / (448 * 6))
    packed, scales, values = _nvfp4(weight, factor)
    stored = {
        ".weight": packed,
        ".weight_scale": scales,
        ".weight_scale_2": np.array(factor),
    }
    if activations:
        stored[".input_scale"] = np.array(0.25, np.float32)
    return Parts(stored, (values * np.float64(factor)).astype(np.float32))


def _exponents(weight: np.ndarray, top: float) -> np.ndarray:
    return (np.ceil(np.log2(largest(weight, 32) / top)) + 127).astype(np.uint8)


@remembered
def mxfp8(weight: np.ndarray) -> Parts:
    exponents = _exponents(weight, 448)
    relative = weight / np.repeat(np.exp2(exponents - 127.0), 32, axis=1)
    codes = relative.astype(ml_dtypes.float8_e4m3fn)
    values = meaning(codes.view(np.uint8), 8, e4m3, exponents, e8m0)
    return Parts({".weight": codes, ".weight_scale": exponents}, values.astype(np.float32))


@remembered
def mxfp4(weight: np.ndarray) -> Parts:
    exponents = _exponents(weight, 6)
    packed = pack(nearest(weight, np.exp2(exponents - 127.0), e2m1, 16), 4)
    values = meaning(packed, 4, e2m1, exponents, e8m0)
    return Parts({".weight": packed, ".weight_scale": exponents}, values.astype(np.float32))


@remembered
def fp8(weight: np.ndarray) -> Parts:
    factor = np.float32(np.abs(weight).max() / 448)
    codes = (weight / factor).astype(ml_dtypes.float8_e4m3fn)
    table = np.array([e4m3(code) for code in range(256)])
    values = table[codes.view(np.uint8)] * np.float64(factor)
    stored = {".weight": codes, ".weight_scale": np.array(factor), ".input_scale": np.array(factor)}
    return Parts(stored, values.astype(np.float32))


def to_numpy(array: mx.array) -> np.ndarray:
    if array.dtype == mx.bfloat16:
        return np.array(array.view(mx.uint16)).view(ml_dtypes.bfloat16)
    return np.array(array)


@remembered
def mlx(
    weight: np.ndarray,
    *,
    group: int = 32,
    bits: int = 4,
    mode: str = "affine",
    dtype: mx.Dtype = mx.float32,
) -> Parts:
    """As MLX itself quantises and dequantises it; scales and biases in ``dtype``."""
    parts = mx.quantize(mx.array(weight).astype(dtype), group_size=group, bits=bits, mode=mode)
    floats = parts if mode != "affine" else (parts[0], *(p.astype(mx.float32) for p in parts[1:]))
    values = mx.dequantize(*floats, group_size=group, bits=bits, mode=mode, dtype=mx.float32)
    ends = (".weight", ".scales", ".biases")
    stored = {end: to_numpy(part) for end, part in zip(ends, parts, strict=False)}
    return Parts(stored, np.array(values))


NAMES = {
    "hf": hf_name,
    "bare": lambda name: hf_name(name).replace("model.language_model.", "model."),
    "raw": writers.raw_name,
    "packed": writers.raw_name,
    "mlx": lambda name: "language_model." + NAMES["bare"](name),
}
"""Layout -> stored name of a canonical tensor."""


def mlx_named(config: ModelConfig, weights: Weights) -> dict[str, np.ndarray]:
    return {NAMES["mlx"](name): values for name, values in weights.items()}


LAYOUTS = writers.LAYOUTS | {"mlx": (mlx_named, hf_config)}


class Checkpoint(NamedTuple):
    """Stored tensors, the configuration, and the canonical weights that they mean."""

    tensors: dict[str, np.ndarray]
    config: dict[str, Any]
    meant: dict[str, np.ndarray]

    def save(self, folder: Path) -> Path:
        """Write the folder, every tensor in its own type."""
        folder.mkdir(parents=True, exist_ok=True)
        stored = {name: np.ascontiguousarray(values) for name, values in self.tensors.items()}
        save_file(stored, folder / "model.safetensors")
        (folder / "config.json").write_text(json.dumps(self.config))
        write_side_files(folder)
        return folder


def quantised(
    layout: str,
    form: Callable[[str], Callable[[np.ndarray], Parts] | None],
    block: dict[str, Any],
    *,
    config: ModelConfig = CONFIG,
    key: str = "quantization_config",
) -> Checkpoint:
    """Random weights in ``layout``; ``form`` gives the format of a canonical tensor, or None.

    What is meant is quantised by itself, apart from the layout's order of rows.
    """
    weights = tiny_weights(config)
    write, describe = LAYOUTS[layout]
    formats = {NAMES[layout](name): form(name) for name in reversed(weights)}  # q after its gate
    tensors: dict[str, np.ndarray] = {}
    for name, values in write(config, weights).items():
        parts = formats[name](values).stored if formats[name] else {".weight": values}
        tensors |= {name.removesuffix(".weight") + end: part for end, part in parts.items()}
    chosen = {name: form(name) for name in weights}
    meant = {n: chosen[n](v).values if chosen[n] else v for n, v in weights.items()}
    return Checkpoint(tensors, describe(config) | {key: block}, meant)


def linears(name: str) -> bool:
    """Whether a canonical tensor is a matrix of a layer."""
    return name.startswith("layers.") and not name.endswith("norm")


def only_linears(form: Callable[[np.ndarray], Parts]) -> Callable[[str], Any]:
    return lambda name: form if linears(name) else None


def matrices(form: Callable[[np.ndarray], Parts]) -> Callable[[str], Any]:
    """All matrices, table and head included."""
    return lambda name: form if not name.endswith("norm") else None
