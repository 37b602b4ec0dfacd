"""Run one function of a driver: ``run.py MODULE FUNCTION URL``; what it returns is printed as JSON.

Rules: a driver uses its library as that library's page shows it, and knows
nothing of the server but its address. Nothing here imports atem.
"""

import importlib
import json
import sys

module, function, url = sys.argv[1:]
found = getattr(importlib.import_module(module), function)(url)
sys.stdout.write(f"\n{json.dumps(found)}\n")
