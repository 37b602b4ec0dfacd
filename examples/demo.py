"""Every turn under examples/turns, streamed in small pieces through the parser: `make demo`.

Exits with 1 if a turn does not come out as the .json beside it says.
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


def main() -> int:
    """Show all turns; the number of those that are not as written, at most 1."""
    declared = json.loads((TURNS / "tools.json").read_text("utf-8"))
    paths = sorted(TURNS.glob("*.atem"))
    wrong = 0
    for path in paths:
        about = json.loads(path.with_suffix(".json").read_text("utf-8"))
        text = path.read_bytes().decode().removesuffix("\n")
        tools = [tool for tool in declared if tool["function"]["name"] in about["tools"]]
        pieces = (text[start : start + PIECE] for start in range(0, len(text), PIECE))
        turn = atem.collect(atem.parse_stream(pieces, tools=tools, reason=about["reason"]))
        print(styled(f"{path.stem[:2]} {about['title']}", "title"))
        print(styled(f"   {about['why']}", "dim"), *lines(turn), sep="\n", end="\n\n")
        if not as_written(turn, about["expect"]):
            wrong += 1
            print(styled(f"   {path.stem}.json says something else\n", "bad"))
    print(f"{len(paths) - wrong} of {len(paths)} as written")
    return min(wrong, 1)


if __name__ == "__main__":
    sys.exit(main())
