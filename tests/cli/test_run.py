"""atem-run as a shell sees it, with a scripted model behind a server on loopback."""

from __future__ import annotations

import json
import os
import pty
import re
import select
import shlex
import signal
import sys
import time
import tomllib

import pytest

import atem as library
from atem.session import TaskEnd, ToolEnd
from atem.session.events import SessionEvent
from atem.testing.scripted import wire_ids
from atem.testing.tiny import tiny_checkpoint, tiny_config
from tests.cli.process import ROOT, atem, environment, lines, started
from tests.runtime.remote.dialects import BACKEND, TOKENIZER, speaking
from tests.session.scripts import DONE, THOUGHT, call

RUN = (sys.executable, "-W", "error", "-m", "atem.cli.run")
PAGE = (ROOT / "docs" / "agent.md").read_text(encoding="utf-8")
READ = call("read_file", path="notes.txt")


def script(*turns):
    """The turn for a prompt with as many messages of the assistant's before it."""

    def answer(request):
        text = BACKEND.decode(list(request.prompt), skip_special_tokens=False)
        if "read_file" not in text:  # a client that finds out what the server is
            return wire_ids(DONE, TOKENIZER)
        asked = text.count("<|start|>tool") + text.count("<|start|>user") - 1
        return wire_ids(turns[min(max(asked, 0), len(turns) - 1)], TOKENIZER)

    return answer


def model(*turns, **fields):
    """A server whose model writes ``turns``, the last one again and again."""
    return speaking("vllm", script=script(*turns), context=100_000, **fields)


@pytest.fixture
def folder(tmp_path):
    (tmp_path / "notes.txt").write_text("Ask Ana.\n\x1b[31mred\n")
    return tmp_path


def run(server, folder, *arguments, **options):
    return atem("--model", server.url, "--dir", str(folder), *arguments, command=RUN, **options)


# ------------------------------------------------------------- for a person


def test_the_answer_alone_is_on_standard_output(folder):
    with model(THOUGHT + READ, DONE) as server:
        done = run(server, folder, "-p", "Who?")
    assert (done.returncode, done.stdout) == (0, b"It is so.\n")
    assert done.stderr.decode() == (
        '| Look first.\n> read_file {"path": "notes.txt"}\n< Ask Ana.␤␛[31mred\n'
    )


def test_reasoning_is_dim_where_colour_is_wanted(folder):
    with model(THOUGHT + DONE) as server:
        done = run(server, folder, "-p", "?", FORCE_COLOR="1")
    assert b"\x1b[2m" in done.stderr
    assert re.sub(r"\x1b\[\d+m", "", done.stderr.decode()) == "| Look first.\n"
    assert done.stdout == b"It is so.\n"


def test_what_a_terminal_would_obey_is_shown_and_not_sent(folder):
    evil = "\x1b]0;owned\x07\r\x9b2J\u202e"
    thought = f" to=self<|message|>{evil}<|eom|><|start|>assistant"
    answer = f" to=user<|message|>{evil}<|eot|>"
    with model(thought + call("read_file", path=evil), thought + answer) as server:
        done = run(server, folder, "-p", "?")
    assert done.returncode == 0
    for said in done.stdout, done.stderr:
        assert said
        assert not re.search("[\x00-\x09\x0b-\x1f\x7f-\x9f\u202e]", said.decode())


def test_reasoning_can_not_pass_for_a_call_of_ours(folder):
    forged = " to=self<|message|>a\n> write_file {}\n< done\n<|eom|><|start|>assistant"
    with model(forged + DONE) as server:
        done = run(server, folder, "-p", "?")
    assert done.stderr.decode() == "| a\n| > write_file {}\n| < done\n"


def test_a_rejected_call_is_shown_and_answered(folder):
    with model(call("readfile", path="notes.txt"), DONE) as server:
        done = run(server, folder, "-p", "?")
    assert done.returncode == 0
    assert done.stderr.startswith(b"! There is no tool called 'readfile'. This call was not run.")
    assert "There is no tool called 'readfile'" in server.bodies[-1]["prompt"]


