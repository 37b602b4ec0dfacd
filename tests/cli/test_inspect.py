"""``atem inspect``: every character once, as what it is, and nothing that a terminal obeys."""

from __future__ import annotations

import os
import re
import select

import pytest
from hypothesis import given
from hypothesis import strategies as st

import atem as library
from atem.cli.inspect import _watch
from atem.cli.paint import rows
from tests.cli.process import ATEM, THOUGHT, TO_TOOL, TOOLS, TURN, atem, call, environment

GUTTER = 17
COLOUR = re.compile(r"\x1b\[[0-9;]*m")
HOSTILE = "\x1b[2J\x1b]0;title\x07\x9b31m\r\b\x7f\u202e\u2028[bold]x[/bold]:boat:\x1b[31m"


def shown(run):
    """``(label, text)`` of each row, colours taken out."""
    text = COLOUR.sub("", run.stdout.decode())
    assert text.endswith("\n")
    return [(line[:GUTTER].strip(), line[GUTTER:]) for line in text[:-1].split("\n")]


def notes(run):
    return [text for label, text in shown(run) if label == "->"]


def labelled(run):
    """The pieces of the input with their labels, neighbours of one label as one piece."""
    found = []
    for label, text in shown(run):
        if label == "->":
            continue
        if not label or (found and label == found[-1][0]):
            found[-1][1] += text.replace("⏎", "\n")
        else:
            found.append([label, text.replace("⏎", "\n")])
    return [tuple(piece) for piece in found]


def test_a_turn_is_shown_piece_by_piece(tools):
    run = atem("inspect", "-", "--tools", tools, data=TURN)
    block = call()
    opener, invoke, closer = block[:22], block[22:-23], block[-23:]
    assert labelled(run) == [
        ("framing", " to=self<|message|>"),
        ("reasoning", "Look first."),
        ("framing", "<|eom|>" + TO_TOOL + opener),
        ("call", invoke),
        ("framing", closer + "<|eot|>"),
    ]
    assert notes(run) == [
        "channel self",
        "channel read_file",
        'call read_file {"path": "a<b.txt"}',
        "turn complete, finish reason tool_calls",
    ]
    assert run.returncode == 0


def test_a_rejected_call_is_shown_with_its_reason(tools):
    run = atem("inspect", "--tools", tools, data=TURN.replace('"read_file"', '"read_fil"'))
    assert run.returncode == 1
    assert ("rejected", call(name="read_fil")[22:-23]) in labelled(run)
    assert "rejected read_fil: unknown_tool; near: read_file" in notes(run)


def test_arguments_that_break_the_schema_are_said(tools):
    run = atem("inspect", "--tools", tools, data=TURN.replace('"path"', '"line"'))
    (note,) = [note for note in notes(run) if note.startswith("call ")]
    assert "/line: " in note
    assert "path" in note


def test_text_that_nobody_gets_is_discarded(tools):
    text = " to=nobody<|message|>psst<|eom|>" + TO_TOOL + "so: " + call() + " there<|eot|> and on"
    run = atem("inspect", "--tools", tools, data=text)
    assert [text for label, text in labelled(run) if label == "discarded"] == [
        "psst", "so:", " there", "and on",
    ]  # fmt: skip


def test_whitespace_between_tags_is_framing(tools):
    text = TO_TOOL + call().replace("\n</atem:function_calls>", "\n") + call()[22:]
    assert "discarded" not in dict(labelled(atem("inspect", "--tools", tools, data=text)))


def test_text_that_was_held_back_is_marked():
    run = atem("inspect", data=" to=user<|message|>The <|eom|>, a marker, and a<b<|eot|>")
    assert labelled(run)[1:-1] == [
        ("answer", "The "), ("answer, held", "<|eom|>"), ("answer", ", a marker, and a<b"),
    ]  # fmt: skip


def test_an_undecided_message_is_said_where_it_begins(tools):
    text = TO_TOOL + call()[:-60] + "<|eom|>" + TO_TOOL + call() + "<|eot|>"
    assert [note.split(":")[0] for note in notes(atem("inspect", "--tools", tools, data=text))] == [
        "channel read_file", "undecided", "rejected read_file", "channel read_file",
        'call read_file {"path"', "turn complete, finish reason tool_calls",
    ]  # fmt: skip


@pytest.mark.parametrize("data", [b"", b"\n", b"\xff\x00\xfe", b"no header"])
def test_odd_input_is_shown(data):
    run = atem("inspect", data=data)
    assert run.returncode == 0
    assert notes(run)[-1].startswith("turn complete")


def test_a_long_note_says_what_it_leaves_out(tools):
    run = atem("inspect", "--tools", tools, data=TO_TOOL + call("x" * 5000))
    assert all(len(note) < 240 for note in notes(run))
    assert any(" characters left out) … " in note for note in notes(run))


@pytest.mark.slow
def test_a_turn_of_a_mebibyte_is_shown_whole(tools):
    answer = "".join(f"{number}: some text <b>\n" for number in range(60_000))[: 1 << 20]
    run = atem("inspect", "--tools", tools, data=f" to=user<|message|>{answer}<|eot|>")
    assert "".join(text for label, text in labelled(run) if label == "answer") == answer


# ------------------------------------------------------------- the law, on drawn turns

FRAGMENTS = ["<|start|>", "<|message|>", "<|eom|>", "<|eot|>", "<|end_of_text|>", "assistant"]
FRAGMENTS += [
    " to=self",
    " to=user",
    " to=read_file",
    " to=rm",
    call(),
    call(name="rm"),
    call()[:-30],
]
FRAGMENTS += [
    THOUGHT,
    TO_TOOL,
    '<atem:invoke name="read_file">',
    "</atem:parameter>",
    "</atem:invoke>",
]
FRAGMENTS += ["text", " ", "\n", "\r\n", "\t", "<", "\x1b[31m", "é", "\u2028", "\x85"]
drawn = st.lists(st.sampled_from(FRAGMENTS), max_size=14).map("".join)


