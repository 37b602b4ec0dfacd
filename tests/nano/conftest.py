"""The recipe's modules are scripts in a folder; here they are imported from it."""

from __future__ import annotations

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "examples" / "nano"))