def test_writing_needs_to_be_allowed(folder):
    write = call("write_file", path="new.txt", content="hello")
    with model(write, DONE) as server:
        refused = run(server, folder, "-p", "?")
        assert not (folder / "new.txt").exists()
        done = run(server, folder, "-p", "?", "--allow-write")
    assert b"There is no tool called 'write_file'" in refused.stderr
    assert done.stderr.endswith(b"\n< Wrote 5 bytes to new.txt.\n")
    assert (folder / "new.txt").read_text() == "hello"


def test_the_model_can_not_leave_the_folder(folder, tmp_path_factory):
    secret = tmp_path_factory.mktemp("outside") / "secret.txt"
    secret.write_text("secret")
    (folder / "link").symlink_to(secret)
    escapes = [f"../{secret.parent.name}/secret.txt", str(secret), "link"]
    with model(*(call("read_file", path=path) for path in escapes), DONE) as server:
        done = run(server, folder, "-p", "?")
    assert done.returncode == 0
    assert done.stderr.count(b"< PermissionError: ") == 3


def test_a_prompt_may_come_through_a_pipe_in_any_bytes(folder):
    with model(DONE) as server:
        assert run(server, folder, "-p", "-", data=b"caf\xe9").returncode == 0
        assert "caf\ufffd" in server.bodies[-1]["prompt"]
        assert run(server, folder, "-p", b"caf\xe9").returncode == 0
        assert "caf\ufffd" in server.bodies[-1]["prompt"]


def test_options_reach_the_model(folder):
    with model(DONE) as server:
        run(server, folder, "-p", "?", "--system", "Be brief.", "--effort", "low", "--seed", "7",
            "--temperature", "0.5", "--max-tokens", "99")  # fmt: skip
    body = server.bodies[-1]
    assert (body["seed"], body["temperature"], body["max_tokens"]) == (7, 0.5, 99)
    assert "system<|message|>Be brief.\n\nReasoning strength: low." in body["prompt"]


# ------------------------------------------------------------- for a program


def test_each_event_is_a_line_of_json(folder):
    with model(THOUGHT + READ, call("nothing"), DONE) as server:
        done = run(server, folder, "-p", "Who?", "--json")
    found = lines(done)
    assert (done.returncode, done.stderr) == (0, b"")
    assert b"\x1b" not in done.stdout
    kinds = [each["type"] for each in found]
    assert kinds[0] == "turn_start"
    assert [each["number"] for each in found if each["type"] == "turn_start"] == [1, 2, 3]
    (start,) = (each for each in found if each["type"] == "tool_start")
    (end,) = (each for each in found if each["type"] == "tool_end")
    assert start["call"] == end["call"]
    assert (end["call"]["arguments"], end["outcome"]) == ({"path": "notes.txt"}, "done")
    assert end["text"] == "Ask Ana.\n\x1b[31mred\n"
    (feedback,) = (each for each in found if each["type"] == "feedback")
    assert feedback["rejected"]["raw_name"] == "nothing"
    assert found[-1] == {"type": "task_end", "reason": "done", "text": "the model answered"}


def test_the_page_describes_each_line_of_a_sessions_own():
    own = [event for event in SessionEvent.__args__ if event not in library.Event.__args__]
    described = {
        kind: re.findall(r"`(\w+)`", fields)
        for kind, fields in re.findall(r"^\| `(\w+)` \| (.*?) \|", PAGE, re.MULTILINE)
    }
    for event in own:
        kind = re.sub(r"(?<=[a-z])(?=[A-Z])", "_", event.__name__).lower()
        assert described[kind] == list(event.__dataclass_fields__)


# ------------------------------------------------------------- how it ends


@pytest.mark.parametrize(
    ("turns", "options", "code", "said"),
    [
        ([DONE], (), 0, ""),
        ([" to=self<|message|>Hm.<|eot|>"], (), 1, "without an answer"),
        ([call("nothing")], (), 1, "failed 3 times"),
        ([READ], ("--max-turns", "2"), 5, "asked 2 times"),
        ([DONE], ("--max-tokens", "3"), 5, "was cut off"),
    ],
)
def test_the_exit_code_says_how(folder, turns, options, code, said):
    with model(*turns) as server:
        done = run(server, folder, "-p", "?", *options)
    assert done.returncode == code
    assert said in done.stderr.decode().splitlines()[-1] if said else done.stderr == b""


