"""``atem generate``: what a model writes, as it writes it.

Rules: standard output gets the model's own text, framing included, so that
``atem parse`` can read it; the counts go to standard error.
"""

from __future__ import annotations

import json
import os
import time
from contextlib import closing
from dataclasses import asdict, dataclass, fields, replace
from typing import TYPE_CHECKING, Any, Final

import click

from ..engine import Request, Sampling, tokenizer_of
from ..messages import Message
from ..render import EFFORTS, render
from ..wire import Piece
from . import exits, output
from .files import blaming, checked_tools, read_json
from .model import given, model_options, named_model, probe_option, progress_bar, tokenizer_in
from .options import command, tools_option
from .screen import visible
from .source import STDIN, read

if TYPE_CHECKING:
    from ..engine import Engine, Step
    from .options import Function

_SAMPLING: Final = (
    click.option("--temperature", type=float, help="0 takes the likeliest token each time."),
    click.option("--top-k", type=int, help="Only the K likeliest tokens; 0: all."),
    click.option("--top-p", type=float, help="Only the likeliest tokens that make up this share."),
    click.option("--min-p", type=float, help="Only tokens this likely, relative to the likeliest."),
    click.option("--repetition-penalty", type=float, help="Above 1: seen tokens are less likely."),
    click.option("--presence-penalty", type=float, help="Taken off written tokens, once."),
    click.option("--frequency-penalty", type=float, help="Taken off for each time it was written."),
    click.option("--seed", type=int, help="The same seed gives the same text."),
)


_SAMPLING_NAMES: Final = tuple(field.name for field in fields(Sampling))


def _sampling_options(function: Function) -> Function:
    for decorate in reversed(_SAMPLING):
        function = decorate(function)
    return function


@command
@click.argument("path", metavar="[PATH|URL]", required=False)
@click.option("--prompt", required=True, metavar="TEXT", help='What the user says; "-" reads it.')
@click.option("--system", metavar="TEXT", help="A system message before it.")
@click.option("--effort", type=click.Choice(list(EFFORTS)), help="How hard to think.")
@tools_option
@click.option("--max-tokens", type=int, default=512, show_default=True, help="End after these.")
@click.option("--stop", multiple=True, metavar="TEXT", help="End before this text. Repeatable.")
@click.option("--reasoning-budget", type=int, metavar="N", help="Answer after N reasoning tokens.")
@_sampling_options
@model_options
@probe_option
@click.option("--model", metavar="NAME", help="For a server with several models.")
@click.option("--tokenizer", metavar="FILE", help="For a server: tokenizer.json, to speak in ids.")
@click.option("--json", "as_json", is_flag=True, help="JSON lines: one a step, then the counts.")
def generate(
    path: str | None,
    *,
    prompt: str,
    system: str | None,
    effort: str | None,
    tools: str | None,
    max_tokens: int,
    stop: tuple[str, ...],
    reasoning_budget: int | None,
    as_json: bool,
    **options: Any,
) -> int:
    """Generate one turn.

    PATH is a checkpoint, or the http(s) address of a server, whose key is taken
    from ATEM_API_KEY; without it, the model that comes with atem. The text is
    what the model writes, to be read by atem parse; the counts go to standard
    error.
    """
    from ..runtime.load import is_address, load

    chosen = {name: options.pop(name) for name in _SAMPLING_NAMES if name in options}
    Sampling(**given(chosen))  # a value that can't work is refused before anything is loaded
    request = Request(
        **_asked(prompt, system, effort, tools),
        max_tokens=max_tokens,
        stop=stop,
        reasoning_budget=reasoning_budget,
    )
    options["tokenizer"] = tokenizer_in(options["tokenizer"])
    model = named_model(path)
    if is_address(model):
        options["api_key"] = os.environ.get("ATEM_API_KEY")
    with progress_bar() as progress:
        engine = load(model, progress=progress, **given(options))
    with closing(engine):
        request = replace(request, sampling=replace(engine.info.sampling, **given(chosen)))
        counts = _stream(engine, request, as_json=as_json)
    record = {"counts": asdict(counts)}
    if as_json:
        output.write(f"{json.dumps(record)}\n".encode())
    else:
        output.note(f"{counts}\n")
    return exits.DONE if counts.finish == "stop" else exits.FLAWED


def _asked(prompt: str, system: str | None, effort: str | None, tools: str | None) -> Any:
    """The prompt rendered, and the same in the shape of chat completions."""
    text = read(STDIN).decode("utf-8", "replace") if prompt == STDIN else prompt
    messages = [Message("system", system)] if system is not None else []
    messages.append(Message("user", text))
    declared = read_json(tools) if tools is not None else []
    with blaming(tools or "tools"):
        rendered = render(messages, tools=checked_tools(declared, tools or "tools"), effort=effort)
    chat: dict[str, Any] = {"messages": [{"role": m.role, "content": m.content} for m in messages]}
    if declared:
        chat["tools"] = declared
    return {"prompt": rendered, "chat": chat}


@dataclass(slots=True)
class _Counts:
    """What a run came to; ``seconds`` from the first token to the last."""

    prompt: int | None
    cached: int = 0
    tokens: int = 0
    first: float | None = None
    seconds: float = 0.0
    finish: str = ""

    def __str__(self) -> str:
        """One line for a person."""
        timed = self.tokens > 1 and self.seconds > 0
        pace = f"{(self.tokens - 1) / self.seconds:.1f} tokens/s" if timed else "one step"
        prompt = "?" if self.prompt is None else self.prompt
        return (
            f"prompt {prompt} tokens ({self.cached} cached), first after {self.first or 0:.2f} s; "
            f"{self.tokens} tokens, {pace}; finish: {self.finish}"
        )


def _stream(engine: Engine, request: Request, *, as_json: bool) -> _Counts:
    counts = _Counts(_prompt_tokens(engine, request))
    started = time.perf_counter()
    write = _write_record if as_json else _write_text
    for step in engine.generate(request):
        now = time.perf_counter() - started
        if counts.first is None:
            counts.first = now
        counts.tokens += len(step.ids)
        counts.cached = step.cached_tokens or counts.cached
        counts.seconds = now - counts.first
        counts.finish = step.finish or counts.finish
        write(step)
    return counts


def _prompt_tokens(engine: Engine, request: Request) -> int | None:
    tokenizer = tokenizer_of(engine)
    return None if tokenizer is None else len(request.prompt_ids(tokenizer))


def _write_text(step: Step) -> None:
    text = "".join(_text(piece) for piece in step.pieces or ())
    output.write((visible(text) if output.is_terminal() else text).encode())


def _write_record(step: Step) -> None:
    pieces = [{"text": _text(piece), "special": _special(piece)} for piece in step.pieces or ()]
    record = {"ids": step.ids, "pieces": pieces, "finish": step.finish}
    output.write(f"{json.dumps(record)}\n".encode())


def _text(piece: str | Piece) -> str:
    return piece.text if isinstance(piece, Piece) else piece


def _special(piece: str | Piece) -> bool | None:
    """None where a server leaves it open."""
    return piece.special if isinstance(piece, Piece) else None
