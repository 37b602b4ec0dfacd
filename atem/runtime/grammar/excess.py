"""What is not given to llguidance, because it would end the process.

Rules: a schema that leads deep through its references is followed by recursion
there, and one that merges what it refers to can double at every step; neither
has a bound that holds. A lark grammar may go deep too, and may bring a schema of
its own. All of it is reckoned in time linear in the text, and rather too much
than too little.
"""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from collections.abc import Iterator

    from ...grammar import Form

MAX_LEVELS: Final = 600
"""Schemas inside each other, references followed; a thread's stack holds some thousand."""

MAX_UNROLLED: Final = 10_000
"""Schemas of one that merges some, each as often as something leads to it."""

MAX_RULES: Final = 500
"""Rules and terminals of a lark grammar, all of which may lead from one to the next."""

DEEP: Final = f"it leads through more than {MAX_LEVELS} schemas"
LARGE: Final = f"what it merges comes to more than {MAX_UNROLLED} schemas"
MANY: Final = f"it has more than {MAX_RULES} rules"
FOREIGN: Final = "only the syntax of lark itself is read"

REFERENCES: Final = ("$ref", "$dynamicRef")
DEFINED: Final = ("$defs", "definitions")
APPLIED: Final = (
    *REFERENCES, "allOf", "anyOf", "oneOf", "properties", "patternProperties",
    "additionalProperties", "items", "prefixItems",
)  # fmt: skip
"""Keywords that apply schemas; two of them in one schema may have to be merged."""

_QUIET: Final = re.compile(r'"(?:\\.|[^"\\\n])*"|/(?!/)(?:\\.|[^/\\])+/|//[^\n]*|#[^\n]*')
"""Strings, expressions and comments."""

_FOREIGN: Final = re.compile(r"%(?!ignore\b|import\b|declare\b)|[&@]|~\s*[^\d\s]|::")
_OF_ITS_OWN: Final = re.compile(r"%\s*(?:json|lark|regex|llguidance|grammar)")
"""Not even where it may be quoted: what is a string there is not always one here."""


def excess(form: Form) -> str | None:
    """Why ``form`` is too much, or None."""
    if form.kind == "json":
        return _of_schema(json.loads(form.definition))
    return _of_lark(form.definition) if form.kind == "lark" else None


def _of_lark(definition: str) -> str | None:
    bare = _QUIET.sub(" ", definition)
    if _FOREIGN.search(bare) or _OF_ITS_OWN.search(definition):
        return FOREIGN
    return MANY if bare.count(":") > MAX_RULES else None


def _of_schema(schema: Any) -> str | None:
    nodes = list(_nodes(schema))
    depths = _depths(nodes)
    targets = {reference: _target(schema, reference) for reference in _references(nodes)}
    if depths[id(schema)] + sum(depths[id(target)] for target in targets.values()) > MAX_LEVELS:
        return DEEP
    if any(map(_merges, nodes)) and _Unrolled(targets).size(schema) > MAX_UNROLLED:
        return LARGE
    return None


def _nodes(schema: Any) -> Iterator[Any]:
    """``schema`` and all in it, whatever holds something before what it holds."""
    pending = [schema]
    for node in pending:
        yield node
        pending += _inside(node)


def _inside(node: Any) -> list[Any]:
    if isinstance(node, dict):
        return list(node.values())
    return node if isinstance(node, list) else []


def _depths(nodes: list[Any]) -> dict[int, int]:
    """How deep each goes, by its identity."""
    depths: dict[int, int] = {}
    for node in reversed(nodes):
        depths[id(node)] = 1 + max((depths[id(inner)] for inner in _inside(node)), default=0)
    return depths


def _references(nodes: list[Any]) -> Iterator[str]:
    for node in nodes:
        for key in REFERENCES if isinstance(node, dict) else ():
            if isinstance(reference := node.get(key), str):
                yield reference


def _target(schema: Any, reference: str) -> Any:
    """What a JSON pointer leads to; of any other reference the whole, which is no less."""
    node = schema
    for part in reference.removeprefix("#").split("/")[1:] if reference.startswith("#/") else ():
        key = part.replace("~1", "/").replace("~0", "~")
        if isinstance(node, list):
            node = node[int(key)] if key.isdecimal() and int(key) < len(node) else schema
        else:
            node = node.get(key, schema) if isinstance(node, dict) else schema
    return node


def _merges(node: Any) -> bool:
    if not isinstance(node, dict):
        return False
    return "allOf" in node or sum(key in node for key in APPLIED) > 1


def _applied(node: Any) -> list[Any]:
    """What is in a schema, but for what it only defines: references lead there."""
    if isinstance(node, dict):
        node = {key: inner for key, inner in node.items() if key not in DEFINED}
    return _inside(node)


class _Unrolled:
    """Counts what a schema comes to with its references written out, each cycle once."""

    def __init__(self, targets: dict[str, Any]) -> None:
        self._targets = targets
        self._sizes: dict[int, int] = {}

    def size(self, node: Any) -> int:
        """At most a little above the limit."""
        known = self._sizes.get(id(node))
        if known is not None:
            return known
        self._sizes[id(node)] = 1  # that of a cycle that comes back here
        size = 1
        for inner in (*_applied(node), *self._referred(node)):
            size = min(size + self.size(inner), MAX_UNROLLED + 1)
        self._sizes[id(node)] = size
        return size

    def _referred(self, node: Any) -> Iterator[Any]:
        for key in REFERENCES if isinstance(node, dict) else ():
            if isinstance(reference := node.get(key), str):
                yield self._targets[reference]
