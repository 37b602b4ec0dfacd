"""``python -m atem.cli.serve``: the command ``atem-serve`` without its entry point."""

from __future__ import annotations

import sys

from . import main

if __name__ == "__main__":
    sys.exit(main())
