"""``atem inspect --html``: the page in one file."""

from __future__ import annotations

import json
import re
from base64 import b64encode
from hashlib import sha256

from hypothesis import given, settings
from hypothesis import strategies as st

from atem.server.inspector.page import standalone
from atem.trace.pieces import MOST_CHARACTERS, cut
from atem.trace.tracer import trace
from tests.cli.process import TOOLS, TURN, atem

DATA = re.compile(r'<script type="application/json" id="shown">(.*?)</script>', re.DOTALL)


def read(page):
    """What a page holds, and the parts of it that a browser runs."""
    (shown,) = DATA.findall(page)
    rest = DATA.sub("", page)
    return json.loads(shown), re.findall(r"<(script|style)>(.*?)</\1>", rest, re.DOTALL)


@settings(max_examples=40)
@given(
    st.text(max_size=30) | st.sampled_from(["</script>", "<!--<script>", "]]>", "\u2028", "&lt;"])
)
def test_whatever_was_written_stays_in_its_place(text):
    shown = {"title": text, "trace": trace([f" to=user<|message|>{text}"])}
    page = standalone(shown).decode()
    found, run = read(page)
    assert found == json.loads(json.dumps(shown))
    assert [tag for tag, _ in run] == ["style", "script"]
    assert page.count("</body>") == 1


def test_a_lone_half_of_a_character_is_written_as_its_escape():
    found, _ = read(standalone({"title": "\ud800"}).decode())
    assert found == {"title": "\ud800"}


def test_only_the_pages_own_script_and_style_may_run():
    page = standalone({}).decode()
    (policy,) = re.findall(r'http-equiv="Content-Security-Policy" content="([^"]*)"', page)
    _, run = read(page)
    hashes = {tag: b64encode(sha256(text.encode()).digest()).decode() for tag, text in run}
    assert policy.startswith("default-src 'none'; ")
    assert f"script-src 'sha256-{hashes['script']}';" in policy
    assert f"style-src 'sha256-{hashes['style']}';" in policy
    assert not re.search(r"<script src|<link|src=\"inspect", page)


def test_the_command_writes_it_and_says_by_its_code_what_the_turn_is(tmp_path):
    turn, tools, page = tmp_path / "turn.atem", tmp_path / "tools.json", tmp_path / "turn.html"
    turn.write_text(TURN)
    tools.write_text(json.dumps(TOOLS))
    for options, code in ((["--tools", str(tools)], 0), ([], 1)):
        run = atem("inspect", str(turn), "--html", str(page), *options)
        assert (run.returncode, run.stdout, run.stderr) == (code, b"", b"")
        found, _ = read(page.read_text("utf-8"))
        assert found["title"] == "turn.atem"
        assert "".join(step["text"] for step in found["trace"]["steps"]) == TURN
        assert bool(found["trace"]["turn"]["calls"]) is (code == 0)


def test_options_and_reason_are_the_parsers(tmp_path):
    page = tmp_path / "turn.html"
    run = atem(
        "inspect", "--html", str(page), "--reason", "length", "--channel", "self", data=b"Hm"
    )
    assert run.returncode == 1
    found, _ = read(page.read_text("utf-8"))
    assert found["trace"] == json.loads(json.dumps(trace(cut("Hm"), "length", channel="self")))


def test_what_can_not_be_written_is_one_line(tmp_path):
    for page, text, said in (
        (tmp_path / "none" / "x.html", b"x", b"No such file"),
        (tmp_path / "x.html", b"x" * (MOST_CHARACTERS + 1), b"a trace has at most"),
    ):
        run = atem("inspect", "--html", str(page), data=text)
        assert (run.returncode, run.stdout) == (2, b"")
        assert said in run.stderr
        assert run.stderr.startswith(b"atem: ")
        assert run.stderr.count(b"\n") == 1
