"""plan, doctor and generate as a shell sees them, on a tiny checkpoint."""

from __future__ import annotations

import json
import signal

import pytest

from atem.testing.tiny import tiny_checkpoint, tiny_config
from tests.cli.process import TOOLS, atem, lines, started
from tests.runtime.remote.dialects import speaking

REFERENCE = ("--backend", "reference")
GENERATE = ("generate", "--prompt", "Hi", *REFERENCE)


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    config = tiny_config(max_position_embeddings=4096)
    return str(tiny_checkpoint(tmp_path_factory.mktemp("tiny"), config=config))


@pytest.fixture(scope="module")
def tools(tmp_path_factory):
    path = tmp_path_factory.mktemp("tools") / "tools.json"
    path.write_text(json.dumps(TOOLS))
    return str(path)


def test_plan_prints_a_table_and_ends_with_0(folder):
    run = atem("plan", folder, *REFERENCE)
    assert (run.returncode, run.stderr) == (0, b"")
    rows = dict(line.split(maxsplit=1) for line in run.stdout.decode().splitlines())
    assert rows["layout"] == "hf"
    assert rows["parameters"].startswith("251,456 (F32 100.0%)")
    assert rows["verdict"].startswith("fits")


def test_plan_as_json_counts_bytes(folder):
    (plan,) = lines(atem("plan", folder, "--json", *REFERENCE))
    assert (plan["parameters"], plan["weights"]) == (251456, 4 * 251456)


def test_doctor_prints_a_line_a_check_and_1_says_that_one_failed(folder):
    run = atem("doctor", folder, *REFERENCE)
    words = [line.split()[:2] for line in run.stdout.decode().splitlines()]
    assert ["ok", "files"] in words
    assert ["fail", "reading"] in words
    assert run.returncode == 1


def test_doctor_without_the_failing_check_ends_with_0(folder):
    run = atem("doctor", folder, "--no-probe", "--json", *REFERENCE)
    assert run.returncode == 0
    assert {check["verdict"] for check in lines(run)} <= {"ok", "warn", "skipped"}


def test_generate_writes_the_models_text_and_counts_on_standard_error(folder):
    run = atem(*GENERATE, folder, "--max-tokens", "8", "--seed", "3")
    assert run.returncode == 1  # cut at 8 tokens
    assert b"8 tokens" in run.stderr
    assert b"finish: length" in run.stderr
    assert run.stdout == atem(*GENERATE, folder, "--max-tokens", "8", "--seed", "3").stdout != b""


def test_generate_as_json_has_the_same_text_in_steps(folder):
    options = (folder, "--max-tokens", "30", "--temperature", "0")
    *steps, last = lines(atem(*GENERATE, *options, "--json"))
    text = "".join(piece["text"] for step in steps for piece in step["pieces"])
    assert text == atem(*GENERATE, *options).stdout.decode()
    assert last["counts"]["tokens"] == sum(len(step["ids"]) for step in steps) == 30
    assert [step["finish"] for step in steps if step["finish"]] == ["length"]


def test_generate_honours_a_budget_and_tools(folder, tools):
    with_tools = atem(*GENERATE, folder, "--tools", tools, "--max-tokens", "3", "--json")
    bare = atem(*GENERATE, folder, "--max-tokens", "3", "--json")
    counts = [lines(run)[-1]["counts"]["prompt"] for run in (with_tools, bare)]
    assert counts[0] > counts[1] + 200


def test_generate_reads_a_prompt_from_standard_input(folder):
    options = ("generate", folder, "--temperature", "0", "--max-tokens", "5", *REFERENCE)
    piped = atem(*options, "--prompt", "-", data="Hi")
    assert piped.stdout == atem(*options, "--prompt", "Hi").stdout


