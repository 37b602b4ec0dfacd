"""Bytes of a stream to steps: however they are cut, whatever else stands among them."""

from __future__ import annotations

import itertools

import pytest
from hypothesis import given
from hypothesis import strategies as st

from atem.engine import Sampling
from atem.errors import RemoteError
from atem.runtime.remote.answers import Delta
from atem.runtime.remote.reading import Text, Tokens, steps
from atem.wire import Piece
from tests.runtime.remote.asking import TOKENIZER, ask, engine, text_of
from tests.runtime.remote.wires import (
    DONE,
    as_json,
    chunked,
    event,
    head,
    text_event,
    whole,
    wires,
)

EOM, EOT, MESSAGE = map(TOKENIZER.special_id, ("<|eom|>", "<|eot|>", "<|message|>"))


@pytest.fixture(scope="module")
def pair():
    with wires() as server, engine(server) as remote:
        yield server, remote


def run(pair, answer):
    server, remote = pair
    server.answers[:] = [answer]
    return list(remote.generate(ask()))


def fails(pair, answer):
    server, remote = pair
    server.answers[:] = [answer]
    with pytest.raises(RemoteError) as caught:
        list(remote.generate(ask()))
    return str(caught.value)


WORDS = [" to=user", "<|message|>", "Ebb — 潮が引く 🌊", "\r\n", "\u2028a\x85b", "é"]
BODY = b"".join([*map(text_event, WORDS), b": ping\r\n\r\n", text_event("", "stop"), DONE])


def cut(data, places):
    ends = sorted({place % len(data) for place in places} | {0, len(data)})
    return [data[start:end] for start, end in itertools.pairwise(ends)]


@pytest.mark.parametrize("line_end", [b"\n", b"\r\n", b"\r"])
@given(places=st.lists(st.integers(0, 4000)))
def test_no_cut_of_the_bytes_changes_the_text(pair, line_end, places):
    body = BODY.replace(b"\r\n", b"\n").replace(b"\n", line_end)
    steps = run(pair, chunked(cut(body, places)))
    assert text_of(steps) == "".join(WORDS)
    assert [step.finish for step in steps if step.finish] == ["stop"]


def test_bytes_that_come_one_by_one_give_the_same_text(pair):
    body = BODY.replace(b"\n", b"\r\n")
    assert text_of(run(pair, chunked([bytes([byte]) for byte in body]))) == "".join(WORDS)


def test_the_last_step_alone_has_a_finish(pair):
    steps = run(pair, whole(BODY))
    assert [step.finish for step in steps][-1:] == ["stop"]
    assert not any(step.finish for step in steps[:-1])


def test_every_piece_of_text_comes_as_soon_as_its_event(pair):
    server, remote = pair
    server.go.clear()
    server.answers[:] = [[head() + text_event("one"), None, text_event("two", "stop") + DONE]]
    running = remote.generate(ask())
    assert text_of([next(running)]) == "one"
    server.go.set()
    assert text_of(running) == "two"


@pytest.mark.parametrize(
    "noise",
    [
        b"\xef\xbb\xbf",
        b":\n\n",
        b"retry: 10\n\n",
        b"id: 7\n\n",
        b"event: ping\n\n",
        b"data:\n\n",
        b"\n\n",
    ],
    ids=["byte order mark", "comment", "retry", "id", "event without data", "empty data", "blank"],
)
def test_what_is_no_event_of_the_answer_changes_nothing(pair, noise):
    assert text_of(run(pair, whole(noise + BODY))) == "".join(WORDS)


def test_data_may_be_glued_to_its_colon_or_spread_over_lines(pair):
    first = b'data:{"choices": [{"index": 0,\ndata: "text": "a"}]}\n\n'
    assert text_of(run(pair, whole(first + text_event("b", "stop") + b"data:[DONE]\n\n"))) == "ab"


def test_the_body_is_utf_8_whatever_its_headers_say(pair):
    body = 'data: {"choices": [{"index": 0, "text": "Ría", "finish_reason": "stop"}]}\n\n'.encode()
    answer = whole(body, kind="text/event-stream; charset=iso-8859-1")
    assert text_of(run(pair, answer)) == "Ría"


