"""Tool calls that a server parsed, written back as the wire has them.

Rules: a call is written when the answer is over, because only then is it known
to be whole. One that can't be read back as exactly what the server sent - its
JSON is cut or invalid, a name has no form on the wire or is a channel's, a string
spells the end of a value or is no Unicode - is left open, its raw arguments
inside and no tag among them, so that a parser rejects it and shows what was
meant. It never comes out as a call.
"""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from ... import wire
from .answers import Fields, Malformed

if TYPE_CHECKING:
    from collections.abc import Collection

MAX_HELD: Final = 16 * 1024 * 1024
"""Characters of arguments that are held at once (wire_format 8: a call longer than that)."""

_MAX_NAME: Final = 128
_CHANNELS: Final = frozenset((wire.SELF, wire.USER))
_LEAST: Final = 256
"""What a call counts at least, so that their number is bounded too."""

_HALVES: Final = re.compile("[\ud800-\udfff]")
_RECIPIENT: Final = re.compile(rf"[^{re.escape(wire.BREAKS_TAG + wire.WHITESPACE)}]+")
_KEY: Final = re.compile(rf"[^{re.escape(wire.BREAKS_TAG)}]+")
_ENDS_VALUE: Final = re.compile(
    rf"{re.escape(wire.PARAMETER_CLOSE)}|{re.escape(wire.PARAMETER_OPEN)}|"
    rf"{re.escape(wire.INVOKE_CLOSE)}|{re.escape(wire.INVOKE_OPEN)}|"
    rf"{re.escape(wire.BLOCK_CLOSE)}|{re.escape(wire.BLOCK_OPEN)}"
)


@dataclass(slots=True)
class _Call:
    identity: str
    name: str
    arguments: list[str]
    doubtful: bool = False


class Calls:
    """The calls of one answer, by the index and the id that a server gives them.

    ``empty_ok`` are the tools without parameters, for which some servers send
    no arguments at all. Raises Malformed for deltas that fit no call, and for
    more arguments than ``MAX_HELD``.
    """

    def __init__(self, empty_ok: Collection[str] = ()) -> None:
        self._empty_ok = frozenset(empty_ok)
        self._calls: list[_Call] = []
        self._by_index: dict[int, _Call] = {}
        self._last: _Call | None = None
        self._held = 0

    def take(self, delta: Fields) -> None:
        """One element of a ``tool_calls`` delta."""
        function = delta.fields("function")
        call = self._last = self._find(delta, function)
        name = function.text("name")
        # A second name may be a piece of the first or another call: never a guess.
        call.doubtful = call.doubtful or bool(name and call.name and name != call.name)
        call.name = call.name or name[: _MAX_NAME + 1]
        self._hold(call, function.raw.get("arguments"))

    def bodies(self, *, cut: bool) -> list[tuple[str, str]]:
        """Recipient and body of each call in order; with ``cut`` the last one touched is open.

        A server that was cut off by a limit may have closed the JSON itself.
        """
        if cut and self._last is not None:
            self._last.doubtful = True
        return [self._written(call) for call in self._calls]

    def _find(self, delta: Fields, function: Fields) -> _Call:
        index, identity = delta.whole("index"), delta.text("id")
        known = self._last if index is None else self._by_index.get(index)
        named = index is None and bool(function.text("name"))
        if known is None or not _goes_on(known, identity, named=named):
            known = _Call("", "", [])
            self._calls.append(known)
            self._count(_LEAST)
        if identity and not known.identity:
            known.identity = identity
            self._count(len(identity))
        if index is not None:
            self._by_index[index] = known
        return known

    def _hold(self, call: _Call, arguments: object) -> None:
        if isinstance(arguments, dict):
            arguments = json.dumps(arguments, ensure_ascii=False)
        if arguments is None or arguments == "":
            return
        if not isinstance(arguments, str):
            raise Malformed("the arguments of a call are neither text nor an object")
        self._count(len(arguments))
        call.arguments.append(arguments)

    def _count(self, size: int) -> None:
        self._held += size
        if self._held > MAX_HELD:
            raise Malformed(f"the calls have more than {MAX_HELD} characters of arguments")

    def _written(self, call: _Call) -> tuple[str, str]:
        raw = "".join(call.arguments)
        pairs = None if call.doubtful else self._pairs(call.name, raw)
        if pairs is None or not _can_be_sent(call.name, pairs):
            return _open_call(call.name, raw)
        parameters = [
            f"{wire.parameter_open(key)}{value}{wire.PARAMETER_CLOSE}\n" for key, value in pairs
        ]
        return call.name, "".join(
            (
                f"{wire.BLOCK_OPEN}\n{wire.invoke_open(call.name)}\n",
                *parameters,
                f"{wire.INVOKE_CLOSE}\n{wire.BLOCK_CLOSE}",
            )
        )

    def _pairs(self, name: str, raw: str) -> list[tuple[str, str]] | None:
        if not raw.strip() and name in self._empty_ok:
            return []
        return arguments_of(raw)


