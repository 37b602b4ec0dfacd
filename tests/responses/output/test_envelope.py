"""The response object, and the course of a response."""

from __future__ import annotations

import pytest

from atem.responses.envelope import envelope
from atem.responses.ids import new_id
from tests.responses.output.contract import check
from tests.responses.output.writing import builder, fed, said


def test_ids_are_new_and_long() -> None:
    made = {new_id("resp") for _ in range(100)}
    assert len(made) == 100
    assert all(len(name.removeprefix("resp_")) >= 24 for name in made)


def test_what_the_request_said_wins_over_defaults() -> None:
    response = envelope({"model": "m", "temperature": 0.5}, id="resp_1", created_at=7)
    assert (response["model"], response["temperature"], response["top_p"]) == ("m", 0.5, 1.0)


def test_an_unset_user_is_left_out() -> None:
    assert "user" not in envelope({"user": None}, id="resp_1", created_at=7)
    assert envelope({"user": "u"}, id="resp_1", created_at=7)["user"] == "u"


def test_an_object_shares_nothing() -> None:
    echo = {"metadata": {"a": "b"}}
    first = envelope(echo, id="resp_1", created_at=7)
    first["metadata"]["a"] = first["tools"] = "changed"
    second = envelope(echo, id="resp_1", created_at=7)
    assert (second["metadata"], second["tools"]) == ({"a": "b"}, [])


def test_events_are_copies_of_what_was_so_then() -> None:
    made = builder()
    (created, _) = made.start()
    fed(made, said("Hi."))
    made.finish(1)
    assert created["response"]["output"] == []
    assert created["response"]["usage"] is None


def test_a_queued_response_begins_later() -> None:
    made = builder()
    events = made.start(queued=True)
    assert made.response["status"] == "queued"
    events += made.start()
    assert made.start() == []
    events += made.finish(5)
    assert [event["type"] for event in events] == [
        "response.created", "response.queued", "response.in_progress", "response.completed",
    ]  # fmt: skip
    assert check(events)["completed_at"] == 5


@pytest.mark.parametrize("end", ["finish", "fail", "cancel"])
def test_after_an_end_there_is_no_other(end: str) -> None:
    made = builder()
    made.start()
    {"finish": lambda: made.finish(1), "fail": lambda: made.fail(RuntimeError()), "cancel": made.cancel}[end]()  # fmt: skip
    status = made.response["status"]
    assert made.finish(2) == made.fail(RuntimeError()) == made.cancel() == made.start() == []
    assert made.response["status"] == status


def test_a_cancelled_response_keeps_what_was_written() -> None:
    made = builder()
    events = made.start() + fed(made, said("Half", end="")) + made.cancel()
    response = check(events)
    assert (response["status"], response["output"][0]["status"]) == ("cancelled", "incomplete")
    assert response["usage"]["total_tokens"] == 0
