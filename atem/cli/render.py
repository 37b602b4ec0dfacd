"""``atem render``: a conversation as the prompt that the model reads.

Rules: into a pipe or a file go the prompt's own characters and nothing else; on
a terminal control characters are shown instead of sent.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from ..render import EFFORTS, KNOWLEDGE_CUTOFF, STRENGTHS
from ..render import render as render_prompt
from . import exits, output
from .exits import Failure
from .files import blaming, checked_tools, read_json, read_tools
from .options import command, file_argument, tools_option
from .screen import visible

if TYPE_CHECKING:
    from datetime import datetime

    from ..render import Prompt


@command
@file_argument
@tools_option
@click.option("--reasoning-strength", type=click.Choice(STRENGTHS), help="How hard to think.")
@click.option("--effort", type=click.Choice(list(EFFORTS)), help="The same in other APIs' words.")
@click.option(
    "--recipients",
    type=click.Choice(["template", "exact"]),
    default="template",
    show_default=True,
    help="How tools are advertised: as the model's template does, or by exact name.",
)
@click.option("--channel", metavar="NAME", help="Open the answer's channel in the prompt.")
@click.option(
    "--date",
    type=click.DateTime(["%Y-%m-%d"]),
    metavar="YYYY-MM-DD",
    help="The date in the system message; it counts only where the conversation has none.",
)
@click.option(
    "--knowledge-cutoff", metavar="TEXT", default=KNOWLEDGE_CUTOFF, help="As --date, the cutoff."
)
@click.option("--no-generation-prompt", is_flag=True, help="End with the conversation.")
@click.option("--segments", is_flag=True, help="JSON lines of kind and text, one a segment.")
def render(
    file: str,
    *,
    tools: str | None,
    channel: str | None,
    date: datetime | None,
    no_generation_prompt: bool,
    segments: bool,
    **options: Any,
) -> int:
    """Render a conversation to the prompt.

    FILE holds JSON: a list of chat messages or of Responses items, or an
    object with "messages" and "tools".
    """
    conversation, given = _read(file, tools)
    with blaming(file):
        prompt = render_prompt(
            conversation,
            tools=given,
            add_generation_prompt=not no_generation_prompt,
            channel=channel,
            current_date=f"{date:%Y-%m-%d}" if date else None,
            **options,
        )
    output.write(_lines(prompt) if segments else _text(prompt, file))
    return exits.DONE


def _read(file: str, tools: str | None) -> tuple[list[Any], Any]:
    """Conversation and tools; both may stand in one file, the tools in one place only."""
    found = read_json(file)
    if isinstance(found, list):
        return found, read_tools(tools)
    if not isinstance(found, dict) or not isinstance(found.get("messages"), list):
        raise Failure(f'{file}: expected a list of messages, or an object with "messages"')
    if unread := sorted(found.keys() - {"messages", "tools"}):
        raise Failure(f"{file}: only messages and tools are rendered; take out {', '.join(unread)}")
    if tools is not None and "tools" in found:
        raise Failure(f"{file}: it has tools of its own; leave out --tools or those")
    if "tools" in found:
        return found["messages"], checked_tools(found["tools"], file)
    return found["messages"], read_tools(tools)


def _lines(prompt: Prompt) -> bytes:
    from ..trace.records import line  # the parser's events come with it

    records = (
        {"kind": segment.kind, "text": segment.text}
        | ({} if segment.source is None else {"source": segment.source})
        for segment in prompt
    )
    return b"".join(map(line, records))


def _text(prompt: Prompt, file: str) -> bytes:
    text = prompt.text()
    if output.is_terminal():
        text = f"{visible(text)}\n"
    try:
        return text.encode()
    except UnicodeEncodeError as error:
        raise Failure(
            f"{file}: a lone surrogate (half a character) has no UTF-8 form; mend it, "
            "or use --segments, which escapes it"
        ) from error
