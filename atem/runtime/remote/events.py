"""A body of server-sent events as JSON objects, one for each event.

Rules: the body is UTF-8 whatever its headers say, as the format demands, and a
byte order mark before it is dropped. An event of endless length, one that is no
JSON object, and an error in the stream are RemoteError. What the body's end
cuts off is dropped; whoever reads on knows an end that was not announced.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from collections.abc import Iterator

    import httpx2

    from .faults import Faults
    from .line import Line

DONE: Final = "[DONE]"

LONGEST: Final = 16 * 1024 * 1024
"""Bytes of one event; a prompt's ids, which some servers repeat in the first, take one."""

_KIND: Final = "text/event-stream"


def objects(line: Line, response: httpx2.Response, faults: Faults) -> Iterator[dict[str, Any]]:
    """The objects until ``[DONE]`` or the body's end.

    Raises RemoteError for another content type, a failed connection, an event
    that is too long or no JSON object, and for an error that the server
    reports.
    """
    kind = response.headers.get("content-type", "").partition(";")[0].strip().lower()
    if kind != _KIND:
        start = faults.quoted(line.read(4000).decode("utf-8", "replace"))
        what = kind or "without a content type"
        raise faults.error(f"answered {what} where {_KIND} was asked for: {start}")
    for name, data in _events(line, response):
        if data.strip() == DONE:
            return
        yield _object(name, data, faults)


def _events(line: Line, response: httpx2.Response) -> Iterator[tuple[str, str]]:
    from httpx2 import EventSource

    response.encoding = "utf-8-sig"
    with line.faults():
        for event in EventSource(response, max_event_size=LONGEST):
            if event.data:
                yield event.event, event.data


def _object(name: str, data: str, faults: Faults) -> dict[str, Any]:
    try:
        value = json.loads(data)
    except (ValueError, RecursionError):
        raise faults.error(f"an event is no JSON: {faults.quoted(data)}") from None
    if not isinstance(value, dict):
        raise faults.error(f"an event is no JSON object: {faults.quoted(data)}")
    if value.get("error") or name == "error" or value.get("object") == "error":
        raise faults.said(value)
    return value
