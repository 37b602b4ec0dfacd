"""``atem parse``: its lines are the library's events, its object the library's turn."""

from __future__ import annotations

import json
import re

import pytest

import atem as library
from tests.cli.process import ROOT, THOUGHT, TO_TOOL, TOOLS, TURN, atem, call, lines
from tests.golden.expectation import DEFAULTS, pretty, without_last_newline
from tests.parser.folding import DELTAS, assert_tiles, joined
from tests.parser.wire_cases import BY_ID, assert_answer, reason

EXAMPLES = sorted((ROOT / "examples" / "turns").glob("*.atem"))
SAMPLE = ["frame-other-role-ends-turn", "call-parallel-messages", "name-functions-prefix"]
SAMPLE += ["quote-header-opens-answer", "defect-self-then-bare-call", "trunc-in-value"]
SAMPLE += ["val-transcript-inside", "val-unicode", "type-integer-huge", "type-deep-json"]
SAMPLE += ["type-integer-5000-digits", "dup-parameter-apart", "hdr-invented-tool-result"]
RETRIED = TURN.replace(
    "</atem:invoke>", '<atem:parameter name="path">z</atem:parameter></atem:invoke>'
)
UNDECIDED = " to=read_file<|message|>" + call(f"log: <|eom|>{TO_TOOL}{call()} end") + "<|eot|>"
TURNS = {
    "thought and call": TURN,
    "answer": " to=user<|message|>Grüße, 世界.<|eot|>",
    "no header": "Just text.",
    "nothing": "",
    "blank": " \n",
    "unknown tool": " to=rm<|message|>" + call(name="rm") + "<|eot|>",
    "malformed": " to=read_file<|message|>path is a.txt<|eot|>",
    "a parameter twice": RETRIED,
    "undecided": UNDECIDED,
    "undeclared channel": " to=nobody<|message|>hello<|eom|>" + TO_TOOL + call() + "<|eot|>",
    "text after the turn": TURN + "and more",
    "cut in a header": THOUGHT + "<|start|>assistant to=re",
    "cut in a value": (THOUGHT + TO_TOOL + call())[:-60],
}


def snake(name):
    return re.sub(r"(?<=[a-z])(?=[A-Z])", "_", name).lower()


def plain(value):
    """What the library says, in JSON's terms: records as objects, without the ids, which are random."""
    if hasattr(value, "_asdict"):
        return plain(value._asdict())
    if hasattr(value, "__dataclass_fields__"):
        return plain({name: getattr(value, name) for name in value.__dataclass_fields__})
    if isinstance(value, dict):
        return {key: plain(item) for key, item in value.items() if key not in UNCOMPARED}
    return [plain(item) for item in value] if isinstance(value, list | tuple) else value


UNCOMPARED = {"id", "arguments_json"}


def expected_line(event):
    fields = plain(event)
    span = [fields.pop("start"), fields.pop("end")]
    return {"type": snake(type(event).__name__), **fields, "span": span}


@pytest.mark.parametrize("text", TURNS.values(), ids=TURNS)
def test_the_lines_are_the_events_of_the_library_and_their_spans_cover_the_input(text, tools):
    run = atem("parse", "-", "--tools", tools, data=text)
    events = library.parse_stream([text.encode()] if text else [], tools=TOOLS)
    assert [plain(line) for line in lines(run)] == [expected_line(event) for event in events]
    assert not run.stderr
    assert_tiles([line["span"] for line in lines(run)], len(text))


@pytest.mark.parametrize("text", TURNS.values(), ids=TURNS)
def test_the_turn_is_the_fold_of_the_library(text, tools):
    (found,) = lines(atem("parse", "--turn", "--tools", tools, data=text))
    turn = library.parse(text, tools=TOOLS)
    wanted = {
        "reasoning": turn.reasoning,
        "content": turn.content,
        "calls": plain(turn.calls),
        "rejected": plain(turn.rejected),
        "complete": turn.complete,
        "finish_reason": turn.finish_reason,
        "problems": [
            {"code": each.code, "message": each.message, "span": [each.start, each.end]}
            for each in turn.problems
        ],
        "messages": [
            {"recipient": each.recipient, "content": each.content, "calls": plain(each.calls)}
            for each in turn.messages
        ],
    }
    assert plain(found) == wanted


