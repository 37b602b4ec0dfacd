"""What a web page may ask of a server that wants no key.

Rules: a browser sends requests for any page to any address, this machine's
included. Without a key to tell them apart, a request is taken only under a name
of this machine, and only from a page that the settings name or that is its own.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from ..responses.faults import ApiError
from .auth import is_loopback

if TYPE_CHECKING:
    from collections.abc import Mapping

    from .settings import Settings

FORBIDDEN: Final = 403


def check_page(settings: Settings, headers: Mapping[str, str]) -> None:
    """Raise ApiError (403) for a request that a stranger's page may have made."""
    host = _name(headers.get("host", ""))
    known = (settings.host, *settings.allowed_host)
    if not is_loopback(host) and host not in map(str.lower, known):
        raise ApiError(
            f"This server has no keys and is not asked as {host[:100]!r}; see allowed_host.",
            status=FORBIDDEN,
        )
    if headers.get("origin") not in (f"http://{headers['host']}", f"https://{headers['host']}"):
        check_origin(settings, headers)  # else the page is this server's own


def check_origin(settings: Settings, headers: Mapping[str, str]) -> None:
    """Raise ApiError (403) for a page that the settings don't name."""
    origin = headers.get("origin")
    if origin is not None and origin not in settings.cors_origin:
        raise ApiError("This web origin may not ask; see cors_origin.", status=FORBIDDEN)


def _name(host: str) -> str:
    """A Host header without its port, in small letters."""
    if host.startswith("["):
        name, _, port = host[1:].partition("]")
        return name if not port or port.startswith(":") else host
    return host.partition(":")[0].lower()
