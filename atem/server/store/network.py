"""What the stores behind a network share: their keys, their address, and that they may be away.

Rules: an id that a client sent is a key of bounded length and plain characters,
or the hash of one. No error holds the address, which may hold a password.
"""

from __future__ import annotations

import re
from hashlib import sha256
from typing import Final

from ...errors import AtemError, OptionError

PLAIN: Final = re.compile(r"[A-Za-z0-9_.-]{0,120}")
NAME: Final = re.compile(r"[a-z][a-z0-9_]{0,39}")
PLACE: Final = re.compile(r"\w+://(?:[^/?#]*@)?[^@]*")
SECONDS: Final = 20.0
"""That an answer may take."""

POLL: Final = 0.2
"""What other servers write is looked for so often."""

CONNECTIONS: Final = 16
"""Of one server, at most."""


class StoreUnreachable(AtemError, ConnectionError):
    """The store doesn't answer now, or can't do what it was asked to."""


def key_of(text: str) -> str:
    """``text`` as a key; no two texts have the same, and no key has a colon."""
    if PLAIN.fullmatch(text):
        return text
    return "sha256=" + sha256(text.encode("utf-8", "surrogatepass")).hexdigest()


def check(url: str, name: str, schemes: tuple[str, ...]) -> None:
    """Raises OptionError for an address or a name that can't work."""
    if url.partition("://")[0] not in schemes:
        raise OptionError(f"store_url begins with {' or '.join(f'{each}://' for each in schemes)}")
    if not PLACE.fullmatch(url):
        # Else a part of a password would pass for the address, and be shown as that.
        raise OptionError("store_url: write / ? # and @ in a password as %2F %3F %23 and %40")
    if not NAME.fullmatch(name):
        raise OptionError(f"store_name={name!r}; it has up to 40 of a-z, 0-9 and _, a letter first")
