"""A grammar in the syntax of llguidance, framing and ATEM tags included.

Rules: only the canonical form is written (wire_format 2), and both spellings of
a tool's name (wire_format 6). Framing is real special tokens, everything else
plain text. Nothing is compiled here.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any, Final

from ... import wire
from .invoke import arguments
from .lexemes import Lexemes, choice, quoted

if TYPE_CHECKING:
    from collections.abc import Callable

    from ...grammar import CallForm, Form, Grammar

WHITESPACE: Final = r"(\x20|\x0D?\x0A[\x20\x09]{0,64})"
"""Between the tokens of JSON: one space, or a line's end and an indent; a model that is lost writes
blanks without end where it may."""

_OPENED: Final = quoted(f'{wire.BLOCK_OPEN}\n{wire.INVOKE_OPEN} name="')
_NAMED: Final = quoted('">\n')
_CLOSED: Final = quoted(wire.BLOCK_CLOSE)
_VALUE_CLOSED: Final = quoted(f"{wire.PARAMETER_CLOSE}\n")


class Writer:
    """Writes one grammar.

    ``token`` gives the name of a special token, ``escape`` a regular
    expression as it is written between slashes.
    """

    def __init__(self, token: Callable[[str], str], escape: Callable[[str], str]) -> None:
        self._token = token
        self._escape = escape
        self._rules: list[str] = []
        self._inner: list[dict[str, Any]] = []
        self._lexemes = Lexemes(self._rules, escape)

    def turn(self, grammar: Grammar, *, thinking: bool) -> str:
        """One message, from its ``<|start|>`` on; without ``thinking`` none to ``self``."""
        message = self._token(wire.MESSAGE)
        kinds = [f"{quoted(wire.SELF)} {message}"] if thinking else []
        if grammar.answer is not None:
            kinds.append(f"{quoted(wire.USER)} {message} {self.form(grammar.answer)}")
        names = frozenset(call.name for call in grammar.calls)
        kinds += [self._call(place, call, names) for place, call in enumerate(grammar.calls)]
        opening = f"{self._token(wire.START)} {quoted(f'{wire.ASSISTANT} {wire.TO}')}"
        return self._text(f"{opening} ({' | '.join(kinds)})")

    def alone(self, form: Form) -> str:
        """``form`` as the value of a parameter, and nothing else."""
        return self._text(choice(self.value(form)))

    def form(self, form: Form) -> str:
        """``form`` where something else ends it; nothing for what is the model's own."""
        match form.kind:
            case "text":
                return ""
            case "json":
                return f"%json {_schema(form.definition)}"
            case "regex":
                return f"/{self._escape(form.definition)}/"
        name = f"inner{len(self._inner)}"
        self._inner.append({"name": name, "lark_grammar": form.definition})
        return f"@{name}"

    def value(self, form: Form) -> tuple[str, ...]:
        """``form`` as the value of a parameter, its closer included.

        One rule; or two for a bare text: one that a parameter follows, whose tag
        it opens, and one that ends the invoke.
        """
        if form.kind in ("text", "regex"):
            return self._lexemes.bare(form)
        return (f"{self.form(form)} {_VALUE_CLOSED}",)

    def _call(self, place: int, call: CallForm, names: frozenset[str]) -> str:
        name = choice(tuple(map(quoted, spellings(call.name, names))))
        opened = f"{name} {self._token(wire.MESSAGE)}"
        if call.parameters is None:
            return opened
        body = arguments(place, call, self.value, self._rules)
        end = f"{_CLOSED} {self._token(wire.EOM)}?"
        self._rules.append(f"call{place}: {opened} {_OPENED} {name} {_NAMED} {body} {end}")
        return f"call{place}"

    def _text(self, start: str) -> str:
        rules = "\n".join(["%llguidance {}", f"start: {start}", *self._rules])
        return json.dumps({"grammars": [{"lark_grammar": rules}, *self._inner]})


def _schema(definition: str) -> str:
    """The schema with our whitespace; an option that a stranger put there is not followed."""
    schema = json.loads(definition)
    if isinstance(schema, dict):
        schema = {**schema, "x-guidance": {"whitespace_pattern": WHITESPACE}}
    return json.dumps(schema)


def spellings(name: str, names: frozenset[str]) -> tuple[str, ...]:
    """``name``, and with its namespace twice as models write it, unless that is another tool's."""
    space, _, _ = name.rpartition(".")
    doubled = f"{space or name}.{name}"
    return (name,) if doubled in names else (name, doubled)
