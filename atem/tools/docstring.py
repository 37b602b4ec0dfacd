"""Docstrings: the part for the model, and the notes on parameters.

Rules: plain text, no markup library. Understands the three common styles
(Google, NumPy, Sphinx) as far as they are simple; what it doesn't understand
stays description.
"""

from __future__ import annotations

import inspect
import re
from typing import Final

PARAMETERS: Final = ("args", "arguments", "parameters", "params", "keyword args")
SECTIONS: Final = (
    *PARAMETERS,
    "returns",
    "return",
    "yields",
    "raises",
    "examples",
    "example",
    "note",
    "notes",
    "see also",
    "references",
    "warnings",
    "warns",
)

_SPHINX = re.compile(r":(?:param|parameter|arg|argument)\s+(?:[^:\n]*\s)?\*{0,2}(\w+):\s*(.*)")
_FIELD = re.compile(r":\w+[^:\n]*:")
_GOOGLE = re.compile(r"\*{0,2}(\w+)\s*(?:\([^\n]*?\))?:\s*(.*)")
_NUMPY = re.compile(r"\*{0,2}(\w+)\s*(?::.*)?$")


def split(text: str) -> tuple[str, dict[str, str]]:
    """The description (everything before the first section), and parameter -> its note."""
    lines = inspect.cleandoc(text).splitlines()
    start = next(
        (i for i in range(len(lines)) if _heading(lines, i) or _FIELD.match(lines[i])), None
    )
    description = "\n".join(lines[:start]).strip()
    return description, {} if start is None else _notes(lines[start:])


def _heading(lines: list[str], index: int) -> str | None:
    """The name of the section that begins at ``index``, in lower case, if one does."""
    title = lines[index].rstrip()
    underlined = index + 1 < len(lines) and re.fullmatch(r"-{3,}", lines[index + 1].rstrip())
    if not (title.endswith(":") or underlined):
        return None
    name = title.removesuffix(":").lower()
    return name if name in SECTIONS else None


def _notes(lines: list[str]) -> dict[str, str]:
    notes: dict[str, list[str]] = {}
    section, level, current = "", None, ""
    for index, line in enumerate(lines):
        text, indent = line.strip(), len(line) - len(line.lstrip())
        if heading := _heading(lines, index):
            section, level, current = heading, None, ""
        elif not text.strip("-"):
            continue
        elif entry := _entry(text, section, indent, level):
            current = entry[0]
            notes[current] = [entry[1]]
            level = indent if level is None else level
        elif current and indent > (level or 0):
            notes[current].append(text)
        else:
            current = ""
    return {key: " ".join(filter(None, note)) for key, note in notes.items() if any(note)}


def _entry(text: str, section: str, indent: int, level: int | None) -> tuple[str, str] | None:
    """A parameter's name and the first line of its note, if ``text`` begins one.

    ``level`` is the indent of the section's first entry: entries stand at it,
    continuations deeper. NumPy doesn't indent entries, Google does.
    """
    if found := _SPHINX.match(text):
        return found[1], found[2]
    if section not in PARAMETERS or indent != (indent if level is None else level):
        return None
    if indent and (found := _GOOGLE.match(text)):
        return found[1], found[2]
    if not indent and (found := _NUMPY.match(text)):
        return found[1], ""
    return None
