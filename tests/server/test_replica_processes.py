"""Two atem-serve processes on one SQLite file."""

from __future__ import annotations

import signal
import time

import pytest

from tests.server.replicas import ENDED, LEASE, check_a_kill, replicas
from tests.server.running import types, wait


@pytest.fixture(scope="module")
def pair(tmp_path_factory):
    """Two servers; the second began while the first was writing ``open``."""
    folder = tmp_path_factory.mktemp("replicas")
    store = ("--store-path", str(folder / "s.db"))
    with replicas(folder, store, 1) as (one,):
        open_id = one.create("long", background=True)["id"]
        with replicas(folder, store, 1) as (two,):
            yield one, two, open_id


@pytest.mark.slow
def test_a_server_that_begins_leaves_alone_what_another_is_writing(pair):
    one, two, open_id = pair
    time.sleep(LEASE * 1.5)
    assert one.status(open_id) == two.status(open_id) == "in_progress"


@pytest.mark.slow
def test_a_response_is_followed_live_and_cancelled_on_the_other_server(pair):
    one, two, open_id = pair
    asked = time.monotonic()
    cancelled = two.http.post(f"/v1/responses/{open_id}/cancel").json()
    assert time.monotonic() - asked < 3
    assert cancelled["status"] == "cancelled"
    assert cancelled == one.get(open_id)
    assert types(two.follow(open_id))[-1] in ENDED
    assert two.follow(open_id) == one.follow(open_id)


@pytest.mark.slow
def test_a_conversation_goes_on_on_the_other_server_at_once(pair):
    one, two, _ = pair
    response_id = None
    for number in range(6):
        server = (one, two)[number % 2]
        response = server.create("short", previous_response_id=response_id)
        assert response["status"] == "completed"
        response_id = response["id"]
    assert wait(lambda: one.get(response_id) == two.get(response_id))


@pytest.mark.long
def test_no_response_is_lost_when_its_server_is_killed(tmp_path):
    check_a_kill(tmp_path, ("--store-path", str(tmp_path / "s.db")))


@pytest.mark.long
def test_a_server_that_was_only_asleep_writes_no_second_end(pair):
    one, two, _ = pair
    made = one.create("long", background=True)["id"]
    assert wait(lambda: two.status(made) == "in_progress")
    one.process.send_signal(signal.SIGSTOP)
    try:
        assert wait(lambda: two.status(made) == "failed", 20)
    finally:
        one.process.send_signal(signal.SIGCONT)
    closed = two.follow(made)
    assert one.create("short")["status"] == "completed"
    time.sleep(LEASE)
    assert two.follow(made) == one.follow(made) == closed
    assert types(closed).count("failed") == 1
