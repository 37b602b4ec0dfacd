"""JSON Schemas from strangers: compiled so that they can neither fetch nor stall.

Rules: knows jsonschema, not tools. Imported on the first validation or check.
Where jsonschema's own keyword could take more than linear time in a value (a
pattern that backtracks, items compared pairwise), it is replaced here by one
that gives the same answer; ``unevaluatedProperties`` beside ``patternProperties``,
for which there is none, is not checked at all. What multiplies, alternatives that
refer to themselves, ends with the :class:`~atem.tools.budget.Budget` of the validation.
"""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING, Any, Final, TypeAlias

from jsonschema import Draft202012Validator, FormatChecker
from jsonschema.exceptions import ValidationError
from jsonschema.validators import extend, validator_for
from referencing import Registry, Resource
from referencing.exceptions import Unresolvable
from referencing.jsonschema import DRAFT202012

from .budget import TooCostly
from .equality import key_of
from .pattern import Searches

if TYPE_CHECKING:
    from collections.abc import Iterator

    from .budget import Budget

Schema: TypeAlias = dict[str, Any]

TYPING: Final = ("type", "enum", "const", "anyOf", "oneOf", "allOf", "$ref")
"""Keywords that say what a value may be."""


class Checker:
    """A compiled schema that resolves references inside itself and nowhere else.

    The draft is the one that ``$schema`` names, else 2020-12. ``unbounded`` says
    that it can't be checked in a time that has a bound.
    """

    __slots__ = ("_draft", "_validator", "unbounded")

    def __init__(self, schema: Schema) -> None:
        self._draft: Any = validator_for(schema, default=Draft202012Validator)
        # Without a registry of its own jsonschema would fetch what a reference names.
        self._validator: Any = _bounded(self._draft)(schema, registry=Registry())
        # Beside each other they are searched for by jsonschema, with no bound on the time.
        self.unbounded = {"unevaluatedProperties", "patternProperties"} <= _keys(schema)

    def errors(self, value: object, budget: Budget) -> Iterator[ValidationError]:
        """The errors for ``value`` as jsonschema finds them, one by one.

        Raises TooCostly when ``budget`` is used up.
        """
        # Of what jsonschema hands to each validator that it derives, this alone is ours to use:
        # formats are not checked.
        if self.unbounded:
            raise TooCostly
        budget.searches = budget.searches or Searches()
        yield from self._validator.evolve(format_checker=budget).iter_errors(value)

    def check(self) -> None:
        """Raise jsonschema's SchemaError if the schema is not valid under its own draft.

        Formats are left out: among them is ``regex``, and patterns are read by
        the regex module, which knows more of JSON Schema's syntax than re.
        """
        self._draft.check_schema(self._validator.schema, format_checker=FormatChecker(()))

    def lookup(self, reference: str) -> object:
        """What a local reference (``#…``) leads to in the schema; None if to nothing."""
        root = Resource.from_contents(self._validator.schema, DRAFT202012)
        try:
            return Registry().resolver_with_root(root).lookup(reference).contents
        except Unresolvable:
            return None


@cache  # jsonschema has a handful of drafts, and building a class is slow
def _bounded(draft: Any) -> Any:
    """The validator class of ``draft`` with our bounds in it."""
    made = _extend(draft, {**_nullable(draft), **KEYWORDS})
    made.evolve, made.iter_errors = _counted_evolve(made.evolve), _counted(made.iter_errors)
    return made


def _counted_evolve(evolve: Any) -> Any:
    """``evolve`` as a step, and never out of the bounds.

    jsonschema's own leaves the class for that of a draft which a schema inside names.
    """

    def bounded(validator: Any, **changes: Any) -> Any:
        made = evolve(validator, **changes)
        if type(made) is not type(validator):
            draft: Any = type(made)
            made = _bounded(draft)(
                made.schema,
                registry=made._registry,  # noqa: SLF001 - evolve hands on the same four
                _resolver=made._resolver,  # noqa: SLF001
                format_checker=made.format_checker,
            )
        made.format_checker.spend()
        return made

    return bounded


def _counted(iter_errors: Any) -> Any:
    def counted(validator: Any, *arguments: Any) -> Any:
        validator.format_checker.spend()
        return iter_errors(validator, *arguments)

    return counted


def _nullable(draft: Any) -> dict[str, Any]:
    """The keywords of ``draft`` that null passes under ``nullable: true``.

    OpenAPI's keyword; the typing of arguments honours it (wire_format 7), so
    what it lets through must not be a violation here.
    """
    return {key: _unless_null(draft.VALIDATORS[key]) for key in TYPING if key in draft.VALIDATORS}


def _unless_null(keyword: Any) -> Any:
    def check(
        validator: Any, wanted: Any, value: object, schema: Schema
    ) -> Iterator[ValidationError]:
        if value is not None or schema.get("nullable") is not True:
            yield from keyword(validator, wanted, value, schema) or ()

    return check


def _keys(schema: Any) -> set[str]:
    """Every key in ``schema``, at any depth."""
    found: set[str] = set()
    pending = [schema]
    seen: set[int] = set()
    while pending:
        node = pending.pop()
        if not isinstance(node, dict | list) or id(node) in seen:
            continue
        seen.add(id(node))
        found |= node.keys() if isinstance(node, dict) else set()
        pending += node.values() if isinstance(node, dict) else node
    return found


def _occurs(validator: Any, pattern: str, text: str) -> bool | None:
    found: bool | None = validator.format_checker.searches.occurs(pattern, text)
    return found


def _pattern(validator: Any, pattern: str, value: object, _: Schema) -> Iterator[ValidationError]:
    if not isinstance(value, str):
        return
    found = _occurs(validator, pattern, value)
    if found is None:
        yield ValidationError(f"takes too long to match against the pattern {pattern!r}")
    elif not found:
        yield ValidationError(f"{value!r} does not match {pattern!r}")


def _pattern_properties(
    validator: Any, patterns: dict[str, Schema], value: object, _: Schema
) -> Iterator[ValidationError]:
    if not isinstance(value, dict):
        return
    for pattern, inner in patterns.items():
        for key, item in value.items():
            found = _occurs(validator, pattern, key)
            if found is None:
                yield ValidationError(f"a name takes too long to match against {pattern!r}")
            elif found:
                yield from validator.descend(item, inner, path=key, schema_path=pattern)


def _additional_properties(
    validator: Any, allowed: Any, value: object, schema: Schema
) -> Iterator[ValidationError]:
    if not isinstance(value, dict):
        return
    declared, patterns = schema.get("properties", {}), schema.get("patternProperties", {})
    undeclared = (key for key in value if key not in declared)
    extras = [
        key for key in undeclared if not any(_occurs(validator, each, key) for each in patterns)
    ]
    if isinstance(allowed, dict):
        for key in extras:
            yield from validator.descend(value[key], allowed, path=key)
    elif allowed is False and extras:
        named = ", ".join(map(repr, extras))
        yield ValidationError(f"{named} not declared; additional properties are not allowed")


def _unique(_: Any, wanted: object, value: object, __: Schema) -> Iterator[ValidationError]:
    if not wanted or not isinstance(value, list):
        return
    if len({key_of(item) for item in value}) < len(value):
        yield ValidationError(f"{value!r} has non-unique elements")


def _ignored(*_: object) -> None:
    """A keyword that says nothing about validity."""


KEYWORDS: Final = {
    "format": _ignored,
    "pattern": _pattern,
    "patternProperties": _pattern_properties,
    "additionalProperties": _additional_properties,
    "uniqueItems": _unique,
}

_extend: Any = extend  # untyped in the stubs
