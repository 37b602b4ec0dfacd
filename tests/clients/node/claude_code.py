"""Claude Code against a server, as ``--print-client claude`` sets it up.

Rules: the printed lines are evaluated by the shell that starts it.
"""

from __future__ import annotations

import json
import shlex

from tests.clients.node.programs import Place, program


class Ran:
    """What one run of ``claude -p --output-format stream-json`` told."""

    def __init__(self, ran, place):
        self.code = ran.returncode
        self.told = ran.stdout + ran.stderr
        self.work = place.work
        self.events = [json.loads(line) for line in ran.stdout.splitlines() if line.startswith("{")]

    @property
    def result(self):
        """The last event: how it ended."""
        found = [event for event in self.events if event["type"] == "result"]
        assert len(found) == 1, self.told
        (result,) = found
        return result

    def blocks(self, kind):
        """The content blocks of its model's messages."""
        messages = [event["message"] for event in self.events if event["type"] == "assistant"]
        return [block for each in messages for block in each["content"] if block["type"] == kind]


def claude(server, folder, prompt="Do it.", *options, key=None, seconds=90, files=(), **variables):
    """Run it once, with the tools that it would ask about allowed."""
    place = Place(folder)
    place.put(files)
    command = [program("claude"), "-p", "--output-format=stream-json", "--verbose",
               "--allowedTools=Bash,Edit,Write,Read,mcp__weather", *options, "--", prompt]  # fmt: skip
    script = f"{server.set_up('claude')}exec {shlex.join(command)}"
    environment = {"DISABLE_AUTOUPDATER": "1", **variables}
    if key is not None:
        environment["ATEM_API_KEY"] = key
    return Ran(place.run(["sh", "-c", script], seconds=seconds, **environment), place)