def _goes_on(call: _Call, identity: str, *, named: bool) -> bool:
    """Whether a delta belongs to ``call``: ids say so, else a name without an index does not."""
    if identity and call.identity:
        return identity == call.identity
    return not named


def arguments_of(raw: str) -> list[tuple[str, str]] | None:
    """The members of a JSON object, in order: strings as they are, other values as their JSON.

    None if ``raw`` is no JSON object, or not a whole one. In a list or object
    ``<`` is escaped, which is the same value and no tag.
    """
    try:
        members = _DECODER.decode(raw)
        if not isinstance(members, _Members):
            return None
        return [(key, _spelled(value)) for key, value in members.pairs]
    except (ValueError, RecursionError):
        return None


class _Members:
    """The members of one object, also those whose name comes twice."""

    def __init__(self, pairs: list[tuple[str, Any]]) -> None:
        self.pairs = pairs


class _Number(str):
    """A number as it was spelled."""

    __slots__ = ()


def _no_json(constant: str) -> Any:
    raise ValueError(constant)


_DECODER: Final = json.JSONDecoder(
    object_pairs_hook=_Members,
    parse_int=_Number,
    parse_float=_Number,
    parse_constant=_no_json,
)


def _spelled(value: Any) -> str:
    """A member's value as a parameter has it (wire_format 2)."""
    if isinstance(value, str):
        return value
    return _json(value).replace("<", "\\u003c")


def _json(value: Any) -> str:
    if isinstance(value, _Members):
        pairs = (f"{json.dumps(k, ensure_ascii=False)}: {_json(v)}" for k, v in value.pairs)
        return "{" + ", ".join(pairs) + "}"
    if isinstance(value, list):
        return "[" + ", ".join(map(_json, value)) + "]"
    return value if isinstance(value, _Number) else json.dumps(value, ensure_ascii=False)


def _can_be_sent(name: str, pairs: list[tuple[str, str]]) -> bool:
    named = len(name) <= _MAX_NAME and _RECIPIENT.fullmatch(name) and name not in _CHANNELS
    return bool(named) and all(
        len(key) <= _MAX_NAME
        and _KEY.fullmatch(key)
        and not _ENDS_VALUE.search(value)
        and not _HALVES.search(key + value)
        for key, value in pairs
    )


def _open_call(name: str, raw: str) -> tuple[str, str]:
    """A call that no parser takes for one: its invoke has text where a parameter must be."""
    near = "_".join(_RECIPIENT.findall(name[:_MAX_NAME])) or "_"
    shown = _HALVES.sub("\ufffd", raw).replace("<", "\\u003c") or "no arguments"
    # A call to a channel is not of its words.
    return (
        "_" if near in _CHANNELS else near,
        f"{wire.BLOCK_OPEN}\n{wire.invoke_open(near)}\n{shown}",
    )
