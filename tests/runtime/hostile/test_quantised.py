"""Whatever a file says of its quantisation: a codec of finite values, or a CheckpointError."""

from __future__ import annotations

from functools import cache
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from atem.errors import CheckpointError
from atem.runtime.checkpoint import SideFiles
from atem.runtime.layouts.quantised import METHODS, quantisation
from atem.runtime.layouts.source import NUMPY, Source, StoredTensor

WORDS = (
    "bits group_size mode quant_algo quantized_layers config_groups format weights producer num_bits"
    " global_quant_config layer_quant_config weight transform_config sparsity_config"
).split()
VALUES = [
    "affine", "nvfp4", "mxfp8", "NVFP4", "FP8", "MIXED_PRECISION", "nvfp4-pack-quantized", "fp4",
    0, -1, 2, 4, 8, 16, 32, 64, 10**400, True, False, None, 1.5, "",
]  # fmt: skip
JSON = st.recursive(
    st.sampled_from(VALUES),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(st.sampled_from([*WORDS, "m"]), inner, max_size=4)
    ),
    max_leaves=12,
)
BLOCKS = st.dictionaries(st.sampled_from([*WORDS, "m"]), JSON, max_size=5)

GOOD = {
    "mlx": {"bits": 4, "group_size": 32},
    "compressed-tensors": {"format": "nvfp4-pack-quantized"},
    "modelopt": {},
    "quark": {
        "global_quant_config": {
            "weight": {"dtype": "fp4", "group_size": 32, "scale_format": "e8m0"}
        }
    },
}
"""Blocks that describe :data:`MODULES`."""

MODULES = [
    ("mlx", {"weight": ("U32", (4, 8)), "scales": ("BF16", (4, 2)), "biases": ("BF16", (4, 2))}),
    ("compressed-tensors", {
        "weight_packed": ("U8", (4, 32)), "weight_scale": ("F8_E4M3", (4, 4)), "weight_global_scale": ("F32", (1,)),
    }),
    ("modelopt", {"weight": ("U8", (4, 32)), "weight_scale": ("F8_E4M3", (4, 4)), "weight_scale_2": ("F32", ())}),
    ("modelopt", {"weight": ("F8_E4M3", (4, 64)), "weight_scale": ("U8", (4, 2))}),
    ("modelopt", {"weight": ("F8_E4M3", (4, 64)), "weight_scale": ("F32", ())}),
    ("quark", {"weight": ("U8", (4, 32)), "weight_scale": ("U8", (4, 2))}),
]  # fmt: skip
"""Methods, and the parts of a well-formed module [4, 64]: type and shape."""

DTYPES = st.sampled_from(["U8", "U32", "F8_E4M3", "F8_E8M0", "F16", "BF16", "F32", "I8"])
SHAPES = st.lists(st.sampled_from([0, 1, 2, 4, 8, 32, 64]), max_size=3).map(tuple)
CHANGES = st.dictionaries(
    st.sampled_from(["weight", "weight_scale", "scales", "biases", "input_scale", "other"]),
    st.none() | st.tuples(DTYPES, SHAPES),
    max_size=1,
)
"""A part that is missing, or of another type and shape, or too many."""


@cache
def empty(folder=Path(__file__).parent):
    """A folder to be named in messages; nothing is read from it."""
    return folder.resolve()


def source(config, stored=()):
    return Source(empty(), empty(), config, SideFiles(), {t.name: t for t in stored})


def stored(part, dtype, shape, random):
    kind = np.dtype(NUMPY[dtype])
    size = int(np.prod(shape)) * kind.itemsize
    array = np.frombuffer(random.bytes(size), kind).reshape(shape)
    return StoredTensor(f"m.{part}", dtype, shape, size, empty() / "file", lambda: array)


@pytest.mark.parametrize("method", METHODS)
@given(BLOCKS)
def test_any_block_is_read_or_refused(method, block):
    key = {} if method == "mlx" else {"quant_method": method}
    for name in ("quantization", "quantization_config"):
        try:
            found = quantisation(source({name: key | block}))
        except CheckpointError:
            continue
        assert found.codec(source({}), "m") is None


@pytest.mark.parametrize(("method", "module"), MODULES)
@given(changes=CHANGES, seed=st.integers(0, 2**32 - 1))
def test_any_parts_are_read_as_finite_values_or_refused(method, module, changes, seed):
    random = np.random.default_rng(seed)
    parts = {part: form for part, form in (module | changes).items() if form is not None}
    block = GOOD[method] | ({} if method == "mlx" else {"quant_method": method})
    stored_parts = [stored(part, *form, random) for part, form in parts.items()]
    behind = source({"quantization_config": block}, stored_parts)
    try:
        codec = quantisation(behind).codec(behind, "m")
        values = codec.read()
    except CheckpointError:
        return
    assert values.shape == codec.shape
    if codec.encoding not in {"F32", "F16", "BF16"}:  # whose values the checkpoint looks at
        assert np.isfinite(values).all()