@pytest.mark.parametrize(
    ("arguments", "code", "text"),
    [
        (("plan", "nowhere"), 3, "nowhere does not exist"),
        (("doctor", "nowhere", "--backend", "none"), 2, "none of auto"),
        ((*GENERATE, "nowhere"), 3, "nowhere does not exist"),
        ((*GENERATE, "FOLDER", "--top-p", "2"), 2, "top_p=2.0"),
        ((*GENERATE, "FOLDER", "--max-tokens", "0"), 2, "max_tokens=0"),
        ((*GENERATE, "FOLDER", "--device", "cpu"), 2, "device: no option"),
        (("generate", "--prompt", "a", "http://127.0.0.1:9"), 3, "127.0.0.1:9"),
    ],
)
def test_what_cannot_be_done_is_one_line_and_a_code(folder, arguments, code, text):
    run = atem(*(folder if word == "FOLDER" else word for word in arguments))
    (line,) = run.stderr.decode().splitlines()
    assert (run.returncode, line.startswith("atem: ")) == (code, True)
    assert text in line


def test_an_interrupted_run_ends_with_130(folder):
    run = started(*GENERATE, folder, "--max-tokens", "3000", "--temperature", "0")
    run.stdout.read(1)
    run.send_signal(signal.SIGINT)
    _, said = run.communicate(timeout=30)
    assert run.returncode == 130, said


# ---------------------------------------------------------------------- no model at all

UNNAMED = "atem: no model was named, so this is nano, the small one that comes with atem"


@pytest.mark.parametrize("command", ["plan", "doctor"])
def test_without_a_model_it_is_nano_and_one_line_says_so(command):
    named, unnamed = (atem(command, *model, "--json") for model in (("nano",), ()))
    assert (named.returncode, named.stderr) == (0, b"")
    assert (unnamed.returncode, unnamed.stderr.decode()) == (0, f"{UNNAMED}\n")
    assert [line.get("path") or line["name"] for line in lines(named)] == [
        line.get("path") or line["name"] for line in lines(unnamed)
    ]


def test_generate_without_a_model_is_nano_and_says_so_before_its_counts():
    options = ("generate", "--prompt", "Hello", "--temperature", "0", "--max-tokens", "4")
    named, unnamed = atem(*options, "nano"), atem(*options)
    assert unnamed.stdout == named.stdout != b""
    first, counts = unnamed.stderr.decode().splitlines()
    assert first == UNNAMED
    assert counts.endswith("finish: length")
    assert len(named.stderr.splitlines()) == 1


def test_doctor_prints_ok_for_every_check_of_nano():
    run = atem("doctor", "nano")
    assert {line.split()[0] for line in run.stdout.decode().splitlines()} == {"ok"}


# ------------------------------------------------------------- a server instead of a checkpoint


def test_generate_asks_a_server_and_can_be_parsed():
    with speaking("vllm") as server:
        run = atem("generate", server.url, "--prompt", "Hi", "--temperature", "0")
    assert (run.returncode, run.stdout) == (0, b" to=user<|message|>High at noon.<|eot|>")
    assert b"prompt ? tokens" in run.stderr
    assert atem("parse", data=run.stdout).returncode == 0


def test_generate_speaks_in_ids_with_a_tokenizer(folder):
    tokenizer = ("--tokenizer", f"{folder}/tokenizer.json")
    with speaking("vllm") as server:
        run = atem("generate", server.url, "--prompt", "<|eot|>", *tokenizer)
        assert isinstance(server.bodies[-1]["prompt"], list)
    assert (run.returncode, run.stdout) == (0, b" to=user<|message|>High at noon.<|eot|>")


def test_generate_does_not_send_text_that_could_be_taken_for_framing():
    with speaking("vllm") as server:
        run = atem("generate", server.url, "--prompt", "<|eot|>")
    assert (run.returncode, run.stdout) == (3, b"")
    assert b"<|eot|>" in run.stderr


def test_the_key_comes_from_the_environment_and_is_never_shown():
    with speaking("vllm", strips=True) as server:
        run = atem("generate", server.url, "--prompt", "Hi", ATEM_API_KEY="sk-hush")
    assert run.returncode == 3
    assert b"hush" not in run.stderr + run.stdout
    assert b"skip_special_tokens" in run.stderr
