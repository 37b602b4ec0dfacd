"""``atem-serve --print-client``: what is printed is what the clients read, and no key is in it."""

from __future__ import annotations

import json
import os
import shlex
import subprocess
import sys
import tomllib

import httpx2
import pytest

from atem.cli.serve import main
from atem.cli.serve.print_client import CLIENTS, client_text
from atem.errors import OptionError
from atem.server.settings import Settings
from tests.golden.expectation import ROOT
from tests.server.running import HELLO, running

KEY = "sesame-open-123"
TITLES = {
    "@openai/codex": "Codex CLI",
    "opencode-ai": "opencode",
    "@anthropic-ai/claude-code": "Claude Code",
}


def printed(client, **settings):
    return client_text(client, Settings(**{"model_name": ("muse",), "context": 65536} | settings))


def codex_files(folder, **settings):
    """What the script for Codex writes: its profile and its catalogue."""
    text = printed("codex", **settings)
    subprocess.run(["sh"], input=text, text=True, check=True, env={"CODEX_HOME": str(folder)})
    profile = tomllib.loads((folder / "atem.config.toml").read_text())
    return profile, json.loads((folder / profile["model_catalog_json"]).read_text())


def claude_environment(**settings):
    """The variables that the lines for Claude Code set in a shell that has a key."""
    script = f"{printed('claude', **settings)}\nexec {shlex.quote(sys.executable)} -c {shlex.quote(SHOWN)}"
    ran = subprocess.run(
        ["sh", "-c", script], env={"ATEM_API_KEY": KEY}, capture_output=True, check=True
    )
    return json.loads(ran.stdout)


SHOWN = "import json, os; print(json.dumps(dict(os.environ)))"


def test_codex_gets_a_profile_with_the_address_and_the_kind_of_api(tmp_path):
    profile, _ = codex_files(tmp_path)
    provider = profile["model_providers"][profile["model_provider"]]
    assert profile["model"] == "muse"
    assert provider["base_url"] == "http://127.0.0.1:8420/v1"
    assert provider["wire_api"] == "responses"
    assert "env_key" not in provider


def test_codex_gets_a_catalogue_that_offers_patches_and_the_search_for_tools(tmp_path):
    _, catalogue = codex_files(tmp_path)
    (model,) = catalogue["models"]
    assert (model["slug"], model["context_window"]) == ("muse", 65536)
    assert model["apply_patch_tool_type"] == "freeform"
    assert model["supports_search_tool"] is True
    assert "*** Begin Patch" in model["base_instructions"]


def test_codex_uses_a_websocket_only_where_the_server_has_one(tmp_path):
    for on in (True, False):
        profile, _ = codex_files(tmp_path, websocket=on)
        assert profile["model_providers"]["atem"]["supports_websockets"] is on


def test_opencode_gets_a_provider_for_each_of_the_two_apis():
    written = json.loads(printed("opencode"))
    packages = {name: provider["npm"] for name, provider in written["provider"].items()}
    assert packages == {"atem": "@ai-sdk/openai", "atem-chat": "@ai-sdk/openai-compatible"}
    assert written["model"] == "atem/muse"
    for provider in written["provider"].values():
        assert provider["options"]["baseURL"] == "http://127.0.0.1:8420/v1"
        assert provider["models"]["muse"]["limit"] == {"context": 65536, "output": 16384}


def test_opencode_is_told_to_ask_for_the_reasoning_that_it_shows():
    model = json.loads(printed("opencode"))["provider"]["atem"]["models"]["muse"]
    assert model["options"] == {"reasoningSummary": "auto"}


def test_claude_code_gets_an_address_without_the_version():
    variables = claude_environment(port=9000)
    assert variables["ANTHROPIC_BASE_URL"] == "http://127.0.0.1:9000"
    assert variables["ANTHROPIC_AUTH_TOKEN"] == "none"
    assert variables["CLAUDE_CODE_MAX_CONTEXT_TOKENS"] == "65536"
    assert variables["CLAUDE_CODE_MAX_OUTPUT_TOKENS"] == "16384"
    models = {value for name, value in variables.items() if name.endswith("_MODEL")}
    assert models == {"muse"}


def test_the_python_lines_run_as_they_stand():
    with running([HELLO], model_name=("muse",)) as server:
        lines = printed("openai", port=server.port)
        ran = subprocess.run(
            [sys.executable, "-c", lines], check=True, capture_output=True, text=True
        )
    assert ran.stdout == "Hello there.\n"


