"""The folder that a conversation is about, in memory, with the agent's own tools.

Rules: a result here is byte for byte what the real tool gives in a real folder
(a test compares them); only names and short texts occur, so no bound is met.
"""

from __future__ import annotations

import tempfile
from dataclasses import dataclass, field
from difflib import SequenceMatcher
from typing import Any, Final

import atem
from atem.agent import calculate, file_tools

with tempfile.TemporaryDirectory() as _folder:
    TOOLS: Final = atem.ToolSet([*file_tools(_folder, allow_write=True), calculate])
    READ_ONLY: Final = atem.ToolSet([*file_tools(_folder), calculate])
"""The two sets of tools that nano knows; here for their declarations alone."""


@dataclass
class World:
    """Files by path."""

    files: dict[str, str] = field(default_factory=dict)

    def entries(self, folder: str) -> list[str]:
        """The names in ``folder``, sorted, folders with "/" behind them."""
        inside = "" if folder == "." else folder.rstrip("/") + "/"
        below = [path[len(inside) :] for path in self.files if path.startswith(inside)]
        names = {path.split("/")[0]: "/" if "/" in path else "" for path in below}
        return [name + names[name] for name in sorted(names)]

    def run(self, name: str, arguments: dict[str, Any]) -> str:
        """The result of a call, an error's sentence included."""
        try:
            return str(getattr(self, name)(**arguments))
        except Exception as error:  # noqa: BLE001 - as the agent's loop does
            return f"{type(error).__name__}: {error}"

    def list_files(self, path: str = ".") -> str:
        """As the real one."""
        return "\n".join(self.entries(path))

    def read_file(self, path: str) -> str:
        """As the real one."""
        if path not in self.files:
            raise FileNotFoundError(f"there is no {path!r}; there are {self._nearest(path)}")
        return self.files[path]

    def search(self, text: str) -> str:
        """As the real one."""
        lines = [
            f"{path}:{number}: {line}"
            for path in sorted(self.files)
            for number, line in enumerate(self.files[path].split("\n"), 1)
            if text in line
        ]
        return "\n".join(lines) or "(no match)"

    def write_file(self, path: str, content: str) -> str:
        """As the real one."""
        self.files[path] = content
        return f"Wrote {len(content.encode())} bytes to {path}."

    def calculate(self, expression: str) -> str:
        """The real one."""
        return calculate(expression)

    def _nearest(self, path: str) -> str:
        folder, _, name = path.rpartition("/")
        names = sorted(self.entries(folder or "."), key=lambda each: (-_likeness(each, name), each))
        return ", ".join(f"{folder}/{each}" if folder else each for each in names[:3])


def _likeness(one: str, other: str) -> float:
    return SequenceMatcher(None, one.casefold(), other.casefold()).ratio()
