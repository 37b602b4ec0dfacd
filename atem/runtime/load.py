"""``atem.load``: the engine for whatever a path or an address names.

Rules: nothing is printed. What will be needed is known before the first weight
is read, and a checkpoint that can't fit is refused then.
"""

from __future__ import annotations

import inspect
from contextlib import closing
from dataclasses import replace
from importlib import import_module
from importlib.metadata import entry_points
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any, Final, NamedTuple, cast

from ..engine import Progress
from ..errors import MissingExtra, OptionError, OutOfMemory, RopeUndecided
from .layouts import open_checkpoint
from .plan import Plan, plan_checkpoint
from .probe import open_settled

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from pathlib import Path

    from ..engine import Engine
    from .checkpoint import Checkpoint, RopeStyle


class Backend(NamedTuple):
    """Where an engine is, and the extra without which it can't be imported."""

    module: str
    name: str
    extra: str


BACKENDS: Final = {
    "reference": Backend("atem.runtime.reference", "ReferenceEngine", "engine"),
    "torch": Backend("atem.runtime.cuda", "TorchEngine", "cuda"),
}
"""The engines that take a checkpoint. Others come by entry points of the group ``atem.engines``."""

REMOTE: Final = Backend("atem.runtime.remote", "RemoteEngine", "remote")


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

    ``backend`` is "torch", "reference", "remote", the name of an entry point of
    the group ``atem.engines``, or "auto": remote for an address, else torch if
    it is installed, else reference. ``progress`` hears the plan first (stage
    "plan", ``total`` bytes needed), then each step. ``rope_style`` says how an
    old export's q and k rows lie; ``probe`` lets the loss of a short text
    decide it (None: only where the checkpoint is small). ``check_memory=False``
    loads even what can't fit by the plan. ``options`` are the engine's own, and
    one that it doesn't have is refused.

    Raises CheckpointError, OptionError, OutOfMemory, MissingExtra, RemoteError.
    """
    address = str(source)
    if address.startswith(("http://", "https://")):
        _require(backend in ("auto", "remote"), f"backend={backend!r} can't serve an address")
        given = {"rope_style": rope_style, "probe": probe}
        _require(not any(given.values()), "rope_style and probe are about a checkpoint on disk")
        engine = _engine_class("remote", REMOTE)
        return cast("Engine", engine(address, **_checked(engine, options)))
    _require(backend != "remote", f"backend='remote' needs an http(s) address, not {address!r}")
    name = _choose(backend)
    engine = _engine_class(name, BACKENDS.get(name))
    options = _checked(engine, options)
    checkpoint = open_settled(source, rope_style=rope_style, probe=probe, progress=progress)
    try:
        needs = plan_checkpoint(checkpoint, **memory_of(engine, checkpoint, options))
        if progress is not None:
            progress(Progress("plan", 0, needs.needed))
        if check_memory:
            _require_room(needs)
        return cast("Engine", engine(checkpoint, progress=progress, **options))
    except BaseException:
        checkpoint.close()
        raise


def plan(
    path: str | Path,
    *,
    backend: str = "auto",
    rope_style: RopeStyle | None = None,
    **options: Any,
) -> Plan:
    """What loading the checkpoint at ``path`` would take; no weight is read.

    The options are those of :func:`load`. An old export whose row order is in
    doubt is planned all the same, with a note.
    """
    name = _choose(backend)
    engine = _engine_class(name, BACKENDS.get(name))
    options = _checked(engine, options)
    doubt: tuple[str, ...] = ()
    try:
        checkpoint = open_checkpoint(path, rope_style=rope_style)
    except RopeUndecided as error:  # sizes are the same in either order
        doubt = (str(error),)
        checkpoint = open_checkpoint(path, rope_style="half")
    with closing(checkpoint):
        found = plan_checkpoint(checkpoint, **memory_of(engine, checkpoint, options))
    return replace(found, notes=found.notes + doubt)


def memory_of(
    engine: Callable[..., Any], checkpoint: Checkpoint, options: Mapping[str, Any]
) -> dict[str, Any]:
    """The number type and the memory (bytes) that ``engine`` would load into.

    An engine class says so by a method ``memory(checkpoint, **options)`` that
    gives both; one without is taken to use float32 in this machine's memory.
    """
    asked = getattr(engine, "memory", None)
    if asked is None:
        return {"dtype": "float32"}
    dtype, available = asked(checkpoint, **options)
    return {"dtype": dtype, "available": available}


def _require_room(plan: Plan) -> None:
    if plan.verdict != "does not fit":
        return
    gib = 1024**3
    raise OutOfMemory(
        f"{plan.path}: its weights take {plan.weights / gib:.1f} GiB as {plan.dtype} and "
        f"{plan.needed / gib:.1f} GiB are needed in all, {(plan.available or 0) / gib:.1f} GiB are "
        "free; use a smaller dtype or another device, or check_memory=False to try it anyway"
    )


def _choose(backend: str) -> str:
    if backend != "auto":
        return backend
    return "torch" if find_spec("torch") is not None else "reference"


def _engine_class(name: str, backend: Backend | None) -> Callable[..., Any]:
    if backend is None:
        return _plug_in(name)
    try:
        found = getattr(import_module(backend.module), backend.name)
    except ModuleNotFoundError as error:
        if (error.name or "atem").split(".")[0] == "atem":
            raise
        raise MissingExtra(backend.extra, f"the {name} engine ({error.name})") from error
    return cast("Callable[..., Any]", found)


def _plug_in(name: str) -> Callable[..., Any]:
    found = {point.name: point for point in entry_points(group="atem.engines")}
    if name not in found:
        names = ", ".join(["auto", *BACKENDS, "remote", *found])
        raise OptionError(f"backend={name!r} is none of {names}")
    try:
        return cast("Callable[..., Any]", found[name].load())
    except Exception as error:
        owner = found[name].dist
        package = owner.name if owner else "an unknown package"
        raise OptionError(f"backend={name!r}, of {package}, can't be imported: {error}") from error


def _checked(engine: Callable[..., Any], options: dict[str, Any]) -> dict[str, Any]:
    """``options``, each of them a keyword that ``engine`` has."""
    known = [
        name
        for name, parameter in inspect.signature(engine).parameters.items()
        if parameter.kind is inspect.Parameter.KEYWORD_ONLY and name != "progress"
    ]
    if unknown := sorted(options.keys() - set(known)):
        raise OptionError(
            f"{', '.join(unknown)}: no option of {engine.__name__}; it has {', '.join(known)}"
        )
    return options


def _require(holds: bool, text: str) -> None:
    if not holds:
        raise OptionError(text)
