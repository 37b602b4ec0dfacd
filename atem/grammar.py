"""What a turn has to be: the form of its answer and of its calls, as plain data.

Rules: nothing here reads, compiles or applies a grammar, and nothing knows where
one comes from. Headers and ATEM tags are not written down in it: whoever applies
it knows the wire. Reasoning is always free. Sources: wire_format 2, 3, 8.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any, Final, Literal, TypeAlias, get_args

from . import wire
from .errors import OptionError

FormKind: TypeAlias = Literal["text", "json", "regex", "lark"]

MAX_PARAMETERS: Final = 60
"""Of one call: which of them were written is kept in the bits of one number."""


@dataclass(frozen=True, slots=True)
class Form:
    """What one text has to be.

    "text" is anything. Of the other kinds ``definition`` is a JSON Schema as
    JSON text, a regular expression that matches the whole (its digits and word
    characters are those of ASCII), or a grammar in the syntax of lark whose start
    is ``start``. Raises OptionError for another kind, and for a definition that
    is missing, or not asked for, or no JSON.
    """

    kind: FormKind = "text"
    definition: str = ""

    def __post_init__(self) -> None:
        kinds = get_args(FormKind)
        if self.kind not in kinds:
            raise OptionError(f"kind={self.kind!r}; it is one of {', '.join(kinds)}")
        if not isinstance(self.definition, str) or bool(self.definition) == (self.kind == "text"):
            raise OptionError("definition= is text, and empty for the kind 'text' alone")
        if self.kind == "json":
            _require_json(self.definition)


TEXT: Final = Form()


@dataclass(frozen=True, slots=True)
class Parameter:
    """A parameter of a call: its name, the form of its value on the wire, whether it has to be."""

    name: str
    form: Form = TEXT
    required: bool = False

    def __post_init__(self) -> None:
        _require_name("the name of a parameter", self.name, wire.BREAKS_TAG)
        _require("form", self.form, Form)


@dataclass(frozen=True, slots=True)
class CallForm:
    """A call that may be made.

    ``name`` is the tool's on the wire. With ``parameters`` None the body is the
    model's own; otherwise it is one invoke with those, in any order, each once
    at most, and with ``others`` further ones of any name and text.
    """

    name: str
    parameters: tuple[Parameter, ...] | None = None
    others: bool = False

    def __post_init__(self) -> None:
        _require_name("the name of a call", self.name, wire.BREAKS_TAG + wire.WHITESPACE)
        if self.name in _ANSWERS:
            raise OptionError(f"name={self.name!r} is no tool on the wire (wire_format 3.2)")
        _require_all("parameters", self.parameters or (), Parameter)
        names = [parameter.name for parameter in self.parameters or ()]
        if len(set(names)) < len(names) or len(names) > MAX_PARAMETERS:
            raise OptionError(
                f"{self.name!r} has {len(names)} parameters, {len(set(names))} of different names; "
                f"at most {MAX_PARAMETERS}, each once"
            )


_ANSWERS: Final = (wire.SELF, wire.USER)


@dataclass(frozen=True, slots=True)
class Grammar:
    """What one turn has to be: reasoning if the model likes, then an answer or calls.

    ``answer`` is the form of a message to the user, None if there must be none
    and the turn has to call. ``calls`` are those that may be made. The turn ends
    after an answer or a call, never after reasoning alone, which is one message
    before each of them at most; an answer that has a form is the last message of
    its turn. Raises OptionError for a grammar that leaves nothing to say.
    """

    answer: Form | None = TEXT
    calls: tuple[CallForm, ...] = ()

    def __post_init__(self) -> None:
        if self.answer is not None:
            _require("answer", self.answer, Form)
        _require_all("calls", self.calls, CallForm)
        if self.answer is None and not self.calls:
            raise OptionError("a grammar allows an answer, or one call at least")
        if len({call.name for call in self.calls}) < len(self.calls):
            raise OptionError("calls= has two of the same name")


def _require_json(text: str) -> None:
    try:
        json.loads(text)
    except (ValueError, RecursionError) as error:
        raise OptionError(f"definition= is no JSON: {error}") from error


def _require(name: str, value: object, kind: type) -> None:
    if not isinstance(value, kind):
        raise OptionError(f"{name}={value!r}; it is a {kind.__name__}")


def _require_all(name: str, values: Any, kind: type) -> None:
    if not isinstance(values, tuple):
        raise OptionError(f"{name}= is a {type(values).__name__}; it is a tuple")
    for value in values:
        _require(name, value, kind)


def _require_name(what: str, name: object, breaks: str) -> None:
    if not isinstance(name, str) or not name or any(char in breaks for char in name):
        raise OptionError(f"{what} is {name!r}; the wire can't write it (wire_format 3)")
