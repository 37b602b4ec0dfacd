"""The declarations, word for word: a model is trained on exactly these."""

from __future__ import annotations

import pytest

import atem
from atem.agent import calculate, file_tools
from atem.errors import OptionError

DECLARED = """\
// Tool metadata
{"name": "list_files", "description": ""}
{"name": "read_file", "description": ""}
{"name": "search", "description": ""}
{"name": "write_file", "description": ""}
{"name": "calculate", "description": ""}
// Function schemas
{"name": "list_files", "description": "List the files in a folder.", "parameters": {"properties": {"path": {"default": ".", "type": "string"}}, "type": "object", "additionalProperties": false}}
{"name": "read_file", "description": "Read a text file.", "parameters": {"properties": {"path": {"type": "string"}}, "required": ["path"], "type": "object", "additionalProperties": false}}
{"name": "search", "description": "Find lines that contain a text.", "parameters": {"properties": {"text": {"type": "string"}}, "required": ["text"], "type": "object", "additionalProperties": false}}
{"name": "write_file", "description": "Write a text file.", "parameters": {"properties": {"path": {"type": "string"}, "content": {"type": "string"}}, "required": ["path", "content"], "type": "object", "additionalProperties": false}}
{"name": "calculate", "description": "Work out a sum or a product.", "parameters": {"properties": {"expression": {"type": "string"}}, "required": ["expression"], "type": "object", "additionalProperties": false}}

"""


def test_the_block_of_tools_is_always_the_same_text(tmp_path):
    tools = [*file_tools(tmp_path, allow_write=True), calculate]
    assert DECLARED in atem.render([atem.Message("user", "?")], tools=tools).text()


def test_writing_is_declared_only_where_it_is_allowed(tmp_path):
    names = [tool.name for tool in file_tools(tmp_path)]
    assert names == ["list_files", "read_file", "search"]
    assert [tool.name for tool in file_tools(tmp_path, allow_write=True)] == [*names, "write_file"]


def test_a_folder_that_is_none_is_refused(tmp_path):
    (tmp_path / "file").write_text("")
    (tmp_path / "loop").symlink_to("loop")
    for name in "nowhere", "file", "loop", "x" * 300, "a\0b":
        with pytest.raises(OptionError, match="is not a folder that can be opened"):
            file_tools(tmp_path / name)


def test_an_empty_name_is_not_the_current_folder():
    with pytest.raises(OptionError, match="has no name"):
        file_tools("")


def test_a_folder_that_is_gone_by_now_is_said(tmp_path, monkeypatch):
    (tmp_path / "gone").mkdir()
    tools = atem.ToolSet(file_tools(tmp_path / "gone", allow_write=True))
    monkeypatch.chdir(tmp_path / "gone")
    (tmp_path / "gone").rmdir()
    with pytest.raises(OptionError, match="is not a folder that can be opened"):
        file_tools(".")
    for tool, given in ("list_files", {}), ("write_file", {"path": "a", "content": ""}):
        with pytest.raises(FileNotFoundError, match="No such file"):
            tools.get(tool).call(given)
    assert not (tmp_path / "gone").exists()
