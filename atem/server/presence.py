"""Whether the client is still there.

Rules: nothing goes on for a client that has left; whoever works for one is
cancelled at once and cleans up.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, TypeVar

if TYPE_CHECKING:
    from collections.abc import Coroutine

    from starlette.types import Receive

T = TypeVar("T")


class Gone(Exception):
    """The client has closed the connection, or is given up."""


async def unless_gone(
    receive: Receive, work: Coroutine[None, None, T], *signs: Coroutine[None, None, None]
) -> T:
    """What ``work`` returns; it is cancelled, and Gone raised, if the client leaves first.

    The request's body must have been read. ``signs`` return if the client is as good as gone.
    """
    working = asyncio.ensure_future(work)
    leaving = [asyncio.ensure_future(sign) for sign in (_left(receive), *signs)]
    try:
        await asyncio.wait({working, *leaving}, return_when=asyncio.FIRST_COMPLETED)
        if not working.done():
            raise Gone
        return working.result()
    finally:
        for task in (working, *leaving):
            task.cancel()
        await asyncio.gather(working, *leaving, return_exceptions=True)


async def _left(receive: Receive) -> None:
    while (await receive())["type"] != "http.disconnect":
        pass
