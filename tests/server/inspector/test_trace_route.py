"""``POST /inspect/trace`` and the page's files: what they answer, to whom, and how much."""

from __future__ import annotations

import json
import re
from itertools import count

import pytest

import atem
from atem.parser.options import ParserOptions
from atem.parser.values import to_json
from atem.server.inspector.page import MEDIA, PAGE, POLICY, asset
from atem.server.routes.inspect import MOST_BODY
from atem.trace.pieces import MOST_CHARACTERS, MOST_PIECES
from atem.trace.records import event_record, turn_record
from tests.golden.expectation import ROOT, without_last_newline
from tests.server.running import HELLO, THOUGHT, call, running

KEYS = ("the-first-key", "the-second-key")
TOOLS = [{"type": "function", "name": "f", "parameters": {"type": "object"}}]
TURN = THOUGHT + call("f", a="\N{GRINNING FACE} <|eot|>")


@pytest.fixture(scope="module")
def served():
    with running(lambda _: HELLO) as server:
        yield server


@pytest.fixture(scope="module")
def locked():
    with running(lambda _: HELLO, api_key=KEYS) as server:
        yield server


def bare(event):
    return {key: value for key, value in event.items() if key not in ("paint", "arguments_json")}


def traced(served, **body):
    answered = served.http.post("/inspect/trace", json=body)
    assert answered.status_code == 200, answered.text
    return answered.json()


@pytest.mark.parametrize("cut", ["words", "characters", "tokens"])
@pytest.mark.parametrize("reason", ["stop", "length"])
def test_the_pieces_are_the_text_and_the_events_are_the_parsers(served, cut, reason):
    found = traced(served, text=TURN, tools=TOOLS, cut=cut, reason=reason)
    pieces = [step["text"] for step in found["steps"]]
    numbers = count()
    options = {"tools": TOOLS, "reason": reason, "new_id": lambda: f"call_{next(numbers)}"}
    events = list(atem.parse_stream(pieces, **options))
    assert "".join(pieces) == TURN
    told = [bare(event) for step in found["steps"] for event in step["events"]]
    assert told == plain([event_record(event) for event in events])
    assert found["turn"] == plain(turn_record(atem.collect(events)))


def plain(value):
    """``value`` as it comes out of JSON."""
    return json.loads(to_json(value))


def test_the_pieces_of_an_engine_keep_what_is_known_of_them(served):
    pieces = [
        " to=user",
        {"text": "<|message|>", "special": True},
        {"text": "<|eot|>", "special": False},
    ]
    found = traced(served, pieces=[*pieces, {"text": "<|eot|>", "special": True}])
    assert found["turn"]["content"] == "<|eot|>"
    assert [step.get("special") for step in found["steps"]] == [None, True, False, True, None]


@pytest.mark.parametrize(
    ("body", "param"),
    [
        ({}, "text"),
        ({"text": 1}, "text"),
        ({"text": "x" * (MOST_CHARACTERS + 1)}, "text"),
        ({"pieces": "x"}, None),
        ({"text": "x", "cut": "bytes"}, None),
        ({"text": "x", "reason": "tired"}, None),
        ({"text": "x", "reason": ["stop"]}, None),
        ({"text": "x", "tools": "f"}, "tools"),
        ({"text": "x", "tools": [1]}, "tools"),
        ({"text": "x", "unknown": "raise"}, "unknown"),
        ({"text": "x", "names": "loose"}, "names"),
        ({"text": "x", "recover": [["reasoning"]]}, "recover"),
        ({"text": "x", "recover": ["wishes"]}, "recover"),
        ({"text": "x", "strict_recipient": "yes"}, "strict_recipient"),
        ({"text": "x", "channel": "a b"}, "channel"),
        ({"text": "x", "channel": "self", "framed": True}, None),
    ],
)
def test_what_can_not_be_traced_is_refused(served, body, param):
    answered = served.http.post("/inspect/trace", json=body)
    assert (answered.status_code, answered.json()["error"]["param"]) == (400, param)


def test_pieces_and_bytes_are_bounded(served):
    many = served.http.post(
        "/inspect/trace", json={"text": "x " * MOST_PIECES, "cut": "characters"}
    )
    assert many.status_code == 400
    assert "at most" in many.json()["error"]["message"]
    large = served.http.post("/inspect/trace", json={"text": "", "tools": ["x" * MOST_BODY]})
    assert large.status_code == 413


def test_options_are_the_parsers(served):
    whole = traced(served, text=call("g"), arguments="whole", unknown="forward")
    assert [each["raw_name"] for each in whole["turn"]["calls"]] == ["g"]
    opened = traced(served, text="Hm.<|eom|>", channel="self", recover=[])
    assert opened["turn"]["reasoning"] == "Hm."
    found = traced(served, text="x", tools=TOOLS, recover=["headerless"])
    assert found["turn"]["content"] == "x"


@pytest.mark.parametrize(
    "name", sorted(ParserOptions.__annotations__.keys() - {"tokenizer", "new_id"})
)
def test_every_option_that_json_has_is_taken_from_a_body(served, name):
    answered = served.http.post("/inspect/trace", json={"text": "x", name: {"no": "option"}})
    assert (answered.status_code, answered.json()["error"]["param"]) == (400, name)


# ---- who may ask ----------------------------------------------------------------------------


