"""``atem plan``: what a checkpoint is and what it will take, before loading it."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import click

from . import exits, output
from .model import given, model_options, named_model, path_argument
from .options import command
from .screen import one_line

if TYPE_CHECKING:
    from collections.abc import Iterator

    from ..runtime.plan import Plan


@command
@path_argument
@model_options
@click.option("--json", "as_json", is_flag=True, help="One JSON object, sizes in bytes.")
def plan(path: str | None, *, as_json: bool, **options: Any) -> int:
    """Say what loading a checkpoint takes.

    PATH is a folder or a .gguf file; without it, the model that comes with
    atem. No more than headers and a few rows are read.
    """
    from ..runtime.load import plan as plan_of

    found = plan_of(named_model(path), **given(options))
    text = json.dumps(found.as_dict()) if as_json else _table(found)
    output.write(f"{text}\n".encode())
    return exits.FLAWED if found.verdict == "does not fit" else exits.DONE


def _table(plan: Plan) -> str:
    rows = list(_rows(plan))
    width = max(len(name) for name, _ in rows)
    return "\n".join(f"{name:<{width}}  {one_line(text)}" for name, text in rows)


def _rows(plan: Plan) -> Iterator[tuple[str, str]]:
    yield "checkpoint", plan.path
    yield "layout", plan.layout
    yield "parameters", f"{plan.parameters:,} ({_shares(plan)})"
    yield "weights", f"{size(plan.weights)} as {plan.dtype}, {size(plan.stored)} on disk"
    if plan.dequantised:
        more = (
            f"{plan.dequantised:,} quantised parameters, {size(plan.unpacking)} more than on disk"
        )
        yield "unpacked", more
    yield "a request", f"{size(plan.ring)} + {size(plan.per_1k_tokens)} per 1k tokens"
    yield "full context", f"{size(plan.context_bytes)} for {plan.context:,} tokens"
    kept = f"{size(plan.cached_per_1k_tokens)} per 1k tokens that it keeps"
    yield "prefix cache", f"{kept}, at most {size(plan.prefix_bytes)}"
    available = "unknown" if plan.available is None else size(plan.available)
    yield "verdict", f"{plan.verdict}: {size(plan.needed)} needed, {available} available"
    for note in plan.notes:
        yield "note", note


def _shares(plan: Plan) -> str:
    whole = max(plan.parameters, 1)
    return ", ".join(f"{kind} {count / whole:.1%}" for kind, count in plan.encodings.items())


def size(count: int) -> str:
    """``count`` bytes in a unit that fits: "1.50 GiB"."""
    value, unit = float(count), "B"
    for larger in ("KiB", "MiB", "GiB", "TiB"):
        if abs(value) < 1024:
            break
        value, unit = value / 1024, larger
    return f"{value:.0f} {unit}" if unit == "B" else f"{value:.2f} {unit}"
