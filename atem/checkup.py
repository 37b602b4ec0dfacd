"""Is this the right model, whole, read the right way, and ready? One look at each question.

Rules: every check looks at one thing and says what it found and what to do. A
fluent but wrong model is the case to catch: damaged files still generate text.
"""

from __future__ import annotations

import time
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, Literal, TypeAlias

from . import wire
from .engine import GREEDY, Request, Step
from .errors import AtemError, CheckpointError, OptionError, UnsafeCheckpoint
from .messages import Message
from .render import DEFAULT_DATE, KNOWLEDGE_CUTOFF, render
from .runtime.embedded import located
from .runtime.load import choose_local, load
from .runtime.probe import SMALL, open_settled, parameters, probe_readings
from .runtime.template import render_template
from .runtime.tokens import load_tokenizer, stop_ids

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from .engine import Progress
    from .runtime.checkpoint import Checkpoint, RopeStyle
    from .tokenizer import Tokenizer

Verdict: TypeAlias = Literal["ok", "warn", "fail", "skipped"]

SAMPLE: Final = 256
"""Rows of the table that are looked at, at most."""
LOOK: Final = 1 << 24
"""Values of it that are looked at, at most: the released table's rows come to 1.7 million."""
RUN: Final = 32
"""Tokens of the run that measures the speed."""


@dataclass(frozen=True, slots=True)
class Check:
    """One question: what was found, and what to do about it (empty if nothing)."""

    name: str
    verdict: Verdict
    found: str
    advice: str = ""


@dataclass(frozen=True, slots=True)
class Checkup:
    """All checks, in the order of the questions."""

    path: str
    checks: tuple[Check, ...]

    @property
    def ok(self) -> bool:
        """Whether nothing failed."""
        return all(check.verdict != "fail" for check in self.checks)


@dataclass(slots=True)
class _Patient:
    """What the checks look at. ``tokenizer`` is found by the check of that name, or stays None."""

    path: Path
    checkpoint: Checkpoint
    tokenizer: Tokenizer | None
    probing: bool | None
    load: Callable[[], Any]
    progress: Callable[[Progress], None] | None


def doctor(
    path: str | Path,
    *,
    backend: str = "auto",
    rope_style: RopeStyle | None = None,
    probe: bool | None = None,
    progress: Callable[[Progress], None] | None = None,
    **options: Any,
) -> Checkup:
    """Examine the checkpoint at ``path``; ``options`` are the engine's own.

    ``probe`` True runs the probe of readings also on a large checkpoint (each
    reading costs a pass over all weights), False never. What is wrong with a
    checkpoint is in the checks; OptionError is raised for a wrong option.
    """
    choose_local(path, backend, options)
    try:
        path = Path(located(path))
        checkpoint = open_settled(path, rope_style=rope_style, probe=probe, progress=progress)
    except OptionError:
        raise
    except AtemError as error:
        return Checkup(str(path), (Check("files", "fail", str(error)),))
    with closing(checkpoint):
        patient = _Patient(
            path,
            checkpoint,
            None,
            probe,
            lambda: load(
                path,
                backend=backend,
                rope_style=checkpoint.rope_style,
                progress=progress,
                **options,
            ),
            progress,
        )
        return Checkup(str(path), tuple(_examined(name, look, patient) for name, look in _CHECKS))


def _examined(name: str, look: Callable[[_Patient], Check], patient: _Patient) -> Check:
    try:
        return look(patient)
    except OptionError:
        raise
    except AtemError as error:
        return Check(name, "fail", str(error))


def _files(patient: _Patient) -> Check:
    checkpoint = patient.checkpoint
    count = parameters(checkpoint)
    found = f"layout {checkpoint.layout}, {count:,} parameters, q and k {checkpoint.rope_style}"
    notes = "; ".join(checkpoint.notes)
    return Check("files", "warn" if notes else "ok", found, notes)


