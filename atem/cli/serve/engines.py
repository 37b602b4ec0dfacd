"""The engine that the settings name.

Rules: what is loaded is decided by :mod:`atem.runtime.load`; a script is for
trying clients.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Final

from ...engine import Sampling
from ...errors import MissingExtra, OptionError
from ...runtime.embedded import NANO
from ..model import given, named_model, progress_bar, tokenizer_in

if TYPE_CHECKING:
    from ...engine import Engine
    from ...server.settings import Settings

SCRIPTED: Final = "scripted:"
REMOTE: Final = ("form", "timeout", "retries")
"""Options for a server as the engine; any other engine refuses them."""


def open_engine(settings: Settings) -> Engine:
    """Load it; without a name it is nano, which is said. Raises what ``atem.load`` raises."""
    name = named_model(settings.engine)
    if name.startswith(SCRIPTED):
        _refuse(settings, name)
        try:
            from ...testing.script_file import script_engine
        except ImportError as error:
            raise MissingExtra("engine", f"a script ({error.name})") from error
        return script_engine(name.removeprefix(SCRIPTED))
    from ...runtime.load import is_address, load

    options = {
        "backend": settings.backend,
        "device": settings.device,
        "dtype": settings.dtype,
        "context": settings.context,
        "model": settings.server_model,
        "tokenizer": tokenizer_in(settings.tokenizer),
        **{option: getattr(settings, option) for option in REMOTE},
        "api_key": os.environ.get("ATEM_API_KEY") if is_address(name) else None,
    }
    with progress_bar() as progress:
        return load(name, progress=progress, **given(options))


def _refuse(settings: Settings, name: str) -> None:
    """Raise OptionError for options that a script can't follow."""
    for option in REMOTE:
        if getattr(settings, option) is not None:
            raise OptionError(f"{option} is for a server as the engine, and {name!r} is a script")


def sampling_of(settings: Settings) -> Sampling | None:
    """How the model samples unasked; None leaves it to the checkpoint."""
    # A model this small knows one good answer; what is less likely is a mistake.
    return Sampling(temperature=0.0) if (settings.engine or NANO) == NANO else None
