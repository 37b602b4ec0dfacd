"""Many at once and slow ones: what waits is merged and bounded, and nothing is lost."""

from __future__ import annotations

import asyncio
import gc
import json
import socket
import threading
import time
import tracemalloc
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from atem.engine import Request, Step
from atem.errors import RemoteError
from atem.server.feed import MOST, Feed
from atem.server.handover import MOST_OFFERED, Waker
from atem.server.mailbox import Bell, Mailbox
from atem.server.merging import merged
from atem.server.pulse import Pulse
from atem.server.store.memory import MemoryStore
from atem.testing.pace import PacedEngine
from atem.testing.scripted import ScriptedEngine
from tests.server.running import (
    LONG,
    THOUGHT,
    Watched,
    block,
    invoke,
    paced,
    read_events,
    running,
    wait,
)
from tests.server.test_threads import in_thread

TEXT = "response.output_text.delta"


def delta(text, item="msg_1", kind=TEXT, logprobs=()):
    return {"type": kind, "item_id": item, "delta": text, "logprobs": list(logprobs)}


EVENTS = st.lists(
    st.builds(
        delta,
        st.text(max_size=3),
        st.sampled_from(["msg_1", "rs_1"]),
        st.sampled_from([TEXT, "response.reasoning_text.delta", "response.output_text.done"]),
        st.lists(st.integers(), max_size=2),
    )
)


def told(events):
    """All that a reader can know but for how it was cut: deltas character by character."""
    found = []
    for event in events:
        place = (event["type"], event["item_id"])
        if event["type"].endswith("delta"):
            found += [(*place, character) for character in event["delta"]]
        else:
            found.append((*place, event["delta"]))
    return found


@given(EVENTS)
def test_merging_changes_nothing_but_where_text_is_cut(events):
    whole = merged(events)
    assert told(whole) == told(events)
    assert [p for e in whole for p in e["logprobs"]] == [p for e in events for p in e["logprobs"]]


@given(EVENTS)
def test_no_two_deltas_of_one_text_are_left_beside_each_other_and_none_crosses_an_item(events):
    whole = merged(events)
    for first, second in pairwise(whole):
        same = (first["type"], first["item_id"]) == (second["type"], second["item_id"])
        assert not (same and first["type"].endswith("delta"))


@given(st.lists(EVENTS), st.lists(st.booleans()))
def test_numbers_have_no_gap_whatever_was_merged_and_whatever_heartbeats_went_between(lots, beats):
    pulse = Pulse("keepalive")
    sent = pulse.numbered([{"type": "response.in_progress"}])
    for number, events in enumerate(lots):
        sent += pulse.numbered(merged(events))
        sent += pulse.beat() if number < len(beats) and beats[number] else []
    assert [event["sequence_number"] for event in sent] == list(range(len(sent)))


def test_a_mailbox_holds_up_who_writes_until_it_is_read_and_loses_nothing():
    async def scenario():
        mailbox, written, read = Mailbox(4), [], []

        async def write():
            for number in range(50):
                await mailbox.put([{"type": "x", "number": number}])
                written.append(number)
            mailbox.end()

        writing = asyncio.ensure_future(write())
        await asyncio.sleep(0.01)
        held_up_at = len(written)
        while (events := await mailbox.take()) is not None:
            assert len(events) <= 5
            read += [event["number"] for event in events]
        await writing
        return held_up_at, read

    held_up_at, read = asyncio.run(scenario())
    assert held_up_at <= 5
    assert read == list(range(50))


def test_a_reader_that_is_cancelled_loses_nothing_and_one_that_is_gone_holds_up_nobody():
    async def scenario():
        mailbox = Mailbox(4)
        reading = asyncio.ensure_future(mailbox.take())
        await asyncio.sleep(0)
        await mailbox.put([{"type": "x"}])
        reading.cancel()
        await asyncio.sleep(0)
        taken = await mailbox.take()
        mailbox.close()
        for _ in range(100):
            await mailbox.put([{"type": "x"}])
        return taken

    assert asyncio.run(asyncio.wait_for(scenario(), 2)) == [{"type": "x"}]


def test_the_error_of_who_writes_comes_after_all_that_was_written():
    async def scenario():
        mailbox = Mailbox(4)
        await mailbox.put([{"type": "x"}])
        mailbox.end(ValueError("It broke."))
        mailbox.end()
        taken = await mailbox.take()
        with pytest.raises(ValueError, match="It broke"):
            await mailbox.take()
        return taken

    assert asyncio.run(scenario()) == [{"type": "x"}]


