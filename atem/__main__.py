"""``python -m atem``: which atem this is, and what it finds around it, for a bug report.

Rules: standard library only and no import of what it reports on, so that it
works where nothing else does.
"""

from __future__ import annotations

import platform
import sys
from importlib import metadata
from typing import TYPE_CHECKING, Final

from . import __version__
from .wire import VERSION

if TYPE_CHECKING:
    from collections.abc import Sequence

PACKAGES: Final = {
    "needs": ("pydantic", "regex", "jsonschema"),
    "extra [agent]": ("click", "rich"),
    "extra [engine]": ("numpy", "ml-dtypes", "safetensors", "tokenizers", "jinja2"),
    "others": ("torch", "gguf", "httpx2"),
}


def report() -> str:
    """A few lines: version, interpreter, and the version of each package or "missing"."""
    lines = [
        f"atem {__version__}, wire format {VERSION}",
        f"Python {platform.python_version()}, {platform.platform()}",
    ]
    for heading, names in PACKAGES.items():
        found = ", ".join(f"{name} {_version(name)}" for name in names)
        lines.append(f"{heading}: {found}")
    return "\n".join(lines)


def _version(package: str) -> str:
    try:
        return metadata.version(package)
    except metadata.PackageNotFoundError:
        return "missing"


def main(arguments: Sequence[str]) -> int:
    """Print the report; 2 if there are arguments, which belong to the command ``atem``."""
    if arguments:
        sys.stderr.write("atem: python -m atem takes no arguments; use the command atem\n")
        return 2
    sys.stdout.write(f"{report()}\n")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