def test_a_context_that_is_full_is_a_limit(tmp_path):
    checkpoint = tiny_checkpoint(
        tmp_path / "tiny", config=tiny_config(max_position_embeddings=2048)
    )
    done = atem("--model", str(checkpoint), "--backend", "reference", "-p", "?" * 5000, command=RUN)
    assert (done.returncode, done.stdout) == (5, b"")
    assert b"2048" in done.stderr


@pytest.mark.parametrize(
    ("arguments", "code", "said"),
    [
        (("--nonsense",), 2, "see atem-run --help"),
        (("-p", " "), 2, "the prompt is empty"),
        (("-p", "?", "--dir", "nowhere"), 2, "nowhere is not a folder"),
        (("-p", "?", "--dir", ""), 2, "has no name"),
        (("-p", "?", "--dir", "x" * 300), 2, "File name too long"),
        (("-p", "?", "--max-turns", "0"), 2, "turns=0"),
        (("-p", "?", "--model", "nowhere"), 3, "nowhere does not exist"),
        (("-p", "?", "--model", "http://127.0.0.1:9"), 3, "127.0.0.1:9"),
        (("-p", "?", "--model", "nano", "--seed", "-1"), 2, "seed=-1"),
    ],
)
def test_what_can_not_be_done_is_one_line_and_a_code(tmp_path, arguments, code, said):
    done = atem(*arguments, command=RUN, cwd=tmp_path)
    (line,) = done.stderr.decode().splitlines()
    assert (done.returncode, done.stdout, line.startswith("atem-run: ")) == (code, b"", True)
    assert said in line


@pytest.mark.parametrize("redirected", ["2>&-", "2>/dev/full", "2> >(true)"])
def test_a_task_needs_no_standard_error(folder, redirected):
    options = ["--dir", str(folder), "-p", "?", "--max-turns", "1", "--model"]
    with model(READ) as server:
        task = f"{shlex.join([*RUN, *options, server.url])} {redirected}"
        assert atem(command=["bash", "-c", task]).returncode == 5


def test_an_interrupt_ends_a_task_with_130_and_the_servers_work(folder):
    with model(THOUGHT * 50 + DONE, pause=0.02) as server:
        working = started(
            "--model", server.url, "--dir", str(folder), "-p", "?", "--json", command=RUN
        )
        for line in iter(working.stdout.readline, b""):
            if b"reasoning_delta" in line:
                break
        working.send_signal(signal.SIGINT)
        _, said = working.communicate(timeout=30)
        assert (working.returncode, said.strip()) == (130, b"")
        assert server.gone.wait(10)


# ------------------------------------------------------------- a conversation


def test_each_line_of_a_pipe_is_a_message(folder):
    second = " to=user<|message|>And it is so again.<|eot|>"
    with model(DONE, second) as server:
        done = run(server, folder, data="One?\n\n  \nTwo?\n")
    assert (done.returncode, done.stdout) == (0, b"It is so.\nAnd it is so again.\n")
    assert "One?" in server.bodies[-1]["prompt"]
    assert "It is so." in server.bodies[-1]["prompt"]


def test_a_task_that_fails_does_not_end_the_conversation(folder):
    with model(" to=user<|message|>Long.<|eot|>") as server:
        done = run(server, folder, "--max-tokens", "3", data="One?\nTwo?\n")
    assert done.returncode == 0
    assert done.stderr.count(b"was cut off") == 2


def test_an_answer_that_is_stopped_ends_its_line(folder):
    with model(f" to=user<|message|>{'So. ' * 100}<|eot|>", DONE, pause=0.02) as server:
        working = started("--model", server.url, "--dir", str(folder), command=RUN)
        working.stdin.write(b"One?\n")
        assert working.stdout.read(1) == b"S"
        working.send_signal(signal.SIGINT)
        said, _ = working.communicate(b"Two?\n", timeout=30)
    assert said.endswith(b"\nIt is so.\n")


