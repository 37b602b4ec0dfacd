"""JSON on the socket: everything out is UTF-8 on one line, and in comes nothing else."""

from __future__ import annotations

import json

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from atem.responses.faults import ApiError
from atem.server.encoding import decode, encode

TEXT = st.text(st.characters(exclude_categories=()))
VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | TEXT,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(TEXT, inner, max_size=3),
    max_leaves=10,
)


@example({"text": "\x85\u2028\u2029\x0b\x1c\n\r"})
@given(st.dictionaries(TEXT, VALUES, max_size=3))
def test_what_goes_out_is_one_line_and_reads_back_as_it_was(value):
    sent = encode(value)
    assert len(sent.decode("utf-8").splitlines()) == 1
    assert json.loads(sent.decode("utf-8")) == value == decode(sent)


@pytest.mark.parametrize(
    ("body", "message"),
    [
        (b"", "not JSON"),
        (b"\xff{}", "not UTF-8"),
        (b'{"a":"\xed\xa0\x80"}', "not UTF-8"),
        (b"{'a': 1}", "not JSON: .* line 1 column 2"),
        (b"[]", "JSON object"),
        (b'{"a": NaN}', "number that is none"),
        (b'{"a": 1e999}', "number that is none"),
        (b'{"a": -Infinity}', "number that is none"),
        (b'{"a": ' + b"9" * 5000 + b"}", "number that is none"),
        (b'{"a":' * 65 + b"1" + b"}" * 65, "64 deep"),
        (b'{"a":' + b"[" * 200_000 + b"]" * 200_000 + b"}", "64 deep"),
        (b'{"a":[' + b"0," * 20_000 + b"0]}", "20000 entries"),
        (b'{"a":[' + (b"[" + b"[]," * 19_000 + b"[]],") * 27 + b"0]}", "500000 values"),
        (b'{"a":"' + b'\\"' * 600_000 + b"[" * 600_000, "not JSON"),
        (b'{"a":[' + b'"",' * 600_000 + b'"\\', "500000 values"),
    ],
)
def test_anything_but_a_small_object_of_strict_json_is_refused(body, message):
    with pytest.raises(ApiError, match=message) as refused:
        decode(body)
    assert refused.value.status == 400


def test_a_text_may_have_any_number_of_commas_and_brackets():
    text = 'a[{,\\"' * 200_000
    assert decode(json.dumps({"a": text}).encode()) == {"a": text}


def test_what_is_just_deep_and_long_enough_is_read():
    assert decode(b'{"a":' * 64 + b"1" + b"}" * 64)
    assert len(decode(b'{"a":[' + b"0," * 19_999 + b"0]}")["a"]) == 20_000
