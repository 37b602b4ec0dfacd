"""What the file tools answer."""

from __future__ import annotations

import os

import pytest

from atem.agent import files, folder


def test_a_list_has_one_name_a_line_sorted_folders_with_a_slash(place):
    assert place.call("list_files") == "docs/\nnotes.txt\nplan.txt"
    assert place.call("list_files", path="docs") == "a.md\ndeep/"
    assert place.call("list_files", path="./docs//deep/") == "(empty)"


def test_a_name_of_several_lines_is_one_line(place):
    (place.root / "docs" / "deep" / "a\nb").write_text("")
    os.close(os.open(os.fsencode(place.root / "docs" / "deep") + b"/\xff", os.O_CREAT))
    assert (
        place.call("list_files", path="docs/deep")
        == r"""'a\nb'
'\udcff'"""
    )


def test_a_long_list_says_what_it_leaves_out(place, monkeypatch):
    monkeypatch.setattr(files, "MAX_NAMES", 2)
    assert place.call("list_files") == "docs/\nnotes.txt\n[1 more names are left out]"


def test_a_file_is_its_text(place):
    assert place.call("read_file", path="notes.txt") == "Ask Ana.\nthen Ben\n"
    assert place.call("read_file", path="docs/a.md") == "é: Ana\r\n"


@pytest.mark.parametrize("limit", [3, 4, 5])
def test_a_long_file_is_its_beginning_with_a_note_never_half_a_character(place, monkeypatch, limit):
    monkeypatch.setattr(files, "MAX_READ", limit)
    (place.root / "long.txt").write_text("aéé€")
    text, note = place.call("read_file", path="long.txt").split("\n")
    assert text == "aéé€".encode()[:limit].decode(errors="ignore")
    assert note == f"[only the first {limit} of 8 bytes are shown]"


@pytest.mark.parametrize("data", [b"\xff\xfe", b"a\0b", b"caf\xe9", b"cut \xc3"])
def test_what_is_no_text_is_not_read(place, data):
    (place.root / "data").write_bytes(data)
    with pytest.raises(ValueError, match="'data' is not a text file"):
        place.call("read_file", path="data")


def test_a_missing_file_names_the_nearest(place):
    with pytest.raises(FileNotFoundError) as caught:
        place.call("read_file", path="notse.txt")
    assert str(caught.value) == "there is no 'notse.txt'; there are notes.txt, plan.txt, docs/"
    with pytest.raises(FileNotFoundError, match=r"no 'docs/b.md'; there are docs/a.md, docs/deep/"):
        place.call("read_file", path="docs/b.md")
    with pytest.raises(FileNotFoundError, match=r"no 'docs/deep/b.md'; the folder is empty"):
        place.call("read_file", path="docs/deep/b.md")
    with pytest.raises(FileNotFoundError, match="no 'dosc'; there are docs/, "):
        place.call("read_file", path="dosc/a.md")


def test_a_folder_is_no_file_and_a_file_no_folder(place):
    for path in "docs", ".", "":
        with pytest.raises(IsADirectoryError, match="is a folder"):
            place.call("read_file", path=path)
    with pytest.raises(NotADirectoryError, match=r"'notes.txt' is not a folder"):
        place.call("list_files", path="notes.txt")
    with pytest.raises(NotADirectoryError, match=r"'notes.txt' is not a folder"):
        place.call("write_file", path="notes.txt/x", content="")


def test_what_the_system_refuses_is_a_sentence(place):
    with pytest.raises(OSError, match=r"^'x+ … x+': File name too long$"):
        place.call("read_file", path="x" * 300)


def test_a_search_gives_file_and_line_sorted(place):
    assert place.call("search", text="Ana") == "docs/a.md:1: é: Ana\nnotes.txt:1: Ask Ana."
    assert place.call("search", text="ana") == "(no match)"


def test_a_search_takes_a_text_and_no_pattern(place):
    assert place.call("search", text="A.a") == "(no match)"


@pytest.mark.parametrize("text", ["", "a\nb"])
def test_a_search_for_what_stands_in_no_line_is_refused(place, text):
    with pytest.raises(ValueError, match="in one line"):
        place.call("search", text=text)


def test_a_search_passes_over_hidden_and_binary_files(place):
    (place.root / ".git").mkdir()
    (place.root / ".git" / "config").write_text("Ana")
    (place.root / ".hidden").write_text("Ana")
    (place.root / "data").write_bytes(b"\0Ana")
    assert place.call("search", text="Ana").count("\n") == 1


def test_a_search_says_what_it_leaves_out(place, monkeypatch):
    monkeypatch.setattr(files, "MAX_FOUND", 1)
    assert place.call("search", text="Ask") == (
        "notes.txt:1: Ask Ana.\n[more than 1 lines contain it; the rest is left out]"
    )
    monkeypatch.setattr(files, "MAX_SEARCHED", 1)
    assert place.call("search", text="é").endswith("[only 1 files were searched]")


def test_a_search_shortens_a_long_line(place):
    (place.root / "long.txt").write_text("x" * 10_000 + "needle")
    found = place.call("search", text="needle")
    assert len(found) < 330
    assert "characters left out" in found


def test_a_file_that_is_written_holds_exactly_that(place):
    assert place.call("write_file", path="new.txt", content="é\r\n") == "Wrote 4 bytes to new.txt."
    assert (place.root / "new.txt").read_bytes() == "é\r\n".encode()