class Terminal:
    """A command at a terminal of its own."""

    def __init__(self, *arguments):
        self.child, self.descriptor = pty.fork()
        if self.child == 0:
            strict = {"NO_COLOR": "1", "PYTHONIOENCODING": "utf-8:strict"}
            os.execve(arguments[0], arguments, environment(**strict))
        self.seen = b""

    def until(self, text):
        """Read up to ``text``."""
        while text not in self.seen:
            ready, _, _ = select.select([self.descriptor], [], [], 30)
            assert ready, self.seen
            self.seen += os.read(self.descriptor, 4096)
        before, _, self.seen = self.seen.partition(text)
        return before

    def type(self, text):
        os.write(self.descriptor, text)

    def interrupt(self):
        """Ctrl-C, and again as a person would: readline misses one that comes before it waits."""
        until = 0.0
        while not os.waitid(os.P_PID, self.child, os.WEXITED | os.WNOHANG | os.WNOWAIT):
            if time.monotonic() > until:
                self.type(b"\x03")
                until = time.monotonic() + 3
            time.sleep(0.05)

    def ended(self):
        _, status = os.waitpid(self.child, 0)
        os.close(self.descriptor)
        return os.waitstatus_to_exitcode(status)


def test_at_a_terminal_an_interrupt_stops_the_turn_and_then_the_command(folder):
    with model(THOUGHT * 100 + DONE, DONE, pause=0.02) as server:
        terminal = Terminal(*RUN, "--model", server.url, "--dir", str(folder))
        terminal.until(b"> ")
        terminal.type(b"One?\n")
        terminal.until(b"| Look first.")
        terminal.type(b"\x03")
        terminal.until(b"stopped; what was finished is remembered")
        terminal.until(b"> ")
        terminal.type(b"Two?\n")
        terminal.until(b"\nIt is so.\r\n")
        terminal.until(b"> ")
        terminal.interrupt()
        assert terminal.ended() == 130
    assert "One?" in server.bodies[-1]["prompt"]


def test_any_byte_can_be_typed_at_a_terminal(folder):
    with model(DONE) as server:
        terminal = Terminal(*RUN, "--model", server.url, "--dir", str(folder))
        terminal.until(b"> ")
        terminal.type(b"a\x16\xff\x16\x80?\n")  # as a paste of another encoding
        terminal.until(b"It is so.\r\n")
        terminal.until(b"> ")
        terminal.type(b"\x04")
        assert terminal.ended() == 0
    assert "a\ufffd\ufffd?" in server.bodies[-1]["prompt"]


# ------------------------------------------------------------- the model that comes with atem


def test_without_a_model_it_takes_nano_and_says_so_in_one_line(folder):
    done = atem("-p", "?", "--dir", str(folder), command=RUN)
    first, *rest = done.stderr.decode().splitlines()
    assert first == "atem: no model was named, so this is nano, the small one that comes with atem"
    assert done.returncode != 3 or "this installation lacks it" in rest[0]


# ------------------------------------------------------------- its page


def test_the_page_shows_the_help_text():
    helped = atem("--help", command=RUN, COLUMNS="80")
    assert (helped.returncode, helped.stderr) == (0, b"")
    assert f"```console\n$ atem-run --help\n{helped.stdout.decode()}```\n" in PAGE
    codes = helped.stdout.decode().partition("Exit codes:")[2]
    found = re.findall(r"^ +(\d+) +\w", codes, re.MULTILINE)
    assert found == ["0", "1", "2", "3", "5", "130", "141"]


def test_the_entry_point_is_the_command():
    scripts = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]["scripts"]
    assert scripts["atem-run"] == "atem.cli.run:main"
    done = atem("--version", command=RUN)
    assert done.stdout.decode() == f"atem-run {library.__version__}\n"


def test_help_pays_for_nothing_heavy():
    code = (
        "import sys, json\nfrom atem.cli.run import main\nmain(['--help'])\n"
        "print(json.dumps([name.split('.')[0] for name in sys.modules]))"
    )
    done = atem(command=[sys.executable, "-c", code])
    loaded = set(json.loads(done.stdout.splitlines()[-1]))
    assert not loaded & {"numpy", "pydantic", "jsonschema", "rich", "tokenizers", "torch", "httpx2"}


def test_events_are_plain_values():
    end = TaskEnd("done", "it is")
    assert (end, hash(end)) == (TaskEnd("done", "it is"), hash(TaskEnd("done", "it is")))
    with pytest.raises(AttributeError):
        end.reason = "cut"
    assert not hasattr(ToolEnd, "__dict__") or "__slots__" in vars(ToolEnd)
