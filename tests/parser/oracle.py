"""A one-shot reading of a whole turn, against which the streaming parser is compared.

Rules: written from wire_format 3 to 8 alone, by index over the whole string; it shares
no code with ``atem.parser`` and takes from ``atem`` the literals only. Clarity before
speed: quadratic is fine. Text mode, default options. Where the format leaves a choice,
the choice is named "Choice:" beside it.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, NamedTuple

from atem import wire
from tests.parser.oracle_bodies import (
    BARE,
    FRAMED,
    IMPLICIT,
    MAX_HEADER,
    OTHER_ROLE,
    BodyReader,
    Invoke,
    Reading,
    balanced,
    blank_end,
    headers,
    is_prefix,
    reading,
    run_end,
    terminators,
)
from tests.parser.oracle_values import parameter_schema, typed

REREADS = 3


@dataclass
class Result:
    """What a turn says. ``calls`` are ``(tool, arguments)``; ``problems`` are codes, best effort."""

    reasoning: str = ""
    content: str = ""
    calls: list[tuple[str, dict[str, Any]]] = field(default_factory=list)
    rejected: list[str] = field(default_factory=list)
    complete: bool = True
    problems: list[str] = field(default_factory=list)


def read(
    text: str,
    tools: list[dict[str, Any]],
    stop: str = "stop",
    *,
    recover: frozenset[str] = frozenset({"reasoning"}),
) -> Result:
    """Read ``text``, all that was generated behind ``<|start|>assistant``, as one turn."""
    return _Turn(text, tools, cut=stop != "stop", recover="reasoning" in recover).read()


class Candidate(NamedTuple):
    """A place where a message may end: "terminator", "header", "role" or "stream"."""

    at: int
    kind: str


class Body(NamedTuple):
    """An opened message: its body's start, its recipient, and whether 5.3 opened it."""

    at: int
    recipient: str | None
    recovered: bool = False


