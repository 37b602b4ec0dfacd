"""A schema's pattern, looked for in a text that a model wrote.

Rules: one dialect, the regex module's (it knows more of JSON Schema's syntax
than re), and one bound on the time. Imported where a schema has a pattern.
"""

from __future__ import annotations

from typing import Final

import regex

SECONDS: Final = 0.25
"""Time for one search, and again for each MiB of text."""

UNREADABLE: Final = (regex.error, TypeError, OverflowError)
"""What a search raises for what is no pattern of the dialect."""


def occurs(pattern: str, text: str) -> bool | None:
    """Whether ``pattern`` is found in ``text``; None if that takes too long."""
    try:
        return regex.search(pattern, text, timeout=SECONDS * (1 + len(text) / 2**20)) is not None
    except TimeoutError:
        return None
