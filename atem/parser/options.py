"""The options of a parser, checked once.

Rules: every option of design 4.3 is a field here, honoured everywhere or
refused here. Values that can't work raise OptionError with the reason.
"""

from __future__ import annotations

from dataclasses import dataclass
from secrets import token_hex
from typing import TYPE_CHECKING, Any, Final, Literal, TypeAlias

from ..errors import OptionError

if TYPE_CHECKING:
    from collections.abc import Callable

    from ..tools import ToolSet

Reason: TypeAlias = Literal["stop", "length", "abort"]

RECOVERIES: Final = frozenset(("reasoning", "headerless", "glued"))
CHOICES: Final[dict[str, tuple[str, ...]]] = {
    "unknown": ("reject", "forward", "content", "raise"),
    "names": ("safe", "exact", "unique-leaf"),
    "arguments": ("stream", "whole"),
    "validate": ("report", "reject", "off"),
    "profile": ("glimmer", "spark"),
    "reason": ("stop", "length", "abort"),
}
_SMALLEST_HEADER: Final = 32


def new_call_id() -> str:
    """An id that no other turn will use (wire_format 8)."""
    return f"call_{token_hex(12)}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Options:
    """What a caller may choose (design 4.3). ``tools`` is a ToolSet by the time it gets here."""

    tools: ToolSet
    unknown: str = "reject"
    names: str = "safe"
    arguments: str = "stream"
    validate: str = "report"
    recover: frozenset[str] = frozenset(("reasoning",))
    channel: str | None = None
    max_header: int = 256
    max_call_chars: int = 16 * 1024 * 1024
    strict_recipient: bool = False
    one_invoke_per_message: bool = False
    profile: str = "glimmer"
    framed: bool = False
    new_id: Callable[[], str] = new_call_id

    def __post_init__(self) -> None:
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
            not self.channel or any(c in " \t\r\n<" for c in self.channel)
        ):
            raise OptionError(
                f"channel={self.channel!r} can't be a recipient: "
                "it needs characters, and none of whitespace and '<'"
            )
        if "headerless" in self.recover and not len(self.tools):
            raise OptionError(
                "recover 'headerless' needs tools: without any, no block can be a call"
            )


def check_choice(option: str, value: Any) -> None:
    """Raise OptionError unless ``value`` is one that ``option`` has."""
    if value not in CHOICES[option]:
        raise OptionError(
            f"{option}={value!r} is not a choice; use one of {', '.join(CHOICES[option])}"
        )
