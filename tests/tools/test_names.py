"""Which tool a written name means: wire_format 6, row by row and as laws."""

from __future__ import annotations

import time
from difflib import get_close_matches

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from atem.tools import Tool, ToolSet
from atem.tools.names import why_uncallable

TABLE = [
    # declared, written, meant (wire_format 6; None: unknown)
    (["w"], "w", "w"),
    (["w"], "w.w", "w"),
    (["ledger.post"], "ledger.post", "ledger.post"),
    (["ledger.post"], "ledger.ledger.post", "ledger.post"),
    (["ledger.post"], "ledger.post.ledger.post", "ledger.post"),
    (["a.b.fn"], "a.a.b.fn", "a.b.fn"),
    (["a.b.fn"], "a.b.a.b.fn", "a.b.fn"),
    (["read"], "functions.read", "read"),
    (["read"], "default_api.read", "read"),
    (["read"], "functions.tools.read", None),
    (["calendar.list"], "mail.list", None),
    (["mail.send", "list"], "mail.list", None),
    (["mail.send", "list"], "mail.inbox.list", None),
    (["list", "mail.send", "calendar.list"], "functions.list", "list"),
    (["list", "mail.send", "calendar.list"], "functions.calendar.list", None),
    (["list", "mail.send", "calendar.list"], "functions.mail.list", None),
    (["ledger.post"], "post", None),
    (["ledger.post"], "functions.ledger.post", None),
    (["read", "path"], "read.path", None),
    (["read"], "Read", None),
    (["read"], "read.", None),
    (["read"], ".read", None),
    (["read"], "a..read", None),
    (["read"], "", None),
    ([], "read", None),
    (["x", "x.x"], "x.x", "x.x"),
    (["read", "functions.read"], "functions.read", "functions.read"),
    (["srv/run:fast"], "srv/run:fast", "srv/run:fast"),
]


@pytest.mark.parametrize(("declared", "written", "meant"), TABLE)
def test_each_row_of_the_table_resolves_as_specified(declared, written, meant):
    found = ToolSet(map(Tool, declared)).resolve(written)
    assert (found and found.wire_name) == meant


def test_a_namespaced_tool_resolves_like_its_flat_spelling_and_keeps_both_fields():
    tools = ToolSet([Tool("post", namespace="ledger")])
    for written in ("ledger.post", "ledger.ledger.post"):
        found = tools.resolve(written)
        assert found is not None
        assert (found.namespace, found.name, found.wire_name) == ("ledger", "post", "ledger.post")


def test_exact_resolution_accepts_no_alias():
    tools = ToolSet([Tool("read")])
    assert tools.resolve("read", names="exact") is tools.get("read")
    assert tools.resolve("read.read", names="exact") is None
    assert tools.resolve("functions.read", names="exact") is None


def test_unique_leaf_crosses_namespaces_only_when_one_tool_has_that_leaf():
    one = ToolSet([Tool("calendar.list"), Tool("mail.send")])
    two = ToolSet([Tool("calendar.list"), Tool("notes.list")])
    assert one.resolve("mail.list", names="unique-leaf") is one.get("calendar.list")
    assert one.resolve("list", names="unique-leaf") is one.get("calendar.list")
    assert two.resolve("mail.list", names="unique-leaf") is None
    assert one.resolve("mail.", names="unique-leaf") is None


segments = st.sampled_from(["a", "b", "read", "ab"])
dotted = st.lists(segments, min_size=1, max_size=4).map(".".join)
declarations = st.lists(dotted, max_size=5, unique=True)


def by_the_letter(declared: list[str], raw: str) -> set[str]:
    """The names that the first rule of wire_format 6 that applies allows, by search over all tools."""
    if raw in declared:
        return {raw}
    if doubled := {name for name in declared if raw == f"{name}.{name}"}:
        return doubled
    repeated = set()
    for name in declared:
        first, last = name.split(".")[0], name.rsplit(".", 1)[0]
        if "." in name and raw in (f"{first}.{name}", f"{last}.{name}"):
            repeated.add(name)
    if repeated:
        return repeated if len(repeated) == 1 else set()
    return {
        name
        for name in declared
        if "." not in name
        and raw.split(".") == [raw.partition(".")[0], name]
        and not any(other.partition(".")[0] == raw.partition(".")[0] for other in declared)
    }


