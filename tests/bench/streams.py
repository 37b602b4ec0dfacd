"""Seeded streams with their truth.

Rules: a stream's text and truth come from the same choices, never from a
parser; the same name gives the same characters on every machine. A stream
begins as a model does after the prompt's ``<|start|>assistant``, so its first
header has no role (wire_format 3).
"""

from __future__ import annotations

import json
import random
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

SPECIALS = ("<|start|>", "<|message|>", "<|eom|>", "<|eot|>")
KIB = 1024
WORDS = (
    "a river the of under stone and glass to with morning in paper it was quiet over market "
    "station slowly seven windows carried never because between almost letter garden people "
    "parser stream token channel argument buffer marker partial state machine latency "
    "naïve façade 東京 Привет 🙂 forecast temperature humidity"
).split()

Call = tuple[str, dict[str, Any]]


@dataclass(frozen=True)
class Stream:
    """One assistant turn: what the model writes, and what it means.

    ``truth`` has ``reasoning``, ``content`` and ``calls`` (name, arguments).
    ``span`` is where the one large argument lies in ``text``, in characters.
    """

    name: str
    text: str
    truth: dict[str, Any]
    span: tuple[int, int] | None = None


def declare(name: str, **types: str) -> dict[str, Any]:
    """A tool as the chat API declares it, with one type per parameter."""
    parameters = {"type": "object", "properties": {key: {"type": t} for key, t in types.items()}}
    return {
        "type": "function",
        "function": {"name": name, "description": name, "parameters": parameters},
    }


TOOLS = [
    declare(
        "get_weather",
        city="string",
        days="integer",
        metric="boolean",
        threshold="number",
        options="object",
        tags="array",
    ),
    declare("write_file", path="string", content="string"),
    declare("search.web", query="string", limit="integer"),
    declare("noop"),
]


# ------------------------------------------------------------------ writing


def prose(rng: random.Random, size: int) -> str:
    """About ``size`` characters of sentences and paragraphs."""
    parts: list[str] = []
    while size > 0:
        words = " ".join(rng.choice(WORDS) for _ in range(rng.randint(6, 18)))
        parts.append(words.capitalize() + rng.choice([". ", ". ", "? ", ".\n\n"]))
        size -= len(parts[-1])
    return "".join(parts).strip()


SOURCE = (
    "def handler_{0}(event, *, retries={1}):",
    '    """Says \\"{0}\\" and a back\\\\slash {1}."""',
    "    if event.size < {0} and event.kind <= {1}:",
    '        return f"<row id=\'{{event.id}}\' n=\\"{0}\\">{{event.body!r}}</row>{1}"',
    "    pattern = r'^\\s*<([a-z]+)[^>]*>\\d{{{0}}}</\\1>$'",
    '\ttabbed = {{\'k{0}\': "v", "list": [1, 2, {1}]}}',
    "    xml = '<item id=\"{0}\"><name>a &lt; b &amp; c</name></item><!-- {1} -->'",
    "    print('C:\\\\temp\\\\file{0}.txt', \"\\u00e9\", '{1}')",
    "    x = (a << {0}) | (b >> {1})  # é 東京 🙂",
    "",
)


def source_text(rng: random.Random, size: int) -> str:
    """Exactly ``size`` characters of code with ``<``, quotes, XML, backslashes and indentation."""
    lines: list[str] = []
    left = size
    while left > 0:
        line = rng.choice(SOURCE).format(rng.randint(0, 9999), rng.randint(0, 9999))
        lines.append(line + "\n")
        left -= len(lines[-1])
    return "".join(lines)[:size]


NEAR_MARKERS = (
    *("<", "<<", "<|", "<|e", "<|eo", "<|eot", "<|eom|", "<|message", "<|st", "</", "</a", "\\<"),
    *("<atem:", "</atem:", "<atem:func", "<atem:parameter", "</atem:parameter", "<atem: invoke>"),
    *("<|EOT|>", "<|endoftext|>", "< |eot|>", "&lt;", "to=", " to=u", " to=user", "x <= y", '"<"'),
)


def near_markers(rng: random.Random, size: int, more: Sequence[str] = ()) -> str:
    """About ``size`` characters of what almost is a marker, and of ``more``."""
    pool, parts = [*NEAR_MARKERS, *more], ["text "]
    while size > 0:
        parts.append(rng.choice(pool) + rng.choice(["", " ", " ", "\n", " word "]))
        size -= len(parts[-1])
    return "".join(parts).strip() + " end"


