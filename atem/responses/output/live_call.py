"""A call that is shown while it is written, before anybody knows whether it may run.

Rules: what is shown can't be taken back, so a function's arguments are never
complete JSON before the call is decided: their last character waits. A custom
tool's input is free text, which no such care can make harmless.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from .open_call import OpenFunction
from .unescape import Unescaper

if TYPE_CHECKING:
    from .open_call import OpenCall


class LiveCall:
    """The open ``item`` of the call that the parser announced as ``index``."""

    def __init__(self, index: int, item: OpenCall) -> None:
        self.index = index
        self._item = item
        self._unescaper = None if isinstance(item, OpenFunction) else Unescaper()
        self._held = ""
        self._shown = 0

    def grow(self, json: str) -> None:
        """The next piece of the arguments' JSON text."""
        if self._unescaper is not None:
            self._show(self._unescaper.feed(json))
            return
        text = self._held + json
        self._held = text[-1:]
        self._show(text[:-1])

    def show(self, text: str) -> None:
        """Show what is left of ``text``, its whole input."""
        self._show(text[self._shown :])

    def _show(self, text: str) -> None:
        self._item.grow(text)
        self._shown += len(text)
