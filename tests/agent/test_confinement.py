"""Nothing outside the folder is read or changed, whatever a path is and whatever changes meanwhile."""

from __future__ import annotations

import os
import socket
from contextlib import suppress

import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

import atem
from atem.agent import file_tools, folder
from tests.agent.conftest import SECRET

OUT = [
    "../outside/secret.txt",
    "docs/../../outside/secret.txt",
    "..",
    "docs/..",
    "/etc/passwd",
    "/",
]


def everything(top):
    """Each path below ``top`` with what it is and holds."""
    found = {}
    for path in sorted(top.rglob("*")):
        kind = "link" if path.is_symlink() else "folder" if path.is_dir() else "file"
        found[path] = (kind, path.read_bytes() if kind == "file" else path.stat().st_mtime_ns)
    return found


@pytest.mark.parametrize("path", OUT)
@pytest.mark.parametrize("name", ["list_files", "read_file", "write_file"])
def test_a_path_that_leads_out_is_refused(place, name, path):
    more = {"content": "x"} if name == "write_file" else {}
    with pytest.raises(PermissionError, match="leads out of the folder"):
        place.call(name, path=path, **more)


def test_an_absolute_path_is_refused_even_if_it_leads_inside(place):
    with pytest.raises(PermissionError, match="leads out"):
        place.call("read_file", path=str(place.root / "notes.txt"))


@pytest.mark.parametrize("path", ["a\0b", "a\ud800"])
def test_what_can_not_be_a_path_is_refused(place, path):
    with pytest.raises(ValueError, match="no path can have"):
        place.call("read_file", path=path)


@pytest.mark.parametrize("path", ["HEAD", "docs/head", "new/HEAD"])
def test_no_folder_is_made_a_repository(place, path):
    with pytest.raises(PermissionError, match="would make a repository"):
        place.call("write_file", path=path, content="ref: refs/heads/main")


@pytest.mark.parametrize("path", ["config", "hooks/pre-commit", "refs/new"])
@pytest.mark.parametrize("inside", [True, False])
def test_a_repository_of_any_name_is_not_written_to(place, path, inside):
    bare = place.root / "store" if inside else place.root
    for name in ("objects", "refs"):
        (bare / name).mkdir(parents=True)
    (bare / "HEAD").write_text("ref: refs/heads/main")
    with pytest.raises(PermissionError, match="is in a repository"):
        place.call("write_file", path=f"store/{path}" if inside else path, content="x")


@pytest.mark.parametrize("path", [".git/config", "docs/.GIT/hooks/x", ".git", ".hg/hgrc"])
def test_what_git_would_run_by_itself_is_not_written(place, path):
    with pytest.raises(PermissionError, match="which is not written to"):
        place.call("write_file", path=path, content="[core]\nfsmonitor = evil\n")
    assert place.call("list_files") == "docs/\nnotes.txt\nplan.txt"
    place.call("write_file", path=".gitignore", content="*.o\n")


@pytest.fixture
def linked(place):
    """Links that lead out of the folder, and around in it."""
    (place.root / "file_out").symlink_to(place.outside / "secret.txt")
    (place.root / "out").symlink_to(place.outside)
    (place.root / "docs" / "up").symlink_to("../../outside")
    (place.root / "loop").symlink_to("loop")
    (place.root / "inside").symlink_to("docs")
    (place.root / "dangling").symlink_to(place.outside / "new.txt")
    return place


LINKS = ["file_out", "out/secret.txt", "docs/up/secret.txt", "loop", "inside/a.md", "dangling"]


@pytest.mark.parametrize("path", LINKS)
def test_links_are_not_followed(linked, path):
    before = everything(linked.outside)
    with pytest.raises(PermissionError, match="is a link, and links are not followed"):
        linked.call("read_file", path=path)
    with pytest.raises(PermissionError, match="is a link, and links are not followed"):
        linked.call("write_file", path=path, content="gotcha")
    assert everything(linked.outside) == before


def test_a_list_shows_links_as_names_and_a_search_passes_over_them(linked):
    assert "out" in linked.call("list_files").split("\n")
    assert linked.call("search", text=SECRET) == "(no match)"
    with pytest.raises(PermissionError, match="is a link"):
        linked.call("list_files", path="out")


def test_the_folder_itself_may_be_reached_through_a_link(place, tmp_path):
    (tmp_path / "short").symlink_to(place.root)
    tools = atem.ToolSet(file_tools(tmp_path / "short"))
    assert "notes.txt" in tools.get("list_files").call({})


