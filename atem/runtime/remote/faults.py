"""What went wrong with a server, as an error that tells no secret and has an end.

Rules: a server's words are quoted on one line, cut, and without the key. A
prompt that is too long is the one refusal with a type of its own.
"""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING, Any, Final

from ...errors import ContextOverflow, EngineError, RemoteError
from .address import host_of

if TYPE_CHECKING:
    from collections.abc import Iterable

QUOTED: Final = 400
"""Characters of a server's message that an error repeats."""

_BODY: Final = 64 * 1024
_TOO_LONG: Final = re.compile(
    r"context[ _-]?(length|size|window)|max_model_len|too (long|many tokens)", re.IGNORECASE
)
_WORDS: Final = ("error", "message", "detail", "msg")
_NEXT: Final = {
    401: "check api_key=",
    403: "check api_key= and what it may do",
    404: "check url= and model=",
    429: "the server is busy; try again later",
    503: "the server is busy or still loading; try again later",
}


class Faults:
    """Makes the errors of one engine; ``secret`` stands in none of them."""

    def __init__(self, where: str, secret: str = "") -> None:
        self._where = where
        self._secret = secret

    def error(self, message: str, status: int | None = None, *, late: bool = False) -> RemoteError:
        """``message`` with the address before it."""
        return RemoteError(f"{self._where}: {self._clean(message)}", status, late=late)

    def said(self, payload: object) -> RemoteError:
        """The error that a server reported in its stream."""
        return self.error(f"the server broke off: {_message(payload) or 'without a reason'}")

    def refused(self, status: int, body: bytes) -> EngineError:
        """The error for an answer of ``status`` with ``body``."""
        said = self._clean(_message(_decoded(body)))
        if status in (400, 413) and _TOO_LONG.search(said):
            return ContextOverflow(f"{self._where}: {said}; shorten the prompt or the answer")
        advice = f"; {_NEXT[status]}" if status in _NEXT else ""
        return self.error(f"HTTP {status}: {said or 'no message'}{advice}", status)

    def moved(self, status: int, location: str) -> RemoteError:
        """The error for a redirection, which is never followed: the key is for one host."""
        target = f" to host {host_of(location)!r}" if host_of(location) else ""
        return self.error(f"HTTP {status} points elsewhere{target}; give the final url=", status)

    def quoted(self, text: str, size: int = 200) -> str:
        """The beginning of ``text`` in quotes. What is cut was cleaned before."""
        return repr(self._clean(text)[:size])

    def _clean(self, text: str) -> str:
        if self._secret:
            text = text.replace(self._secret, "***")
        printable = "".join(char if char.isprintable() else " " for char in text[: 4 * QUOTED])
        line = " ".join(printable.split())
        return line if len(line) <= QUOTED else line[:QUOTED] + "..."


def bounded(chunks: Iterable[bytes], limit: int = _BODY) -> bytes:
    """The first ``limit`` bytes of a body, or fewer; the rest is not read."""
    body = bytearray()
    for chunk in chunks:
        body += chunk
        if len(body) >= limit:
            break
    return bytes(body[:limit])


def _decoded(body: bytes) -> object:
    try:
        return json.loads(body)
    except (ValueError, RecursionError):
        return body.decode("utf-8", "replace")


def _message(payload: object, depth: int = 4) -> str:
    """The words in the shapes that servers use: error.message, error, message, detail."""
    if isinstance(payload, str) or depth == 0:
        return payload if isinstance(payload, str) else ""
    if isinstance(payload, list):
        return "; ".join(filter(None, (_message(part, depth - 1) for part in payload[:4])))
    if not isinstance(payload, dict):
        return ""
    found: Any = next((payload[key] for key in _WORDS if payload.get(key)), "")
    return _message(found, depth - 1)
