"""Several atem-serve processes on one Postgres, and on one Redis."""

from __future__ import annotations

import pytest

from tests.server.replicas import check_a_kill, replicas

pytestmark = pytest.mark.long


@pytest.fixture
def store(database):
    """The arguments that name an empty store."""
    return ("--store", database.kind, "--store-url", database.url, "--store-name", database.name())


def test_a_response_is_gone_on_from_followed_and_cancelled_on_the_other_server(tmp_path, store):
    with replicas(tmp_path, store) as (one, two):
        first = one.create("short")
        second = two.create("long", previous_response_id=first["id"], background=True)["id"]
        assert one.status(second) in ("queued", "in_progress")
        cancelled = one.http.post(f"/v1/responses/{second}/cancel").json()
        assert cancelled["status"] == "cancelled"
        assert one.follow(second) == two.follow(second)


def test_no_response_is_lost_when_its_server_is_killed(tmp_path, store):
    check_a_kill(tmp_path, store)
