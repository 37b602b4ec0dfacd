"""The whole prompt: system block, messages in order, generation prompt.

Rules: messages are looked at from front to back, each with no more than what
stands before it and whether an assistant message follows. So conversations
that share a beginning share the beginning of their prompts.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, get_args

from .. import wire
from ..errors import OptionError, RenderError
from ..messages import Message, ToolCall
from ..tools import ToolSet
from . import phrases
from .accepted import as_sequence, check_message, check_options
from .chat import from_chat
from .effort import strength_of
from .fields import as_fields
from .items import from_items
from .prompt import Prompt, Writer, as_parts
from .system import Recipients, System, by_head, tail
from .turn import open_header, write_assistant, write_header
from .values import header_name, tag_name

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

SYSTEM_ROLES: Final = ("system", "developer")


def render(
    conversation: Sequence[Any],
    *,
    tools: object = None,
    reasoning_strength: str | None = None,
    effort: str | None = None,
    recipients: Recipients = "template",
    add_generation_prompt: bool = True,
    channel: str | None = None,
    current_date: str | None = None,
    knowledge_cutoff: str = phrases.KNOWLEDGE_CUTOFF,
    tool_namespace_descriptions: Mapping[str, str] | None = None,
) -> Prompt:
    """The prompt of a conversation.

    ``conversation``: :class:`~atem.messages.Message` objects, OpenAI chat
    messages, or Responses items (told apart by a ``type`` key). ``tools``:
    whatever ``ToolSet.of`` takes. ``reasoning_strength`` (low, medium, high,
    xhigh) or ``effort`` (another API's name for it). ``recipients``: "template"
    advertises an undotted tool ``read`` as ``read.*``, "exact" as ``read``.
    ``channel`` opens the answer's channel in the prompt; give the parser the
    same. ``current_date`` (YYYY-MM-DD) and ``knowledge_cutoff`` are written only
    where no system message is given. ``tool_namespace_descriptions`` go before
    those of the tools. docs/render.md lists where the text differs from the
    model's own template.

    Raises RenderError for what has no faithful form, InvalidTool for tools
    that can't be called, OptionError for options that can't work.
    """
    check_options(
        channel=channel,
        add_generation_prompt=add_generation_prompt,
        current_date=current_date,
        knowledge_cutoff=knowledge_cutoff,
        tool_namespace_descriptions=tool_namespace_descriptions,
    )
    _check_options(recipients, channel, add_generation_prompt=add_generation_prompt)
    messages = read(conversation)
    toolset = ToolSet.of(tools)
    toolset.check()
    described = {**by_head(toolset), **(tool_namespace_descriptions or {})}
    system = System(strength_of(reasoning_strength, effort), tail(toolset, recipients, described))
    out = Writer()
    out.control(wire.BEGIN_OF_TEXT)
    if not any(message.role in SYSTEM_ROLES for message in messages):
        system.write_default(
            out,
            current_date=current_date or phrases.DEFAULT_DATE,
            knowledge_cutoff=knowledge_cutoff or phrases.KNOWLEDGE_CUTOFF,
        )
    _write_messages(out, messages, system)
    if add_generation_prompt:
        open_header(out)
    if channel is not None:
        write_header(out, channel)
    return out.prompt()


def read(conversation: Sequence[Any]) -> tuple[Message, ...]:
    """The conversation as messages, whichever of the three forms it is in. Raises RenderError."""
    given = as_sequence(conversation, "a conversation")
    ready = tuple(item for item in given if isinstance(item, Message))
    if len(ready) == len(given):
        return ready
    if ready:
        raise RenderError(
            "a conversation mixes Message objects with dicts; convert the dicts with "
            "from_chat or from_items first"
        )
    fields = [as_fields(item, f"conversation[{place}]") for place, item in enumerate(given)]
    return from_items(fields) if any("type" in item for item in fields) else from_chat(fields)


def _check_options(recipients: str, channel: str | None, *, add_generation_prompt: bool) -> None:
    if recipients not in get_args(Recipients):
        raise OptionError(f"recipients={recipients!r} is unknown; use 'template' or 'exact'")
    if channel is not None and not add_generation_prompt:
        raise OptionError("channel= needs add_generation_prompt=True: it continues that header")


def _write_messages(out: Writer, messages: Sequence[Message], system: System) -> None:
    names: dict[str, str] = {}
    for place, message in enumerate(messages):
        _check_message(message, place)
        if message.role == wire.ASSISTANT:
            follower = messages[place + 1] if place + 1 < len(messages) else None
            followed = follower is not None and follower.role == wire.ASSISTANT
            write_assistant(out, message, followed=followed)
            names.update(_declared_names(message))
        elif message.role == "tool":
            _write_result(out, message, names)
        elif message.role in SYSTEM_ROLES:
            system.write(out, message.content)
        else:
            _write_plain(out, message.role, message)


def _check_message(message: Message, place: int) -> None:
    check_message(message, f"message {place}")
    if message.role not in (wire.ASSISTANT, *wire.OTHER_ROLES):
        raise RenderError(f"message {place} has the unknown role {message.role!r}")
    as_parts(message.content, f"message {place}")
    if message.role != wire.ASSISTANT and (message.calls or message.recipient):
        raise RenderError(
            f"message {place} has role {message.role!r} and a recipient or calls, "
            "which only assistant messages have"
        )


def _declared_names(message: Message) -> dict[str, str]:
    """Call id -> the called tool's wire name."""
    return {call.id: call.wire_name for call in message.calls if isinstance(call, ToolCall)}


def _write_result(out: Writer, message: Message, names: Mapping[str, str]) -> None:
    """A tool's output under the tool's name: given, or its call's, or at least the call's id."""
    call_id = message.call_id
    name = message.name or (names.get(call_id, call_id) if call_id is not None else "")
    if name:
        header_name(tag_name(name, "a tool result"), "a tool result")
    out.control(wire.START)
    out.text(f"tool {name}")
    out.control(wire.MESSAGE)
    out.text(phrases.TOOL_OUTPUT_OPEN.format(name))
    out.content(message.content)
    out.text(phrases.TOOL_OUTPUT_CLOSE)
    out.control(wire.EOT)


def _write_plain(out: Writer, role: str, message: Message) -> None:
    out.control(wire.START)
    out.text(role)
    out.control(wire.MESSAGE)
    out.content(message.content)
    out.control(wire.EOT)
