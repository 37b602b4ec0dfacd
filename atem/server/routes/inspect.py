"""``/inspect``: a page that shows what the parser makes of a turn.

Rules: the page's files need no key, since there is nothing in them; whatever
reads a turn, or one that was kept, does. A turn is parsed in a thread.
"""

from __future__ import annotations

import asyncio
import re
from typing import TYPE_CHECKING, Any, Final

from starlette.responses import Response
from starlette.routing import Route

from ...errors import AtemError
from ...parser.options import Options, ParserOptions
from ...responses.faults import ApiError, bad_value, not_found
from ...trace.pieces import MOST_CHARACTERS, cut, read_pieces
from ...trace.tracer import trace
from ..http import answer, endpoint
from ..inspector.page import HEADERS, MEDIA, PAGE, asset
from .paging import whole_number

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from starlette.requests import Request

    from ...parser.options import Reason
    from ...tokenizer import Tokenizer
    from ..http import Call

MOST_BODY: Final = 16 * MOST_CHARACTERS
"""Bytes: the text in escapes, as much again for the tools."""

TURN: Final = re.compile("[0-9]{1,9}")
KEPT_PRIVATE: Final = {"cache-control": "no-store"}

FIELDS: Final = tuple(
    name for name in ParserOptions.__annotations__ if name not in ("tokenizer", "new_id")
)
"""The parser's options that a body may have: all that JSON has."""


def routes() -> list[Route]:
    """The routes of this file."""
    return [
        Route("/inspect", _if_on(page), methods=["GET"]),
        Route("/inspect/trace", _if_on(endpoint(traced)), methods=["POST"]),
        Route("/inspect/live", _if_on(endpoint(listed))),
        Route("/inspect/live/{id}/{turn}", _if_on(endpoint(followed))),
        Route("/inspect/{name}", _if_on(page), methods=["GET"]),
    ]


def _if_on(handler: Callable[[Request], Awaitable[Any]]) -> Callable[[Request], Awaitable[Any]]:
    async def asked(request: Request) -> Any:
        if not request.app.state.service.settings.inspect:
            raise not_found("There is no inspector here; see the option inspect.")
        return await handler(request)

    return asked


async def page(request: Request) -> Response:
    """A file of the page, or the page itself."""
    name = request.path_params.get("name", PAGE)
    if name not in MEDIA:
        raise not_found(f"The inspector has no file {name[:100]!r}.")
    return Response(asset(name), headers={**HEADERS, "content-type": MEDIA[name]})


async def traced(call: Call) -> Response:
    """The trace of a turn that the body brings as ``text`` or in ``pieces``."""
    body = await call.body(MOST_BODY)
    return await asyncio.to_thread(_told, _trace, body, call.service.tokenizer)


async def listed(call: Call) -> Response:
    """The responses whose turns are kept for whoever asks."""
    live = call.service.live
    return _told(lambda: {"most": live.most, "data": live.listed(call.tenant)})


async def followed(call: Call) -> Response:
    """The trace of a kept turn behind its first ``after`` steps."""
    after = whole_number("after", call.query.get("after", "0"), least=0)
    if not TURN.fullmatch(call.path["turn"]):
        raise not_found("There is no such turn.")
    turn = call.service.live.turn(call.tenant, call.path["id"], int(call.path["turn"]))
    return await asyncio.to_thread(_told, turn.steps, after)


def _told(work: Callable[..., Any], *given: Any) -> Response:
    """What ``work`` gives, as an answer; both may be long."""
    return answer(work(*given), headers=KEPT_PRIVATE)


def _trace(body: dict[str, Any], tokenizer: Tokenizer | None) -> dict[str, Any]:
    try:
        reason: Reason = body.get("reason", "stop")
        return trace(_pieces(body, tokenizer), reason, **_options(body))
    except ApiError:
        raise
    except AtemError as error:
        raise bad_value(None, str(error)) from error


def _pieces(body: dict[str, Any], tokenizer: Tokenizer | None) -> list[Any]:
    if body.get("pieces") is not None:
        return read_pieces(body["pieces"])
    text = body.get("text")
    if not isinstance(text, str):
        raise bad_value("text", "Send the turn as text, or in pieces.")
    if len(text) > MOST_CHARACTERS:
        raise bad_value("text", f"A trace has at most {MOST_CHARACTERS} characters.")
    how = body.get("cut", "words")
    return [*cut(text, how, tokenizer)]


def _options(body: dict[str, Any]) -> dict[str, Any]:
    """The parser's options in a body; what it doesn't name has its default."""
    if body.get("unknown") == "raise":
        raise bad_value("unknown", "unknown is reject, forward or content here.")
    found: dict[str, Any] = {}
    for name in FIELDS:
        if body.get(name) is not None:
            found[name] = _option(name, body[name], found.get("tools"))
    return found


def _option(name: str, value: Any, tools: Any) -> Any:
    """``value`` as the parser takes it, beside ``tools`` if it is not these."""
    try:
        return getattr(Options.of({"tools": tools, name: value}), name)
    except AtemError as error:
        raise bad_value(name, str(error)) from error
