"""The command atem-serve as a process: how it starts, what it refuses, how it ends."""

from __future__ import annotations

import re
import signal
import socket
import sys
import threading

import httpx2
import pytest

from atem.cli.serve import main
from atem.server.settings import NO_FLAG, options
from tests.server.process import Process
from tests.server.running import wait

SCRIPT = """
tokens_per_second = 40
[[turns]]
last = "long"
write = " to=user<|message|>{}<|eot|>"
[[turns]]
write = " to=user<|message|>Hello there.<|eot|>"
""".format("word " * 500)


@pytest.fixture
def script(tmp_path):
    path = tmp_path / "script.toml"
    path.write_text(SCRIPT)
    return ["--engine", f"scripted:{path}", "--store-path", str(tmp_path / "s.db")]


def create(url, said="Hi", **fields):
    body = {"model": "scripted", "input": said, **fields}
    return httpx2.post(f"{url}/responses", json=body, timeout=20)


@pytest.mark.slow
def test_it_serves_finishes_what_runs_at_sigterm_and_ends_with_0(script):
    with Process(*script) as served:
        answers = []
        asking = threading.Thread(target=lambda: answers.append(create(served.url)))
        asking.start()
        ready = served.url.replace("/v1", "/ready")
        while httpx2.get(ready).json()["running"] == 0 and not answers:
            pass
        assert served.end() == 0
        asking.join()
    assert answers[0].json()["output"][0]["content"][0]["text"] == "Hello there."


@pytest.mark.slow
def test_a_response_outlives_the_process_and_one_that_ran_has_failed(script):
    soon = [*script, "--lease-seconds", "1"]
    with Process(*soon, "--drain-seconds", "0") as served:
        done = create(served.url).json()["id"]
        running = create(served.url, "long", background=True).json()["id"]
        assert served.end(signal.SIGKILL) != 0
    with Process(*soon) as served:
        assert httpx2.get(f"{served.url}/responses/{done}").json()["status"] == "completed"
        left = f"{served.url}/responses/{running}"
        assert wait(lambda: httpx2.get(left).json()["error"])
        failed = httpx2.get(left).json()
        assert (failed["status"], failed["error"]["code"]) == ("failed", "server_error")
        assert create(served.url, previous_response_id=done).status_code == 200


@pytest.mark.slow
def test_a_second_ctrl_c_ends_it_at_once(script):
    with Process(*script) as served:
        create(served.url, "long", background=True)
        served.process.send_signal(signal.SIGINT)
        while not any("ending; 1 responses" in line for line in served.lines):
            assert served.process.poll() is None
        assert served.end(signal.SIGINT) == 130


@pytest.mark.slow
def test_without_an_engine_it_is_nano_and_says_so():
    with Process(ATEM_SERVE_STORE="memory") as served:
        assert "no model was named, so this is nano" in "".join(served.lines)
        (model,) = httpx2.get(f"{served.url}/models").json()["data"]
        body = {"model": model["id"], "input": "hi", "max_output_tokens": 3}
        made = httpx2.post(f"{served.url}/responses", json=body, timeout=30).json()
        assert made["usage"]["output_tokens"] == 3
        assert made["temperature"] == 0


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["--host", "0.0.0.0"], "no API key"),
        (["--port", "many"], "--port: it is a whole number"),
        (["--heartbeat", "loud"], "Invalid value for '--heartbeat'"),
        (["--config", "/absent.toml"], "/absent.toml can't be read"),
        (["--engine", "scripted:/absent.toml"], "/absent.toml can't be read"),
        (["--store-path", "/dev/null/x"], "store_path"),
        (["--blob-key-file", "/dev/null"], "has 0 bytes; use 16 or more"),
        (["--blob-key-file", "/absent"], "can't be used"),
        (["--api-key", "a-key-of-mine"], "No such option"),
        (["--form", "chat"], "form is for a server as the engine"),
        (["--form", "raw"], "Invalid value for '--form'"),
        (["--timeout", "5"], "timeout is for a server as the engine"),
        (["--timeout", "0"], "timeout=0.0; it is from 0.05"),
        (["--retries", "0"], "retries is for a server as the engine"),
        (["--retries", "-1"], "retries=-1; it is from 0"),
    ],
)
def test_what_can_not_work_is_told_in_one_line(script, capfd, arguments, said):
    assert main([*script, *arguments]) == 2
    (line,) = capfd.readouterr().err.splitlines()
    assert line.startswith("atem-serve: ")
    assert said in line


@pytest.mark.parametrize(
    "arguments",
    [
        ["--store", "postgres", "--store-url", "db:5432"],
        ["--store", "redis", "--store-url", "cache"],
        ["--store-path", "/dev/null/x"],
        ["--blob-key-file", "/absent"],
    ],
)
def test_what_can_not_work_is_refused_before_a_model_is_loaded(capfd, arguments):
    assert main(["--engine", "/no/model/here", *arguments]) == 2
    assert "/no/model/here" not in capfd.readouterr().err


@pytest.mark.parametrize("flags", [["--form", "auto"], ["--timeout", "5"], ["--retries", "0"]])
def test_a_checkpoint_has_no_option_of_a_server_either(capfd, flags):
    assert main(["--engine", "nano", "--store", "memory", *flags]) == 2
    assert f"{flags[0][2:]}: no option of" in capfd.readouterr().err


@pytest.mark.slow
def test_the_log_begins_with_where_responses_are_kept_and_the_names_that_it_answers_to(script):
    with Process(*script, "--model-name", "muse", "--model-name", "gpt-*") as served:
        kept, names = served.lines
        assert f"responses are kept in {script[-1]}, for 30 days" in kept
        assert "muse, gpt-* on http://127.0.0.1:" in names


def test_a_script_without_numpy_names_the_extra(script, capfd, monkeypatch):
    for name in ("numpy", "atem.testing.scripted", "atem.testing.script_file"):
        monkeypatch.setitem(sys.modules, name, None)
    assert main(script) == 2
    assert "pip install 'muse-atem[engine]'" in capfd.readouterr().err


def test_an_address_that_is_taken_is_told_in_one_line(script, capfd):
    with socket.create_server(("127.0.0.1", 0)) as taken:
        assert main([*script, "--port", str(taken.getsockname()[1])]) == 2
    said = capfd.readouterr().err
    assert "can't listen on 127.0.0.1" in said
    assert "choose another with --port" in said


def test_every_option_is_a_flag_and_is_told_with_its_default(capfd):
    assert main(["--help"]) == 0
    text = " ".join(capfd.readouterr().out.split())
    for option in options():
        told = re.search(rf"{option.flag}[ /]", text) is not None
        assert told is (option.name not in NO_FLAG), option.name
    assert "[in_progress]" in text
    assert "Exit codes:" in text