def test_an_answer_needs_no_done_if_it_gave_its_reason(pair):
    assert text_of(run(pair, whole(text_event("a", "stop")))) == "a"


def test_nothing_is_read_behind_done(pair):
    assert text_of(run(pair, whole(text_event("a", "stop") + DONE + text_event("b")))) == "a"


@pytest.mark.parametrize(
    ("word", "finish"),
    [
        ("stop", "stop"),
        ("length", "length"),
        ("tool_calls", "stop"),
        ("abort", "abort"),
        ("content_filter", "abort"),
    ],
)
def test_reasons_have_one_meaning_each(pair, word, finish):
    assert run(pair, whole(text_event("a", word) + DONE))[-1].finish == finish


BROKEN = {
    "no reason": (whole(text_event("a") + DONE), "broke off"),
    "end without done": (whole(text_event("a")), "broke off"),
    "nothing": (whole(b""), "broke off"),
    "last event cut": (whole(text_event("a") + text_event("", "stop")[:-2]), "broke off"),
    "chunks cut": ([chunked([text_event("a"), text_event("", "stop")])[0][:-30]], "broke the connection off"),
    "length cut": (whole(text_event("a"), Content_Length=4000), "broke the connection off"),
    "unknown reason": (whole(text_event("a", "bored") + DONE), "unknown reason: 'bored'"),
    "text after the end": (whole(text_event("a", "stop") + text_event("b")), "goes on after its end"),
    "error inside": (whole(text_event("a") + event({"error": {"message": "CUDA died"}})), "CUDA died"),
    "error as text": (whole(event({"error": "CUDA died"})), "CUDA died"),
    "error event": (whole(b'event: error\ndata: {"message": "CUDA died"}\n\n'), "CUDA died"),
    "error object": (whole(event({"object": "error", "message": "CUDA died"})), "CUDA died"),
    "error after the end": (whole(text_event("a", "stop") + event({"error": "too late"})), "too late"),
    "two reasons": (whole(text_event("a", "length") + text_event("", "stop") + DONE), "goes on after its end"),
    "packed": (whole(BODY, Content_Encoding="gzip"), "Content-Encoding 'gzip'"),
    "no JSON": (whole(event("{oops")), "no JSON"),
    "no object": (whole(event([1])), "no JSON object"),
    "deep": (whole(event("[" * 200_000)), "no JSON"),
    "two choices": (whole(event({"choices": [{"index": 0}, {"index": 1}]})), "more than one choice"),
    "two of one index": (whole(event({"choices": [{"index": 0}, {"index": 0}]})), "more than one choice"),
    "another choice": (whole(event({"choices": [{"index": 1, "text": "a"}]})), "more than one choice"),
    "text of a wrong type": (whole(event({"choices": [{"index": 0, "text": 7}]})), "text is no text"),
    "choices of a wrong type": (whole(event({"choices": {"a": 1}})), "choices is no list"),
    "stopped at a message's end": (
        whole(event({"choices": [{"index": 0, "text": "", "finish_reason": "stop", "stop_reason": "<|eom|>"}]})),
        "take it out of the stop tokens",
    ),
    "end of a message last": (whole(text_event("a<|eo") + text_event("m|>", "stop")), "take it out of the stop tokens"),
    "an answer in one piece": (as_json({"choices": [{"text": "whole"}]}), "answered application/json"),
    "an error page": (whole(b"<html>", kind="text/html"), "answered text/html"),
}  # fmt: skip


@pytest.mark.parametrize(("answer", "said"), BROKEN.values(), ids=BROKEN)
def test_what_is_no_whole_answer_is_an_error(pair, answer, said):
    assert said in fails(pair, answer)


def ids_event(ids, finish=None, **more):
    return event(
        {"choices": [{"index": 0, "text": "x", "token_ids": ids, "finish_reason": finish, **more}]}
    )


