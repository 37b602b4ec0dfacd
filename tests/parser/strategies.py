"""Generators of turns, for the laws of the parser.

Rules: what is drawn is text with the tools it speaks to; what it means is for the tests.
``turns`` follows the grammar and breaks it on purpose, ``soups`` knows no grammar at all.
Texts stay small (mostly under 600 characters), so that thousands of them are affordable.
"""

from __future__ import annotations

from typing import Any

from hypothesis import strategies as st

Tools = list[dict[str, Any]]
Turn = tuple[str, Tools]

WRAPPER, WRAPPER_END = "<atem:function_calls>", "</atem:function_calls>"
INVOKE_END, VALUE_END = "</atem:invoke>", "</atem:parameter>"
BOUNDARY = "<|eom|><|start|>assistant"
MARKERS = ("<|start|>", "<|message|>", "<|eom|>", "<|eot|>", "<|end_of_text|>")
TAGS = (
    WRAPPER,
    WRAPPER_END,
    '<atem:invoke name="ping">',
    INVOKE_END,
    '<atem:parameter name="body">',
    VALUE_END,
)
BLANKS = ("", " ", "\n", "\r\n", "\t ", "\n\n")


def tool(name: str, **properties: Any) -> dict[str, Any]:
    """An OpenAI chat tool."""
    parameters = {"type": "object", "properties": properties}
    return {"type": "function", "function": {"name": name, "parameters": parameters}}


STRING = {"type": "string"}
TOOLS = (
    tool("ping"),
    tool("note", title=STRING, body=STRING),
    tool(
        "typed",
        i={"type": "integer"},
        n={"type": "number"},
        b={"type": "boolean"},
        a={"type": "array"},
        o={"type": "object"},
        body=STRING,
        u={"type": ["string", "integer"]},
        z={"anyOf": [{"type": "string"}, {"type": "null"}]},
        e={"enum": ["1", "fast", None]},
        x={},
    ),
    tool("ledger.post", body=STRING, amount={"type": "number"}),
    tool("mail.send", body=STRING),
    tool("list"),
)
SPECIAL_TOOLS = (tool("commentary", body=STRING), tool("self", body=STRING))

DECLARED = ("ping", "note", "typed", "ledger.post", "mail.send", "list")
RESOLVING = (
    *("ping.ping", "note.note", "ledger.ledger.post", "mail.mail.send"),
    *("functions.note", "default_api.ping"),
)
UNKNOWN = (
    *("launch", "Ping", "mail.list", "post", "ledger", "note.body", "a.b.ping"),
    *("ping.ping.ping", "atem:function_calls", "developer", "x<|message|>"),
)
KEYS = ("body", "title", "i", "n", "b", "a", "o", "u", "z", "e", "x", "amount", "extra")


