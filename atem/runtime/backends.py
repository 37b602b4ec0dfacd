"""Which engine serves a checkpoint, and which options it has.

Rules: an engine is imported when it is chosen and not before. One that can't be
imported is named with what installs it; an option that it doesn't have is refused.
"""

from __future__ import annotations

import inspect
from importlib import import_module
from importlib.metadata import entry_points
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any, Final, NamedTuple, TypeAlias, cast

from ..errors import MissingExtra, OptionError
from .memory import Needs, available_memory

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from .checkpoint import Checkpoint

    EngineClass: TypeAlias = Callable[..., Any]
    """Called with a checkpoint (or an address), its options and ``progress=``."""


class Backend(NamedTuple):
    """Where an engine is, and the extra without which it can't be imported."""

    module: str
    name: str
    extra: str


BACKENDS: Final = {
    "reference": Backend("atem.runtime.reference", "ReferenceEngine", "engine"),
    "torch": Backend("atem.runtime.cuda", "TorchEngine", "cuda"),
    "remote": Backend("atem.runtime.remote", "RemoteEngine", "remote"),
}
GROUP: Final = "atem.engines"
"""Entry points of other packages: classes that are called like ours."""


def choose(backend: str, options: Mapping[str, Any]) -> EngineClass:
    """The engine that ``backend`` names; "auto" is torch where it is installed, else reference.

    Raises OptionError for an unknown name and for options that the engine
    doesn't have, MissingExtra for one that can't be imported.
    """
    name = _automatic() if backend == "auto" else backend
    engine = _imported(name, BACKENDS[name]) if name in BACKENDS else _plug_in(name)
    known = [
        option
        for option, parameter in inspect.signature(engine).parameters.items()
        if parameter.kind is inspect.Parameter.KEYWORD_ONLY and option != "progress"
    ]
    if unknown := sorted(options.keys() - set(known)):
        absent = backend == "auto" and name == "reference"
        hint = " (torch's engine needs an extra: pip install 'muse-atem[cuda]')" if absent else ""
        raise OptionError(
            f"{', '.join(unknown)}: no option of {engine.__name__}; it has {', '.join(known)}{hint}"
        )
    return engine


def needs_of(engine: EngineClass, checkpoint: Checkpoint, options: Mapping[str, Any]) -> Needs:
    """What ``engine`` would use, by its static method ``needs(checkpoint, **options)``.

    One without is taken to use float32 in this machine's memory, and to mean by
    ``context`` and ``prefix_bytes``, if it has them, what ours do.
    """
    if hasattr(engine, "needs"):
        return cast("Needs", engine.needs(checkpoint, **options))
    defaults = inspect.signature(engine).parameters
    given = {
        name: options.get(name, defaults[name].default if name in defaults else None)
        for name in ("context", "prefix_bytes")
    }
    context = given["context"] or checkpoint.config.max_position_embeddings
    return Needs("float32", available_memory(), context, given["prefix_bytes"] or 0)


def _automatic() -> str:
    return "torch" if find_spec("torch") is not None else "reference"


def _imported(name: str, backend: Backend) -> EngineClass:
    try:
        found = getattr(import_module(backend.module), backend.name)
    except ModuleNotFoundError as error:
        if (error.name or "atem").split(".")[0] == "atem":
            raise
        raise MissingExtra(backend.extra, f"the {name} engine ({error.name})") from error
    return cast("EngineClass", found)


def _plug_in(name: str) -> EngineClass:
    found = {point.name: point for point in entry_points(group=GROUP)}
    if name not in found:
        names = ", ".join(["auto", *BACKENDS, *found])
        raise OptionError(f"backend={name!r} is none of {names}")
    try:
        return cast("EngineClass", found[name].load())
    except Exception as error:
        owner = found[name].dist
        package = owner.name if owner else "an unknown package"
        raise OptionError(f"backend={name!r}, of {package}, can't be imported: {error}") from error