def test_where_the_server_wants_a_key_each_client_reads_it_from_one_variable(tmp_path):
    keyed = {"api_key": (KEY,)}
    profile, _ = codex_files(tmp_path, **keyed)
    assert profile["model_providers"]["atem"]["env_key"] == "ATEM_API_KEY"
    options = json.loads(printed("opencode", **keyed))["provider"]["atem"]["options"]
    assert options["apiKey"] == "{env:ATEM_API_KEY}"
    assert claude_environment(**keyed)["ANTHROPIC_AUTH_TOKEN"] == KEY
    assert "os.environ['ATEM_API_KEY']" in printed("openai", **keyed)


@pytest.mark.parametrize("client", CLIENTS)
def test_no_key_is_printed(client, tmp_path):
    file = tmp_path / "keys"
    file.write_text(f"{KEY}\n")
    for given in ({"api_key": (KEY,)}, {"api_key_file": str(file)}):
        assert KEY not in printed(client, **given)


@pytest.mark.parametrize(
    ("host", "address"),
    [("::1", "[::1]"), ("0.0.0.0", "127.0.0.1"), ("::", "[::1]"), ("gpu.lan", "gpu.lan")],
)
def test_the_address_is_one_that_can_be_asked(host, address):
    lines = printed("claude", host=host, api_key=(KEY,))
    assert f"ANTHROPIC_BASE_URL=http://{address}:8420\n" in lines


def test_a_name_with_signs_of_the_shell_stays_one_word(tmp_path):
    name = "my 'model' $HOME"
    assert claude_environment(model_name=(name,))["ANTHROPIC_MODEL"] == name
    profile, catalogue = codex_files(tmp_path, model_name=(name,))
    assert profile["model"] == catalogue["models"][0]["slug"] == name


def test_name_and_context_come_from_the_engine_where_the_options_leave_them_open(tmp_path):
    script = tmp_path / "script.toml"
    script.write_text('context = 5000\n[[turns]]\nwrite = " to=user<|message|>Hi.<|eot|>"\n')
    for engine, name, context in ((f"scripted:{script}", "scripted", 5000), (None, "nano", 2048)):
        profile, catalogue = codex_files(tmp_path, engine=engine, model_name=(), context=None)
        assert profile["model"] == name
        assert catalogue["models"][0]["context_window"] == context


def test_a_server_behind_is_asked_for_its_name_and_its_context():
    with running([HELLO], model_name=("behind",)) as server:
        written = json.loads(printed("opencode", engine=server.root, model_name=(), context=None))
    context = server.engine.info.context
    assert written["provider"]["atem"]["models"]["behind"]["limit"]["context"] == context


@pytest.mark.parametrize("wrong", [{"port": 0}, {"model_name": ("gpt-*",), "engine": "nano"}])
def test_what_a_client_could_not_use_is_refused(wrong):
    with pytest.raises(OptionError, match="name"):
        printed("codex", **wrong)


def test_the_command_prints_and_ends_without_serving(capfd, monkeypatch):
    monkeypatch.setattr(os, "environ", {"ATEM_SERVE_API_KEY": KEY})
    assert main(["--print-client", "openai", "--port", "8421"]) == 0
    shown = capfd.readouterr()
    assert "http://127.0.0.1:8421/v1" in shown.out
    assert (KEY in shown.out, shown.err) == (False, "")
    with pytest.raises(httpx2.ConnectError):
        httpx2.get("http://127.0.0.1:8421/health", trust_env=False)


def test_a_context_that_an_agent_does_not_fit_into_is_told_beside_what_is_printed(capfd):
    assert main(["--print-client", "opencode"]) == 0
    shown = capfd.readouterr()
    assert json.loads(shown.out)["model"] == "atem/nano"
    assert "a context of 2048 tokens is short for opencode" in shown.err


def test_the_page_has_the_versions_that_are_driven():
    installed = json.loads((ROOT / "tests/clients/node/package.json").read_text())["dependencies"]
    page = (ROOT / "docs" / "clients.md").read_text()
    for name, version in installed.items():
        assert f"| {TITLES[name]} | {version} |" in page


def test_a_client_that_is_not_known_is_refused(capfd):
    assert main(["--print-client", "emacs"]) == 2
    assert "'codex', 'opencode', 'claude', 'openai'" in capfd.readouterr().err