def test_only_regular_files_are_opened(place):
    """A FIFO without a writer would wait for ever."""
    os.mkfifo(place.root / "fifo")
    with socket.socket(socket.AF_UNIX) as bound:
        bound.bind(os.path.relpath(place.root / "socket"))
    for name in "fifo", "socket":
        with pytest.raises(PermissionError, match="is not a regular file"):
            place.call("read_file", path=name)
        with pytest.raises(PermissionError, match="is not a regular file"):
            place.call("write_file", path=name, content="")
    assert place.call("search", text="Ana").count("\n") == 1


SEGMENTS = st.sampled_from(
    ["..", ".", "", "docs", "deep", "notes.txt", "out", "file_out", "up", "~", "-", "*", "c:", "a\\b",
     "..\\..", "...", " ", "é", "\n", "x" * 300, "etc", "passwd", "dangling", "%2e%2e", "\u2024\u2024"]
)  # fmt: skip
PATHS = st.lists(SEGMENTS, max_size=6).map("/".join) | st.text(max_size=30)


@settings(
    max_examples=200, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(path=PATHS)
@example(path="docs/up/../../outside/secret.txt")
@example(path="//outside")
def test_no_path_reaches_anything_outside(linked, path):
    before = everything(linked.outside)
    for name, more in ("list_files", {}), ("read_file", {}), ("write_file", {"content": "gotcha"}):
        with suppress(OSError, ValueError):
            assert SECRET not in linked.call(name, path=path, **more)
    assert everything(linked.outside) == before
    assert sorted(entry.name for entry in linked.root.parent.iterdir()) == ["outside", "root"]


@pytest.fixture
def meanwhile(monkeypatch):
    """``meanwhile(name, change)``: once ``name`` was looked at, and before it is opened, ``change()``."""

    def arrange(name, change):
        look = folder._status

        def looked(here, parents, found):
            status = look(here, parents, found)
            if found == name:
                monkeypatch.setattr(folder, "_status", look)
                change()
            return status

        monkeypatch.setattr(folder, "_status", looked)

    return arrange


def test_a_folder_that_turns_into_a_link_meanwhile_leads_nowhere(place, meanwhile):
    def swap():
        (place.root / "docs").rename(place.root / "moved")
        (place.root / "docs").symlink_to(place.outside)

    meanwhile("docs", swap)
    with pytest.raises(OSError, match=r"'docs/secret.txt': (Not a directory|Too many levels)"):
        place.call("read_file", path="docs/secret.txt")


def test_a_folder_that_turns_into_a_link_meanwhile_is_not_written_to(place, meanwhile):
    before = everything(place.outside)

    def swap():
        (place.root / "docs").rename(place.root / "moved")
        (place.root / "docs").symlink_to(place.outside)

    meanwhile("docs", swap)
    with pytest.raises(OSError, match=r"'docs/secret.txt': (Not a directory|Too many levels)"):
        place.call("write_file", path="docs/secret.txt", content="gotcha")
    assert everything(place.outside) == before


def test_a_folder_that_is_moved_out_meanwhile_is_still_that_folder(place, meanwhile):
    """Its descriptor is held: what takes its place is not looked at."""

    def swap():
        (place.root / "docs").rename(place.root / "moved")
        (place.root / "docs").symlink_to(place.outside)

    (place.root / "docs" / "secret.txt").write_text("harmless")
    meanwhile("secret.txt", swap)
    assert place.call("read_file", path="docs/secret.txt") == "harmless"


@pytest.mark.parametrize(
    ("turn_into", "said"),
    [
        (lambda path, secret: path.symlink_to(secret), "Too many levels|Too many symbolic"),
        (lambda path, secret: os.mkfifo(path), "is not a regular file"),
        (lambda path, secret: path.mkdir(), "is a folder"),
    ],
)
def test_a_file_that_turns_into_something_else_meanwhile_is_not_read(
    place, meanwhile, turn_into, said
):
    def swap():
        (place.root / "notes.txt").unlink()
        turn_into(place.root / "notes.txt", place.outside / "secret.txt")

    meanwhile("notes.txt", swap)
    with pytest.raises(OSError, match=said):
        place.call("read_file", path="notes.txt")


def test_a_link_that_appears_meanwhile_is_replaced_and_not_written_through(place, monkeypatch):
    before = everything(place.outside)
    replace = folder._replace

    def replaced(*given):
        (place.root / "notes.txt").unlink()
        (place.root / "notes.txt").symlink_to(place.outside / "secret.txt")
        replace(*given)

    monkeypatch.setattr(folder, "_replace", replaced)
    place.call("write_file", path="notes.txt", content="mine")
    assert everything(place.outside) == before
    assert (place.root / "notes.txt").read_text() == "mine"
    assert not (place.root / "notes.txt").is_symlink()
