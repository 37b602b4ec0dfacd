"""Import a released parser's modules without the engine around them.

Rules: touches only the running process, which is a worker that measures one
parser and ends.

``hollow`` registers a package whose ``__init__`` does not run, so that its
submodules import. ``stub`` makes whole packages importable as stand-ins whose
every attribute is a class that can be subclassed, called, subscripted and used
in annotations: enough for the modules that a parser only mentions.
"""

from __future__ import annotations

import importlib.abc
import sys
import types
from importlib.machinery import ModuleSpec
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path


def is_dunder(name: str) -> bool:
    """Whether Python itself asks for the name."""
    return name.startswith("__") and name.endswith("__")


class StandInType(type):
    """Type of a stand-in: as permissive as an annotation or a base class needs."""

    def __getattr__(cls, name: str) -> Any:
        if is_dunder(name):
            raise AttributeError(name)
        return stand_in(name)

    def __call__(cls, *args: Any, **kwargs: Any) -> Any:
        # A peer's own subclass is built with its arguments, a bare stand-in with none.
        if "stands_in" in cls.__dict__:
            return super().__call__()
        return super().__call__(*args, **kwargs)

    def __or__(cls, other: Any) -> Any:
        return object

    __ror__ = __or__

    def __getitem__(cls, item: Any) -> Any:
        return cls

    def __iter__(cls) -> Iterator[Any]:
        return iter(())

    def __len__(cls) -> int:
        return 0

    def __lt__(cls, other: Any) -> bool:
        return False

    __gt__ = __le__ = __ge__ = __lt__


class StandIn:
    """Behaviour of a stand-in's instances."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        pass

    def __call__(self, *args: Any, **_: Any) -> Any:
        # As a decorator it gives back what it decorates.
        return args[0] if args else self

    def __getattr__(self, name: str) -> Any:
        if is_dunder(name):
            raise AttributeError(name)
        return stand_in(name)()

    def __bool__(self) -> bool:
        return False


def stand_in(name: str) -> Any:
    """A new stand-in class."""
    members = {k: v for k, v in vars(StandIn).items() if k not in ("__dict__", "__weakref__")}
    return StandInType(name, (), {**members, "stands_in": True, "__module__": "stand_in"})


class StandInModule(types.ModuleType):
    """A module that has every attribute."""

    __path__: list[str] = []  # noqa: RUF012 - as an import system writes it
    __version__ = "0.0.0"

    def __getattr__(self, name: str) -> Any:
        if is_dunder(name):
            raise AttributeError(name)
        value = stand_in(name)
        setattr(self, name, value)
        return value


class Finder(importlib.abc.MetaPathFinder, importlib.abc.Loader):
    """Finds every module below its roots."""

    def __init__(self) -> None:
        self.roots: set[str] = set()

    def find_spec(self, fullname: str, path: Any = None, target: Any = None) -> ModuleSpec | None:
        """A spec for a stubbed module, or None."""
        del path, target
        if any(fullname == root or fullname.startswith(root + ".") for root in self.roots):
            return ModuleSpec(fullname, self, is_package=True)
        return None

    def create_module(self, spec: ModuleSpec) -> types.ModuleType:
        """The stand-in."""
        return StandInModule(spec.name)

    def exec_module(self, module: types.ModuleType) -> None:
        """Nothing to run."""


FINDER = Finder()


def stub(*roots: str) -> None:
    """Make these packages, and all below them, importable as stand-ins."""
    if FINDER not in sys.meta_path:
        sys.meta_path.insert(0, FINDER)
    FINDER.roots.update(roots)


def hollow(folder: Path, *names: str) -> None:
    """Register packages that lie under ``folder`` without running their ``__init__``."""
    for name in names:
        module = types.ModuleType(name)
        module.__path__ = [str(folder.joinpath(*name.split(".")))]
        module.__spec__ = ModuleSpec(name, None, is_package=True)
        vars(module)["__version__"] = "0.0.0"
        sys.modules[name] = module
        parent, _, leaf = name.rpartition(".")
        if parent in sys.modules:
            setattr(sys.modules[parent], leaf, module)