@given(declarations, dotted)
@example(["a.a.b", "a.a.a.b"], "a.a.a.a.b")
def test_resolution_follows_the_order_of_the_specification(declared, raw):
    found = ToolSet(map(Tool, declared)).resolve(raw)
    assert ({found.wire_name} if found else set()) == by_the_letter(declared, raw)


@given(declarations, dotted)
def test_safe_resolution_never_crosses_namespaces(declared, raw):
    found = ToolSet(map(Tool, declared)).resolve(raw)
    if found is None or "." not in raw:
        return
    written = raw.split(".")[0]
    in_its_namespace = found.wire_name.split(".")[0] == written
    nobodys_namespace = all(name.split(".")[0] != written for name in declared)
    assert in_its_namespace or (nobodys_namespace and "." not in found.wire_name)


@given(declarations, st.text(max_size=12), st.sampled_from(["safe", "exact", "unique-leaf"]))
def test_only_declared_tools_are_ever_meant_and_exact_wins(declared, raw, names):
    tools = ToolSet(map(Tool, declared))
    found = tools.resolve(raw, names=names)
    assert found is None or found is tools.get(found.wire_name)
    for name in declared:
        assert tools.resolve(name, names=names) is tools.get(name)


@pytest.mark.parametrize("hostile", ["a." * 100_000, "." * 200_000, "read." * 40_000 + "read"])
def test_hostile_names_cost_a_moment_whatever_the_rule(hostile):
    tools = ToolSet([Tool("read"), *(Tool(f"mail.list{index}") for index in range(200))])
    start = time.perf_counter()
    assert tools.resolve(hostile) is None
    assert tools.resolve(hostile, names="exact") is None
    tools.resolve(hostile, names="unique-leaf")
    tools.suggest(hostile)
    assert time.perf_counter() - start < 0.5


def test_suggestions_are_declared_tools_nearest_first_and_three_at_most():
    tools = ToolSet(map(Tool, ["ledger.post", "read_file", "write_file", "read_files", "reader"]))
    assert tools.suggest("post") == ("ledger.post",)
    assert tools.suggest("Read_File")[0] == "read_file"
    assert len(tools.suggest("read_fil")) == 3
    assert set(tools.suggest("read_fil")) <= set(tools.names)
    assert tools.suggest("zzzz") == ()
    assert ToolSet([Tool("read")]).suggest("read.path") == ("read",)


def test_among_many_tools_the_nearest_is_still_the_one_that_difflib_finds():
    verbs = "read write list create delete update search get set open close send".split()
    nouns = "file files issue branch user mail event note table row cell image".split()
    many = [f"{verb}_{noun}" for verb in verbs for noun in nouns]
    tools = ToolSet(map(Tool, many))
    for name in many[::5]:
        for typo in (name[1:], name[:-1], name[:3] + "q" + name[3:], name.replace("_", "-")):
            assert tools.suggest(typo)[:1] == tuple(get_close_matches(typo, many, n=1))


def test_suggestions_compare_the_beginning_of_long_names():
    tools = ToolSet([Tool("t" * 500), Tool("u" * 500)])
    assert tools.suggest("t" * 100_000) == ("t" * 500,)


@pytest.mark.parametrize(
    "name",
    ["", 'a"b', "a b", "a\tb", "a\nb", "<|eot|>", "a<", "a>", "self", "user", "x" * 224, "\ud800"],
)
def test_a_name_that_the_wire_cannot_carry_is_refused(name):
    assert why_uncallable(name)


@pytest.mark.parametrize(
    "name",
    ["read", "commentary", "self.read", "srv/run:fast", "ファイル", "a-b_c.d", "x" * 223, "'"],
)
def test_an_odd_name_that_the_wire_can_carry_is_not_refused(name):
    assert why_uncallable(name) is None


def test_the_longest_allowed_name_still_fits_a_header_of_256_characters():
    assert len("<|start|>assistant to=" + "x" * 223 + "<|message|>") == 256
