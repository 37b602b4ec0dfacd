"""A stream of events as an ASGI application: head, parts, and a client that leaves at any moment."""

from __future__ import annotations

import asyncio
import json

import pytest

from atem.responses.faults import bad_value
from atem.server.presence import Gone
from atem.server.streams import EventStream, sse


async def forever(closed):
    try:
        while True:
            yield b"data: {}\n\n"
            await asyncio.sleep(0)
    finally:
        closed.append(True)


@pytest.mark.parametrize("ticks", range(8))
@pytest.mark.parametrize("parts_before", [1, 2, 5])
def test_a_client_that_leaves_while_a_part_is_sent_always_ends_the_stream(ticks, parts_before):
    async def scenario():
        left, closed, sent = asyncio.Event(), [], []

        async def receive():
            await left.wait()
            return {"type": "http.disconnect"}

        async def send(message):
            sent.append(message)
            if len(sent) > parts_before:
                left.set()
            for _ in range(ticks):
                await asyncio.sleep(0)

        stream = EventStream(forever(closed), patience=5)
        async with asyncio.timeout(2):
            with pytest.raises(Gone):
                await stream({}, receive, send)
        return closed

    assert asyncio.run(scenario()) == [True]


def test_what_fails_before_the_first_part_is_raised_and_nothing_was_sent():
    async def scenario():
        async def refused():
            raise bad_value("input", "It is wrong.")
            yield b""

        async def receive():
            await asyncio.Event().wait()

        sent = []
        with pytest.raises(Exception, match="It is wrong"):
            await EventStream(refused(), patience=5)({}, receive, sent.append)
        return sent

    assert asyncio.run(scenario()) == []


def test_data_with_line_breaks_and_half_characters_stays_on_one_line():
    value = {"type": "x", "text": "a\n\r\u2028\ud800"}
    raw = sse(value)
    assert raw.count(b"\n") == 2
    assert b"\r" not in raw
    assert json.loads(raw.removeprefix(b"data: ")) == value
