"""Opening reads headers, reading reads one tensor: nothing else is looked at or held."""

from __future__ import annotations

import subprocess
import sys
import tracemalloc
from contextlib import contextmanager
from dataclasses import replace

import numpy as np
import pytest

from atem.errors import CheckpointError
from atem.runtime import gate
from atem.runtime.layouts import open_checkpoint
from atem.runtime.layouts.mapped import Mapped
from atem.runtime.layouts.reading import CHUNK
from atem.testing.tiny import hf_config, tiny_checkpoint, tiny_config, tiny_weights
from tests.runtime.layouts import writers

CONFIG = tiny_config(hidden_size=512, intermediate_size=2048, num_hidden_layers=2)
"""Its FFN matrices have a million values each."""


@pytest.fixture(scope="module", params=sorted(writers.LAYOUTS))
def folder(request, tmp_path_factory):
    write, config = writers.LAYOUTS[request.param]
    tensors = write(CONFIG, tiny_weights(CONFIG))
    return writers.save(tmp_path_factory.mktemp("wide"), tensors, config(CONFIG), dtype="bfloat16")


@contextmanager
def peak():
    """Bytes that Python and NumPy had at most; mapped pages are not among them."""
    found = []
    tracemalloc.start()
    try:
        yield found
        found.append(tracemalloc.get_traced_memory()[1])
    finally:
        tracemalloc.stop()


@contextmanager
def looked_at(monkeypatch):
    """Names of the stored tensors whose values were asked for."""
    names = []
    tensor = Mapped.tensor

    def watched(file, name, *place):
        found = tensor(file, name, *place)
        return replace(found, array=lambda: names.append(name) or found.array())

    with monkeypatch.context() as patch:
        patch.setattr(Mapped, "tensor", watched)
        yield names


def test_opening_looks_at_no_tensor_but_rows_of_the_table(folder, monkeypatch):
    with looked_at(monkeypatch) as names, open_checkpoint(folder):
        assert all("embed_tokens" in name for name in names)


def test_opening_reads_no_json_file_twice(tmp_path, monkeypatch):
    config = tiny_config()
    tensors = writers.hf(config, tiny_weights(config))
    writers.save(tmp_path, tensors, hf_config(config), shards=2)
    (tmp_path / "hf_quant_config.json").write_text('{"quantization": {"quant_algo": "NVFP4"}}')
    names, read = [], gate.read_json_object
    monkeypatch.setattr(gate, "read_json_object", lambda p: names.append(p.name) or read(p))
    open_checkpoint(tmp_path).close()
    assert sorted(names) == sorted(p.name for p in tmp_path.glob("*.json") if p.stem != "tokenizer")


def test_opening_holds_no_weights(folder):
    with open_checkpoint(folder):  # imports are done
        pass
    with peak() as held, open_checkpoint(folder):
        pass
    assert held[0] < 1 << 20


def test_opening_a_wide_table_holds_no_more_than_a_few_rows(tmp_path):
    config = tiny_config(
        hidden_size=1 << 15, intermediate_size=1, num_hidden_layers=1, num_attention_heads=1,
        num_key_value_heads=1, head_dim=2, tie_word_embeddings=True,
    )  # fmt: skip
    tiny_checkpoint(tmp_path, config=config, dtype="bfloat16")
    with peak() as held, open_checkpoint(tmp_path):
        pass
    assert held[0] < 8 * (8 << 15)  # of the 64 rows that are looked at


def test_reading_a_tensor_looks_at_no_other(folder, monkeypatch):
    with looked_at(monkeypatch) as names, open_checkpoint(folder) as checkpoint:
        names.clear()
        checkpoint.read("layers.1.ffn_up")
        assert [name.partition("layers.")[2] for name in names] == ["1.mlp.up_proj.weight"]


def test_reading_a_tensor_holds_little_more_than_it(folder):
    with open_checkpoint(folder) as checkpoint, peak() as held:
        values = checkpoint.read("layers.1.ffn_up")
    assert values.nbytes == 2 * 512 * 2048
    assert held[0] < values.nbytes + 4 * CHUNK + (1 << 18)


def test_reading_rows_holds_these_rows(folder):
    with open_checkpoint(folder) as checkpoint, peak() as held:
        checkpoint.rows("layers.1.ffn_up", [3, 1000])
    assert held[0] < 1 << 18


def test_what_was_read_outlives_the_checkpoint_and_is_the_readers_own(folder):
    with open_checkpoint(folder) as checkpoint:
        values = checkpoint.read("embed")
        values[0] = 0
        assert checkpoint.read("embed")[0].any()
    assert np.isfinite(values.astype(np.float32)).all()


def test_a_closed_checkpoint_reads_nothing(folder):
    checkpoint = open_checkpoint(folder)
    checkpoint.close()
    checkpoint.close()
    with pytest.raises(CheckpointError, match="closed"):
        checkpoint.read("embed")


BARE = """
import sys
sys.modules.update(dict.fromkeys(("numpy", "ml_dtypes")))  # as if not installed
from atem.errors import MissingExtra
from atem.runtime.layouts import open_checkpoint
try:
    open_checkpoint(".")
except MissingExtra as error:
    print(error)
"""


def test_without_numpy_the_error_is_the_line_that_installs_it():
    ran = subprocess.run([sys.executable, "-c", BARE], capture_output=True, text=True, check=True)
    assert "pip install 'muse-atem[engine]'" in ran.stdout
