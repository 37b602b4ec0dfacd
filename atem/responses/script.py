"""Items as the messages of a conversation, in the order that the format wants.

Rules: a table of readers, one for each type of item. Results stand behind the
turn that called, in the order of its calls, because the format names a result
by its tool alone and not by its call. A call that nobody answered gets a result
that says so; a result that nobody called for is an error of the client.
"""

from __future__ import annotations

from collections import defaultdict, deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final, Protocol, TypeAlias

from .. import wire
from ..messages import Content, Message
from ..tools.definition import CUSTOM_INPUT
from . import compaction, hosted
from .calls import call_message
from .faults import bad_blob, bad_value, missing, unsupported
from .parts import has_images, read_content, read_output, text_of
from .tool_search import NAME as SEARCH_NAME
from .tool_search import told

if TYPE_CHECKING:
    from .inputs import Item
    from .tools import ClientTools, Declared

Reader: TypeAlias = Callable[["Script", Mapping[str, Any], str], None]

NO_OUTPUT: Final = (
    "No output: this call was interrupted, and may have been run in part or not at all."
)


class Opens(Protocol):
    """What reads encrypted content: :class:`~atem.responses.blob.Blobs`."""

    def open(self, blob: str, /) -> str | None:
        """The text in it; None for one that is not ours."""


@dataclass
class Script:
    """What has been read so far.

    ``messages`` are in order, without results; None stands where results came
    in. ``answers`` are the results by the place of their call.
    """

    tools: ClientTools
    blobs: Opens | None = None
    messages: list[Message | None] = field(default_factory=list)
    answers: defaultdict[int, list[Content]] = field(default_factory=lambda: defaultdict(list))
    open: defaultdict[str, deque[int]] = field(default_factory=lambda: defaultdict(deque))
    """Call id -> the places of its calls that have no result yet."""
    answered: dict[str, int] = field(default_factory=dict)
    notes: list[str] = field(default_factory=list)
    _looked: int = 0
    _began: int = 0

    def read(self, items: Iterable[Item]) -> None:
        """Read ``items``, in order. Raises ApiError."""
        for item in items:
            if item.type in hosted.TYPES:
                self._read_hosted(item)
            else:
                READERS[item.type](self, item.fields, item.where)

    def conversation(self) -> Iterator[Message]:
        """The messages with the results in their places, and one for each call."""
        batch: list[int] = []
        for place, message in enumerate([*self.messages, None]):
            if _ends_turn(message):
                yield from self._results(batch)
                batch = []
            if message is not None:
                yield message
                batch += [place] * bool(message.calls)

    def call(
        self, namespace: str | None, name: str, arguments: Any, where: str, call_id: str
    ) -> None:
        """A call of the past."""
        waiting = self.open[call_id]
        if waiting and self._turn_began() > waiting[-1]:
            waiting.clear()  # ids may repeat: a call of an earlier turn is not answered any more
        waiting.append(len(self.messages))
        made = call_message(self.tools, namespace, name, arguments, where=where, call_id=call_id)
        self.messages.append(made)

    def _turn_began(self) -> int:
        """The place behind the last message that ended a turn."""
        for place in range(self._looked, len(self.messages)):
            if _ends_turn(self.messages[place]):
                self._began = place + 1
        self._looked = len(self.messages)
        return self._began

    def result(self, call_id: str, content: Content) -> bool:
        """The result of the earliest open call with this id; False if there is no such call."""
        waiting = self.open.get(call_id)
        place = waiting.popleft() if waiting else self.answered.get(call_id)
        if place is None:
            return False
        self.answered[call_id] = place
        self.answers[place].append(content)
        if self.messages[-1] is not None:
            self.messages.append(None)
        return True

    def _results(self, batch: Sequence[int]) -> Iterator[Message]:
        for place in batch:
            message = self.messages[place]
            assert message is not None
            (call,) = message.calls
            name = call.raw_name
            for content in self.answers.get(place) or [NO_OUTPUT]:
                yield Message("tool", content, name=name, call_id=call.id)

    def _read_hosted(self, item: Item) -> None:
        made = hosted.TYPES[item.type](item.fields)
        if not made:
            self.notes.append(f"{item.where} of type {item.type!r} is not shown to the model")
        for fields in made:
            if fields["type"] == "function_call":
                name, namespace = fields["name"], fields.get("namespace")
                space = namespace if isinstance(namespace, str) else None
                self.call(space, name, fields["arguments"], item.where, fields["call_id"])
            elif not self.result(fields["call_id"], fields["output"]):
                self.notes.append(f"{item.where} answers no call, and is not shown to the model")


def _ends_turn(message: Message | None) -> bool:
    return message is None or message.role != wire.ASSISTANT


