"""The last turns of the model: kept where that is asked for, for whoever asked, and not for long."""

from __future__ import annotations

import pytest

from atem.engine import Step
from atem.server.inspector import live
from atem.server.inspector.live import LiveTurn
from atem.testing.tiny import tiny_tokenizer
from atem.tokenizer import wrap
from atem.trace.tracer import trace
from tests.server.running import HELLO, LONG, MODEL, THOUGHT, call, paced, running, wait

KEYS = ("the-first-key", "the-second-key")
TOOLS = [
    {"type": "function", "name": "f", "parameters": {"type": "object"}},
    {"type": "namespace", "name": "n", "tools": [{"type": "custom", "name": "g"}]},
]


def listed(served, key=None):
    headers = {"x-api-key": key} if key else {}
    return served.http.get("/inspect/live", headers=headers).json()


def turn(served, response_id, number=0, after=0):
    answered = served.http.get(f"/inspect/live/{response_id}/{number}", params={"after": after})
    assert answered.status_code == 200, answered.text
    return answered.json()


def text_of(found):
    return "".join(step["text"] for step in found["steps"])


def test_nothing_is_kept_unless_it_is_asked_for():
    with running(lambda _: HELLO) as served:
        created = served.create().json()
        assert listed(served) == {"most": 0, "data": []}
        assert served.http.get(f"/inspect/live/{created['id']}/0").status_code == 404


def test_a_turn_is_kept_raw_and_its_trace_is_that_of_its_pieces():
    said = THOUGHT + call("f", a="1")
    with running(lambda _: said, inspect_last=2) as served:
        created = served.create(tools=TOOLS).json()
        (kept,) = listed(served)["data"]
        (shape,) = kept["turns"]
        found = turn(served, created["id"])
        again = served.http.post(
            "/inspect/trace",
            json={**found["options"], "reason": "stop", "pieces": pieces_of(found)},
        ).json()
    assert kept["id"] == created["id"]
    assert text_of(found) == said
    assert shape == {"pieces": len(found["steps"]) - 1, "characters": len(said), "open": False}
    assert (found["open"], found["full"]) == (False, False)
    assert [each["name"] for each in found["turn"]["calls"]] == ["f"]
    assert (again["steps"], again["turn"]) == (found["steps"], found["turn"])


def pieces_of(found):
    return [
        {"text": step["text"], "special": step["special"]} if "special" in step else step["text"]
        for step in found["steps"][:-1]
    ]


def test_a_turn_can_be_followed_while_it_is_written():
    with (
        running(paced(lambda _: LONG, rate=400), inspect_last=2) as served,
        served.http.stream(
            "POST", "/v1/responses", json={"model": MODEL, "input": "Hi", "stream": True}
        ) as answer,
    ):
        lines = answer.iter_lines()
        next(lines)
        assert wait(lambda: listed(served)["data"])
        (kept,) = listed(served)["data"]
        first = turn(served, kept["id"])
        assert first["open"]
        assert "turn" not in first
        known = len(first["steps"])
        assert wait(lambda: len(turn(served, kept["id"])["steps"]) > known)
        second = turn(served, kept["id"], after=known)
        assert LONG.startswith(text_of(first) + text_of(second))
        answer.close()
        assert wait(lambda: not turn(served, kept["id"])["open"])
        last = turn(served, kept["id"])
    assert last["turn"]["complete"] is False
    assert last["steps"][-1]["end"] == "length"


@pytest.mark.parametrize("cuts", [(0, 5, 5, 9), (3, 1, 20), (40,), (0,)])
def test_steps_are_the_same_whoever_read_before(cuts):
    kept = LiveTurn({"tools": ()}, None)
    pieces = [" to=user", "<|message|>", *"Hello there", "<|eot|>"]
    whole = trace(pieces, tools=())["steps"]
    for piece in pieces[:10]:
        kept.add(Step(piece=piece))
    assert [kept.steps(cut)["steps"] for cut in cuts] == [whole[:10][cut:] for cut in cuts]
    for piece in pieces[10:]:
        kept.add(Step(piece=piece))
    kept.add(Step(piece="", finish="stop"))
    kept.end()
    for cut in cuts:
        assert kept.steps(cut)["steps"][:-1] == [*whole[:-1], _nothing(whole)][cut:]