def test_a_bell_is_heard_once_for_each_time_and_silence_is_told_no_earlier_than_asked():
    async def scenario():
        bell, time = Bell(), asyncio.get_running_loop().time
        bell.ring()
        heard = [await bell.wait(5)]
        for _ in range(3):
            asyncio.get_running_loop().call_later(0.01, bell.ring)
            heard.append(await bell.wait(0.05))
        began = time()
        heard.append(await bell.wait(0.05))
        return heard, time() - began

    heard, silence = asyncio.run(scenario())
    assert heard == [True, True, True, True, False]
    assert silence >= 0.05


def feed_of(steps):
    """A feed, and the thread that runs it."""
    feed = Feed(steps, 5.0, Waker(asyncio.get_running_loop()))
    return feed, in_thread(feed.run)


async def all_of(feed, taken):
    while several := await feed.take():
        taken += several


def test_a_feed_gives_each_step_once_and_in_order():
    turn = " to=user<|message|>" + "word " * 300 + "<|eot|>"

    async def scenario():
        feed, thread = feed_of(ScriptedEngine([turn]).generate(Request([1])))
        await all_of(feed, taken := [])
        thread.join()
        return taken

    assert asyncio.run(scenario()) == list(ScriptedEngine([turn]).generate(Request([1])))


def test_an_engine_is_held_up_by_a_feed_that_nobody_takes_and_let_go_when_it_is_closed():
    engine = Watched()

    async def scenario():
        feed, thread = feed_of(engine.generate(Request([1])))
        await asyncio.to_thread(wait, lambda: engine.steps > MOST)
        await asyncio.sleep(0.05)
        given = engine.steps
        feed.close()
        taken = await feed.take()
        await asyncio.to_thread(thread.join)
        return given, taken

    given, taken = asyncio.run(scenario())
    assert given <= MOST + 1
    assert taken == []
    assert engine.closed


class Silent:
    """Steps that never come, until it is closed from another thread."""

    def __init__(self):
        self.closed, self.asked = threading.Event(), 0

    def __iter__(self):
        return self

    def __next__(self):
        self.asked += 1
        self.closed.wait(30)
        raise RemoteError("It was cut.")

    def close(self):
        self.closed.set()


def test_a_thread_that_waits_for_an_engine_is_woken_and_what_that_raises_is_no_failure():
    async def scenario():
        feed, thread = feed_of(silent := Silent())
        await asyncio.to_thread(wait, lambda: silent.asked)
        feed.close()
        feed.cut()
        thread.join(5)
        return thread.is_alive(), await feed.take()

    assert asyncio.run(scenario()) == (False, [])


def test_an_engine_that_nobody_wants_any_more_is_asked_for_nothing():
    async def scenario():
        feed = Feed(silent := Silent(), 5.0, Waker(asyncio.get_running_loop()))
        feed.close()
        feed.run()
        return silent.asked, silent.closed.is_set()

    assert asyncio.run(scenario()) == (0, True)


class Pushing:
    """Steps that an engine's own thread gives; ``given`` counts those that were wanted."""

    def __init__(self, steps, fault=None):
        self.steps, self.fault = steps, fault
        self.given, self.closed = 0, threading.Event()
        self.thread = None

    def push(self, give):
        self.thread = in_thread(lambda: self._run(give))

    def _run(self, give):
        for step in self.steps:
            if self.closed.is_set() or not give(step):
                return
            self.given += 1
        give(self.fault)

    def close(self):
        self.closed.set()


def test_steps_that_an_engine_pushes_come_once_and_in_order_without_a_thread_for_them():
    steps = [Step(piece=f"w{number} ") for number in range(500)] + [Step(piece="", finish="stop")]

    async def scenario():
        feed, thread = feed_of(pushing := Pushing(steps))
        await asyncio.to_thread(thread.join)  # long before they are all taken
        await all_of(feed, taken := [])
        feed.cut()
        return taken, pushing.closed.is_set()

    assert asyncio.run(scenario()) == (steps, True)


def test_what_a_pushing_engine_fails_with_is_raised_behind_the_steps_that_it_gave():
    async def scenario():
        feed, _ = feed_of(Pushing([Step(piece="a")], RemoteError("It is away.")))
        taken = []
        with pytest.raises(RemoteError):
            await all_of(feed, taken)
        return [step.piece for step in taken]

    assert asyncio.run(scenario()) == ["a"]


def test_a_pushing_engine_that_is_not_read_gives_no_more():
    async def scenario():
        feed, thread = feed_of(pushing := Pushing([Step(piece="w")] * (2 * MOST_OFFERED)))
        await asyncio.to_thread(thread.join)
        await asyncio.to_thread(pushing.thread.join)
        return pushing.given, feed.closed, await asyncio.wait_for(feed.take(), 1)

    assert asyncio.run(scenario()) == (MOST_OFFERED, True, [])


