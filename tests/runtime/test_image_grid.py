"""How many tokens an image takes, compared with the model's own processor."""

from __future__ import annotations

import ast
import itertools
import math
from importlib.util import find_spec
from pathlib import Path

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from atem.runtime.image_grid import SIDE, image_grid, image_tokens

PROCESSOR = "models/muse_glimmer/image_processing_muse_glimmer.py"
SIZES = st.integers(1, 9000)


def _theirs():
    """transformers' function, without the torchvision that its module wants."""
    text = (Path(find_spec("transformers").origin).parent / PROCESSOR).read_text()
    (function,) = (
        node for node in ast.parse(text).body if getattr(node, "name", "") == "smart_resize"
    )
    names = {"itertools": itertools, "math": math}
    exec(compile(ast.Module([function], []), PROCESSOR, "exec"), names)
    return names["smart_resize"]


resized = _theirs()


@given(SIZES, SIZES, st.sampled_from([144, 4096]))
@example(143, 153, 144)
@example(58, 62, 144)
@example(546, 28, 144)
@example(1, 9000, 144)
def test_the_grid_is_that_of_the_models_processor(height, width, most):
    rows, columns = image_grid(height, width, most)
    assert (rows * SIDE, columns * SIDE) == resized(height, width, SIDE, most)


@pytest.mark.parametrize(
    ("size", "pixels"),
    [((143, 153), (168, 168)), ((104, 108), (112, 112)), ((805, 770), (336, 308)), ((3842, 2034), (448, 224))],
)  # fmt: skip
def test_known_sizes(size, pixels):
    rows, columns = image_grid(*size, most=144)
    assert (rows * SIDE, columns * SIDE) == pixels


def test_an_image_counts_its_grid_and_the_two_tokens_around_it():
    assert image_tokens(28, 56) == 4
    assert image_tokens(4000, 4000) == 4096 + 2
