"""What a turn has to be, as a grammar: for engines that can be held to one.

Rules: made of ``tool_choice``, the tools and ``text.format``, and only where one
of them asks for something. The schema of a strict format is compiled or refused.
What a tool's schema says is followed as far as the wire can show it, value by
value; the rest is checked when the call is there, as it is without a grammar.
Source: responses.md 1.6, 1.8; values are written as wire_format 7 says.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Final

from ..errors import OptionError
from ..grammar import TEXT, CallForm, Form, Grammar, Parameter
from ..parser.value_type import STRING
from ..parser.values import ParameterTypes
from ..render.values import encode_value
from ..runtime.grammar.compiled import fault, fault_of_all
from ..tools.definition import CUSTOM_INPUT
from ..tools.pattern import written_out
from .faults import bad_schema
from .output.syntax import Syntax
from .strict_schema import strict_faults
from .tool_echo import inner

if TYPE_CHECKING:
    from .choice import Choice
    from .text_format import TextFormat
    from .tools import ClientTools, Declared

FORMAT: Final = "text.format.schema"
ANY_OBJECT: Final = '{"type": "object"}'
MAX_LENGTH: Final = 256
"""Of a string, in characters, as far as its length is counted while it is written."""

MAX_TOGETHER: Final = 400
"""Parameters of all calls, as far as each is held to its own schema."""

_TO_ROOT: Final = '"$ref": "#"'
_COUNT: Final = re.compile(r"[{,](\d{1,9})\d*,?\}")
_EVERYTHING: Final = "(?s:.*)"


def grammar_of(choice: Choice, tools: ClientTools, wanted: TextFormat) -> Grammar | None:
    """The grammar of a turn, None if nothing is asked. Raises ApiError for a schema it can't be."""
    allowed = tools.callable(choice)
    exact = {tool.key for tool in allowed if choice.required or _promised(tool)}
    limited = choice.mode in ("none", "allowed") and len(tools.toolset) > 0
    if not (exact or limited or wanted.enforced):
        return None
    answer = None if choice.required and allowed else _answer(wanted)
    calls = tuple(
        call_form(tool) if tool.key in exact else CallForm(tool.tool.wire_name) for tool in allowed
    )
    grammar = Grammar(answer, calls)
    together = sum(len(call.parameters or ()) for call in calls)
    if together > MAX_TOGETHER or fault_of_all(grammar):
        return Grammar(answer, tuple(map(_loose, calls)))
    return grammar


def _loose(call: CallForm) -> CallForm:
    """The same call with parameters of any name and text; they are checked when it is there."""
    return call if call.parameters is None else CallForm(call.name, (), others=True)


def call_form(tool: Declared) -> CallForm:
    """The call of ``tool``, its parameters as exact as they can be."""
    name, schema = tool.tool.wire_name, tool.tool.parameters or {}
    if tool.kind == "custom":
        return CallForm(name, (Parameter(CUSTOM_INPUT, _custom(tool), required=True),))
    properties = schema.get("properties")
    given = properties if isinstance(properties, Mapping) else {}
    needed = schema.get("required")
    names = [*given, *(name for name in needed or () if name not in given)]
    types = ParameterTypes(schema)
    try:
        parameters = tuple(
            Parameter(key, _value(schema, given.get(key), types, key), key in (needed or ()))
            for key in names
        )
        return CallForm(name, parameters, others=not given)
    except OptionError:  # a name that the wire can't write, or too many of them
        return CallForm(name, (), others=True)


def _promised(tool: Declared) -> bool:
    """Whether its calls are held to its declaration, whoever chose it.

    A function that doesn't say whether it is strict is, if its schema may be.
    """
    if tool.kind == "custom":
        return Syntax.of(tool.raw) is not None
    unsaid = inner(tool.raw).get("strict") is None
    return tool.strict or (unsaid and not any(strict_faults(tool.tool.parameters or {})))


def _answer(wanted: TextFormat) -> Form:
    if not wanted.enforced:
        return TEXT
    form = Form("json", ANY_OBJECT if wanted.schema is None else json.dumps(wanted.schema))
    if why := fault(form):
        raise bad_schema(FORMAT, f"Invalid schema for response_format {wanted.name!r}: {why}.")
    return form


def _custom(tool: Declared) -> Form:
    syntax = Syntax.of(tool.raw)
    if syntax is None or syntax.too_large or not syntax.definition:
        return TEXT
    if syntax.kind == "regex" and _costly(syntax.definition):
        return TEXT
    return _usable(Form(syntax.kind, syntax.definition))


def _value(root: Mapping[str, Any], schema: Any, types: ParameterTypes, key: str) -> Form:
    """The form of one value: bare text where it may be a string, JSON where it can't."""
    admitted = types[key].admitted
    if admitted is None or not isinstance(schema, Mapping):
        return TEXT
    if STRING in admitted:
        return _usable(_bare(schema, only=admitted.keys() == {STRING}))
    shared = {word: root[word] for word in ("$defs", "definitions") if word in root}
    exact = json.dumps({**shared, **schema})
    # Alone, a schema has another root.
    if _TO_ROOT in exact or fault(Form("json", exact)):
        exact = json.dumps({"type": sorted(admitted)})
    return Form("json", exact)


def _bare(schema: Mapping[str, Any], *, only: bool) -> Form:
    """A text that may be a string, from what its schema says itself."""
    members = schema.get("enum", [schema["const"]] if "const" in schema else None)
    if isinstance(members, list) and members:
        texts = [encode_value(member, "a member of an enum") for member in members]
        return Form("regex", "|".join(map(_literal, texts)))
    if only and isinstance(pattern := schema.get("pattern"), str):
        return _pattern(pattern)
    least, most = schema.get("minLength", 0), schema.get("maxLength", MAX_LENGTH + 1)
    if only and isinstance(least, int) and isinstance(most, int) and (least or most <= MAX_LENGTH):
        bound = most if most <= MAX_LENGTH else ""
        return Form("regex", f"(?s:.{{{min(least, MAX_LENGTH)},{bound}}})")
    return TEXT


def _pattern(pattern: str) -> Form:
    """A text in which ``pattern`` occurs, with anchors only where they can be taken off."""
    start, end = pattern.startswith("^"), pattern.endswith("$") and not pattern.endswith("\\$")
    if ("|" in pattern and (start or end)) or _costly(pattern):
        return TEXT
    inner = pattern[start : len(pattern) - end]
    before, behind = "" if start else _EVERYTHING, "" if end else _EVERYTHING
    return Form("regex", f"{before}(?:{inner}){behind}")


def _costly(pattern: str) -> bool:
    """Whether its repeats would be too much to count while a text is written."""
    counts = map(int, _COUNT.findall(pattern))
    return any(count > MAX_LENGTH for count in counts) or (
        written_out(pattern) > max(MAX_LENGTH, len(pattern))
    )


def _usable(form: Form) -> Form:
    """``form``, or any text if it can't be compiled."""
    return TEXT if form == TEXT or fault(form) else form


def _literal(text: str) -> str:
    """A regular expression that matches ``text``."""
    return re.sub(r"[^A-Za-z0-9_]", lambda match: f"\\x{{{ord(match.group()):X}}}", text)
