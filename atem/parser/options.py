"""The options of a parser, checked once.

Rules: every option (docs/parser.md, "Options") is a field here, honoured everywhere or
refused here. Values that can't work raise OptionError with the reason.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, fields
from secrets import token_hex
from typing import Any, Final, Literal, TypeAlias, TypedDict, get_args

from .. import wire
from ..errors import OptionError
from ..tools import ToolSet
from ..tools.names import NameRule

Reason: TypeAlias = Literal["stop", "length", "abort"]
Unknown: TypeAlias = Literal["reject", "forward", "content", "raise"]
Arguments: TypeAlias = Literal["stream", "whole"]
Validate: TypeAlias = Literal["report", "reject", "off"]
Profile: TypeAlias = Literal["glimmer", "spark"]

RECOVERIES: Final = frozenset(("reasoning", "headerless", "glued"))
CHOICES: Final[dict[str, tuple[str, ...]]] = {
    "unknown": get_args(Unknown),
    "names": get_args(NameRule),
    "arguments": get_args(Arguments),
    "validate": get_args(Validate),
    "profile": get_args(Profile),
    "reason": get_args(Reason),
}
_SMALLEST_HEADER: Final = 32


def new_call_id() -> str:
    """An id that no other turn will use (wire_format 8)."""
    return f"call_{token_hex(12)}"


class ParserOptions(TypedDict, total=False):
    """The keyword options of every parsing function, as a type checker sees them."""

    tools: object
    tokenizer: object | None
    unknown: Unknown
    names: NameRule
    arguments: Arguments
    validate: Validate
    recover: Iterable[str]
    channel: str | None
    max_header: int
    max_call_chars: int
    strict_recipient: bool
    one_invoke_per_message: bool
    profile: Profile
    framed: bool
    new_id: Callable[[], str]


@dataclass(frozen=True, slots=True, kw_only=True)
class Options:
    """The options in force, with their defaults."""

    tools: ToolSet
    unknown: Unknown = "reject"
    names: NameRule = "safe"
    arguments: Arguments = "stream"
    validate: Validate = "report"
    recover: frozenset[str] = frozenset(("reasoning",))
    channel: str | None = None
    max_header: int = wire.MAX_HEADER
    max_call_chars: int = 16 * 1024 * 1024
    strict_recipient: bool = False
    one_invoke_per_message: bool = False
    profile: Profile = "glimmer"
    framed: bool = False
    new_id: Callable[[], str] = new_call_id

    @classmethod
    def of(cls, given: Mapping[str, Any]) -> Options:
        """The options that a caller gave. Raises TypeError for one that doesn't exist."""
        known = {field.name for field in fields(cls)}
        for name in given:
            if name not in known:
                names = ", ".join(sorted({*known, "tokenizer"}))
                raise TypeError(f"unknown parser option {name!r}; the options are {names}")
        chosen = dict(given)
        chosen["tools"] = ToolSet.of(given.get("tools"))
        if "recover" in chosen:
            chosen["recover"] = _recoveries(chosen["recover"])
        return cls(**chosen)

    def __post_init__(self) -> None:
        for name, kinds in _KINDS.items():
            _check_kind(name, getattr(self, name), kinds)
        for name in ("unknown", "names", "arguments", "validate", "profile"):
            check_choice(name, getattr(self, name))
        unknown = self.recover - RECOVERIES
        if unknown:
            raise OptionError(
                f"recover holds {sorted(unknown)}; it may hold {', '.join(sorted(RECOVERIES))}"
            )
        self._check_numbers()
        self._check_combinations()

    def _check_numbers(self) -> None:
        if self.max_header < _SMALLEST_HEADER:
            raise OptionError(
                f"max_header={self.max_header} can't hold a header; use {_SMALLEST_HEADER} or more"
            )
        if self.max_call_chars < 1:
            raise OptionError(f"max_call_chars={self.max_call_chars} admits no call; use 1 or more")

    def _check_combinations(self) -> None:
        if self.channel is not None and self.framed:
            raise OptionError(
                "channel and framed exclude each other: a framed stream names every channel itself"
            )
        if self.channel is not None and (
            not self.channel or any(c in wire.BREAKS_HEADER for c in self.channel)
        ):
            raise OptionError(
                f"channel={self.channel!r} can't be a recipient: "
                "it needs characters, and none of whitespace and '<'"
            )
        if "headerless" in self.recover and not len(self.tools):
            raise OptionError(
                "recover 'headerless' needs tools: without any, no block can be a call"
            )


_KINDS: Final[dict[str, tuple[type, ...]]] = {
    "channel": (str, type(None)),
    "max_header": (int,),
    "max_call_chars": (int,),
    "strict_recipient": (bool,),
    "one_invoke_per_message": (bool,),
    "framed": (bool,),
}


def _check_kind(option: str, value: object, kinds: tuple[type, ...]) -> None:
    if not isinstance(value, kinds) or (isinstance(value, bool) and bool not in kinds):
        wanted = " or ".join("None" if kind is type(None) else kind.__name__ for kind in kinds)
        raise OptionError(f"{option}={value!r} is a {type(value).__name__}; it must be {wanted}")


def _recoveries(given: object) -> frozenset[str]:
    if isinstance(given, str) or not isinstance(given, Iterable):
        raise OptionError(
            f"recover={given!r} is a {type(given).__name__}; "
            "pass a set of names, for example {'reasoning'}"
        )
    names = tuple(given)
    if not all(isinstance(name, str) for name in names):
        raise OptionError(f"recover={given!r} holds more than names")
    return frozenset(names)


def check_choice(option: str, value: Any) -> None:
    """Raise OptionError unless ``value`` is one that ``option`` has."""
    if value not in CHOICES[option]:
        raise OptionError(
            f"{option}={value!r} is not a choice; use one of {', '.join(CHOICES[option])}"
        )