def one_of(*common: Any, rare: Any = ()) -> st.SearchStrategy[Any]:
    """One of ``common``, one time in twenty one of ``rare``; plain values stand for themselves.

    ``st.one_of`` drops what it is given twice, ``st.sampled_from`` keeps it: hence the pool.
    """
    pool = common * max(1, 19 * len(rare) // len(common)) + tuple(rare)
    if not any(isinstance(item, st.SearchStrategy) for item in pool):
        return st.sampled_from(pool)
    drawn = [i if isinstance(i, st.SearchStrategy) else st.just(i) for i in pool]
    return st.sampled_from(drawn).flatmap(lambda strategy: strategy)


def joined(parts: st.SearchStrategy[str], most: int, separator: str = "") -> st.SearchStrategy[str]:
    """Up to ``most`` of ``parts`` in a row."""
    return st.lists(parts, max_size=most).map(separator.join)


# ---- Fragments: what a value, an answer or a thought may quote -----------------------------

blanks = one_of(*BLANKS)
words = one_of(
    "x", "high water", "5", "a < b && c", "to=", "null", "潮汐", "👩‍🚀", "\x00", "é\u0301", '">'
)


def quoted_block(name: str = "ping", body: str | None = None) -> str:
    """A canonical block."""
    value = "" if body is None else f'<atem:parameter name="body">{body}{VALUE_END}\n'
    return f'{WRAPPER}\n<atem:invoke name="{name}">\n{value}{INVOKE_END}\n{WRAPPER_END}'


def transcript(name: str, body: str | None, end: str) -> str:
    """A message as a log quotes it: boundary, header, block, terminator."""
    return f"{BOUNDARY} to={name}<|message|>{quoted_block(name, body)}{end}"


markers = st.sampled_from(MARKERS)
tags = st.sampled_from((*TAGS, '<atem:parameter name="k">', "<atem:parameters>", "<atem:invoke>"))
prefixes = st.tuples(st.sampled_from(MARKERS + TAGS), st.integers(1, 20)).map(
    lambda p: p[0][: p[1]]
)
blocks = st.builds(quoted_block, st.sampled_from(DECLARED[:3]), st.sampled_from((None, "v", "")))
transcripts = st.builds(
    transcript,
    st.sampled_from(("ping", "note", "launch")),
    st.sampled_from((None, "v")),
    st.sampled_from(("", "<|eot|>", "<|eom|>", "<|eot|> end", " \n<|eom|>")),
)
closers = st.builds(
    lambda closer, blank, behind: closer + blank + behind,
    st.sampled_from((VALUE_END, INVOKE_END, WRAPPER_END)),
    blanks,
    st.sampled_from(
        (INVOKE_END, '<atem:parameter name="k">', "<atem:parameter", " x", "", WRAPPER_END)
    ),
)
headers = st.sampled_from(
    (
        *(" to=ping<|message|>", "\nto=note <|message|>", " to=launch<|message|>"),
        *("<|start|>assistant to=user<|message|>", "<|start|>assistant to=ping<|message|>"),
        *("<|start|>user<|message|>", "<|start|> tool ping", "<|start|>assistant<|message|>"),
        *(BOUNDARY, "<|start|>, then", "<|eom|><|start|>assistant to=x y", " to=self<|message|>"),
    )
)
hostile = one_of(markers, tags, prefixes, blocks, transcripts, closers, headers, blanks)
prose = joined(one_of(words, words, hostile), 4, " ")


# ---- Calls ---------------------------------------------------------------------------------

names = one_of(*DECLARED * 3, *RESOLVING, *UNKNOWN[:4], rare=UNKNOWN)
scalars = one_of(
    *("5", " -7 ", "3.0", "1e3", "1e999", "007", "NaN", "true", "FALSE", "maybe", "null"),
    *(
        "[1, 2.0, null]",
        "[",
        '{"k": {"d": [1]}}',
        '{"t": "</atem:parameter>"}',
        "{'k': 1}",
        '"q"',
        "",
    ),
    *("1", "fast", "12345678901234567890123", "forty"),
)
values = one_of(scalars, words, prose, hostile)
keys = one_of(*KEYS, rare=("k<|message|>",))

BAD_INVOKES = (
    *("<atem:invoke name='ping'>", '<atem:invoke name="ping"/>', '<atem:invoke name="">'),
    *("<atem:invoke>", '<atem:invoke name="ping"', "<atem:invoke x<", "<atem:Invoke>"),
    *('<atem:invoke name="ping" name="note">', '<atem:invoke xname="ping">'),
)
BAD_PARAMETERS = (
    *('<atem:parameter name="">', "<atem:parameter>", "<atem:parameter oops ", "<atem:param>"),
    *('<atem:parameter name="body"', "<atem:parameter name='k'>", '<atem:parameter name="k"/>'),
)
invoke_tags = one_of(
    names.map('<atem:invoke name="{}">'.format),
    names.map('<atem:invoke name="{}">'.format),
    names.map('<atem:invoke id="1"\n name="{}" x>'.format),
    rare=BAD_INVOKES,
)
parameter_tags = one_of(
    keys.map('<atem:parameter name="{}">'.format),
    keys.map('<atem:parameter\tname="{}" t="s">'.format),
    rare=BAD_PARAMETERS,
)
value_ends = one_of(
    VALUE_END, rare=(VALUE_END + " " * 245, "", f"{VALUE_END} y", "</atem:parameter", VALUE_END * 2)
)
invoke_ends = one_of(
    f"{INVOKE_END}\n", INVOKE_END, rare=("", "junk", "</atem:invo", INVOKE_END * 2)
)

parameters = st.tuples(parameter_tags, values, value_ends, blanks).map("".join)
invokes = st.tuples(invoke_tags, blanks, joined(parameters, 3), invoke_ends).map("".join)


def wrapped(opening: str, body: str, closing: str) -> str:
    """A block around its invokes."""
    return opening + body + closing


call_blocks = st.builds(
    wrapped,
    one_of(f"{WRAPPER}\n", WRAPPER, rare=("", "<atem:func")),
    st.lists(invokes, min_size=1, max_size=2).map("".join) | invokes | blanks,
    one_of(WRAPPER_END, f"{WRAPPER_END}\n", rare=("", "</atem:func", "oops")),
)
call_bodies = st.tuples(
    one_of("", "", "", rare=("Calling. ", "see <", INVOKE_END)),
    call_blocks,
    one_of("", "", "", call_blocks, rare=(" Done.", "\n<", " </atem:invoke>")),
).map("".join)
quoting_calls = prose.map(lambda body: quoted_block("note", body))
typed_calls = st.lists(st.tuples(keys, scalars), max_size=3).map(
    lambda pairs: (
        f'{WRAPPER}\n<atem:invoke name="typed">\n'
        + "".join(f'<atem:parameter name="{key}">{value}{VALUE_END}\n' for key, value in pairs)
        + f"{INVOKE_END}\n{WRAPPER_END}"
    )
)
abandoned_calls = st.builds(
    lambda call, at: call[: at % len(call)], quoting_calls, st.integers(60, 400)
)
bodies_for_tools = one_of(
    call_bodies, call_bodies, quoting_calls, quoting_calls, typed_calls, abandoned_calls, prose
)


# ---- Messages and turns --------------------------------------------------------------------

blank = one_of("", "", " ", rare=BLANKS)
framing = st.tuples(
    one_of("<|start|>", "<|start|>", rare=("<|start|> ", "<|sta", "")),
    one_of("assistant", "assistant", rare=("", "assistant ", "user", "tool ping", "assist")),
).map("".join)
recipients = {
    "think": one_of(" to=self", rare=("to=self", "\nto=self ", " to=")),
    "answer": one_of(" to=user", "", " to=commentary", rare=("to=user", " to=user json")),
    "call": names.map(" to={}".format),
}
message_marks = one_of(
    "<|message|>", "<|message|>", "<|message|>", rare=(" <|message|>", "", "<|mess")
)
bodies = {"think": prose, "answer": prose, "call": bodies_for_tools}
kinds = st.sampled_from(("think", "answer", "call", "call", "call"))
messages = kinds.flatmap(
    lambda kind: st.tuples(recipients[kind], message_marks, bodies[kind]).map("".join)
)
# The model's defect of wire_format 5.3: a call straight out of a thought.
defects = st.tuples(
    st.just(" to=self<|message|>"),
    prose,
    one_of(" ", "\n", "<|start|>assistant ", rare=("", "<|start|>", "x")),
    one_of(*DECLARED, rare=("user", "self", "launch", "ping.ping")).map("to={}<|message|>".format),
    blanks,
    call_bodies,
).map("".join)
# An abandoned call and a retry, or another message (wire_format 5.4).
retries = st.tuples(
    st.just(" to=note<|message|>"), abandoned_calls, st.just(BOUNDARY), messages
).map("".join)
ends = one_of(
    *("<|eom|>", "<|eom|>", "<|eom|>", "<|eom|>\n"),
    rare=(
        "",
        "<|eot|>",
        "<|eom|><|eot|>",
        "<|eo",
        " <|eom|> <|eom|> ",
        "<|end_of_text|>",
        "<|eom|>" * 37,
    ),
)
last_ends = one_of(
    "<|eot|>", "", "<|eom|>", rare=("<|eot|>\n", "<|eot|> more", "<|eot|><|start|>user")
)


@st.composite
def whole_texts(draw: st.DrawFn) -> str:
    """Several messages of a turn, with the header of each, its terminator, and what follows."""
    parts = [draw(one_of("", "", "", rare=("<|start|>assistant", "<|start|>", "Sure. ", " ")))]
    for index in range(draw(st.integers(1, 3))):
        if index:
            parts += [draw(ends), draw(framing)]
        parts.append(draw(one_of(messages, messages, messages, defects, retries)))
    return "".join([*parts, draw(last_ends)])


@st.composite
def tool_lists(draw: st.DrawFn) -> Tools:
    """Mostly all tools; now and then none, some, or tools with the names of channels."""
    some = ((), TOOLS[:2], (*TOOLS[:3], *SPECIAL_TOOLS), TOOLS[3:])
    return list(draw(one_of(TOOLS, rare=some)))


@st.composite
def turns(draw: st.DrawFn) -> Turn:
    """A turn from the grammar, broken in places and cut anywhere now and then."""
    text = draw(whole_texts())
    if draw(st.integers(0, 3)) == 3:
        text = text[: draw(st.integers(0, len(text)) | st.integers(0, 40))]
    return text, draw(tool_lists())


atoms = one_of(
    *(markers, tags, blank, words, headers, closers, prefixes),
    *(" to=self<|message|>", " to=ping<|message|>", " to=note<|message|>", BOUNDARY, "assistant"),
    st.sampled_from(DECLARED),
)


OPEN_VALUE = ' to=note<|message|><atem:invoke name="note"><atem:parameter name="body">'


@st.composite
def soups(draw: st.DrawFn) -> Turn:
    """Markers, tags, names and text in any order, mostly behind a header or within a value."""
    starts = (" to=note<|message|>", " to=self<|message|>", " to=user<|message|>", "", OPEN_VALUE)
    opening = draw(one_of(*starts, OPEN_VALUE))
    closing = draw(one_of("", VALUE_END + INVOKE_END, VALUE_END + INVOKE_END + "<|eot|>"))
    return opening + draw(joined(atoms, 14)) + closing, draw(tool_lists())


def splits(text: str) -> st.SearchStrategy[list[str]]:
    """The ways to cut ``text`` into pieces, empty pieces included."""
    places = st.lists(st.integers(0, len(text)), max_size=12).map(sorted)
    return places.map(
        lambda cuts: [text[a:b] for a, b in zip([0, *cuts], [*cuts, len(text)], strict=True)]
    )


reasons = st.sampled_from(("stop", "stop", "length"))
