"""Several atem-serve on one store, each a process; and what must hold when one is killed.

Rules: the store is named by the command's own arguments, so that the same is
asked of every kind of store.
"""

from __future__ import annotations

import random
import signal
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from itertools import cycle, islice

import httpx2

from tests.server.process import Process
from tests.server.running import MODEL, read_event, read_events, types, wait

LEASE = 1.5
SCRIPT = """
tokens_per_second = 50
[[turns]]
last = "^user.*short"
write = " to=user<|message|>Hello there.<|eot|>"
[[turns]]
last = "^user.*thought"
write = " to=self<|message|>A short thought.<|eom|><|start|>assistant to=user<|message|>{0}<|eot|>"
[[turns]]
write = " to=user<|message|>{0}<|eot|>"
""".format("word " * 400)

ENDED = {"completed", "failed", "cancelled", "incomplete"}


class Replica(Process):
    """One server, and a client of it."""

    def __init__(self, *arguments):
        super().__init__("--lease-seconds", f"{LEASE}", *arguments)
        root = self.url.removesuffix("/v1")
        self.http = httpx2.Client(base_url=root, timeout=30, trust_env=False)

    def create(self, said, **fields):
        answer = self.http.post("/v1/responses", json={"model": MODEL, "input": said, **fields})
        assert answer.status_code == 200, answer.text
        return answer.json()

    def get(self, response_id):
        return self.http.get(f"/v1/responses/{response_id}").json()

    def status(self, response_id):
        return self.get(response_id)["status"]

    def follow(self, response_id, after=-1):
        """The events from a number on, to the last."""
        return read_events(self.http.get(*_stream(response_id, after)).content)

    def follow_until_cut(self, response_id):
        """The events up to the last, or to where the connection breaks."""
        events, held = [], ""
        try:
            with self.http.stream("GET", *_stream(response_id, -1)) as answer:
                for text in answer.iter_text():
                    *blocks, held = (held + text).split("\n\n")
                    events += map(read_event, blocks)
        except httpx2.TransportError:
            pass
        return events

    def __exit__(self, *_):
        self.http.close()
        super().__exit__()


def _stream(response_id, after):
    return (f"/v1/responses/{response_id}?stream=true&starting_after={after}",)


@contextmanager
def replicas(folder, store, count=2, more=()):
    """As many servers, on the store that the arguments ``store`` name, started together."""
    script = folder / "script.toml"
    script.write_text(SCRIPT)
    arguments = ["--engine", f"scripted:{script}", *store, *more]
    with ExitStack() as stack, ThreadPoolExecutor(count) as pool:
        started = pool.map(lambda _: Replica(*arguments), range(count))
        yield [stack.enter_context(each) for each in started]


def check_a_kill(folder, store, responses=50):
    """Kill the writer of many responses: all end, none is lost, and the other server has them.

    Some are finished by then, some are written, some wait, and some are read. Returns what
    became of them: how many completed and failed, and after how many seconds the last.
    """
    with replicas(folder, store, more=("--running", f"{responses // 2}")) as (writer, other):
        said = islice(cycle(["short", "long", "thought"]), responses)
        with ThreadPoolExecutor(16) as pool:
            made = list(pool.map(lambda text: writer.create(text, background=True)["id"], said))
            read = [pool.submit(writer.follow_until_cut, each) for each in made[:8]]
            assert wait(lambda: sum(other.status(each) == "completed" for each in made) > 5)
            writer.process.send_signal(signal.SIGKILL)
            killed = time.monotonic()
            seen = [each.result() for each in read]
        assert wait(lambda: {other.status(each) for each in made} <= ENDED, 30)
        took = time.monotonic() - killed
        found = [_check_ended(other, each) for each in made]
        for events, response_id in zip(seen, made, strict=False):
            rest = other.follow(response_id, len(events) - 1)
            assert events + rest == other.follow(response_id)
        _check_each_place(other, made[1])
        completed = found.count("completed")
        assert other.create("short", previous_response_id=made[0])["status"] == "completed"
    assert completed > 5
    assert completed + found.count("failed") == responses
    assert found.count("failed") > responses // 2
    return completed, responses - completed, took


def _check_ended(server, response_id):
    """Its log has no gap and one end, which is what is stored; from anywhere it goes on as it was."""
    response, events = server.get(response_id), server.follow(response_id)
    assert [event["sequence_number"] for event in events] == list(range(len(events)))
    ends = [event for event in events if event["type"].rpartition(".")[2] in ENDED - {"cancelled"}]
    ends = [event for event in ends if "response" in event]
    assert ends == [events[-1]]
    assert events[-1]["response"] == response
    done = [event["item"] for event in events if event["type"] == "response.output_item.done"]
    assert response["output"] == done
    if response["status"] == "failed":
        assert response["error"]["code"] == "server_error"
    place = random.Random(response_id).randrange(len(events))
    assert server.follow(response_id, place) == events[place + 1 :]
    return response["status"]


def _check_each_place(server, response_id):
    events = server.follow(response_id)
    assert types(events)[-1] == "failed"
    for place in range(-1, len(events)):
        assert server.follow(response_id, place) == events[place + 1 :]
