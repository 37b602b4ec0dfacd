"""The checkpoint that comes with the package, by its name.

Rules: a name is that of a folder beside this file and of nothing else; a folder
of the user's that is called so is reached as ``./nano``.
"""

from __future__ import annotations

from pathlib import Path
from typing import Final

from ..errors import CheckpointError

NANO: Final = "nano"
"""A small model for trying things out, in the shape of the large one."""

_FOLDER: Final = Path(__file__).parent


def located(source: str | Path) -> str | Path:
    """``source``, or the folder of the checkpoint that it names.

    Raises CheckpointError if this installation doesn't have it.
    """
    if source != NANO:
        return source
    folder = _FOLDER / NANO
    if not (folder / "config.json").is_file():
        raise CheckpointError(
            f"{NANO!r} is the checkpoint that comes with atem, and this installation lacks it "
            f"({folder}); install atem again, or name another (./{NANO} for a folder of yours)"
        )
    return folder
