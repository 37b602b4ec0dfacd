"""May this call run: yes, ask, or no.

Rules: a policy is a plain function of a call; it runs nothing and asks nobody.
Everything here fails closed: no opinion means Ask, and an answer that is not a
decision is an error, never a permission.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from fnmatch import fnmatchcase
from typing import TypeAlias, overload

from ..errors import OptionError
from ..messages import ToolCall


@dataclass(frozen=True, slots=True)
class Allow:
    """The call may run."""


@dataclass(frozen=True, slots=True)
class Ask:
    """A person decides; ``question`` is put to them ("" leaves the wording to who asks)."""

    question: str = ""


@dataclass(frozen=True, slots=True)
class Deny:
    """The call must not run; ``reason`` is told to the model."""

    reason: str = ""


Decision: TypeAlias = Allow | Ask | Deny
Policy: TypeAlias = Callable[[ToolCall], Decision]
Opinion: TypeAlias = Callable[[ToolCall], Decision | None]
"""A policy that may have no opinion: None leaves the call to the next."""


def allow_all(_: ToolCall) -> Decision:
    """Every call may run: for tools that can do no harm, or inside a sandbox."""
    return Allow()


def ask_all(_: ToolCall) -> Decision:
    """A person decides every call: the default wherever a policy can be given."""
    return Ask()


def first_of(*policies: Opinion) -> Policy:
    """The first opinion among ``policies``, in order; Ask if none has one.

    The policy raises OptionError if one of them answers with anything else
    than a decision or None.
    """

    def policy(call: ToolCall) -> Decision:
        for opinion in policies:
            if (decision := opinion(call)) is not None:
                return _checked(decision, opinion)
        return Ask()

    return policy


@overload
def by_name(rules: Mapping[str, Decision], *, default: Decision = ...) -> Policy: ...
@overload
def by_name(rules: Mapping[str, Decision], *, default: None) -> Opinion: ...


def by_name(rules: Mapping[str, Decision], *, default: Decision | None = Ask()) -> Opinion:
    """A decision by the tool's declared name (``namespace.name``).

    A key equal to the name wins; else the first key in order that matches as a
    glob pattern (``mail.*``), case included; else ``default``, where None means
    no opinion. Raises OptionError for a value that is not a decision.
    """
    table = {pattern: _checked(decision, pattern) for pattern, decision in rules.items()}

    def policy(call: ToolCall) -> Decision | None:
        name = call.wire_name
        if name in table:
            return table[name]
        return next((table[key] for key in table if fnmatchcase(name, key)), default)

    return policy


def _checked(decision: object, source: object) -> Decision:
    if not isinstance(decision, Allow | Ask | Deny):
        raise OptionError(
            f"policy {source!r} gave {decision!r}; answer with Allow(), Ask(), Deny() or None"
        )
    return decision