def _table(patient: _Patient) -> Check:
    """Rows that the embedding norm can't lift, because its epsilon is what is left of them."""
    import numpy as np

    config = patient.checkpoint.config
    count = max(1, min(SAMPLE, LOOK // config.hidden_size))
    step = max(1, config.vocab_size // count)
    rows = patient.checkpoint.rows("embed", range(0, config.vocab_size, step))
    squares = np.square(rows, dtype=np.float64).mean(axis=-1)
    dead = int((squares < 10 * config.rms_norm_eps).sum())
    least, most = squares.min() ** 0.5, squares.max() ** 0.5
    found = f"{len(squares)} rows looked at, RMS {least:.3g} to {most:.3g}"
    if dead * 50 > len(squares):
        small = f"{dead} so small that the epsilon of their norm ({config.rms_norm_eps:g}) tells"
        advice = "the table is damaged, probably by its quantisation: take another build"
        return Check("embedding", "fail", f"{found}; {small}", advice)
    return Check("embedding", "ok", found)


def _tokenizer(patient: _Patient) -> Check:
    tokenizer = patient.tokenizer = load_tokenizer(patient.checkpoint)
    stops = stop_ids(tokenizer, patient.checkpoint)
    found = f"stop ids {', '.join(map(str, sorted(stops)))}"
    lacking = [text for text in wire.CONTROL if tokenizer.special_id(text) is None]
    if lacking:
        return Check("tokenizer", "warn", f"{found}; no special {', '.join(lacking)}")
    if _stops_on_eom(patient.checkpoint, tokenizer):
        advice = "atem ignores it; another server would cut turns after the reasoning"
        return Check("tokenizer", "warn", f"{found}; the files name {wire.EOM} as a stop", advice)
    return Check("tokenizer", "ok", found)


def _stops_on_eom(checkpoint: Checkpoint, tokenizer: Tokenizer) -> bool:
    named = checkpoint.files.generation_config.get("eos_token_id")
    return tokenizer.special_id(wire.EOM) in (named if isinstance(named, list) else [named])


def _template(patient: _Patient) -> Check:
    """The checkpoint's own template beside atem's renderer, on one small conversation."""
    template = patient.checkpoint.files.chat_template
    if template is None:
        return Check("template", "warn", "none", "atem renders its own; other servers need one")
    try:
        theirs = render_template(template, _CONVERSATION)
    except UnsafeCheckpoint:
        raise
    except CheckpointError as error:
        advice = "atem renders its own prompt; a server that uses the template may fail as well"
        return Check("template", "warn", str(error), advice)
    ours = render(_MESSAGES, current_date=DEFAULT_DATE).text()
    if theirs == ours:
        return Check("template", "ok", "writes the prompt that atem writes")
    place = next(
        (n for n, (a, b) in enumerate(zip(theirs, ours, strict=False)) if a != b),
        min(len(theirs), len(ours)),
    )
    return Check(
        "template",
        "warn",
        f"differs from atem's prompt at character {place}: {theirs[place : place + 40]!r} "
        f"for {ours[place : place + 40]!r}",
        "atem renders as the released model was trained; ask whoever changed the template",
    )


_MESSAGES: Final = [
    Message("user", "Hello"),
    Message("assistant", "Hi."),
    Message("user", "And now?"),
]
_CONVERSATION: Final[dict[str, Any]] = {
    "messages": [{"role": each.role, "content": each.content} for each in _MESSAGES],
    "add_generation_prompt": True,
    "bos_token": wire.BEGIN_OF_TEXT,
    "current_date": DEFAULT_DATE,
    "knowledge_cutoff": KNOWLEDGE_CUTOFF,
    "tools": None,
}


def _reading(patient: _Patient) -> Check:
    count = parameters(patient.checkpoint)
    if patient.tokenizer is None:
        return Check("reading", "skipped", "there is no tokenizer")
    if patient.probing is False or (patient.probing is None and count > SMALL):
        found = f"{count:,} parameters: each reading is a pass over all weights"
        return Check("reading", "skipped", found, "ask for it with --probe")
    result = probe_readings(patient.checkpoint, patient.tokenizer, progress=patient.progress)
    losses = ", ".join(f"{loss:.2f} {name}" for name, loss in result.losses.items())
    found = f"loss per token of {result.text.name}: {losses}"
    match result.verdict:
        case "right" if result.good:
            return Check("reading", "ok", found)
        case "right":
            advice = "no other reading is better, and a whole model predicts far more of it: the "
            advice += "weights are damaged, or trained too little"
        case "wrong":
            advice = f"the weights fit better {result.best}: the file is damaged or mislabelled"
        case _:
            advice = (
                "no reading is better than chance and than the others: the weights are random, "
            )
            advice += "damaged or hardly trained"
    return Check("reading", "fail", found, advice)


def _speed(patient: _Patient) -> Check:
    if patient.tokenizer is None:
        return Check("speed", "skipped", "there is no tokenizer")
    prompt = render([Message("user", "Count from one to a hundred in words.")])
    request = Request(prompt, GREEDY, max_tokens=RUN)
    with closing(patient.load()) as engine:
        list(engine.generate(Request(prompt, GREEDY, max_tokens=2)))  # warms up
        started = time.perf_counter()
        times, steps = _timed(engine.generate(request))
    count = sum(len(step.ids) for step in steps)
    later = count - len(steps[0].ids)
    pace = later / (times[-1] - times[0]) if later else float("nan")
    reused = steps[0].cached_tokens or 0
    first = 1000 * (times[0] - started)
    found = f"{engine.info.backend} ({engine.info.dtype}): {pace:.3g} tokens/s over {count}"
    return Check("speed", "ok", f"{found}, first after {first:.0f} ms, {reused} tokens reused")


def _timed(steps: Any) -> tuple[list[float], Sequence[Step]]:
    times, seen = [], []
    for step in steps:
        times.append(time.perf_counter())
        seen.append(step)
    return times, seen


_CHECKS: Final[tuple[tuple[str, Callable[[_Patient], Check]], ...]] = (
    ("files", _files),
    ("embedding", _table),
    ("tokenizer", _tokenizer),
    ("template", _template),
    ("reading", _reading),
    ("speed", _speed),
)
