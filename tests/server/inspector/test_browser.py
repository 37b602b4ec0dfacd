"""The inspector in a real browser: what a person sees when they click, step and follow a link."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path

import pytest

from atem.trace.pieces import cut
from tests.cli.process import atem
from tests.server.inspector.browser import browser, chromium
from tests.server.inspector.picture import pixels
from tests.server.running import LONG, MODEL, THOUGHT, block, invoke, paced, running

pytestmark = pytest.mark.skipif(chromium() is None, reason="Debian's chromium is not installed")

KEY = "the-only-key"
EMOJI = "\N{GRINNING FACE}"
TURN = f" to=self<|message|>{EMOJI} Hm.<|eom|><|start|>assistant to=user<|message|>It rains.<|eot|>"
HOSTILE = " to=user<|message|><img src=x onerror='alert(1)'></pre><script>alert(2)</script><|eot|>"
CALLED = THOUGHT + block(invoke("f", a="1"), to="f")
LINKED = "unpacked(new URLSearchParams(location.hash.slice(1)).get('turn'))"
READY = "!document.body.classList.contains('empty') && !document.body.hasAttribute('aria-busy')"


@pytest.fixture(scope="module")
def served():
    answers = {"slowly": LONG, "hostile": HOSTILE}

    def answer(request):
        said = request.prompt.text()
        return next((answers[word] for word in answers if word in said), CALLED)

    with running(paced(answer, rate=2000), inspect_last=5) as server:
        yield server


@pytest.fixture(scope="module")
def opened(tmp_path_factory):
    with browser(tmp_path_factory.mktemp("profile")) as page:
        yield page


@pytest.fixture
def page(opened, served):
    """The page, with whatever the test before it left there."""
    opened.complaints.clear()
    opened.asked.clear()
    opened.size(1280, 900)
    here = opened.get("location.href").startswith(f"{served.root}/inspect")
    if not (here and opened.get(READY)):
        opened.open(f"{served.root}/inspect")
        opened.wait(READY)
    yield opened
    assert opened.complaints == []


def paste(page, text, **options):
    page.get(
        "document.querySelector('#form').reset(); document.querySelector('#source').open = true"
    )
    for name, value in options.items():
        page.get(f"document.querySelector('#{name}').value = {value!r}")
    page.write("#wire", text)
    page.get("stage.show(new Turn())")
    page.click("button.main")
    page.wait(READY)


def step(page):
    return page.get("stage.step")


def classes(page):
    """The kinds of the text that is shown, with the text of each."""
    spans = page.get(
        "[...document.querySelectorAll('#text .k')].map(e => [e.className, e.textContent])"
    )
    return [(name.removeprefix("k ").removesuffix(" now"), text) for name, text in spans]


def shown(page, kind):
    return "".join(text for name, text in classes(page) if name == kind)


def test_the_page_opens_on_an_example_and_asks_nobody_else(page, served):
    assert shown(page, "call").startswith('<atem:invoke name="read_file">')
    assert page.text("#calls strong") == "read_file"
    assert page.text("#calls .badge") == "decided"
    assert page.asked
    assert all(
        url.startswith(f"{served.root}/inspect") or url == "about:blank" for url in page.asked
    )


def test_what_is_seen_is_not_blank(page):
    rows = pixels(page.screenshot(640, 480))
    assert (len(rows), len(rows[0])) == (480, 640)
    seen = Counter(colour[:3] for row in rows for colour in row)
    (_, most), *others = seen.most_common()
    assert most < 0.9 * seen.total()
    assert len(others) > 100
    green = (0xDC, 0xF3, 0xE2)  # the ground of a call
    assert seen[green] > 1000


def test_a_click_traces_what_was_pasted_and_keys_step_through_it(page):
    paste(page, TURN)
    last = page.get("stage.turn.last")
    assert (step(page), page.text("#count")) == (last, f"{last} / {last}")
    assert (page.text("#answer"), page.text("#no-calls")) == ("It rains.", "none")
    page.click("#back")
    page.key("ArrowLeft")
    assert step(page) == last - 2
    assert page.text("#state") == "answer body"
    page.click("#first")
    assert (step(page), page.text("#state")) == (0, "first header")
    assert shown(page, "held") == " to"
    assert (page.text("#answer"), page.text("#no-calls")) == ("nothing yet", "nothing yet")
    assert "".join(text for _, text in classes(page)) == TURN
    page.key("ArrowRight")
    page.key("]")
    assert (step(page), page.text("#to")) == (3, "to=self")
    assert page.text("#told").startswith('{"type":"message_start"')
    page.key("End")
    assert step(page) == last
    page.get("stage.go(5)")
    page.click("#text .k:first-child")
    assert step(page) == 0


def test_each_step_shows_what_the_server_says_of_it(page):
    paste(page, TURN)
    for at in range(page.get("stage.turn.last")):
        page.get(f"stage.go({at})")
        told = page.get(f"stage.turn.steps[{at}]")
        held = sum(len(text) for name, text in classes(page) if name == "held")
        future = sum(len(text) for name, text in classes(page) if name == "future")
        assert (held, future) == (told["read"] - told["told"], len(TURN) - told["read"])
        assert page.text("#state") == told["state"]
    assert page.text("#reasoning") == f"{EMOJI} Hm."


def test_it_plays_by_itself(page):
    paste(page, TURN)
    page.key("Home")
    page.key(" ")
    assert page.get("document.querySelector('#play').getAttribute('aria-label')") == "Pause"
    page.wait("stage.step > 0")
    speed = "document.querySelector('#speed')"
    page.get(f"{speed}.value = '60'; {speed}.dispatchEvent(new Event('change'))")
    page.wait("stage.step === stage.turn.last && stage.timer === null")
    assert page.get("document.querySelector('#play').getAttribute('aria-label')") == "Play"


def test_a_link_brings_back_the_turn_its_options_and_the_step(page):
    paste(page, TURN, tools="[]", cut="characters")
    page.get("stage.go(30)")
    page.wait("location.hash.includes('step=30')")
    link = page.get("location.href")
    page.open(link)
    page.wait(READY)
    assert (step(page), page.get("stage.turn.text")) == (30, TURN)
    assert page.get("document.querySelector('#cut').value") == "characters"
    assert page.get("stage.turn.last") == len(cut(TURN, "characters"))
    page.open(link.replace("turn=", "turn=AAAA"))
    page.wait("!document.querySelector('#message').hidden")
    assert "damaged" in page.text("#message")


def test_what_a_model_wrote_is_text_and_nothing_else(page):
    paste(page, HOSTILE)
    assert page.text("#answer").startswith("<img src=x")
    assert page.get("document.querySelectorAll('main img, main script').length") == 0


def test_a_turn_is_followed_while_it_is_written(page, served):
    body = {"model": MODEL, "input": "slowly", "stream": True}
    with served.http.stream("POST", "/v1/responses", json=body) as answer:
        lines = answer.iter_lines()
        next(lines)
        page.click("#live-box summary")
        page.wait("document.querySelectorAll('#live button').length > 0")
        page.click("#live button")
        page.wait("stage.turn.open && stage.turn.last > 20")
        known = page.get("stage.turn.last")
        page.wait(f"stage.turn.last > {known} && stage.step === stage.turn.last")
        assert page.text("#state") == "answer body"
        answer.close()
    page.wait("!stage.turn.open", 20)
    assert page.text("#place") == "incomplete, length"
    assert LONG.startswith(page.get("stage.turn.text"))
    page.wait(f"location.hash && {LINKED}.then(body => 'pieces' in body)")
    last, link = page.get("stage.turn.last"), page.get("location.href")
    page.open(link)
    page.wait(READY)
    assert page.get("stage.turn.last") == last


def test_a_key_is_asked_for_kept_for_the_tab_and_put_in_no_link(opened):
    with running(lambda _: CALLED, api_key=(KEY,)) as locked:
        opened.open(f"{locked.root}/inspect")
        opened.wait("!document.querySelector('#message').hidden")
        assert "key" in opened.text("#message")
        assert opened.get("document.activeElement.id") == "key"
        opened.write("#key", KEY)
        opened.key("Tab")
        paste(opened, TURN)
        assert opened.text("#answer") == "It rains."
        opened.wait("location.hash.includes('turn=')")
        body = opened.get(LINKED)
        assert KEY not in json.dumps(body)
        assert opened.get("JSON.stringify(localStorage)") == "{}"
        assert opened.get("JSON.stringify(sessionStorage)") == json.dumps(
            {"atem-key": KEY}, separators=(",", ":")
        )
        assert opened.get("document.cookie") == ""


def test_a_page_from_the_command_line_opens_from_the_disk_and_asks_nobody(opened, tmp_path):
    file = tmp_path / "turn.html"
    run = atem("inspect", "-", "--html", str(file), data=(HOSTILE + EMOJI).encode())
    assert (run.returncode, run.stdout, run.stderr) == (0, b"", b"")
    opened.complaints.clear()
    opened.asked.clear()
    opened.open(file.as_uri())
    assert opened.text("#answer").startswith("<img src=x")
    last = step(opened)
    opened.key("ArrowLeft")
    assert step(opened) == last - 1
    assert opened.text("#title") == "standard input"
    assert opened.get("document.querySelector('#source').offsetParent") is None
    assert set(opened.asked) <= {"about:blank", file.as_uri()}
    assert opened.complaints == []


@pytest.mark.parametrize("width", [400, 1280])
def test_nothing_is_wider_than_the_window(page, width):
    page.size(width, 800, mobile=width < 800)
    paste(page, TURN + "x" * 500)
    assert page.get("document.documentElement.scrollWidth") <= width
    buttons = page.get(
        "[...document.querySelectorAll('.buttons button')].map(e => e.getBoundingClientRect().right)"
    )
    assert max(buttons) <= width
    page.size(1280, 800)
    page.wait("document.querySelector('#wire').offsetParent !== null")


def test_everything_that_can_be_used_has_a_name_for_those_who_hear_it(page):
    page.get("document.querySelectorAll('details').forEach(e => { e.open = true; })")
    used = {"button", "textbox", "combobox", "slider", "DisclosureTriangle", "link"}
    found = [
        (node["role"]["value"], node.get("name", {}).get("value", ""))
        for node in page.send("Accessibility.getFullAXTree")["nodes"]
        if node.get("role", {}).get("value") in used and not node.get("ignored")
    ]
    assert {"button", "textbox", "combobox", "slider"} <= {role for role, _ in found}
    assert [role for role, name in found if not name.strip()] == []


VALUES = [
    {},
    [],
    {"a": []},
    [{}, [1]],
    {"a": {"b": "x: {,}\\"}, "c": [1.5, None, True, '\\"']},
    "x",
    12345678901234567890,
]


def test_arguments_are_laid_out_as_they_were_written(page):
    for value in VALUES:
        compact = json.dumps(value)
        assert page.get(f"indented({json.dumps(compact)})") == json.dumps(value, indent=2)


def test_the_page_folds_a_turn_as_the_parser_does(page):
    for path in sorted((Path(__file__).parents[3] / "examples" / "turns").glob("*.atem")):
        paste(page, path.read_text("utf-8"))
        got = page.get(
            "(({lanes, calls, result, text}) => ({result, text, reasoning: lanes.reasoning.text,"
            " content: lanes.answer.text, decided: calls.filter(c => c.verdict?.kind === 'decided').length,"
            " rejected: calls.filter(c => c.verdict?.kind === 'rejected').length}))(stage.turn)"
        )
        result = got["result"]
        assert got["text"] == path.read_text("utf-8")
        assert (got["reasoning"], got["content"]) == (result["reasoning"], result["content"])
        assert (got["decided"], got["rejected"]) == (len(result["calls"]), len(result["rejected"]))
