"""Pipes that stay open, readers that leave, Ctrl-C: the command as one process among others."""

from __future__ import annotations

import json
import os
import select
import signal
import socket
import subprocess
import time
from pathlib import Path

import pytest

from tests.cli.process import ATEM, THOUGHT, TURN, atem, call, environment, lines, started

PATIENCE = 20  # seconds for what takes a fraction of one


def next_line(process):
    ready, _, _ = select.select([process.stdout], [], [], PATIENCE)
    assert ready, "nothing came"
    return json.loads(process.stdout.readline())


@pytest.fixture
def running(tools):
    """A parse that waits for its input."""
    with started("parse", "-", "--tools", tools) as process:
        yield process
        process.kill()


def test_a_line_comes_out_while_the_pipe_is_open(running):
    running.stdin.write(b" to=self<|message|>Look")
    assert next_line(running)["type"] == "message_start"
    assert next_line(running) == {"type": "reasoning_delta", "text": "Look", "span": [19, 23]}
    running.stdin.write(b" ahead")
    assert next_line(running)["text"] == " ahead"


def test_a_call_streams_while_the_pipe_is_open_and_ends_with_its_message(running):
    text = " to=read_file<|message|>" + call("some/long/path/of/a/file.txt") + "<|eot|>"
    head, tail = text[:130].encode(), text[130:].encode()
    running.stdin.write(head)
    kinds = [next_line(running)["type"] for _ in range(3)]
    assert kinds == ["message_start", "call_start", "arguments_delta"]
    running.stdin.write(tail)
    running.stdin.close()
    rest = [json.loads(line)["type"] for line in running.stdout.read().splitlines()]
    assert rest[-3:] == ["call_end", "message_end", "turn_end"]


def test_half_a_character_waits_for_its_other_half(running):
    text = " to=user<|message|>世".encode()
    running.stdin.write(text[:-1])
    assert next_line(running)["type"] == "message_start"
    assert not select.select([running.stdout], [], [], 0.3)[0]
    running.stdin.write(text[-1:])
    assert next_line(running)["text"] == "世"


def test_a_named_pipe_is_read_as_it_arrives(tmp_path):
    os.mkfifo(tmp_path / "pipe")
    with (
        started("parse", str(tmp_path / "pipe")) as process,
        (tmp_path / "pipe").open("wb", 0) as pipe,
    ):
        pipe.write(b"to=user<|message|>Hello")
        assert [next_line(process)["type"] for _ in range(2)] == ["message_start", "content_delta"]
        process.kill()


def test_input_that_does_not_block_is_waited_for():
    ours, theirs = socket.socketpair()
    theirs.settimeout(0)  # does not block
    with ours, theirs, subprocess.Popen(
        [*ATEM, "parse"], bufsize=0, env=environment(), stdin=theirs, stdout=subprocess.PIPE
    ) as process:  # fmt: skip
        ours.sendall(b"to=user<|message|>Hello")
        assert [next_line(process)["type"] for _ in range(2)] == ["message_start", "content_delta"]
        time.sleep(0.2)
        ours.sendall(b" again")
        assert next_line(process)["text"] == " again"
        process.kill()


def test_control_c_ends_with_130_and_keeps_the_lines_that_were_printed(running):
    running.stdin.write(THOUGHT.encode())
    assert next_line(running)["type"] == "message_start"
    running.send_signal(signal.SIGINT)
    assert running.wait(PATIENCE) == 130
    assert b"Traceback" not in running.stderr.read()


@pytest.mark.parametrize("command", [["parse", "--turn"], ["inspect"], ["render"]])
def test_control_c_ends_every_command_with_130(command):
    with started(*command) as process:
        time.sleep(1)  # until it reads; nothing tells
        process.send_signal(signal.SIGINT)
        assert process.wait(PATIENCE) == 130
        assert process.stdout.read() == b""
        assert not process.stderr.read().strip()


def test_a_reader_that_leaves_ends_the_command_quietly(running):
    running.stdin.write(b"to=user<|message|>Hello")
    next_line(running)
    running.stdout.close()
    running.stdin.write(b" again")
    running.stdin.close()
    assert running.wait(PATIENCE) == 141
    assert running.stderr.read() == b""


