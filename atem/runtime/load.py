"""``atem.load``: the engine for whatever a path or an address names.

Rules: nothing is printed. What will be needed is known before the first weight
is read, and a checkpoint that can't fit is refused then.
"""

from __future__ import annotations

from contextlib import closing
from dataclasses import replace
from typing import TYPE_CHECKING, Any, cast

from ..engine import Progress
from ..errors import OptionError, OutOfMemory, RopeUndecided
from .backends import choose, needs_of
from .embedded import NANO, located
from .layouts import open_checkpoint
from .plan import Plan, plan_checkpoint
from .probe import open_settled

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from pathlib import Path

    from ..engine import Engine
    from .backends import EngineClass
    from .checkpoint import RopeStyle


def load(
    source: str | Path,
    *,
    backend: str = "auto",
    progress: Callable[[Progress], None] | None = None,
    rope_style: RopeStyle | None = None,
    probe: bool | None = None,
    check_memory: bool = True,
    **options: Any,
) -> Engine:
    """An engine for the checkpoint at a path, or for the server at an ``http(s)://`` address.

    "nano" is the checkpoint that comes with the package.
    ``backend`` is "torch", "reference", "remote", the name of an entry point of
    the group ``atem.engines``, or "auto": remote for an address, reference for
    "nano" without options, else torch if it is installed, else reference.
    ``progress`` hears the plan first (stage "plan", ``total`` bytes needed), then
    each step. ``rope_style`` says how an old export's q and k rows lie; ``probe``
    lets the loss of a short text
    decide it (None: only where the checkpoint is small). ``check_memory=False``
    loads even what can't fit by the plan. ``options`` are the engine's own, and
    one that it doesn't have is refused.

    Raises CheckpointError, OptionError, OutOfMemory, MissingExtra, RemoteError.
    """
    address = str(source)
    if is_address(address):
        _require(backend in ("auto", "remote"), f"backend={backend!r} can't serve an address")
        given = {"rope_style": rope_style, "probe": probe}
        _require(not any(given.values()), "rope_style and probe are about a checkpoint on disk")
        return cast("Engine", choose("remote", options)(address, **options))
    engine = choose_local(address, backend, options)
    checkpoint = open_settled(
        located(source), rope_style=rope_style, probe=probe, progress=progress
    )
    try:
        planned = plan_checkpoint(checkpoint, needs_of(engine, checkpoint, options))
        if progress is not None:
            progress(Progress("plan", 0, planned.needed))
        if check_memory:
            _require_room(planned)
        return cast("Engine", engine(checkpoint, progress=progress, **options))
    except BaseException:
        checkpoint.close()
        raise


def choose_local(source: str | Path, backend: str, options: Mapping[str, Any]) -> EngineClass:
    """The engine for a checkpoint on disk; raises OptionError where a server is meant."""
    _require(str(source) != "", "the path is empty; name a folder, a .gguf file or an address")
    _require(not is_address(str(source)), f"{source} is a server; it has no checkpoint to look at")
    _require(backend != "remote", f"backend='remote' needs an http(s) address, not '{source}'")
    if backend == "auto" and str(source) == NANO and not options:
        backend = "reference"  # so little work for each token that torch's threads cost more
    return choose(backend, options)


def is_address(source: str) -> bool:
    """Whether ``source`` names a server and not a file."""
    return source.lower().startswith(("http://", "https://"))


def plan(
    path: str | Path,
    *,
    backend: str = "auto",
    rope_style: RopeStyle | None = None,
    **options: Any,
) -> Plan:
    """What loading the checkpoint at ``path`` would take.

    Headers are read, and a few rows that give an old export away; one whose row
    order is in doubt is planned all the same, with a note. ``options`` are the
    engine's own. Raises as :func:`load`, without OutOfMemory and RemoteError.
    """
    engine = choose_local(path, backend, options)
    path = located(path)
    doubt: tuple[str, ...] = ()
    try:
        checkpoint = open_checkpoint(path, rope_style=rope_style)
    except RopeUndecided as error:  # sizes are the same in either order
        doubt = (str(error),)
        checkpoint = open_checkpoint(path, rope_style="half")
    with closing(checkpoint):
        found = plan_checkpoint(checkpoint, needs_of(engine, checkpoint, options))
    return replace(found, notes=found.notes + doubt)


def _require_room(plan: Plan) -> None:
    if plan.verdict != "does not fit":
        return
    gib = 1024**3
    raise OutOfMemory(
        f"{plan.path}: its weights take {plan.weights / gib:.1f} GiB as {plan.dtype} and "
        f"{plan.needed / gib:.1f} GiB are needed in all, {(plan.available or 0) / gib:.1f} GiB are "
        "free; use a smaller dtype or another device, or check_memory=False to try it anyway"
    )


def _require(holds: bool, text: str) -> None:
    if not holds:
        raise OptionError(text)