@pytest.mark.parametrize("path", EXAMPLES, ids=lambda path: path.stem)
def test_an_example_turn_is_as_written_beside_it(path, tmp_path):
    written = json.loads(path.with_suffix(".json").read_text("utf-8"))
    declared = json.loads((path.parent / "tools.json").read_text("utf-8"))
    names = [tool for tool in declared if tool["function"]["name"] in written["tools"]]
    (tmp_path / "some.json").write_text(json.dumps(names), encoding="utf-8")
    turn = tmp_path / "turn.atem"
    turn.write_bytes(without_last_newline(path.read_text("utf-8")).encode())
    reason = written["reason"]
    run = atem(
        "parse", str(turn), "--turn", "--reason", reason, "--tools", "some.json", cwd=tmp_path
    )
    (found,) = lines(run)
    wanted = DEFAULTS | written["expect"]
    assert (found["reasoning"], found["content"]) == (wanted["reasoning"], wanted["content"])
    assert [[each["name"], pretty(each["arguments"])] for each in found["calls"]] == [
        [each["name"], pretty(each["arguments"])] for each in wanted["calls"]
    ]
    assert [each["reason"] for each in found["rejected"]] == wanted["rejected"]
    assert run.returncode == (0 if wanted["complete"] and not wanted["rejected"] else 1)


@pytest.mark.parametrize("name", SAMPLE)
def test_a_wire_case_has_the_answer_written_beside_it(name, tmp_path):
    case = BY_ID[name]
    (tmp_path / "tools.json").write_text(json.dumps(case["tools"]), encoding="utf-8")
    run = atem(
        "parse", "--turn", "--reason", reason(case), "--tools", str(tmp_path / "tools.json"),
        data=case["input"].encode(),
    )  # fmt: skip
    (found,) = lines(run)
    assert_answer(
        case,
        reasoning=found["reasoning"],
        content=found["content"],
        calls=[(each["name"], each["arguments"]) for each in found["calls"]],
        rejected=[each["reason"] for each in found["rejected"]],
        complete=found["complete"],
    )


@pytest.mark.parametrize("size", ["1", "3", "1000"])
def test_the_size_of_the_pieces_changes_deltas_only(size, tools):
    text = UNDECIDED.replace("log", "göd 世界")
    whole = lines(atem("parse", "--tools", tools, data=text))
    cut = lines(atem("parse", "--tools", tools, "--chunk", size, data=text))
    assert joined(map(delta_or_line, cut)) == joined(map(delta_or_line, whole))


def delta_or_line(line):
    """The library's delta that a line tells, any other line without its ids."""
    told = {snake(kind.__name__): kind for kind in DELTAS}.get(line["type"])
    start, end = line["span"]
    fields = {key: line[key] for key in line if key not in ("type", "span")}
    return told(**fields, start=start, end=end) if told else plain(line)


def test_small_pieces_come_as_more_lines(tools):
    whole = lines(atem("parse", "--tools", tools, data=TURN))
    assert len(lines(atem("parse", "--tools", tools, "--chunk", "2", data=TURN))) > len(whole)


# ------------------------------------------------------------- options reach the parser

GLUED = call("x").replace('read_file">\n<atem:parameter name="path">', 'read_file.path">')
OPTIONS = {
    "reason": (["--reason", "length"], TURN[:-7], {"reason": "length"}),
    "unknown": (["--unknown", "forward"], TURNS["unknown tool"], {"unknown": "forward"}),
    "content": (["--unknown", "content"], TURNS["unknown tool"], {"unknown": "content"}),
    "names": (
        ["--names", "exact"], TURN.replace("read_file", "read_file.read_file"), {"names": "exact"}
    ),
    "arguments": (["--arguments", "whole"], TURN, {"arguments": "whole"}),
    "validate": (
        ["--validate", "reject"], TURN.replace('"path"', '"line"'), {"validate": "reject"}
    ),
    "recover none": (
        ["--recover", "none"], THOUGHT[:-7] + " to=read_file<|message|>" + call(), {"recover": []}
    ),
    "recover two": (
        ["--recover", "glued,headerless"], GLUED, {"recover": ["glued", "headerless"]}
    ),
    "channel": (["--channel", "self"], "A thought<|eot|>", {"channel": "self"}),
    "profile": (["--profile", "spark"], "<|message|>A thought<|eot|>", {"profile": "spark"}),
    "strict": (
        ["--strict-recipient"], " to=other<|message|>" + call(), {"strict_recipient": True}
    ),
    "one": (
        ["--one-invoke-per-message"],
        " to=read_file<|message|>" + call() + call(),
        {"one_invoke_per_message": True},
    ),
    "header": (
        ["--max-header", "40"], f" to={'n' * 60}<|message|>text", {"max_header": 40}
    ),
    "chars": (["--max-call-chars", "30"], TURN, {"max_call_chars": 30}),
}  # fmt: skip


