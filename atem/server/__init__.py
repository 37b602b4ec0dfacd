"""The server: an engine behind the Responses, Chat Completions and Messages APIs.

Rules: Starlette and plain JSON; everything that a request means is decided by
:mod:`atem.responses`. Engines run in threads, everything else on one event
loop. Logs hold no text of a conversation and no key.

``app`` puts it together, ``settings`` are its options, ``service`` is what the
routes share. ``runs`` is one generation, ``jobs`` those in the background,
``store`` what is kept; ``routes`` has a file for each resource.
"""

from __future__ import annotations