@pytest.mark.parametrize(
    ("body", "said"),
    [
        (ids_event([5, EOM], "stop"), "take it out of the stop tokens"),
        (ids_event([5], "stop", stop_reason=EOM), "take it out of the stop tokens"),
        (ids_event([5], "stop", matched_stop=EOM), "take it out of the stop tokens"),
        (ids_event([5] * 65), "more came"),
        (ids_event([-1]), "no token id"),
        (ids_event([10**30]), "not in tokenizer="),
        (ids_event([True]), "no token id"),
        (text_event("x"), "without token ids"),
    ],
)
def test_ids_that_can_not_be_the_answers_are_an_error(body, said):
    probe = whole(ids_event([MESSAGE], "length"))
    with (
        wires(whole(body), probes=[probe]) as server,
        engine(server, tokenizer=TOKENIZER) as remote,
        pytest.raises(RemoteError, match=said),
    ):
        list(remote.generate(ask()))


def test_a_reason_that_comes_twice_takes_no_text_away(pair):
    body = text_event("a") + text_event("b", "stop") + text_event("", "stop") + DONE
    assert text_of(run(pair, whole(body))) == "ab"


def test_half_of_a_surrogate_pair_is_replaced(pair):
    body = text_event("a\ud83d") + text_event("\ude00b \ud83d\ude00\ufeff", "stop")
    assert text_of(run(pair, whole(body))) == "a\ufffd\ufffdb \U0001f600\ufeff"


@pytest.mark.parametrize("number", ["NaN", "Infinity", "1" + "0" * 400, "true"])
def test_a_log_probability_that_is_no_number_is_an_error(number):
    probe = whole(ids_event([MESSAGE], "length"))
    body = ids_event([5], "stop", logprobs={"token_logprobs": [-0.5]})
    with (
        wires(whole(body.replace(b"-0.5", number.encode())), probes=[probe]) as server,
        engine(server, tokenizer=TOKENIZER) as remote,
        pytest.raises(RemoteError, match="no number"),
    ):
        list(remote.generate(ask(sampling=Sampling(temperature=0, logprobs=0))))


class WithoutEom:
    """A tokenizer whose model has no end of a message."""

    def __getattr__(self, name):
        return getattr(TOKENIZER, name)

    def special_id(self, text):
        return None if text == "<|eom|>" else TOKENIZER.special_id(text)


def test_a_tokenizer_without_an_end_of_message_can_stop():
    found = list(steps([Delta(ids=(EOT,), finish="stop")], Tokens(WithoutEom(), ()), None))
    assert [step.finish for step in found] == ["stop"]


def test_an_end_of_message_inside_an_answer_is_no_end():
    probe, body = whole(ids_event([MESSAGE], "length")), ids_event([EOM]) + ids_event([EOT], "stop")
    with (
        wires(whole(body), probes=[probe]) as server,
        engine(server, tokenizer=TOKENIZER) as remote,
    ):
        steps = list(remote.generate(ask()))
    assert [step.ids for step in steps] == [(EOM,), (EOT,)]
    assert steps[-1].piece == (Piece("<|eot|>", special=True),)


def test_nothing_comes_behind_a_stop_string():
    deltas = [Delta(text="ab"), Delta(text="cd"), Delta(text="ef", finish="stop")]
    found = list(steps(deltas, Text(["c"]), None))
    assert [(text_of([step]), step.finish) for step in found] == [("ab", None), ("", "stop")]


def test_an_error_comes_after_the_steps_before_it(pair):
    server, remote = pair
    server.answers[:] = [whole(text_event("a") + event({"error": "late"}))]
    running = remote.generate(ask())
    assert text_of([next(running)]) == "a"
    with pytest.raises(RemoteError, match="late"):
        next(running)


def test_an_event_has_a_longest_length(pair):
    part = b"x" * 1_000_000
    answer = [head() + b"data: ", *[part] * 18]
    assert "exceeded" in fails(pair, answer)


def test_what_a_server_says_is_repeated_on_one_line_and_not_without_end(pair):
    message = fails(pair, whole(event({"error": "a\n\x1b[31m" + "b" * 5000})))
    assert "\n" not in message
    assert "\x1b" not in message
    assert len(message) < 600
