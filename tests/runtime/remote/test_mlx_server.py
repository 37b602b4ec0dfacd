"""mlx_lm's own server, with a tiny checkpoint: what it says is what the model says."""

from __future__ import annotations

import contextlib
import os
import socket
import subprocess
import sys
import time

import pytest

from atem.engine import GREEDY, Request
from atem.errors import RemoteError
from atem.render import Segment
from atem.render.prompt import Prompt
from atem.testing.tiny import tiny_checkpoint, tiny_config, tiny_tokenizer, tiny_weights
from tests.runtime.remote.asking import engine, text_of

pytest.importorskip("mlx_lm", reason="mlx_lm is installed on Linux x86_64 alone")
pytestmark = pytest.mark.slow
LIMIT = 12
# mlx_lm counts the pattern of layers from the front: the same in four layers.
CONFIG = tiny_config(num_hidden_layers=4)


def free_port():
    with socket.create_server(("127.0.0.1", 0)) as listening:
        return listening.getsockname()[1]


@pytest.fixture(scope="module")
def url(tmp_path_factory):
    folder = tiny_checkpoint(tmp_path_factory.mktemp("tiny"), config=CONFIG)
    port = free_port()
    command = [
        sys.executable,
        "-m",
        "mlx_lm",
        "server",
        "--model",
        str(folder),
        "--port",
        str(port),
    ]
    hub = {"HF_HUB_OFFLINE": "1", "HF_HUB_CACHE": str(tmp_path_factory.mktemp("hub"))}
    process = subprocess.Popen(
        command, env=os.environ | hub, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
    )
    try:
        _wait_for(port, process)
        yield f"http://127.0.0.1:{port}"
    finally:
        process.kill()
        process.wait(10)


def _wait_for(port, process):
    until = time.monotonic() + 50
    while time.monotonic() < until and process.poll() is None:
        with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", port)):
            return
        time.sleep(0.1)
    pytest.fail("mlx_lm.server doesn't start")


def prompt_of(question):
    return Prompt(
        (
            Segment("<|begin_of_text|>", "control"),
            Segment("<|start|>", "control"),
            Segment("user"),
            Segment("<|message|>", "control"),
            Segment(question),
            Segment("<|eot|>", "control"),
        )
    )


def continued(prompt):
    """What transformers' model writes, with greedy choices, and its text."""
    from tests.runtime.oracle import oracle, oracle_logits

    tokenizer = tiny_tokenizer()
    model = oracle(CONFIG, tiny_weights(CONFIG))
    ids = prompt.token_ids(tokenizer)
    start = len(ids)
    for _ in range(LIMIT):
        ids.append(int(oracle_logits(model, ids)[-1].argmax()))
    return tokenizer.decode(ids[start:], skip_special_tokens=False)


def test_it_is_recognised_keeps_special_tokens_and_begins_no_prompt_itself(url):
    with engine(url, tokenizer=tiny_tokenizer()) as remote:
        found = remote.probe
    assert (found.server, found.form, found.prompt, found.answer) == (
        "mlx",
        "completions",
        "text",
        "text",
    )
    assert found.adds_begin is False


@pytest.mark.parametrize("question", ["When?", "Where is it?", "to user self"])
def test_its_greedy_text_is_that_of_the_model(url, question):
    prompt = prompt_of(question)
    with engine(url, tokenizer=tiny_tokenizer()) as remote:
        steps = list(remote.generate(Request(prompt, GREEDY, max_tokens=LIMIT)))
    # It writes "!" for ids without a token, of which the tiny vocabulary has a few.
    assert text_of(steps).replace("!", "") == continued(prompt)
    assert steps[-1].finish == "length"


def test_what_it_refuses_is_reported_in_its_words(url):
    with pytest.raises(RemoteError, match=r"HTTP 404: .*check url= and model="):
        engine(url, tokenizer=tiny_tokenizer(), model="no/such-model").__enter__()
