"""An engine of your own, and the contract that it has to pass.

This one repeats what the user said, which is enough to test an agent or a server with. It needs the
extra [engine], as everything in atem.testing does.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import atem
from atem.testing.contract import CHECKS
from atem.testing.scripted import ScriptedEngine

if TYPE_CHECKING:
    from collections.abc import Iterator


class Echo:
    """Answers with the user's last words. It has a ScriptedEngine write the tokens."""

    def __init__(self) -> None:
        self._engine = ScriptedEngine(self._answer)
        self.tokenizer = self._engine.tokenizer
        self.info = self._engine.info

    def generate(self, request: atem.Request) -> Iterator[atem.Step]:
        """Steps until one has a ``finish``."""
        return self._engine.generate(request)

    def close(self) -> None:
        """Give everything back."""
        self._engine.close()

    def _answer(self, request: atem.Request) -> str:
        said = "nothing"
        if isinstance(request.prompt, atem.Prompt):
            said = request.prompt.segments[-4].text  # words, <|eot|>, <|start|>, assistant
        return f" to=user<|message|>You said: {said}<|eot|>"


engine = Echo()
prompt = atem.render([{"role": "user", "content": "High water?"}])
turn = atem.collect(atem.parse_stream(engine.generate(atem.Request(prompt))))
print(turn.content)
for check in CHECKS.values():
    check(engine)
print(f"{len(CHECKS)} checks of the contract passed")
