"""Which order a file is read in: what is declared counts, and doubt is an error."""

from __future__ import annotations

import numpy as np
import pytest

from atem.errors import OptionError, RopeUndecided
from atem.runtime.layouts import open_checkpoint
from atem.testing.tiny import hf_config, tiny_config, tiny_weights
from tests.runtime.layouts import writers

CONFIG = tiny_config()
WEIGHTS = tiny_weights(CONFIG)


def normalised(weights):
    table = weights["embed"]
    return dict(weights) | {"embed": table / np.sqrt(np.mean(table**2, axis=1, keepdims=True))}


@pytest.mark.parametrize("dtype", sorted(writers.DTYPES))
def test_a_normalised_table_leaves_the_order_undecided(tmp_path, dtype):
    tensors, _ = writers.old(CONFIG, WEIGHTS)
    writers.save(tmp_path, tensors, hf_config(CONFIG), dtype=dtype)
    with pytest.raises(RopeUndecided, match=r"rope_style='pairs'.*2026-08-06.*rope_style='half'"):
        open_checkpoint(tmp_path)


def test_a_few_rows_of_zeros_do_not_hide_an_old_export(tmp_path):
    tensors, _ = writers.old(CONFIG, WEIGHTS)
    tensors["model.language_model.embed_tokens.weight"][::4] = 0
    writers.save(tmp_path, tensors, hf_config(CONFIG))
    with pytest.raises(RopeUndecided):
        open_checkpoint(tmp_path)


def test_a_few_rows_of_unit_length_are_no_old_export(tmp_path):
    weights = dict(WEIGHTS)
    weights["embed"] = weights["embed"].copy()
    weights["embed"][::4] = normalised(WEIGHTS)["embed"][::4]
    writers.save(tmp_path, writers.hf(CONFIG, weights), hf_config(CONFIG))
    with open_checkpoint(tmp_path) as checkpoint:
        assert checkpoint.rope_style == "half"


@pytest.mark.parametrize("style", ["half", "pairs"])
def test_a_multimodal_export_is_read_as_it_is_told_to_be(tmp_path, style):
    tensors = writers.hf(CONFIG, normalised(WEIGHTS), style)
    writers.save(tmp_path, tensors, hf_config(CONFIG))
    with open_checkpoint(tmp_path, rope_style=style) as checkpoint:
        assert any("rope_style" in note for note in checkpoint.notes)
        np.testing.assert_array_equal(checkpoint.read("layers.0.q"), WEIGHTS["layers.0.q"])


def test_a_bare_export_of_a_normalised_table_is_undecided(tmp_path):
    tensors = writers.bare(CONFIG, normalised(WEIGHTS), "pairs")
    writers.save(tmp_path, tensors, hf_config(CONFIG))
    with pytest.raises(RopeUndecided):
        open_checkpoint(tmp_path)
    with open_checkpoint(tmp_path, rope_style="pairs") as checkpoint:
        np.testing.assert_array_equal(checkpoint.read("layers.0.k"), WEIGHTS["layers.0.k"])


def test_an_order_that_the_layout_does_not_have_is_refused(tmp_path):
    writers.save(tmp_path, writers.bare(CONFIG, WEIGHTS), hf_config(CONFIG))
    with pytest.raises(OptionError, match="'half'"):
        open_checkpoint(tmp_path, rope_style="pairs")


@pytest.mark.parametrize("layout", ["raw", "packed"])
@pytest.mark.parametrize("declared", [False, True])
def test_an_order_that_the_configuration_contradicts_is_refused(tmp_path, layout, declared):
    write, config = writers.LAYOUTS[layout]
    writers.save(tmp_path, write(CONFIG, WEIGHTS), config(CONFIG, rope_is_neox_style=declared))
    with pytest.raises(OptionError, match="rope_is_neox_style"):
        open_checkpoint(tmp_path, rope_style="pairs" if declared else "half")


@pytest.mark.parametrize("layout", ["raw", "packed"])
def test_an_undeclared_order_is_pairs_unless_told(tmp_path, layout):
    write, config = writers.LAYOUTS[layout]
    writers.save(tmp_path, write(CONFIG, WEIGHTS), config(CONFIG, rope_is_neox_style=None))
    with open_checkpoint(tmp_path) as checkpoint:
        assert (checkpoint.rope_style, checkpoint.notes) == ("pairs", ())
    with open_checkpoint(tmp_path, rope_style="half") as checkpoint:
        assert checkpoint.rope_style == "half"
        assert any("rope_style" in note for note in checkpoint.notes)


def mlx(config, weights):
    return {f"language_model.{name}": v for name, v in writers.bare(config, weights).items()}


WRITERS = writers.LAYOUTS | {"mlx": (mlx, hf_config)}

RULES = [
    # layout, what the file says, and what comes of no option, of "half" and of "pairs"
    *((layout, True, "half", "half", OptionError) for layout in ("raw", "packed")),
    *((layout, False, "pairs", OptionError, "pairs") for layout in ("raw", "packed")),
    *((layout, None, "pairs", "half", "pairs") for layout in ("raw", "packed")),
    *((layout, "doubt", RopeUndecided, "half", "pairs") for layout in ("hf", "mlx", "bare")),
    *((layout, "no doubt", "half", "half", OptionError) for layout in ("mlx", "bare")),
    ("hf", "no doubt", "half", "half", "pairs"),
]


@pytest.mark.parametrize("given", [None, "half", "pairs"])
@pytest.mark.parametrize("rule", RULES, ids=lambda rule: f"{rule[0]}-{rule[1]}")
def test_file_and_option_together_give_one_order_or_an_error(tmp_path, rule, given):
    layout, says, *expected = rule
    write, config = WRITERS[layout]
    flat = {} if isinstance(says, str) else {"rope_is_neox_style": says}
    weights = normalised(WEIGHTS) if says == "doubt" else WEIGHTS
    writers.save(tmp_path, write(CONFIG, weights), config(CONFIG, **flat))
    wanted = expected[(None, "half", "pairs").index(given)]
    if isinstance(wanted, str):
        with open_checkpoint(tmp_path, rope_style=given) as checkpoint:
            assert (checkpoint.layout, checkpoint.rope_style) == (layout, wanted)
    else:
        with pytest.raises(wanted):
            open_checkpoint(tmp_path, rope_style=given)


def test_a_style_that_does_not_exist_is_refused(tmp_path):
    with pytest.raises(OptionError, match="'neox'"):
        open_checkpoint(tmp_path, rope_style="neox")
