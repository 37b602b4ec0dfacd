"""Every turn under examples/turns, streamed in small pieces through the parser.

`make demo` shows a line of each. Numbers after the name show those in full, as in
`python examples/parse_turns.py 04 05`. Exits with 1 if a turn does not come out as the .json
beside it says.
"""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import atem

if TYPE_CHECKING:
    from collections.abc import Iterator

TURNS = Path(__file__).parent / "turns"
PIECE = 5  # characters: about as much as a token
LONGEST = 56  # characters shown of a value
COLOUR = sys.stdout.isatty() and not os.environ.get("NO_COLOR")
STYLES = {"title": "1", "dim": "2", "call": "36", "answer": "32", "bad": "31"}


def styled(text: str, style: str) -> str:
    """``text`` in a style, or as it is where nobody would see one."""
    return f"\x1b[{STYLES[style]}m{text}\x1b[0m" if COLOUR else text


def labelled(label: str, text: str, style: str) -> str:
    """``text`` behind a label, its later lines under the first."""
    return styled(f"   {label:<10}" + text.replace("\n", "\n" + " " * 13), style)


def shortened(value: Any) -> str:
    """A value as JSON, cut where it gets long."""
    text = json.dumps(value, ensure_ascii=False)
    return text if len(text) <= LONGEST else f"{text[:LONGEST]}… ({len(text)} characters)"


def lines(turn: atem.Turn) -> Iterator[str]:
    """What came out of a turn."""
    if turn.reasoning:
        yield labelled("reasoning", turn.reasoning, "dim")
    if turn.content:
        yield labelled("answer", turn.content, "answer")
    for call in turn.calls:
        shown = [f"  {key} = {shortened(value)}" for key, value in call.arguments.items()]
        yield labelled("call", "\n".join([call.name, *shown]), "call")
    for rejected in turn.rejected:
        yield labelled("rejected", f"{rejected.raw_name or '?'}: {rejected.reason}", "bad")
    state = "complete" if turn.complete else "not complete"
    yield labelled("end", f"{state}, {turn.finish_reason}", "dim")


def as_written(turn: atem.Turn, expect: dict[str, Any]) -> bool:
    """Whether ``turn`` is what its .json says; as JSON text, which tells 1, 1.0 and true apart."""
    found = {key: getattr(turn, key) for key in expect}
    found["calls"] = [{"name": call.name, "arguments": call.arguments} for call in turn.calls]
    found["rejected"] = [rejected.reason for rejected in turn.rejected]
    return json.dumps(found) == json.dumps(expect)


def in_short(turn: atem.Turn) -> str:
    """What came out of a turn, in a few words."""
    texts = {"reasoning": turn.reasoning, "answer": turn.content}
    counts = {"call": len(turn.calls), "rejected call": len(turn.rejected)}
    told = [name for name, text in texts.items() if text]
    told += [f"{n} {name}{'s' if n > 1 else ''}" for name, n in counts.items() if n]
    return ", ".join(told)


def parsed(text: str, tools: list[dict[str, Any]], reason: str) -> atem.Turn:
    """``text`` as the parser reads it, a few characters at a time."""
    pieces = (text[start : start + PIECE] for start in range(0, len(text), PIECE))
    return atem.collect(atem.parse_stream(pieces, tools=tools, reason=reason))


def main(chosen: list[str]) -> int:
    """Show all turns, the ``chosen`` in full; the number of those not as written, at most 1."""
    declared = json.loads((TURNS / "tools.json").read_text("utf-8"))
    paths = sorted(TURNS.glob("*.atem"))
    if unknown := sorted(set(chosen) - {path.stem[:2] for path in paths}):
        sys.exit(f"there is no turn {', '.join(unknown)}; they are 01 to {len(paths):02}")
    wrong = 0
    print(f"{len(paths)} turns that are hard to read, {PIECE} characters at a time:\n")
    for path in paths:
        about = json.loads(path.with_suffix(".json").read_text("utf-8"))
        text = path.read_bytes().decode().removesuffix("\n")
        tools = [tool for tool in declared if tool["function"]["name"] in about["tools"]]
        turn = parsed(text, tools, about["reason"])
        title = f"{path.stem[:2]} {about['title']}"
        if path.stem[:2] in chosen:
            print(styled(title, "title"))
            print(styled(f"   {about['why']}", "dim"), *lines(turn), sep="\n", end="\n\n")
        else:
            print(f"{title:<43}{styled(in_short(turn), 'dim')}")
        if not as_written(turn, about["expect"]):
            wrong += 1
            print(styled(f"   {path.stem}.json says something else\n", "bad"))
    print(f"\n{len(paths) - wrong} of {len(paths)} as written")
    return min(wrong, 1)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
