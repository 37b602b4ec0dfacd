"""Codex CLI against a server, as ``--print-client codex`` sets it up.

Rules: the printed script is run by sh as it is; a test adds single settings on
the command line.
"""

from __future__ import annotations

import json
import subprocess

from tests.clients.node.programs import Place, program

PATH = "/v1/responses"


class Ran:
    """What one run of ``codex exec --json`` told."""

    def __init__(self, ran, place):
        self.code = ran.returncode
        self.errors = ran.stderr
        self.work = place.work
        self.events = [json.loads(line) for line in ran.stdout.splitlines() if line.startswith("{")]

    def items(self, kind):
        done = [event["item"] for event in self.events if event["type"] == "item.completed"]
        return [item for item in done if item["type"] == kind]

    @property
    def said(self):
        return [item["text"] for item in self.items("agent_message")]

    @property
    def thought(self):
        return [item["text"] for item in self.items("reasoning")]

    @property
    def end(self):
        return self.events[-1]["type"]

    @property
    def told(self):
        """Everything that it complained about."""
        return json.dumps(self.events) + self.errors


def codex(server, folder, prompt="Do it.", *options, key=None, seconds=60, files=(), **config):
    """Run it once; ``config`` are settings by their dotted names, dots as ``__``."""
    place = Place(folder)
    place.put(files)
    environment = {"CODEX_HOME": str(place.home / ".codex")}
    if key is not None:
        environment["ATEM_API_KEY"] = key
    script = server.set_up("codex")
    subprocess.run(
        ["sh"], input=script, text=True, check=True, env=place.environment(**environment)
    )
    config = {"analytics__enabled": False} | config
    settings = [f"{name.replace('__', '.')}={json.dumps(value)}" for name, value in config.items()]
    command = [program("codex"), "exec", "-p", "atem", "--json", "--skip-git-repo-check",
               "--strict-config", "-s", "workspace-write", *options]  # fmt: skip
    for setting in settings:
        command += ["-c", setting]
    return Ran(place.run([*command, prompt], seconds=seconds, **environment), place)
