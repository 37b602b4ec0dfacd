"""opencode against a server, as ``--print-client opencode`` sets it up.

Rules: the printed file is its ``opencode.json`` as it is. Beside it stand only
variables that keep it from asking the network.
"""

from __future__ import annotations

import json

from tests.clients.node.programs import Place, program

OFFLINE = {
    "OPENCODE_DISABLE_MODELS_FETCH": "1",
    "OPENCODE_DISABLE_AUTOUPDATE": "1",
    "OPENCODE_DISABLE_LSP_DOWNLOAD": "1",
    "OPENCODE_DISABLE_SHARE": "1",
}


class Ran:
    """What one run of ``opencode run --format json`` told."""

    def __init__(self, ran, place):
        self.code = ran.returncode
        self.errors = ran.stderr
        self.output = ran.stdout
        self.work = place.work
        self.events = [json.loads(line) for line in ran.stdout.splitlines() if line.startswith("{")]

    def parts(self, kind):
        return [event["part"] for event in self.events if event["type"] == kind]

    @property
    def said(self):
        return [part["text"] for part in self.parts("text")]

    @property
    def thought(self):
        return [part["text"] for part in self.parts("reasoning")]

    @property
    def told(self):
        return self.output + self.errors


def opencode(server, folder, prompt="Do it.", *options, model=None, key=None, files=(), seconds=90):
    """Run it once; ``model`` is one of the file's, else its first."""
    place = Place(folder)
    place.put(files)
    (place.work / "opencode.json").write_text(server.set_up("opencode"))
    environment = OFFLINE if key is None else OFFLINE | {"ATEM_API_KEY": key}
    chosen = [] if model is None else ["--model", model]
    command = [
        program("opencode"),
        "run",
        "--format",
        "json",
        "--thinking",
        *chosen,
        *options,
        prompt,
    ]
    return Ran(place.run(command, seconds=seconds, **environment), place)