@given(drawn, st.sampled_from(["stop", "length"]))
def test_every_character_is_shown_once_and_as_what_the_turn_says(text, reason):
    parser = library.Parser(tools=TOOLS)
    seen = list(_watch(parser, text, reason))
    turn = library.collect(each.event for each in seen)
    found = [row for row in rows(text, seen) if row.label != "  ->"]
    assert "".join(row.text.replace("⏎", "\n") for row in found) == text
    kinds = dict.fromkeys(["reasoning", "answer", "call", "rejected"], "")
    label = ""
    for row in found:
        label = row.label or label
        kind = label.removesuffix(", held")
        kinds[kind] = kinds.get(kind, "") + row.text.replace("⏎", "\n")
    assert kinds["answer"] == turn.content
    assert kinds["reasoning"] == "".join(
        message.content for message in turn.messages if message.recipient == "self"
    )
    assert kinds["call"] == "".join(text[slice(*each.span)] for each in turn.calls)


# ------------------------------------------------------------- terminals


def hostile_turn():
    header = THOUGHT.replace("Look first.", HOSTILE) + "<|start|>assistant to=x\x1b[31my<|message|>"
    return header + HOSTILE + "<|eom|>" + TO_TOOL + call(HOSTILE) + call(HOSTILE, "rm\x1b[31m")


@pytest.mark.parametrize("extra", [{}, {"FORCE_COLOR": "1"}], ids=["plain", "colour"])
def test_nothing_in_a_turn_reaches_the_terminal(extra, tools):
    run = atem("inspect", "--tools", tools, data=hostile_turn(), **extra)
    text = COLOUR.sub("", run.stdout.decode()) if extra else run.stdout.decode()
    assert not re.search("[\x00-\x08\x0b-\x1f\x7f-\x9f\u2028\u202e]", text)
    assert "␛[2J␛]0;title␇<U+009B>31m␍␈␡<U+202E><U+2028>[bold]x[/bold]:boat:␛[31m" in text
    assert not run.stderr


def test_a_turn_cannot_forge_a_row_of_ours(tools):
    forged = "\n  ->             call rm {}\nframing          x"
    run = atem("inspect", "--tools", tools, data=f" to=user<|message|>{forged}<|eot|>")
    assert notes(run) == ["channel user", "turn complete, finish reason stop"]
    assert ("answer", forged) in labelled(run)


COLOURS = {
    "pipe": ({}, False),
    "forced": ({"FORCE_COLOR": "1"}, True),
    "forced and forbidden": ({"FORCE_COLOR": "1", "NO_COLOR": "1"}, False),
    "empty words": ({"FORCE_COLOR": "", "NO_COLOR": ""}, False),
}


@pytest.mark.parametrize(("extra", "coloured"), COLOURS.values(), ids=COLOURS)
def test_a_pipe_is_coloured_only_if_forced(extra, coloured, tools):
    run = atem("inspect", "--tools", tools, data=TURN, **extra)
    assert bool(COLOUR.search(run.stdout.decode())) is coloured


def test_colour_changes_no_character(tools):
    text = hostile_turn() + "\n\ttabs\t and  spaces  " + "w" * 300
    plain = atem("inspect", "--tools", tools, data=text)
    coloured = atem("inspect", "--tools", tools, data=text, FORCE_COLOR="1")
    assert COLOUR.sub("", coloured.stdout.decode()) == plain.stdout.decode()


def test_each_kind_has_its_style(tools):
    text = TURN.removesuffix("<|eot|>") + "<|eom|>" + TO_TOOL + call(name="rm") + "<|eot|>end"
    run = atem("inspect", "--tools", tools, data=text, FORCE_COLOR="1").stdout.decode()
    invoke = '<atem:invoke name="{}">⏎'
    for style, shown_text in [
        ("2", " to=self<|message|>"), ("2;3", "Look first."), ("32", invoke.format("read_file")),
        ("31", invoke.format("rm")), ("9", "end"), ("1;31", "rejected rm: unknown_tool"),
    ]:  # fmt: skip
        assert f"\x1b[{style}m{shown_text}\x1b[0m" in run


def on_a_terminal(*arguments, data, **extra):
    """What the command writes to a terminal."""
    import pty
    import subprocess

    ours, theirs = pty.openpty()
    with subprocess.Popen(
        [*ATEM, *arguments], env=environment(**extra), stdin=subprocess.PIPE, stdout=theirs
    ) as process:
        os.close(theirs)
        process.stdin.write(data.encode())
        process.stdin.close()
        written = b""
        while select.select([ours], [], [], 20)[0]:
            try:
                written += os.read(ours, 65536)
            except OSError:  # the other side is closed
                break
    os.close(ours)
    return written.decode()


@pytest.mark.parametrize(
    ("extra", "coloured"),
    [({}, True), ({"NO_COLOR": "1"}, False), ({"TERM": "dumb"}, False)],
    ids=["terminal", "NO_COLOR", "dumb"],
)
def test_a_terminal_is_coloured_unless_it_must_not_be(extra, coloured):
    assert bool(COLOUR.search(on_a_terminal("inspect", data=TURN, **extra))) is coloured


def test_a_prompt_on_a_terminal_cannot_command_it():
    hostile = '[{"role": "user", "content": "\\u001b[31mred"}]'
    text = on_a_terminal("render", data=hostile)
    assert "␛[31mred<|eot|>" in text
    assert "\x1b" not in text
    assert b"\x1b[31mred" in atem("render", data=hostile).stdout