def test_a_pushing_engine_is_told_that_no_more_is_wanted():
    go = threading.Event()

    def steps():
        yield from [Step(piece="w")] * 10
        go.wait(5)
        yield from [Step(piece="w")] * 10

    async def scenario():
        feed, _ = feed_of(pushing := Pushing(steps()))
        await asyncio.to_thread(wait, lambda: pushing.given == 10)
        feed.close()
        go.set()
        await asyncio.to_thread(pushing.thread.join)
        return pushing.given, await asyncio.wait_for(feed.take(), 1)

    assert asyncio.run(scenario()) == (10, [])


@pytest.mark.parametrize(
    "engine", [ScriptedEngine, lambda turns: PacedEngine(ScriptedEngine(turns), 0)]
)
def test_a_turn_is_the_same_whether_it_is_pulled_or_pushed(engine):
    with running(engine(lambda request: THOUGHT + " to=user<|message|>Yes.<|eot|>")) as server:
        response = server.create().json()
    assert [item["type"] for item in response["output"]] == ["reasoning", "message"]
    assert response["output"][1]["content"][0]["text"] == "Yes."
    assert response["usage"]["output_tokens"] > 0


def test_a_stream_is_the_response_however_many_of_its_tokens_shared_an_event():
    turn = (
        THOUGHT
        + " to=user<|message|>"
        + "word " * 200
        + "<|start|>assistant"
        + block(invoke("known"), to="tool")
        + "<|eot|>"
    )
    tool = {"type": "function", "name": "known", "parameters": {"type": "object"}}
    with running(lambda request: turn) as server:
        events = server.events(tools=[tool])
        whole = server.create(tools=[tool]).json()
    texts = {}
    for event in events:
        if event["type"].endswith(".delta"):
            texts[event["item_id"]] = texts.get(event["item_id"], "") + event["delta"]
    assert [event["sequence_number"] for event in events] == list(range(len(events)))
    assert [item["type"] for item in whole["output"]] == ["reasoning", "message", "function_call"]
    for item in events[-1]["response"]["output"]:
        text = item["content"][0]["text"] if "content" in item else item["arguments"]
        assert texts[item["id"]] == text


class Counted(MemoryStore):
    """Counts the looks into its logs."""

    looks = 0

    async def read_events(self, *arguments):
        self.looks += 1
        await asyncio.sleep(0)
        return await super().read_events(*arguments)


def opened(server, path, buffer=None):
    """The stream of a background response that nobody reads yet."""
    link = socket.socket()
    if buffer:
        link.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, buffer)
    link.connect(("127.0.0.1", server.port))
    link.settimeout(20)
    link.sendall(f"GET {path}?stream=true HTTP/1.1\r\nhost: localhost\r\n\r\n".encode())
    return link


def test_who_follows_one_response_side_by_side_looks_into_the_store_once_for_each_change():
    store, readers = Counted(), 40
    with running(paced(lambda request: LONG, rate=20), store=store) as server:
        path = f"/v1/responses/{server.create(background=True, max_output_tokens=30).json()['id']}"
        links = [opened(server, path) for _ in range(readers)]
        assert wait(lambda: server.http.get(path).json()["status"] == "incomplete")
        ends = []
        for link in links:
            raw = b""
            while not raw.endswith(b"0\r\n\r\n"):
                raw += link.recv(65536)
            link.close()
            ends.append(raw.count(b"event: "))
    assert len(set(ends)) == 1
    # Each of them looks once to begin with, and then at each of some thirty changes.
    assert store.looks < 3 * readers + 4 * 40


@pytest.mark.long
def test_a_thousand_readers_that_take_nothing_cost_a_bounded_number_of_bytes_each():
    """Counted in this process; a log that is ten times as long as what one of them may hold."""
    readers, text = 1000, " to=user<|message|>" + "word " * 6000 + "<|eot|>"
    with running(lambda request: text, slow_reader_seconds=60) as server:
        path = f"/v1/responses/{server.create(background=True).json()['id']}"
        assert wait(lambda: server.http.get(path).json()["status"] == "completed", 50)
        log = len(
            b"".join(
                json.dumps(e).encode()
                for e in read_events(server.http.get(f"{path}?stream=true").content)
            )
        )
        gc.collect()
        tracemalloc.start()
        before = tracemalloc.get_traced_memory()[0]
        links = [opened(server, path, 4096) for _ in range(readers)]
        assert wait(lambda: counted(server) == readers)
        each = (settled() - before) / readers
        tracemalloc.stop()
        for link in links:
            link.close()
        assert wait(lambda: counted(server) == 0, 30)
    assert each < 200_000 < log


def counted(server):
    return server.service.metrics._streams.labels("sse")._value.get()


def settled():
    """The traced bytes, once they have stopped growing."""
    now, then = tracemalloc.get_traced_memory()[0], 0
    while abs(now - then) > 100_000:
        time.sleep(0.5)
        now, then = tracemalloc.get_traced_memory()[0], now
    return now
