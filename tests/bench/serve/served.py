"""``python served.py JSON``: atem-serve with a model that keeps time.

Rules: the server is the one of the command, with its settings and its store; only the engine is
ours. A token is given when it is due, however late the one before was; one thread of the engine's
gives those of all streams, as a batching engine does.
"""

from __future__ import annotations

import json
import re
import sys
import time
from dataclasses import replace
from typing import TYPE_CHECKING

from plan import END, HEADER, Plan, Stamps, words

from atem.engine import Request, Step
from atem.server.app import create_app
from atem.server.serving import serve
from atem.server.settings import Settings
from atem.testing.pace import PacedEngine
from atem.testing.scripted import ScriptedEngine

if TYPE_CHECKING:
    from collections.abc import Iterator

STREAM = re.compile(r"stream (\d+)\.")


def turn(tokens: int) -> list[Step]:
    """A turn of ``tokens`` tokens of text, one step each, between its header and its end."""
    engine = ScriptedEngine([HEADER + END])
    *header, end = engine.generate(Request([1]))
    return [*header, *(Step(header[0].ids[:1], word) for word in words(tokens)), end]


class Stamped:
    """An engine that writes the script for every request, as fast as it is asked to."""

    def __init__(self, plan: Plan) -> None:
        self._steps = turn(plan.tokens)
        self._first = len(self._steps) - plan.tokens - 1
        self._gap = plan.gap
        self._stamps = Stamps(plan)
        scripted = ScriptedEngine([])
        self.tokenizer = scripted.tokenizer
        self.info = replace(scripted.info, max_batch=plan.streams)

    def generate(self, request: Request) -> Iterator[Step]:
        """See :class:`~atem.engine.Engine`."""
        (stream,) = STREAM.findall(request.prompt.text())  # type: ignore[union-attr]
        return self._stamped(int(stream))

    def _stamped(self, stream: int) -> Iterator[Step]:
        due = time.monotonic_ns()
        for place, step in enumerate(self._steps, -self._first):
            if 0 <= place < self._stamps.tokens:
                self._stamps.stamp(stream, place, due)
            due += self._gap
            yield step

    def close(self) -> None:
        """See :class:`~atem.engine.Engine`."""


def main() -> None:
    """Serve until told to end."""
    plan = Plan(**json.loads(sys.argv[1]))
    settings = Settings(port=plan.port, log_level="error", store_path=f"{plan.folder}/responses.db")
    serve(create_app(PacedEngine(Stamped(plan), plan.gap / 1e9), settings))


if __name__ == "__main__":
    main()
