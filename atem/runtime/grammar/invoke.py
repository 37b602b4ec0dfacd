"""The parameters of one invoke, in any order: each once at most, some of them at least.

Rules: which were written is in the bits of a number that the rules carry on
(llguidance's parametric rules); those that have to be come first in it. A bare
text is ended by the tag that follows it, so there are two rules: what stands
where a tag may open, and what stands behind one that a text has opened.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from ... import wire
from ...grammar import TEXT
from .lexemes import quoted

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from ...grammar import CallForm, Form

_NAME: Final = ' name="'
_NAMED: Final = quoted('">')
_CLOSED: Final = quoted(f"{wire.INVOKE_CLOSE}\n")
_ANY_KEY: Final = f"/[^{wire.BREAKS_TAG}]" + "{1,64}/"


def arguments(
    place: int, call: CallForm, value: Callable[[Form], tuple[str, ...]], rules: list[str]
) -> str:
    """The rule for what stands between the tags of the invoke, the closing one included.

    ``value`` gives the rules of a form; what else is needed is added to ``rules``.
    """
    if not call.parameters and not call.others:
        return _CLOSED
    one = _Arguments(f"args{place}", f"rest{place}", call, value)
    opened, named = list(one.ways(wire.PARAMETER_OPEN + _NAME)), list(one.ways(_NAME))
    closed = f"{_CLOSED}{_if(_ones(0, one.needed))}"
    rules.append(f"args{place}::_: " + "\n | ".join([closed, *opened]))
    if any(f"rest{place}::" in way for way in opened):
        rules.append(f"rest{place}::_: " + "\n | ".join(named))
    return f"args{place}::0x0"


class _Arguments:
    def __init__(
        self, first: str, rest: str, call: CallForm, value: Callable[[Form], tuple[str, ...]]
    ) -> None:
        self._first, self._rest, self._value = first, rest, value
        given = call.parameters or ()
        self._ordered = sorted(given, key=lambda parameter: not parameter.required)
        self.needed = sum(parameter.required for parameter in given)
        self._others = call.others

    def ways(self, tag: str) -> Iterator[str]:
        """Everything that ``tag``, which ends within a name, may go on to."""
        for bit, parameter in enumerate(self._ordered):
            opener = quoted(f'{tag}{parameter.name}">')
            yield from self._parameter(opener, bit, self._value(parameter.form))
        if self._others:
            more, last = self._value(TEXT)
            opener = f"{quoted(tag)} {_ANY_KEY} {_NAMED}"
            yield f"{opener} {more} {self._rest}::_"
            yield f"{opener} {last}{_if(_ones(0, self.needed))}"

    def _parameter(self, opener: str, bit: int, value: Sequence[str]) -> Iterator[str]:
        count = len(self._ordered)
        if len(value) == 1:
            yield f"{opener} {value[0]} {self._first}::set_bit({bit}){_if([f'bit_clear({bit})'])}"
            return
        more, last = value
        unwritten = [f"bit_clear({bit})"]
        if self._others or count > 1:
            left = [] if self._others else [f"bit_count_lt([0:{count}], {count - 1})"]
            yield f"{opener} {more} {self._rest}::set_bit({bit}){_if(unwritten + left)}"
        whole = _ones(0, min(bit, self.needed)) + _ones(bit + 1, self.needed)
        yield f"{opener} {last}{_if(unwritten + whole)}"


def _ones(start: int, stop: int) -> list[str]:
    """The condition that those bits are set."""
    return [f"is_ones([{start}:{stop}])"] if start < stop else []


def _if(conditions: list[str]) -> str:
    if not conditions:
        return ""
    joined = conditions[-1]
    for condition in conditions[-2::-1]:
        joined = f"and({condition}, {joined})"
    return f" %if {joined}"
