"""The address of a server, checked before anything is sent to it.

Rules: http and https only. Whatever in an address may be a secret is refused,
and is in no error text.
"""

from __future__ import annotations

import re
from typing import Final
from urllib.parse import SplitResult, urlsplit

from ...errors import OptionError

_VERSION_PATH: Final = "/v1"
_KEY: Final = re.compile(r"""[!#-&(-\[\]-~]+""")


def server_root(url: str) -> str:
    """``url`` without a trailing slash and without ``/v1``, with which it may end or not.

    Raises OptionError for another scheme, a missing host, or a user name, a
    password, a query or a fragment in it.
    """
    parts = _split(url)
    if parts.scheme not in ("http", "https") or not parts.hostname:
        raise OptionError("url= is no http or https address, such as http://127.0.0.1:8000/v1")
    if "@" in parts.netloc:
        raise OptionError("url= has a user name or password; pass a key as api_key=")
    if parts.query or parts.fragment:
        raise OptionError("url= has a query or a fragment; pass a key as api_key=")
    path = parts.path.rstrip("/").removesuffix(_VERSION_PATH).rstrip("/")
    return f"{parts.scheme}://{parts.netloc}{path}"


def host_of(url: str) -> str:
    """The host that ``url`` names, for messages; empty if it names none."""
    try:
        return urlsplit(url).hostname or ""
    except ValueError:
        return ""


def _split(url: str) -> SplitResult:
    try:
        parts = urlsplit(url)
        _ = parts.port
    except ValueError:
        raise OptionError("url= can't be read as an address; is its port a number?") from None
    return parts


def check_key(api_key: str | None) -> str:
    """The key, or "". Raises OptionError, without the key, for one that can't be one.

    Blanks can't stand in a header, quotes and backslashes would be escaped where
    a server repeats the key, and so be overlooked.
    """
    if api_key is None:
        return ""
    if not (isinstance(api_key, str) and _KEY.fullmatch(api_key)):
        raise OptionError(
            "api_key= is empty, or has blanks, quotes, backslashes or characters beyond ASCII"
        )
    return api_key