def test_writing_replaces_and_keeps_the_mode(place):
    (place.root / "notes.txt").chmod(0o640)
    place.call("write_file", path="notes.txt", content="new")
    assert (place.root / "notes.txt").read_text() == "new"
    assert (place.root / "notes.txt").stat().st_mode & 0o777 == 0o640


def test_writing_makes_the_folders_that_lack(place):
    place.call("write_file", path="a/b/c.txt", content="")
    assert (place.root / "a" / "b" / "c.txt").read_bytes() == b""


def test_a_write_that_fails_leaves_the_old_file_and_nothing_else(place):
    before = sorted(place.root.rglob("*"))
    for content in "x" * (files.MAX_WRITTEN + 1), "half \ud800":
        with pytest.raises(ValueError, match="the content has"):
            place.call("write_file", path="notes.txt", content=content)
    with pytest.raises(IsADirectoryError):
        place.call("write_file", path="docs", content="")
    assert sorted(place.root.rglob("*")) == before
    assert (place.root / "notes.txt").read_text() == "Ask Ana.\nthen Ben\n"


def test_a_reader_never_sees_half_a_file(place):
    """The old file stays open as it was: it is replaced, not written over."""
    with (place.root / "notes.txt").open() as old:
        place.call("write_file", path="notes.txt", content="new")
        assert old.read() == "Ask Ana.\nthen Ben\n"


def test_a_file_that_says_it_is_empty_and_is_not_is_known_to_be_cut(place, monkeypatch):
    """As those of /proc do, and as one that grows while it is read."""
    monkeypatch.setattr(files, "MAX_READ", 4)
    (place.root / "log.txt").write_text("one\ntwo\n")
    look = os.fstat

    def before_it_grew(descriptor):
        return os.stat_result([*look(descriptor)[:6], 0, *look(descriptor)[7:10]])

    monkeypatch.setattr(folder.os, "fstat", before_it_grew)
    text = place.call("read_file", path="log.txt")
    assert text.startswith("one\n\n[only the first 4 of ")


def test_a_file_that_would_let_its_reader_wait_is_empty(place, monkeypatch):
    """As the log of a kernel is, which counts as a regular file."""
    os.mkfifo(place.root / "log")
    writer = os.open(place.root / "log", os.O_RDWR)
    monkeypatch.setattr(folder, "_require_file", lambda status, path: None)
    assert place.call("read_file", path="log") == ""
    os.close(writer)


def test_a_search_says_that_it_did_not_read_long_files_to_their_end(place, monkeypatch):
    monkeypatch.setattr(files, "MAX_READ", 15)
    (place.root / "long.txt").write_text("x" * 15 + "Ben")
    (place.root / "long.bin").write_bytes(b"\0" * 20)
    assert place.call("search", text="Ben") == (
        "(no match)\n[of 2 long files only the first 15 bytes were searched]"
    )


def test_a_folder_that_can_not_be_read_does_not_stop_a_search(place, monkeypatch):
    entries = folder.Folder.entries

    def refusing(self, path):
        if path.startswith("docs"):
            raise PermissionError("no")
        return entries(self, path)

    monkeypatch.setattr(folder.Folder, "entries", refusing)
    found = place.call("search", text="Ana")
    assert found == "notes.txt:1: Ask Ana.\n[1 files or folders could not be searched]"


def test_a_search_says_that_it_passed_over_deep_folders_and_strange_names(place, monkeypatch):
    monkeypatch.setattr(files, "MAX_DEPTH", 1)
    (place.root / "a\nb").write_text("Ana")
    found = place.call("search", text="Ana").split("\n")
    assert found[-1] == "[2 files or folders could not be searched]"
    assert len(found) == 3


def test_a_write_protected_file_is_not_replaced(place):
    (place.root / "notes.txt").chmod(0o444)
    with pytest.raises(PermissionError, match=r"'notes.txt' is write-protected"):
        place.call("write_file", path="notes.txt", content="gone")
    assert (place.root / "notes.txt").read_text() == "Ask Ana.\nthen Ben\n"


def test_a_name_with_a_slash_behind_it_is_not_written_as_a_file(place):
    for path in "new/", "notes.txt/", "docs/":
        with pytest.raises(IsADirectoryError, match="is the name of a folder"):
            place.call("write_file", path=path, content="gone")
    assert place.call("list_files") == "docs/\nnotes.txt\nplan.txt"


@pytest.mark.parametrize("path", ["new/" + "x" * 256, "a/" * 2048 + "x"])
def test_a_name_that_is_too_long_makes_no_folders(place, path):
    with pytest.raises(OSError, match="File name too long"):
        place.call("write_file", path=path, content="")
    assert place.call("list_files") == "docs/\nnotes.txt\nplan.txt"


@pytest.mark.parametrize("full", [OSError(28, "No space left on device"), KeyboardInterrupt()])
def test_a_write_that_breaks_off_leaves_the_old_file_and_nothing_else(place, monkeypatch, full):
    before = sorted(place.root.rglob("*"))

    def refuse(descriptor):
        raise full

    monkeypatch.setattr(folder.os, "fsync", refuse)
    with pytest.raises(type(full)):
        place.call("write_file", path="notes.txt", content="new")
    assert sorted(place.root.rglob("*")) == before
    assert (place.root / "notes.txt").read_text() == "Ask Ana.\nthen Ben\n"
