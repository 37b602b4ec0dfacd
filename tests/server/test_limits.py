"""What one key may ask: requests a minute, and responses at once."""

from __future__ import annotations

import asyncio

import openai
import pytest
from hypothesis import given
from hypothesis import strategies as st

from atem.responses.faults import ApiError
from atem.server.quota import HEADERS, Quota
from atem.server.slots import Slots
from tests.server.running import HELLO, LONG, MODEL, paced, raw_request, running, wait

KEYS = ("first-key-of-them", "second-key-of-them")


def keyed(key):
    return {"authorization": f"Bearer {key}"}


def ask(server, key, **fields):
    body = {"model": MODEL, "input": "Hi", **fields}
    return server.http.post("/v1/responses", json=body, headers=keyed(key))


def test_without_limits_nothing_is_counted_and_no_header_is_sent():
    with running(lambda request: HELLO) as server:
        answers = [server.create() for _ in range(5)]
    assert {answer.status_code for answer in answers} == {200}
    assert not set(HEADERS) & set(answers[0].headers)
    assert Quota(None).headers("x") == {}


def test_one_key_s_requests_a_minute_are_refused_when_they_are_used_up_and_another_s_are_not():
    with running(lambda request: HELLO, api_key=KEYS, key_requests=2) as server:
        answers = [ask(server, KEYS[0]) for _ in range(3)]
        other = ask(server, KEYS[1])
    assert [answer.status_code for answer in answers] == [200, 200, 429]
    assert [answer.headers[HEADERS[1]] for answer in answers] == ["1", "0", "0"]
    assert answers[0].headers[HEADERS[0]] == "2"
    assert other.status_code == 200
    refused = answers[2]
    assert refused.json()["error"]["code"] == "rate_limit_exceeded"
    assert 29000 <= int(refused.headers["retry-after-ms"]) <= 30000
    assert refused.headers["retry-after"] == "30"
    assert "x-should-retry" not in refused.headers


def test_reading_what_is_stored_counts_for_nothing():
    with running(lambda request: HELLO, key_requests=1) as server:
        made = server.create().json()["id"]
        for _ in range(3):
            assert server.http.get(f"/v1/responses/{made}").status_code == 200
        assert server.http.get("/v1/models").status_code == 200
        assert server.create().status_code == 429


@pytest.mark.parametrize("path", ["chat/completions", "messages"])
def test_the_other_apis_are_counted_with_it(path):
    said = {"model": MODEL, "messages": [{"role": "user", "content": "Hi"}], "max_tokens": 99}
    with running(lambda request: HELLO, key_requests=1) as server:
        assert server.create().status_code == 200
        refused = server.http.post(f"/v1/{path}", json=said)
    assert refused.status_code == 429
    assert refused.headers["retry-after"] == "60"
    assert refused.json()["error"]["type"] == "rate_limit_error"


def test_one_key_s_responses_at_once_are_bounded_those_that_wait_too():
    with running(paced(lambda request: LONG, rate=50), running=1, queue=9, key_running=2) as server:
        links = [raw_request(server), raw_request(server)]
        refused = server.create()
        assert refused.status_code == 429
        assert "2 responses at once" in refused.json()["error"]["message"]
        for link in links:
            link.close()
        assert wait(lambda: server.service.slots.running == 0)
        with openai.OpenAI(base_url=server.url, api_key="none", max_retries=0) as client:
            assert client.responses.create(model=MODEL, input="Hi", max_output_tokens=9).id


def test_a_place_that_is_left_twice_is_given_back_once():
    async def scenario():
        slots = Slots(1, 2, each=2)
        first, second = slots.enter("a"), slots.enter("a")
        with pytest.raises(ApiError):
            slots.enter("a")
        other = slots.enter("b")
        second.leave()
        second.leave()
        third = slots.enter("a")
        with pytest.raises(ApiError):
            slots.enter("a")
        for place in (first, third, other, third):
            place.leave()
        return slots.running, slots.waiting, dict(slots._held)

    assert asyncio.run(scenario()) == (0, 0, {})


@given(st.integers(1, 50), st.lists(st.floats(0, 90), max_size=60))
def test_in_no_stretch_of_a_minute_are_more_than_twice_the_limit_taken(most, gaps):
    now = [1000.0]
    quota, taken = Quota(most, lambda: now[0]), []
    for gap in gaps:
        now[0] += gap
        try:
            quota.take("key")
            taken.append(now[0])
        except ApiError as refused:
            # A moment later it is let in.
            now[0] += refused.retry_after + 1e-6
            quota.take("key")
            taken.append(now[0])
    for at, begin in enumerate(taken):
        within = [time for time in taken[at:] if time < begin + 60]
        assert len(within) <= 2 * most
