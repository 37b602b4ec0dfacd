"""A request sent and its answer read, event by event, as deltas.

Rules: whatever can't be understood becomes RemoteError here, with the server's
address.
"""

from __future__ import annotations

import contextlib
from typing import TYPE_CHECKING, Any

from .answers import Fields, Malformed, chat_chunk, completion, llama_completion
from .bodies import encoded
from .events import objects
from .servers import LLAMA_CPP, Server

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from .answers import Delta, Read
    from .faults import Faults
    from .line import Client, Line

CHAT_PATH = "/v1/chat/completions"


def shape_of(server: Server, *, chat: bool) -> tuple[str, Read]:
    """Where to send a request, and how to read an event of its answer."""
    if chat:
        return CHAT_PATH, chat_chunk
    return server.path, llama_completion if server.path == LLAMA_CPP.path else completion


def deltas(
    client: Client,
    line: Line,
    path: str,
    body: Mapping[str, Any],
    read: Read,
    *,
    short: bool = False,
) -> Iterator[Delta]:
    """What each event of the answer adds; a ``short`` answer has to be over within the timeout.

    Raises what ``Line.open`` and ``objects`` raise.
    """
    response = line.open(path, encoded(body))
    with line.within(client.patient) if short else contextlib.nullcontext():
        for event in objects(line, response, client.faults):
            with understood(client.faults):
                delta = read(Fields(event))
            yield delta


@contextlib.contextmanager
def understood(faults: Faults) -> Iterator[None]:
    """Malformed as RemoteError."""
    try:
        yield
    except Malformed as error:
        raise faults.error(str(error)) from None