def test_the_page_needs_no_key_and_what_reads_a_turn_does(locked):
    for path in ("/inspect", *(f"/inspect/{name}" for name in MEDIA)):
        assert locked.http.get(path).status_code == 200, path
    for answered in (
        locked.http.post("/inspect/trace", json={"text": TURN}),
        locked.http.get("/inspect/live"),
        locked.http.get("/inspect/live/resp_1/0"),
    ):
        assert answered.status_code == 401
    key = {"authorization": f"Bearer {KEYS[0]}"}
    assert locked.http.post("/inspect/trace", json={"text": TURN}, headers=key).status_code == 200


def test_without_a_key_the_page_itself_may_ask_and_other_pages_may_not(served):
    for origin, status in (
        (served.root, 200),
        ("http://127.0.0.1:1", 403),
        ("https://evil.example", 403),
    ):
        answered = served.http.post("/inspect/trace", json={"text": ""}, headers={"origin": origin})
        assert answered.status_code == status, origin
    rebound = {"host": "evil.example", "origin": "http://evil.example"}
    assert served.http.post("/inspect/trace", json={"text": ""}, headers=rebound).status_code == 403


def test_a_server_without_the_page_has_none_of_it():
    with running(lambda _: HELLO, inspect=False) as server:
        assert server.http.post("/inspect/trace", json={"text": ""}).status_code == 404
        for path in ("/inspect", "/inspect/page.js", "/inspect/live", "/inspect/live/resp_1/0"):
            assert server.http.get(path).status_code == 404


# ---- the files ------------------------------------------------------------------------------


def test_every_file_comes_with_its_type_and_a_policy_that_lets_nothing_else_in(served):
    for path, media in (
        ("/inspect", MEDIA[PAGE]),
        *((f"/inspect/{n}", m) for n, m in MEDIA.items()),
    ):
        answered = served.http.get(path)
        assert answered.headers["content-type"] == media
        assert answered.headers["content-security-policy"] == POLICY
        assert answered.headers["x-content-type-options"] == "nosniff"
    assert POLICY.startswith("default-src 'self';")
    assert "unsafe" not in POLICY
    assert served.http.get("/inspect/__init__.py").status_code == 404
    assert served.http.get("/inspect/..%2fpage.py").status_code == 404


def test_no_file_names_another_place():
    for name in MEDIA:
        text = asset(name).decode()
        places = set(re.findall(r"https?://[^\s\"'<>)]+|(?<![:\w])//\w[\w.]*\.\w+", text))
        assert places <= {"http://www.w3.org/2000/svg"}, name


def test_the_page_puts_text_in_as_text_and_has_no_script_or_style_within():
    page = asset(PAGE).decode()
    assert not re.search(r"<style|\sstyle=|\son\w+=|javascript:", page)
    assert re.findall(r"<script([^>]*)>([^<]*)", page) == [
        (f' src="inspect/{name}" defer', "") for name in ("turn.js", "stage.js", "page.js")
    ]
    for name in MEDIA:
        if name.endswith(".js"):
            script = asset(name).decode()
            assert not re.search(
                r"innerHTML|outerHTML|insertAdjacent|document\.write|\beval\b|Function\(", script
            )


def test_every_field_and_button_of_the_page_has_a_name():
    page = asset(PAGE).decode()
    labelled = set(re.findall(r'<label for="(\w+)"', page))
    for tag in re.findall(r"<(?:select|textarea|input)\b[^>]*>", page):
        (name,) = re.findall(r' id="(\w+)"', tag)
        assert name in labelled or "aria-label" in tag or name == "speed", name
    assert 'class="speed">Speed' in page
    for attributes, inside in re.findall(r"<button([^>]*)>(.*?)</button>", page):
        assert "aria-label" in attributes or not inside.startswith("<"), attributes


@pytest.mark.parametrize("theme", [0, 1, 2])
def test_every_kind_of_text_can_be_read_in_every_theme(theme):
    colours = dict(re.findall(r"--([\w-]+): (#\w{6}|transparent)", THEMES[theme]))
    kinds = [name.removesuffix("-ink") for name in colours if name.endswith("-ink")]
    assert len(kinds) == 8
    pairs = [(f"{kind}-ink", kind) for kind in kinds]
    pairs += [(ink, ground) for ink in ("ink", "soft") for ground in ("page", "card")]
    pairs += [("accent", "card"), ("on-accent", "accent"), ("soft", "framing")]
    for ink, ground in pairs:
        below = colours["card"] if colours[ground] == "transparent" else colours[ground]
        assert contrast(colours[ink], below) >= 4.5, (ink, ground)


THEMES = re.findall(
    r":root(?:\[[^]]*\])? \{\s*color-scheme: \w+;(.*?)\}",
    asset("inspector.css").decode(),
    re.DOTALL,
)


def contrast(one, other):
    """As WCAG 2 counts it."""
    light, dark = sorted((luminance(one), luminance(other)), reverse=True)
    return (light + 0.05) / (dark + 0.05)


def luminance(colour):
    parts = [int(colour[at : at + 2], 16) / 255 for at in (1, 3, 5)]
    red, green, blue = (p / 12.92 if p <= 0.04045 else ((p + 0.055) / 1.055) ** 2.4 for p in parts)
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue


def test_both_dark_themes_are_one():
    assert [line.strip() for line in THEMES[1].split("\n")] == [
        line.strip() for line in THEMES[2].split("\n")
    ]


def test_the_examples_are_turns_that_are_tested_elsewhere(served):
    examples = served.http.get("/inspect/examples.json").json()
    folder = ROOT / "examples" / "turns"
    written = {without_last_newline(path.read_text("utf-8")) for path in folder.glob("*.atem")}
    assert {turn["text"] for turn in examples["turns"]} <= written
    for turn in examples["turns"]:
        assert traced(served, text=turn["text"], reason=turn["reason"], tools=examples["tools"])[
            "steps"
        ]