class _Turn:
    def __init__(self, text: str, tools: list[dict[str, Any]], *, cut: bool, recover: bool) -> None:
        self.text, self.cut, self.recover = text, cut, recover
        functions = [tool.get("function", tool) for tool in tools]
        self.tools = {f["name"]: f.get("parameters") or {} for f in functions}
        self.result = Result(complete=not cut)
        self.bodies: list[str] = []
        self.rereads = 0
        self.barred = False
        self.next: Body | None = None

    def read(self) -> Result:
        self._first()
        while (body := self.next) is not None:
            self.next = None
            self._message(body)
        # Choice: an empty reasoning body counts for nothing, so it brings no separator.
        self.result.reasoning = "\n".join(body for body in self.bodies if body)
        return self.result

    def _problem(self, code: str) -> None:
        self.result.problems.append(code)

    def _first(self) -> None:
        """The implicit header, or text without one (wire_format 3.1.7, 3.1.8)."""
        text = self.text
        lead = blank_end(text, 0)
        found = IMPLICIT.match(text)
        if found and lead <= MAX_HEADER and found.end() - lead <= MAX_HEADER:
            self.next = Body(found.end(), found[2])
        elif (
            text.startswith(wire.START, lead)
            and lead <= MAX_HEADER
            and len(text) - lead <= MAX_HEADER
            and is_prefix(IMPLICIT, text)
        ):
            self.result.complete = False
        else:
            self.next = Body(0, None)

    def _message(self, body: Body) -> None:
        if body.recipient == wire.SELF:
            self._reasoning(body.at)
        elif self._is_answer(body.recipient):
            ends = terminators(self.text, body.at)
            self.result.content += self.text[body.at : ends[0] if ends else None]
            self._go_on(Candidate(ends[0], "terminator") if ends else None)
        else:
            self._tool_message(body)

    def _is_answer(self, recipient: str | None) -> bool:
        commentary = recipient == wire.COMMENTARY and recipient not in self.tools
        return recipient in (None, wire.USER) or commentary

    def _go_on(self, end: Candidate | None) -> None:
        """Read what follows a message that ended there."""
        if end is None or end.kind == "stream":
            return
        if end.kind != "terminator":
            self._header(end.at)
            return
        behind, _ = run_end(self.text, end.at)
        if any(mark in self.text[end.at : behind] for mark in wire.TURN_ENDS):
            if behind < len(self.text):
                self._problem("text_after_turn")
        else:
            self._header(behind)

    def _header(self, at: int) -> None:
        """A header behind a boundary (wire_format 3.1.5, 3.1.6, 3.1.8, 3.1.9)."""
        rest = self.text[at:]
        if not rest:
            return
        framed = FRAMED.match(self.text, at)
        if framed is not None and framed.end() - at <= MAX_HEADER:
            self.next = Body(framed.end(), framed[1])
        elif OTHER_ROLE.match(self.text, at):
            self._problem("text_after_turn")
        else:
            self._bad_header(at)

    def _bad_header(self, at: int) -> None:
        self._problem("bad_header")
        ends = terminators(self.text, at)
        end = ends[0] if ends else len(self.text)
        # A marker that is not whole is text, but for the end of the stream (wire_format 4).
        broken = bool(ends) and "<" in self.text[at + 1 : end]
        if broken or end - at > MAX_HEADER or not is_prefix(FRAMED, self.text[at:end]):
            self.next = Body(at, None)
        elif ends:
            self._go_on(Candidate(end, "terminator"))
        else:
            self.result.complete = False

    # Reasoning (wire_format 5.3).

    def _reasoning(self, at: int) -> None:
        ends = [(place, None) for place in terminators(self.text, at)]
        if self.recover:
            ends += [(m.start(), m) for m in headers(self.text, at, FRAMED) if self._leaves(m)]
            ends += [
                (m.start(), m)
                for m in headers(self.text, at, BARE)
                if (m.start() == at or self.text[m.start() - 1] in wire.WHITESPACE)
                and self._calls(m)
            ]
        place, header = min(ends, key=lambda end: end[0], default=(len(self.text), None))
        self.bodies.append(self.text[at:place])
        if header is not None:
            self.next = Body(header.end(), header[1], recovered=True)
        elif ends:
            self._go_on(Candidate(place, "terminator"))

    def _leaves(self, header: Any) -> bool:
        """Whether a framed header ends a reasoning body."""
        name = header[1]
        return name == wire.SELF or self._is_answer(name) or self._calls(header)

    def _calls(self, header: Any) -> bool:
        """Whether a header names a declared tool and ``<atem:`` follows."""
        name = header[1]
        if name is None or name in (wire.SELF, wire.USER) or self._resolve(name) is None:
            return False
        behind = blank_end(self.text, header.end())
        close = behind + len(wire.TAG_PREFIX) - header.start() <= MAX_HEADER
        return close and self.text.startswith(wire.TAG_PREFIX, behind)

    # Tool messages (wire_format 5.4).

    def _tool_message(self, body: Body) -> None:
        candidates = self._candidates(body)
        first, *later = candidates
        result = self._read_to(body, first.at)
        undecided = result.state == "open" or not balanced(self.text[body.at : first.at])
        if result.state == "failed" or first.kind == "stream" or not undecided:
            return self._settle(body, first, result)
        self._problem("undecided")
        # Choice: once the re-readings are used up, a message is not held open any more.
        if self.rereads < REREADS:
            for end in later:
                if self.cut and self._is_last(end):
                    break  # the end of a cut stream decides nothing
                result_there = self._read_to(body, end.at)
                if result_there.state == "complete" and balanced(self.text[body.at : end.at]):
                    return self._settle(body, end, result_there)
        self.barred |= self.cut or self.rereads == REREADS
        self.rereads = min(self.rereads + 1, REREADS)
        return self._settle(body, first, result)

    def _candidates(self, body: Body) -> list[Candidate]:
        at = body.at
        found = [Candidate(place, "terminator") for place in terminators(self.text, at)]
        found += [Candidate(m.start(), "header") for m in headers(self.text, at, FRAMED)]
        found += [
            Candidate(m.start(), "role")
            for m in headers(self.text, at, OTHER_ROLE)
            if self._read_to(body, m.start()).state != "open"
        ]
        return [*sorted(found), Candidate(len(self.text), "stream")]

    def _read_to(self, body: Body, end: int) -> Reading:
        """Look-ahead, and nested if that fails (wire_format 5.5)."""
        result = reading(self.text, body.at, end, nested=False)
        if result.state == "failed":
            result = reading(self.text, body.at, end, nested=True)
        return result

    def _settle(self, body: Body, end: Candidate, result: Reading) -> None:
        """Turn the invokes of a decided message into calls and rejections, and read on."""
        if body.recovered and result.state == "complete" and result.tail:
            result.state = "failed"  # a quotation goes on, a real call does not (5.3)
        is_open = result.wrapper_open or result.tag_open or result.state == "open"
        dangling = end.kind == "stream" and result.state != "failed" and is_open
        self.result.complete &= not dangling
        cut = dangling or (self.cut and self._is_last(end))
        if result.state == "failed":
            self.result.rejected.append("malformed")
        elif not result.invokes:
            self._no_call(body, end, cut=cut)
        else:
            doubtful = cut or (end.kind == "stream" and result.tail)
            sure = self._agreed(body, end) if doubtful else None
            if body.recovered and cut:
                sure = set()  # whether a quotation goes on was not seen (5.3)
            for invoke in result.invokes:
                self._invoke(invoke, sure)
        self._go_on(end)

    def _is_last(self, end: Candidate) -> bool:
        """Whether only terminators and whitespace stand behind the message."""
        if end.kind != "terminator":
            return end.kind == "stream"
        return run_end(self.text, end.at)[0] == len(self.text)

    def _agreed(self, body: Body, end: Candidate) -> set[str]:
        """The invokes that both readings close at the same place (wire_format 4, cut rule)."""
        one, two = (
            BodyReader(self.text, body.at, end.at, nested=nested).read() for nested in (False, True)
        )
        return set(map(repr, one.invokes)) & set(map(repr, two.invokes))

    def _no_call(self, body: Body, end: Candidate, *, cut: bool) -> None:
        if self._resolve(body.recipient) is not None:
            self.result.rejected.append("incomplete" if cut else "malformed")
        elif body.at < end.at:
            self._problem("undeclared_channel")

    def _invoke(self, invoke: Invoke, sure: set[str] | None) -> None:
        name = self._resolve(invoke.name)
        doubtful = sure is not None and repr(invoke) not in sure
        if invoke.end is None:
            self.result.rejected.append("incomplete")
        elif name is None:
            # Choice: an unknown tool stays one where the cut rule would bar a call.
            self.result.rejected.append("unknown_tool")
        elif self.barred or doubtful:
            self.result.rejected.append("incomplete")
        else:
            self.result.calls.append((name, self._arguments(name, invoke)))

    def _arguments(self, name: str, invoke: Invoke) -> dict[str, Any]:
        arguments: dict[str, Any] = {}
        for key, raw in invoke.parameters:
            if key in arguments:
                self._problem("duplicate_parameter")
            arguments[key] = typed(raw, parameter_schema(self.tools[name], key), self.tools[name])
        return arguments

    def _resolve(self, name: str | None) -> str | None:
        """The declared tool that ``name`` means (wire_format 6)."""
        if name is None or name in self.tools:
            return name
        half = name[: len(name) // 2]
        if name == f"{half}.{half}" and half in self.tools:
            return half
        space, _, rest = name.partition(".")
        if rest.startswith(space + ".") and rest in self.tools:
            return rest
        # Choice: one prefix only, which is foreign if no declared name begins with it.
        declared = "." not in rest and rest in self.tools and bool(space)
        foreign = not any(tool.partition(".")[0] == space for tool in self.tools)
        return rest if declared and foreign else None
