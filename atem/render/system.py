"""System messages: the default one, the strength line, the tools, the recipients.

Rules: text only; a tool is what :class:`~atem.tools.ToolSet` says it is, under
its wire name. Source: wire_format 2, "System block".
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Literal, TypeAlias

from .. import wire
from ..messages import Content, Part, TextPart
from ..tools.names import head
from . import phrases
from .prompt import Writer, as_parts
from .values import dump

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from ..tools import Tool, ToolSet

Recipients: TypeAlias = Literal["template", "exact"]


@dataclass(frozen=True, slots=True)
class System:
    """What every system message of one prompt has in common."""

    strength: str
    tail: str
    """Tools and recipients, which stand behind the strength line."""

    def write_default(self, out: Writer, *, current_date: str, knowledge_cutoff: str) -> None:
        """The message of a conversation that brings no system message."""
        lines = (
            phrases.GREETING,
            phrases.CUTOFF_LINE.format(knowledge_cutoff),
            phrases.DATE_LINE.format(current_date),
        )
        self.write(out, "\n".join(lines), own_wording=True)

    def write(self, out: Writer, content: Content, *, own_wording: bool = False) -> None:
        """A message with ``content``; ``own_wording`` leaves it as it is."""
        parts = as_parts(content) if own_wording else normalised(as_parts(content))
        out.control(wire.START)
        out.text("system")
        out.control(wire.MESSAGE)
        out.content(parts)
        if own_wording or not states_strength(parts):
            out.text("\n\n" + phrases.STRENGTH_LINE.format(self.strength))
        out.text(self.tail)
        out.control(wire.EOT)


def normalised(parts: Iterable[Part]) -> tuple[Part, ...]:
    """``parts`` with adjacent texts joined and "reasoning effort" worded as the model knows it."""
    joined: list[Part] = []
    for part in parts:
        if joined and isinstance(part, TextPart) and isinstance(last := joined[-1], TextPart):
            joined[-1] = TextPart(last.text + part.text)
        else:
            joined.append(part)
    return tuple(_reworded(part) if isinstance(part, TextPart) else part for part in joined)


def _reworded(part: TextPart) -> TextPart:
    text = part.text
    for theirs, ours in phrases.EFFORT_WORDING:
        text = text.replace(theirs, ours)
    return replace(part, text=text)


def states_strength(parts: Iterable[Part]) -> bool:
    """Whether a system text says how hard to think, so that no second line does.

    Two that disagree were reported as ollama/ollama#17732.
    """
    return any(
        phrases.STRENGTH in part.text.lower() for part in parts if isinstance(part, TextPart)
    )


def tail(tools: ToolSet, recipients: Recipients, descriptions: Mapping[str, str]) -> str:
    """Everything behind the strength line."""
    told = f"{phrases.TOOLS_BEFORE}{declarations(tools, descriptions)}{phrases.TOOLS_AFTER}"
    definitions = f"\n\n{told}" if len(tools) else ""
    words = ", ".join(f'"{word}"' for word in recipient_words(tools, recipients))
    return f"{definitions}\n\n{phrases.RECIPIENTS_LINE.format(words)}"


def recipient_words(tools: ToolSet, recipients: Recipients) -> tuple[str, ...]:
    """The recipients that the model is told of, without quotes.

    "exact" names an undotted tool itself; "template" writes every tool's first
    segment with ``.*``.
    """
    words = (
        tool.wire_name
        if recipients == "exact" and "." not in tool.wire_name
        else f"{head(tool.wire_name)}.*"
        for tool in tools
    )
    return (wire.SELF, *dict.fromkeys(words), wire.USER)


def by_head(tools: ToolSet) -> dict[str, str]:
    """The declared descriptions by the part of a namespace that the template lists."""
    declared = tools.namespace_descriptions.items()
    return {head(name): text for name, text in declared}


def declarations(tools: ToolSet, descriptions: Mapping[str, str]) -> str:
    """The tools as the template lists them: the namespaces, then the functions, a line each."""
    namespaces = "".join(
        f'{{"name": {dump(name, "a namespace")}, '
        f'"description": {dump(descriptions.get(name, ""), f"the description of {name!r}")}}}\n'
        for name in dict.fromkeys(head(tool.wire_name) for tool in tools)
    )
    functions = "".join(f"\n{_function(tool)}" for tool in tools)
    return f"{phrases.NAMESPACES}{namespaces}{phrases.FUNCTIONS}{functions}"


def _function(tool: Tool) -> str:
    what = f"tool {tool.wire_name!r}"
    return (
        f'{{"name": {dump(tool.wire_name, what)}, '
        f'"description": {dump(tool.description or "", what)}, '
        f'"parameters": {dump(tool.parameters or {}, f"the schema of {what}")}}}'
    )
