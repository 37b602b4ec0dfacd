"""Who may ask, and in whose name things are stored.

Rules: keys are kept as SHA-256 only, and compared in constant time, each with
all. Without keys the server listens to its own machine alone. A tenant is a
short hash of the key, so that no record and no log line holds one.
"""

from __future__ import annotations

import hmac
import re
from hashlib import sha256
from ipaddress import ip_address
from pathlib import Path
from typing import TYPE_CHECKING, Final

from ..errors import OptionError
from ..responses.faults import unauthorized

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from .settings import Settings

HASH: Final = "sha256:"
HASHED: Final = re.compile(r"sha256:([0-9a-f]{64})")
LEAST: Final = 8
"""Characters of a key."""

EVERYBODY: Final = ""
"""The tenant of a server without keys."""


class Keys:
    """The keys of a server. Empty: everybody may ask."""

    def __init__(self, keys: Iterable[str] = ()) -> None:
        self._digests = tuple(_digest(key) for key in keys)

    def __bool__(self) -> bool:
        return bool(self._digests)

    def tenant(self, headers: Mapping[str, str]) -> str:
        """In whose name a request with these headers asks. Raises ApiError (401).

        ``Authorization: Bearer`` or ``x-api-key``.
        """
        if not self._digests:
            return EVERYBODY
        given = _given(headers)
        if given is None:
            raise unauthorized("No API key: send it as Authorization: Bearer KEY, or x-api-key.")
        digest = sha256(given.encode("utf-8", "surrogateescape")).hexdigest()
        known = [hmac.compare_digest(digest, each) for each in self._digests]
        if not any(known):
            raise unauthorized()
        return digest[:16]


def _digest(key: str) -> str:
    if key.startswith(HASH):
        # One that is cut or mistyped would be a key itself, known to whoever sees the hash.
        hashed = HASHED.fullmatch(key.lower())
        if hashed is None:
            raise OptionError(f"an API key begins with {HASH} and has no 64 hex digits behind it")
        return hashed[1]
    if len(key) < LEAST:
        raise OptionError(f"an API key has {len(key)} characters; it has {LEAST} at least")
    return sha256(key.encode()).hexdigest()


def _given(headers: Mapping[str, str]) -> str | None:
    scheme, _, key = headers.get("authorization", "").partition(" ")
    if scheme.lower() == "bearer" and key.strip():
        return key.strip()
    return headers.get("x-api-key") or None


def keys_of(settings: Settings) -> Keys:
    """The keys of the settings and of their file.

    Raises OptionError for a key that can't work, and where other machines
    could ask without one.
    """
    keys = Keys([*settings.api_key, *_in_file(settings.api_key_file)])
    if not keys and not is_loopback(settings.host):
        raise OptionError(
            f"host={settings.host!r} can be reached by other machines and there is no API key; "
            "set ATEM_SERVE_API_KEY or api_key_file, or listen on 127.0.0.1"
        )
    return keys


def _in_file(file: str | None) -> list[str]:
    if file is None:
        return []
    try:
        lines = Path(file).read_text("utf-8").splitlines()
    except (OSError, ValueError) as error:
        raise OptionError(f"api_key_file={file!r} can't be read: {error}") from error
    keys = [line.strip() for line in lines if line.strip() and not line.startswith("#")]
    if not keys:
        raise OptionError(f"api_key_file={file!r} has no key in it")
    return keys


def is_loopback(host: str) -> bool:
    """Whether only this machine reaches ``host``; a name but "localhost" may be anything."""
    if host == "localhost":
        return True
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return False