def block(calls: Sequence[Call]) -> str:
    """Calls as the chat template writes them: strings verbatim, the rest as JSON."""
    lines = ["<atem:function_calls>"]
    for name, arguments in calls:
        lines.append(f'<atem:invoke name="{name}">')
        for key, value in arguments.items():
            text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
            lines.append(f'<atem:parameter name="{key}">{text}</atem:parameter>')
        lines.append("</atem:invoke>")
    return "\n".join([*lines, "</atem:function_calls>"])


def turn(
    name: str,
    reasoning: str,
    calls: Sequence[Call] = (),
    content: str = "",
    *,
    large: str = "",
    apart: bool = False,
) -> Stream:
    """One turn: reasoning, calls (in one message, or ``apart``), content."""
    messages = [("self", reasoning)]
    groups = [[call] for call in calls] if apart else [list(calls)] if calls else []
    messages += [(group[0][0], block(group)) for group in groups]
    if content:
        messages.append(("user", content))
    bodies = [f" to={to}<|message|>{body}" for to, body in messages]
    text = "<|eom|><|start|>assistant".join(bodies) + "<|eot|>"
    at = text.index(large)
    return Stream(
        name,
        text,
        {
            "reasoning": reasoning,
            "content": content,
            "calls": [{"name": name, "arguments": arguments} for name, arguments in calls],
        },
        (at, at + len(large)) if large else None,
    )


# ------------------------------------------------------------------ streams


def answer(name: str, size: int) -> Stream:
    """Some reasoning, then ``size`` characters of visible text."""
    rng = random.Random(1)
    return turn(name, prose(rng, 2 * KIB), content=prose(rng, size))


def agent(name: str) -> Stream:
    """Some reasoning, then one call with values of all types."""
    rng = random.Random(2)
    arguments = {
        "city": "San José",
        "days": 3,
        "metric": True,
        "threshold": 2.5,
        "tags": ["a", "b<c", '"q"'],
    }
    return turn(name, prose(rng, 320), [("get_weather", arguments)])


def parallel(name: str, *, apart: bool) -> Stream:
    """32 calls, in one message or in one each."""
    rng = random.Random(3)
    calls: list[Call] = [
        ("search.web", {"query": prose(rng, 32), "limit": rng.randint(1, 50)}) for _ in range(32)
    ]
    return turn(name, prose(rng, 160), calls, apart=apart)


def write(name: str, size: int) -> Stream:
    """One call with one string argument of ``size`` characters."""
    rng = random.Random(4)
    content = source_text(rng, size)
    call: Call = ("write_file", {"path": "src/app.py", "content": content})
    return turn(name, prose(rng, 160), [call], large=content)


def adversarial(name: str) -> Stream:
    """A legal turn whose bodies are full of near markers.

    Whole blocks quoted in reasoning and answer are text, because of their
    channel. The argument holds no closing parameter tag, which a value can't
    express (wire_format 5).
    """
    rng = random.Random(5)
    openers = ["<atem:function_calls>", '<atem:invoke name="noop">', '<atem:parameter name="city">']
    quoted = [*openers, block([("noop", {})]), "</atem:function_calls>", "</atem:invoke>"]
    argument = near_markers(rng, 8 * KIB, openers)
    call: Call = ("write_file", {"path": "a<b>.txt", "content": argument})
    reasoning, content = (near_markers(rng, 4 * KIB, quoted) for _ in range(2))
    return turn(name, reasoning, [call], content, large=argument)


MAKERS: dict[str, Callable[[str], Stream]] = {
    "chat": partial(answer, size=8 * KIB),
    "agent": agent,
    "parallel32": partial(parallel, apart=False),
    "parallel32m": partial(parallel, apart=True),
    "adversarial": adversarial,
    "answer1024k": partial(answer, size=KIB * KIB),
    **{f"write{k}k": partial(write, size=k * KIB) for k in (4, 16, 64, 256, 1024)},
}


def build(name: str) -> Stream:
    """The stream of that name."""
    return MAKERS[name](name)


# ------------------------------------------------------------------ cutting


def tokens(text: str) -> Iterator[str]:
    """Cut into deltas of 1 to 7 characters, as tokens are; a special token stays whole."""
    rng = random.Random(0)
    at = 0
    while at < len(text):
        special = next((s for s in SPECIALS if text.startswith(s, at)), None)
        if special is not None:
            end = at + len(special)
        else:
            end = min(at + rng.randint(1, 7), len(text))
            marker = text.find("<|", at + 1, end + 1)
            while marker >= 0 and not text.startswith(SPECIALS, marker):
                marker = text.find("<|", marker + 1, end + 1)
            if marker >= 0:
                end = marker
        yield text[at:end]
        at = end


def deltas(stream: Stream, mode: str) -> list[str]:
    """The stream cut by ``mode``: "token", "char" or "whole"."""
    if mode == "token":
        return list(tokens(stream.text))
    return list(stream.text) if mode == "char" else [stream.text]
