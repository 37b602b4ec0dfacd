"""An engine whose turns stand in a file: a server to test clients with, without a model.

A file is TOML, or JSON of the same shape::

    tokens_per_second = 50      # at this pace; without it as fast as it goes
    first_token_seconds = 0.5   # silence before the first token
    max_batch = 4               # turns at once (64)
    context = 8192              # tokens of prompt and answer together (131072)
    images = true               # takes images, which nobody looks at (false)

    [[turns]]
    last = "weather in (Oslo|Vigo)"   # found in the last message
    all = "get_weather"               # found anywhere in the prompt
    write = " to=user<|message|>It rains.<|eot|>"
    fail = "The device is gone."  # an error in place of its last token

Rules: the first turn whose patterns are all found answers; one without patterns
answers anything. ``write`` is the model's raw text from behind the prompt's
``<|start|>assistant``, as wire_format has it. A message is its header and its
text, so that ``^tool`` and ``^user`` tell roles apart.
"""

from __future__ import annotations

import json
import tomllib
from dataclasses import dataclass, replace
from pathlib import Path
from re import Pattern
from re import compile as compiled
from re import error as NoPattern  # noqa: N812 - a class, whatever its name
from typing import TYPE_CHECKING, Any, Final

from .. import wire
from ..errors import EngineError, OptionError
from .pace import PacedEngine
from .scripted import ScriptedEngine

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from ..engine import Engine, Request, Step

BATCH: Final = 64
NUMBERS: Final = {"tokens_per_second", "first_token_seconds", "max_batch", "context"}
WHOLE: Final = {"max_batch", "context"}
MOST: Final = 1 << 30
KEYS: Final = {*NUMBERS, "images", "turns"}
TURN_KEYS: Final = {"last", "all", "write", "fail"}


@dataclass(frozen=True, slots=True)
class ScriptTurn:
    """``write`` answers a prompt in which both patterns are found; ``fail`` ends it."""

    write: str
    last: Pattern[str] | None = None
    all: Pattern[str] | None = None
    fail: str | None = None

    def answers(self, prompt: str) -> bool:
        """Whether it is the answer to ``prompt``."""
        message = prompt.split(wire.START)[-2]
        places = ((self.last, message), (self.all, prompt))
        return all(pattern is None or pattern.search(text) for pattern, text in places)


def script_engine(path: str | Path, *, tokenizer: object = None) -> Engine:
    """The engine of the file. Raises OptionError for one that can't be read."""
    script = _read(Path(path))
    turns = [_turn(raw, f"{path}: turns[{place}]") for place, raw in enumerate(script["turns"])]

    def chosen(prompt: str) -> ScriptTurn:
        for turn in turns:
            if turn.answers(prompt):
                return turn
        raise EngineError(f"{path} has no turn for this conversation; add one without patterns")

    engine = _FileEngine(chosen, tokenizer=tokenizer, context=script.get("context", 131072))
    engine.info = replace(
        engine.info,
        max_batch=script.get("max_batch", BATCH),
        features=engine.info.features | ({"images"} if script.get("images") else set()),
    )
    rate, first = script.get("tokens_per_second", 0), script.get("first_token_seconds", 0)
    return PacedEngine(engine, min(1 / rate, MOST) if rate else 0.0, first)


def _read(path: Path) -> dict[str, Any]:
    try:
        text = path.read_text("utf-8")
        script = json.loads(text) if path.suffix == ".json" else tomllib.loads(text)
    except (OSError, ValueError, RecursionError) as error:
        raise OptionError(f"{path} can't be read as a script: {error}") from error
    _require_keys(script, KEYS, str(path))
    turns = script.get("turns")
    if not isinstance(turns, list) or not turns:
        raise OptionError(f"{path} has no turns; a script has a list of them")
    if not isinstance(script.get("images", False), bool):
        raise OptionError(f"{path}: images is {script['images']!r}; it is true or false")
    for key in NUMBERS & set(script):
        wanted = _unlike(script[key], whole=key in WHOLE)
        if wanted:
            raise OptionError(f"{path}: {key} is {script[key]!r}; it is {wanted}")
    return dict(script)


def _unlike(value: Any, *, whole: bool) -> str | None:
    """What a value should have been; None if it is that."""
    number = isinstance(value, int | float) and not isinstance(value, bool)
    if whole:
        fits = number and isinstance(value, int) and 1 <= value <= MOST
        return None if fits else f"a whole number from 1 to {MOST}"
    return None if number and 0 <= value <= MOST else "a number, 0 or more"


def _turn(raw: Any, where: str) -> ScriptTurn:
    _require_keys(raw, TURN_KEYS, where)
    if not all(isinstance(value, str) for value in raw.values()) or not raw.get("write"):
        raise OptionError(f"{where} needs write, a text; last, all and fail are texts too")
    try:
        patterns = {key: compiled(raw[key]) for key in ("last", "all") if key in raw}
    except NoPattern as error:
        raise OptionError(f"{where} has a pattern that is none: {error}") from error
    return ScriptTurn(raw["write"], **patterns, fail=raw.get("fail"))


def _require_keys(found: Any, known: set[str], where: str) -> None:
    if not isinstance(found, dict):
        raise OptionError(f"{where} is a {type(found).__name__}; it is a table")
    if unknown := sorted(set(found) - known):
        raise OptionError(
            f"{where} has {', '.join(unknown)}; it may have {', '.join(sorted(known))}"
        )


def _behind(prompt: str, write: str) -> str:
    """``write`` without the header that the prompt has opened already."""
    opened = wire.MESSAGE in prompt.rpartition(wire.START)[2]
    return write.partition(wire.MESSAGE)[2] if opened else write


class _FileEngine(ScriptedEngine):
    """Answers a prompt with the turn that is ``chosen`` for it, to its end or to its failure."""

    def __init__(self, chosen: Callable[[str], ScriptTurn], **options: Any) -> None:
        super().__init__(
            lambda request: _behind(_text(request), chosen(_text(request)).write), **options
        )
        self._chosen = chosen

    def generate(self, request: Request, /) -> Iterator[Step]:
        """See :class:`~atem.engine.Engine`."""
        steps = super().generate(request)
        fault = self._chosen(_text(request)).fail
        return steps if fault is None else _failing(steps, fault)


def _text(request: Request) -> str:
    return request.prompt.text()  # type: ignore[union-attr] # servers render their prompts


def _failing(steps: Iterator[Step], fault: str) -> Iterator[Step]:
    for step in steps:
        if step.finish is not None:
            raise EngineError(fault)
        yield step