@pytest.mark.parametrize("command", ["parse", "parse --turn", "inspect", "render --segments"])
def test_head_is_a_good_neighbour(command, tmp_path):
    big = json.dumps([{"role": "user", "content": "word\n" * 100_000}])
    (tmp_path / "big").write_text(big, encoding="utf-8")
    line = f'{" ".join(ATEM)} {command} "{tmp_path}/big" --chunk 999 | head -c 20'
    line = line if command.startswith("parse") else line.replace("--chunk 999", "")
    run = subprocess.run(
        ["bash", "-c", f'{line}; echo " ${{PIPESTATUS[0]}}"'],
        capture_output=True,
        check=True,
        env=environment(),
    )
    assert run.stdout.endswith(b" 141\n")
    assert run.stderr == b""


@pytest.mark.parametrize("extra", [{}, {"PYTHONUNBUFFERED": "1"}], ids=["buffered", "unbuffered"])
def test_long_output_arrives_whole(extra):
    (turn,) = lines(
        atem("parse", "--turn", data=" to=user<|message|>" + "word " * 200_000, **extra)
    )
    assert turn["content"] == "word " * 200_000


def test_output_that_does_not_block_is_waited_for():
    ours, theirs = socket.socketpair()
    theirs.settimeout(0)  # does not block
    with ours, subprocess.Popen(
        [*ATEM, "parse", "--turn"], env=environment(), stdin=subprocess.PIPE, stdout=theirs
    ) as process:  # fmt: skip
        theirs.close()
        process.stdin.write(b" to=user<|message|>" + b"word " * 400_000)
        process.stdin.close()
        time.sleep(1)  # until the socket is full
        with ours.makefile("rb") as output:
            assert json.loads(output.read())["content"] == "word " * 400_000


def test_a_delay_spreads_the_lines_of_a_saved_turn(tmp_path):
    path = tmp_path / "turn.atem"
    path.write_text(TURN, encoding="utf-8")
    began = time.monotonic()
    run = atem("parse", str(path), "--stream-delay", "0.05", "--chunk", "20")
    assert time.monotonic() - began >= 0.05 * (len(TURN) // 20)
    assert len(lines(run)) > len(lines(atem("parse", str(path))))


def test_a_delay_alone_makes_small_pieces(tmp_path):
    path = tmp_path / "turn.atem"
    path.write_text(" to=user<|message|>" + "word " * 20, encoding="utf-8")
    found = lines(atem("parse", str(path), "--stream-delay", "0"))
    assert len(found) > 7


@pytest.mark.parametrize("command", ["parse", "inspect"])
def test_the_turn_may_come_from_a_file_or_standard_input(command, tmp_path):
    path = tmp_path / "turn.atem"
    path.write_text(" to=user<|message|>Hello<|eot|>", encoding="utf-8")
    by_name = atem(command, str(path))
    by_pipe = [atem(command, *name, data=path.read_bytes()) for name in ([], ["-"])]
    assert by_name.returncode == 0
    assert [run.stdout for run in by_pipe] == [by_name.stdout] * 2


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="needs a device that is always full")
def test_output_that_cannot_be_written_is_one_complaint():
    run = subprocess.run(
        ["bash", "-c", f"{' '.join(ATEM)} parse > /dev/full"],
        capture_output=True, check=False, env=environment(), input=b"text",
    )  # fmt: skip
    assert run.returncode == 2
    assert run.stderr == b"atem: standard output: No space left on device\n"


@pytest.mark.parametrize(
    ("closing", "name"), [("<&-", b"-: standard input"), (">&-", b"standard output")]
)
def test_a_closed_stream_is_one_complaint(closing, name):
    run = subprocess.run(
        ["bash", "-c", f"{' '.join(ATEM)} parse {closing}"],
        capture_output=True, check=False, env=environment(), input=b"text",
    )  # fmt: skip
    assert (run.returncode, run.stderr) == (2, b"atem: " + name + b" is closed\n")