@pytest.mark.parametrize(("flags", "text", "options"), OPTIONS.values(), ids=OPTIONS)
def test_an_option_changes_the_lines_as_it_changes_the_events(flags, text, options, tools):
    found = [plain(line) for line in lines(atem("parse", *flags, "--tools", tools, data=text))]
    events = library.parse_stream([text.encode()], tools=TOOLS, **options)
    assert found == [expected_line(event) for event in events]
    default = library.parse_stream([text.encode()], tools=TOOLS)
    assert found != [expected_line(event) for event in default]


# ------------------------------------------------------------- JSON that every reader takes


def test_a_lone_surrogate_is_escaped(tmp_path):
    (tmp_path / "tools.json").write_text('[{"name": "say", "parameters": {}}]')
    text = " to=say<|message|>" + call(r'["half \ud83d of one"]', name="say") + "<|eot|>"
    run = atem("parse", "--tools", str(tmp_path / "tools.json"), data=text)
    (end,) = [line for line in lines(run) if line["type"] == "call_end"]
    assert end["call"]["arguments"] == {"path": ["half \ud83d of one"]}


def test_no_control_character_but_the_line_end_comes_out():
    text = " to=user<|message|>" + "".join(map(chr, range(160))) + "\u2028\u2029<|eot|>"
    run = atem("parse", data=text)
    assert not set(run.stdout.decode()) & set(
        map(chr, [*range(10), *range(11, 32), *range(127, 160)])
    )
    assert len(run.stdout.decode().splitlines()) == len(lines(run)) == 4
    assert lines(run)[1]["text"] == text[19:-7]


def test_output_is_utf_8_whatever_the_locale():
    run = atem("parse", "--turn", data=TURNS["answer"], PYTHONIOENCODING="ascii", LC_ALL="C")
    assert "Grüße, 世界.".encode() in run.stdout


def test_bytes_that_are_no_utf_8_become_replacement_characters():
    (turn,) = lines(
        atem("parse", "--turn", data=b" to=user<|message|>a\xff\xe4\xb8b\xe4\xb8<|eot|>")
    )
    assert turn["content"] == "a\ufffd\ufffdb\ufffd"


def test_any_bytes_make_lines(tools):
    data = bytes(range(256)) * 40
    run = atem("parse", "--tools", tools, data=data)
    assert lines(run)[-1]["type"] == "turn_end"
    assert "".join(line.get("text", "") for line in lines(run)) == data.decode("utf-8", "replace")


def test_a_turn_of_a_mebibyte_arrives_whole(tools):
    value = "".join(f"{number}: some text <b>\n" for number in range(60_000))[: 1 << 20]
    text = " to=read_file<|message|>" + call(value) + "<|eot|>"
    (turn,) = lines(atem("parse", "--turn", "--tools", tools, data=text))
    assert [each["arguments"] for each in turn["calls"]] == [{"path": value}]


# ------------------------------------------------------------- exit codes

CODES = {
    "thought and call": 0, "answer": 0, "no header": 0, "nothing": 0, "undecided": 0,
    "text after the turn": 0, "undeclared channel": 0, "a parameter twice": 0,
    "unknown tool": 1, "malformed": 1, "cut in a header": 1, "cut in a value": 1,
}  # fmt: skip


@pytest.mark.parametrize("name", CODES)
def test_the_code_is_1_for_what_is_incomplete_or_rejected_and_else_0(name, tools):
    shapes = ["--events", "--turn"]
    runs = [atem("parse", shape, "--tools", tools, data=TURNS[name]) for shape in shapes]
    assert [run.returncode for run in runs] == [CODES[name]] * 2


def test_a_turn_that_was_cut_by_length_is_incomplete():
    run = atem("parse", "--reason", "length", data=TURNS["answer"].removesuffix("<|eot|>"))
    assert run.returncode == 1
    assert lines(run)[-1]["finish_reason"] == "length"
