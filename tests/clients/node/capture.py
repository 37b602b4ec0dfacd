"""Record what clients send: ``python -m tests.clients.node.capture`` writes ``tests/cases/clients``.

Rules: one file for the requests of one turn that calls a tool, in order, and
what the model wrote in between. Of later requests only the fields are kept that
differ from the one before. Paths and ids of the machine are replaced, and every
text longer than ``LONGEST`` is cut, in each request at the same place.
"""

from __future__ import annotations

import json
import re
import sys
import tempfile
from itertools import pairwise
from pathlib import Path

from tests.clients.node.claude_code import claude
from tests.clients.node.codex import codex
from tests.clients.node.opencode import opencode
from tests.clients.node.programs import version
from tests.clients.node.serving import Server
from tests.clients.node.turns import answer, call, thinking, together, turn

CASES = Path(__file__).parents[2] / "cases" / "clients"
LONGEST = 120
"""Characters that are kept of a text."""

WHOLE = {"encrypted_content", "signature", "arguments", "definition"}
"""Fields that mean nothing when they are cut."""

SCRUBBED = (
    (r"[0-9a-f]{8}-(?:[0-9a-f]{4}-){3}[0-9a-f]{12}", "00000000-0000-4000-8000-000000000000"),
    (r"\b[0-9a-f]{64}\b", "0" * 64),
    (r"\bses_\w{20,}", "ses_0"),
    (r"Linux \d[\w.-]+", "Linux 6.1.0"),
    (r"\b1[78]\d{11}\b", "1790000000000"),
)

COMMAND = "echo 42"
DONE = answer("It is done.")
WEATHER = {"command": sys.executable, "args": [str(Path(__file__).parent / "mcp_server.py")]}
FORECAST = call("mcp__weather.forecast", city="Oslo")


def shell(name, key, **more):
    """A turn that thinks, and calls a shell twice at once."""
    calls = [call(name, **{key: f"{COMMAND} # {number}"}, **more) for number in (1, 2)]
    return thinking(together(*calls))


def run_codex(server, folder):
    codex(server, folder)


def run_codex_with_mcp(server, folder):
    settings = {f"mcp_servers__weather__{name}": value for name, value in WEATHER.items()}
    codex(server, folder, mcp_servers__weather__default_tools_approval_mode="approve", **settings)


def run_opencode(server, folder):
    opencode(server, folder, model="atem/scripted")


def run_opencode_chat(server, folder):
    opencode(server, folder, model="atem-chat/scripted")


def run_claude(server, folder):
    claude(server, folder)


def run_claude_with_mcp(server, folder):
    servers = json.dumps({"mcpServers": {"weather": WEATHER}})
    claude(server, folder, "Do it.", f"--mcp-config={servers}")


RESPONSES, CHAT, MESSAGES = "/v1/responses", "/v1/chat/completions", "/v1/messages"
BASH = {"description": "Writes a file"}

TURNS = {
    "codex": (run_codex, RESPONSES, [shell("exec_command", "cmd"), DONE]),
    "codex-mcp": (
        run_codex_with_mcp,
        RESPONSES,
        [thinking(call("tool_search", query="weather forecast")), thinking(FORECAST), DONE],
    ),
    "opencode": (run_opencode, RESPONSES, [shell("bash", "command", **BASH), DONE]),
    "opencode-chat": (run_opencode_chat, CHAT, [shell("bash", "command", **BASH), DONE]),
    "claude-code": (run_claude, MESSAGES, [shell("Bash", "command", **BASH), DONE]),
    "claude-code-mcp": (
        run_claude_with_mcp,
        MESSAGES,
        [
            thinking(call("ToolSearch", query="select:mcp__weather__forecast", max_results=5)),
            thinking(call("mcp__weather__forecast", city="Oslo")),
            DONE,
        ],
    ),
}
"""Name of a file -> what is run, where it asks, and what the model writes, turn by turn."""


def script(written):
    """The turns, each told by how much was said before it."""
    last = {0: {}, 1: {"last": "^tool"}, 2: {"last": "^tool(?s:.*)11 degrees"}}
    turns = [turn(text, **last[place]) for place, text in enumerate(written)]
    return list(reversed(turns))


def recorded(name):
    """The case of this name."""
    run, path, written = TURNS[name]
    with tempfile.TemporaryDirectory() as folder:
        place = Path(folder)
        with Server(place, script(written), "--no-websocket") as server:
            run(server, place / "run")
            bodies = [body for body in server.bodies(path) if body.get("tools")]
        assert len(bodies) == len(written), [len(bodies), server.lines]
        bodies = [cut(json.loads(scrubbed(json.dumps(body), folder))) for body in bodies]
    return {
        "client": version(name.removesuffix("-mcp").removesuffix("-chat")),
        "path": path,
        "cut_at": LONGEST,
        "written": written[:-1],
        "requests": [bodies[0], *(changed(*pair) for pair in pairwise(bodies))],
    }


def scrubbed(text, folder):
    text = text.replace(f"{folder}/run/work", "/home/user/project").replace(
        f"{folder}/run/home", "/home/user"
    )
    for pattern, put in SCRUBBED:
        text = re.sub(pattern, put, text)
    return text


def cut(value, key=""):
    if isinstance(value, dict):
        return {name: cut(each, name) for name, each in value.items()}
    if isinstance(value, list):
        return [cut(each, key) for each in value]
    if isinstance(value, str) and key not in WHOLE and len(value) > LONGEST:
        return f"{value[:LONGEST]} [cut]"
    return value


def changed(before, body):
    gone = [key for key in before if key not in body]
    assert not gone, gone
    return {key: value for key, value in body.items() if before.get(key) != value}


if __name__ == "__main__":
    CASES.mkdir(parents=True, exist_ok=True)
    for each in sys.argv[1:] or TURNS:
        text = json.dumps(recorded(each), indent=1, ensure_ascii=False)
        (CASES / f"{each}.json").write_text(f"{text}\n")
        sys.stdout.write(f"{each}: {len(text)} characters\n")