def _message(script: Script, item: Mapping[str, Any], where: str) -> None:
    content = read_content(item.get("content"), f"{where}.content")
    role = item["role"]
    if role != wire.ASSISTANT:
        script.messages.append(Message(role, content))
    elif has_images(content):
        raise unsupported(
            f"{where}.content", f"{where}: an assistant's message has no images here."
        )
    elif content := text_of(content):
        script.messages.append(Message("assistant", content, recipient=wire.USER))


def _reasoning(script: Script, item: Mapping[str, Any], where: str) -> None:
    """What the model thought: from our own blob, else the text, else its summary."""
    blob = item.get("encrypted_content")
    text = script.blobs.open(blob) if script.blobs and isinstance(blob, str) and blob else None
    for key in ("content", "summary"):
        text = text or text_of(read_content(item.get(key), f"{where}.{key}"), "\n")
    if text:
        script.messages.append(Message("assistant", text, recipient=wire.SELF))
    elif blob:
        script.notes.append(f"{where}: reasoning that was not made here is not shown to the model")


def _function_call(script: Script, item: Mapping[str, Any], where: str) -> None:
    _read_call(script, item, item.get("arguments"), where)


def _custom_call(script: Script, item: Mapping[str, Any], where: str) -> None:
    given = item.get("input")
    if given is not None and not isinstance(given, str):
        raise bad_value(f"{where}.input", f"{where}.input is a {type(given).__name__}, not text.")
    _read_call(script, item, {CUSTOM_INPUT: given or ""}, where)


def _read_call(script: Script, item: Mapping[str, Any], arguments: Any, where: str) -> None:
    name, namespace = item.get("name"), item.get("namespace")
    if not isinstance(name, str) or not name:
        raise missing(f"{where}.name")
    if namespace is not None and not isinstance(namespace, str):
        raise bad_value(f"{where}.namespace", f"{where}.namespace is no string.")
    script.call(namespace, name, arguments, where, _call_id(item, where))


def _output(script: Script, item: Mapping[str, Any], where: str) -> None:
    call_id = _call_id(item, where)
    if not script.result(call_id, read_output(item.get("output"), f"{where}.output")):
        raise _orphan(call_id, where)


def _call_id(item: Mapping[str, Any], where: str) -> str:
    call_id = item.get("call_id")
    if not isinstance(call_id, str) or not call_id:
        raise missing(f"{where}.call_id")
    return call_id


def _orphan(call_id: str, where: str) -> Exception:
    message = f"No tool call found before this output with call_id {call_id[:128]!r}."
    return bad_value(f"{where}.call_id", message)


def _search_call(script: Script, item: Mapping[str, Any], where: str) -> None:
    script.call(None, SEARCH_NAME, item.get("arguments"), where, _search_id(item))


def _search_output(script: Script, item: Mapping[str, Any], where: str) -> None:
    groups = [_declared(script, tool, None) for tool in item.get("tools") or ()]
    tools = [tool for group in groups for tool in group]
    text = told(
        (tool.tool.wire_name for tool in tools), (tool.tool for tool in tools if tool.found)
    )
    if not script.result(_search_id(item), text):
        script.notes.append(f"{where} answers no search; its tools can be called all the same")
        script.messages.append(Message("system", text))


def _search_id(item: Mapping[str, Any]) -> str:
    """A search that the server answered has no id on either side."""
    call_id = item.get("call_id")
    return call_id if isinstance(call_id, str) else ""


def _declared(script: Script, tool: Mapping[str, Any], namespace: str | None) -> list[Declared]:
    """The tools of a declaration; of a hosted one none."""
    if tool.get("type") == "namespace":
        members = [_declared(script, member, tool["name"]) for member in tool["tools"]]
        return [found for group in members for found in group]
    name = tool.get("name")
    found = script.tools.find(namespace, name) if isinstance(name, str) else None
    return [found] if found else []


def _compaction(script: Script, item: Mapping[str, Any], where: str) -> None:
    blob = item.get("encrypted_content")
    text = script.blobs.open(blob) if script.blobs and isinstance(blob, str) else None
    if text is None:
        raise bad_blob(f"{where}.encrypted_content")
    script.messages.append(Message("user", compaction.SUMMARY.format(text)))


def _compaction_trigger(script: Script, item: Mapping[str, Any], where: str) -> None:
    script.messages.append(Message("user", compaction.REQUEST))


def _nothing(script: Script, item: Mapping[str, Any], where: str) -> None:
    """No part of the conversation: what it says was read before."""


READERS: Final[dict[str, Reader]] = {
    "message": _message,
    "reasoning": _reasoning,
    "function_call": _function_call,
    "function_call_output": _output,
    "custom_tool_call": _custom_call,
    "custom_tool_call_output": _output,
    "tool_search_call": _search_call,
    "tool_search_output": _search_output,
    "compaction": _compaction,
    "compaction_trigger": _compaction_trigger,
    "additional_tools": _nothing,
    "configuration_update": _nothing,
}
