"""The files of the page, and all of them in one file.

Rules: one table of files, nothing else can be asked for. The policy lets a
browser load what stands here and nothing else; in the single file the script
and the style are let in by their hashes.
"""

from __future__ import annotations

import re
from base64 import b64encode
from functools import cache
from hashlib import sha256
from importlib.resources import files
from typing import TYPE_CHECKING, Any, Final

from ...trace.records import line

if TYPE_CHECKING:
    from collections.abc import Mapping

PAGE: Final = "index.html"
MEDIA: Final[Mapping[str, str]] = {
    PAGE: "text/html; charset=utf-8",
    "inspector.css": "text/css; charset=utf-8",
    "turn.js": "text/javascript; charset=utf-8",
    "stage.js": "text/javascript; charset=utf-8",
    "page.js": "text/javascript; charset=utf-8",
    "examples.json": "application/json",
    "icon.svg": "image/svg+xml",
}
"""The files, with their media types."""

NOTHING_ELSE: Final = "base-uri 'none'; form-action 'none'; object-src 'none'"
POLICY: Final = f"default-src 'self'; {NOTHING_ELSE}; frame-ancestors 'none'"

HEADERS: Final[Mapping[str, str]] = {
    "content-security-policy": POLICY,
    "x-content-type-options": "nosniff",
    "referrer-policy": "no-referrer",
    "cross-origin-resource-policy": "same-origin",
    "cache-control": "no-cache",
}
"""Of every file."""

_STYLE: Final = re.compile(r'<link rel="stylesheet" href="inspect/([\w.]+)">')
_SCRIPT: Final = re.compile(r'<script src="inspect/([\w.]+)" defer></script>\n?')
_ICON: Final = re.compile(r'<link rel="icon"[^>]*>\n?')


@cache
def asset(name: str) -> bytes:
    """The file ``name``. Raises KeyError for one that is none of the page's."""
    MEDIA[name]
    return files(__package__).joinpath(name).read_bytes()


def standalone(shown: Mapping[str, Any]) -> bytes:
    """The page in one file that shows one trace and asks no server.

    ``shown`` is what the page takes: ``trace``, and a ``title``.
    """
    page = _ICON.sub("", asset(PAGE).decode())
    style = "".join(asset(name).decode() for name in _STYLE.findall(page))
    script = "".join(asset(name).decode() for name in _SCRIPT.findall(page))
    policy = (
        f"default-src 'none'; script-src {_hash(script)}; style-src {_hash(style)}; {NOTHING_ELSE}"
    )
    # In JSON "<" only stands in strings, so that its escape is the same text: no tag can end here.
    data = line(dict(shown)).decode().strip().replace("<", "\\u003c")
    head = f'<meta http-equiv="Content-Security-Policy" content="{policy}">\n'
    body = (
        f'<script type="application/json" id="shown">{data}</script>\n<script>{script}</script>\n'
    )
    page = _STYLE.sub(lambda _: f"{head}<style>{style}</style>", page)
    page = _SCRIPT.sub("", page)
    return page.replace("</body>", f"{body}</body>").encode()


def _hash(text: str) -> str:
    return f"'sha256-{b64encode(sha256(text.encode()).digest()).decode()}'"
