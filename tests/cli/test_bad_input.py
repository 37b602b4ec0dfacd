"""What a user can get wrong: one line that says what, and exit code 2."""

from __future__ import annotations

import json
import os

import pytest

from tests.cli.process import TOOLS, TURN, atem, complaint

BAD_TOOLS = {
    "empty": (b"", "tools.json: the file is empty; it must hold JSON"),
    "blank": (b" \n", "tools.json: the file is empty; it must hold JSON"),
    "not JSON": (b"[{]", "tools.json: not JSON: "),
    "binary": (b"\xff\xfe\x00\x01\x80", "tools.json: not JSON: "),
    "deep": (b"[" * 100_000, "tools.json: not JSON: "),
    "object": (b'{"tools": []}', "tools.json: the tools must be a list of tools, not an object"),
    "string": (b'"read_file"', "tools.json: the tools must be a list of tools, not a string"),
    "number": (b"3", "tools.json: the tools must be a list of tools, not a number"),
    "null": (b"null", "tools.json: the tools must be a list of tools, not null"),
    "a name": (b'["read_file"]', "tools.json: tools[0] is "),
    "no name": (b'[{"type": "function", "parameters": {}}]', "tools.json: tools[0].name must be"),
    "hosted": (b'[{"type": "web_search"}]', "tools.json: tools[0] is a tool of type 'web_search'"),
    "twice": (b'[{"name": "a", "parameters": {}}, {"name": "a", "parameters": {}}]', "tools.json: two"),
    "uncallable": (b'[{"name": "a b", "parameters": {}}]', "tools.json: tools that can't be called: "),
    "schema": (b'[{"name": "a", "parameters": {"type": 42}}]', "tools.json: tools that can't be"),
}  # fmt: skip


@pytest.mark.parametrize(("data", "said"), BAD_TOOLS.values(), ids=BAD_TOOLS)
def test_a_bad_tools_file_is_one_line_that_names_it(data, said, tmp_path):
    (tmp_path / "tools.json").write_bytes(data)
    assert complaint(atem("parse", "--tools", "tools.json", cwd=tmp_path)).startswith(said)


@pytest.mark.parametrize("command", ["inspect", "render"])
def test_every_command_looks_at_its_tools_file(command, tmp_path):
    (tmp_path / "tools.json").write_text('[{"type": "web_search"}]', encoding="utf-8")
    (tmp_path / "input").write_text("[]", encoding="utf-8")
    said = complaint(atem(command, "input", "--tools", "tools.json", cwd=tmp_path))
    assert said.startswith("tools.json: tools[0] is a tool of type 'web_search'")


def test_the_tools_are_looked_at_before_the_input_is_read(tmp_path):
    (tmp_path / "tools.json").write_text("{}", encoding="utf-8")
    assert "tools.json" in complaint(
        atem("parse", "no-such-turn", "--tools", "tools.json", cwd=tmp_path)
    )


@pytest.mark.parametrize("command", ["parse", "inspect", "render"])
def test_a_missing_file_is_named(command, tmp_path):
    assert (
        complaint(atem(command, "gone.atem", cwd=tmp_path))
        == "gone.atem: No such file or directory"
    )


@pytest.mark.parametrize("command", ["parse", "inspect", "render"])
def test_a_directory_is_named(command, tmp_path):
    assert complaint(atem(command, ".", cwd=tmp_path)) == ".: Is a directory"


def test_missing_tools_are_named(tmp_path):
    said = complaint(atem("parse", "--tools", "gone.json", cwd=tmp_path))
    assert said == "gone.json: No such file or directory"


@pytest.mark.skipif(
    not hasattr(os, "geteuid") or os.geteuid() == 0, reason="root may read anything"
)
def test_a_forbidden_file_is_named(tmp_path):
    (tmp_path / "secret").touch(mode=0o000)
    assert complaint(atem("parse", "secret", cwd=tmp_path)) == "secret: Permission denied"


def test_a_file_name_cannot_reach_the_terminal(tmp_path):
    said = complaint(atem("parse", "\x1b[31mred\nname", cwd=tmp_path))
    assert said == "␛[31mred␤name: No such file or directory"


def test_a_tool_name_cannot_reach_the_terminal(tmp_path):
    (tmp_path / "tools.json").write_text(json.dumps([{"name": "\x1b[31m \x9b", "parameters": {}}]))
    said = complaint(atem("parse", "--tools", "tools.json", cwd=tmp_path))
    assert not [character for character in said if character in "\x1b\x9b"]


USAGE = {
    "no command": ([], "Missing command; see atem --help"),
    "no such command": (["pars"], "No such command 'pars'"),
    "no such option": (["parse", "--turns"], "No such option"),
    "two files": (["parse", "a", "b"], "Got unexpected extra argument (b); see atem parse --help"),
    "unknown value": (["parse", "--names", "nice"], "Invalid value for '--names': 'nice' is not one of"),
    "raise": (["parse", "--unknown", "raise"], "Invalid value for '--unknown': 'raise' is not one of"),
    "reason": (["parse", "--reason", "eos"], "Invalid value for '--reason': 'eos' is not one of"),
    "chunk": (["parse", "--chunk", "0"], "Invalid value for '--chunk'"),
    "delay": (["parse", "--stream-delay", "-1"], "Invalid value for '--stream-delay'"),
    "recover": (["parse", "--recover", "all"], "recover holds ['all']; it may hold"),
    "headerless": (["parse", "--recover", "headerless"], "recover 'headerless' needs tools"),
    "channel": (["inspect", "--channel", "a b"], "channel='a b' can't be a recipient"),
    "header": (["parse", "--max-header", "3"], "max_header=3 can't hold a header"),
    "no value": (["parse", "--tools"], "Option '--tools' requires an argument"),
    "effort": (["render", "--effort", "huge"], "Invalid value for '--effort'"),
    "date": (["render", "--date", "10 August"], "Invalid value for '--date'"),
}  # fmt: skip


@pytest.mark.parametrize(("arguments", "said"), USAGE.values(), ids=USAGE)
def test_wrong_usage_is_one_line(arguments, said):
    assert complaint(atem(*arguments)).startswith(said)


def test_an_error_of_the_parser_comes_before_its_input_is_read(tools):
    assert atem("parse", "--max-call-chars", "0", "--tools", tools, data=TURN).returncode == 2


def test_a_tools_file_may_begin_with_a_byte_order_mark(tmp_path):
    (tmp_path / "tools.json").write_text(json.dumps(TOOLS), encoding="utf-8-sig")
    assert atem("parse", "--tools", "tools.json", cwd=tmp_path, data=TURN).returncode == 0