def _nothing(whole):
    """The step of a piece without text at the end of a trace."""
    return {**whole[-2], "text": "", "events": []}


def test_one_key_does_not_see_what_another_asked():
    with running(lambda _: HELLO, inspect_last=4, api_key=KEYS) as served:
        ids = {}
        for key in KEYS:
            headers = {"authorization": f"Bearer {key}"}
            body = {"model": MODEL, "input": "Hi"}
            ids[key] = served.http.post("/v1/responses", json=body, headers=headers).json()["id"]
        for key, other in (KEYS, KEYS[::-1]):
            assert [each["id"] for each in listed(served, key)["data"]] == [ids[key]]
            headers = {"x-api-key": key}
            assert (
                served.http.get(f"/inspect/live/{ids[key]}/0", headers=headers).status_code == 200
            )
            assert (
                served.http.get(f"/inspect/live/{ids[other]}/0", headers=headers).status_code == 404
            )


def test_only_the_last_are_kept_the_newest_first():
    with running(lambda _: HELLO, inspect_last=2) as served:
        ids = [served.create().json()["id"] for _ in range(3)]
        assert [each["id"] for each in listed(served)["data"]] == [ids[2], ids[1]]
        assert served.http.get(f"/inspect/live/{ids[0]}/0").status_code == 404


@pytest.mark.parametrize("path", ["x/0", "resp_1/-1", "resp_1/x"])
def test_a_turn_that_is_none_is_not_found(path):
    with running(lambda _: HELLO, inspect_last=2) as served:
        assert served.http.get(f"/inspect/live/{path}").status_code == 404


def test_each_turn_of_a_response_is_one_of_its_own():
    turns = iter([call("h"), HELLO])
    with running(lambda _: next(turns), inspect_last=2, on_rejected="retry") as served:
        created = served.create(tools=TOOLS).json()
        (kept,) = listed(served)["data"]
        assert len(kept["turns"]) == 2
        assert [text_of(turn(served, created["id"], number)) for number in range(2)] == [
            call("h"),
            HELLO,
        ]
        assert served.http.get(f"/inspect/live/{created['id']}/2").status_code == 404
        assert served.http.get(f"/inspect/live/{created['id']}/0?after=-1").status_code == 400


# ---- bounds ---------------------------------------------------------------------------------


def test_a_turn_is_kept_up_to_its_bounds(monkeypatch):
    monkeypatch.setattr(live, "MOST_PIECES", 3)
    kept = LiveTurn({"tools": ()}, None)
    for piece in "abcde":
        kept.add(Step(piece=piece))
    assert (len(kept.pieces), kept.full) == (3, True)
    kept.add(Step(piece="", finish="stop"))
    kept.end()
    found = kept.steps(0)
    assert (found["full"], found["turn"]["complete"]) == (True, False)
    monkeypatch.setattr(live, "MOST_CHARACTERS", 3)
    long = LiveTurn({"tools": ()}, None)
    for piece in ("ab", "cd", "e"):
        long.add(Step(piece=piece))
    assert long.pieces == ["ab"]


def test_the_oldest_make_room_in_bytes(monkeypatch):
    monkeypatch.setattr(live, "MOST_BYTES", 3000)
    with running(lambda _: HELLO, inspect_last=100) as served:
        for _ in range(6):
            served.create()
        assert 0 < len(listed(served)["data"]) < 6


# ---- engines that say it in other ways ------------------------------------------------------


def test_ids_without_their_text_are_spelled_and_special_tokens_known():
    tokenizer = wrap(tiny_tokenizer())
    half = tokenizer.encode("é")
    ids = [*tokenizer.encode(" to=user"), tokenizer.special_id("<|message|>"), *half]
    kept = LiveTurn({"tools": ()}, tokenizer)
    for number in ids:
        kept.add(Step(ids=(number,)))
    kept.add(Step(finish="stop"))
    kept.end()
    found = kept.steps(0)
    assert text_of(found) == " to=user<|message|>é"
    assert {step["text"]: step["special"] for step in found["steps"][:-1]}["<|message|>"] is True
    assert found["turn"]["content"] == "é"
