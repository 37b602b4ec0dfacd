"""The bare package stays cheap: slow libraries are loaded by the first use that needs them."""

from __future__ import annotations

import pkgutil
import subprocess
import sys

import atem.tools

PROGRAM = """
import sys
from atem.tools import Allow, Tool, ToolSet, by_name, validate

tools = ToolSet.of([Tool("read"), {"type": "function", "name": "post", "parameters": {"type": "object"}}])
assert tools.resolve("functions.read") is tools.get("read")
by_name({"read": Allow()})
print(sorted({"pydantic", "jsonschema", "referencing", "regex", "difflib"} & set(sys.modules)))
validate(tools.get("post"), {})
print(sorted({"pydantic", "jsonschema"} & set(sys.modules)))
"""


def test_declaring_and_resolving_load_nothing_slow_and_validating_only_jsonschema():
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM], capture_output=True, text=True, check=True
    )
    assert done.stdout.split("\n")[:2] == ["[]", "['jsonschema']"]


def test_no_module_takes_the_place_of_a_public_name():
    modules = {module.name for module in pkgutil.iter_modules(atem.tools.__path__)}
    assert len(modules) > 10
    assert modules.isdisjoint(atem.tools.__all__)
