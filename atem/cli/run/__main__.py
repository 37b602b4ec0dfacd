"""``python -m atem.cli.run``: the command ``atem-run`` without its entry point."""

from __future__ import annotations

import sys

from . import main

if __name__ == "__main__":
    sys.exit(main())
