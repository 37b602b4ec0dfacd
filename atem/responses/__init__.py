"""The Responses API as data: a request becomes a conversation, a turn becomes items and events.

Rules: no server, no IO, no clock, no thread. Times, ids and keys come in as
arguments; everything that goes out is plain dicts, ready for ``json.dumps``.
Names are loaded on first use: ``from_request`` reads a body, ``ResponseStream``
answers it, ``to_items`` makes items of a finished turn. Chat Completions and
Anthropic's Messages are projections, in :mod:`atem.responses.chat` and
:mod:`atem.responses.anthropic`.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from .answer import new_builder as new_builder
    from .ask import Ask as Ask
    from .blob import Blobs as Blobs
    from .builder import ResponseBuilder as ResponseBuilder
    from .faults import ApiError as ApiError
    from .ids import new_id as new_id
    from .items import to_items as to_items
    from .request import from_request as from_request
    from .stream import ResponseStream as ResponseStream
    from .tools import ClientTools as ClientTools
    from .truncation import input_tokens as input_tokens
    from .truncation import truncate as truncate

_EXPORTS: Final[dict[str, str]] = {
    "new_builder": "answer",
    "Ask": "ask",
    "Blobs": "blob",
    "ResponseBuilder": "builder",
    "ApiError": "faults",
    "new_id": "ids",
    "to_items": "items",
    "from_request": "request",
    "ResponseStream": "stream",
    "ClientTools": "tools",
    "input_tokens": "truncation",
    "truncate": "truncation",
}
"""Public name -> the module that holds it."""

__all__ = sorted(_EXPORTS)  # noqa: PLE0605


def __getattr__(name: str) -> Any:
    if name not in _EXPORTS:
        raise AttributeError(f"module 'atem.responses' has no attribute {name!r}")
    value = getattr(import_module(f".{_EXPORTS[name]}", __name__), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted([*__all__, *(name for name in globals() if name.startswith("__"))])
