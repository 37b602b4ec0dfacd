"""What a model was asked and what it wrote, in tokens.

Rules: nothing is rendered again; a token counts as written only if the engine
gave it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from conversations import Sample

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    import atem


class Written(NamedTuple):
    """One turn."""

    prompt: list[int]
    output: list[int]


class Recorder:
    """An engine that keeps each turn that it wrote, in ``turns``."""

    def __init__(self, engine: atem.Engine) -> None:
        self.turns: list[Written] = []
        self.info, self.tokenizer = engine.info, engine.tokenizer
        self._engine = engine

    def generate(self, request: atem.Request) -> Iterator[atem.Step]:
        """The engine's steps."""
        prompt, output = request.prompt_ids(self.tokenizer), []
        for step in self._engine.generate(request):
            output += step.ids
            yield step
        self.turns.append(Written(prompt, output))

    def close(self) -> None:
        """Close the engine."""
        self._engine.close()


def conversations(turns: Sequence[Written]) -> list[Sample]:
    """Whole conversations with what was written marked.

    A turn that a longer one goes on from, token for token, is marked in that.
    """
    found: list[Sample] = []
    for prompt, output in sorted(turns, key=lambda turn: -len(turn.prompt) - len(turn.output)):
        ids = prompt + output
        learnt = next((s.learnt for s in found if s.ids[: len(ids)] == ids), None)
        if learnt is None:
            learnt = [False] * len(ids)
            found.append(Sample(ids, learnt))
        learnt[len(prompt) : len(ids)] = [True] * len(output)
    return found
