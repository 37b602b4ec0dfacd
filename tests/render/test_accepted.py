"""What a caller gets wrong is an error of ours that names the place, what was found, what to give."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pytest

from atem.errors import OptionError, RenderError
from atem.messages import Message, RejectedCall, TextPart
from atem.render import from_chat, from_items, render, render_turn
from tests.render.calls import call

if TYPE_CHECKING:
    from collections.abc import Callable

USER = {"role": "user", "content": "x"}
CALLS = [{"id": "c1", "type": "function", "function": {"name": "read", "arguments": "{}"}}]


def chat(role: object, **fields: Any) -> list[dict[str, Any]]:
    return [{"role": role, "content": "x", **fields}]


def item(**fields: Any) -> list[dict[str, Any]]:
    made = {"type": "function_call", "call_id": "c", "name": "read", "arguments": "{}"}
    return [{**made, **fields}]


def of(**fields: Any) -> list[Message]:
    return [Message(**{"role": "assistant", "content": "x", **fields})]


def made(**fields: Any) -> list[Message]:
    return [Message("assistant", calls=(replace(call("read", {}), **fields),))]


NO_TEXT: Any = 5
WRONG: dict[str, tuple[Any, str]] = {
    "nothing": (None, r"a conversation must be a sequence, not None"),
    "a number": (5, r"a conversation must be a sequence, not 5 \(int\)"),
    "a text": ("hi", r"a conversation must be a sequence, not 'hi'"),
    "a message alone": (Message("user", "x"), "put a single one in a list"),
    "no message": ([5], r"conversation\[0\] is a int"),
    # Chat messages
    "a part's type": (chat("user", content=[{"type": ["text"], "text": "a"}]), r"\['text'\]"),
    "a result's id": (chat("tool", tool_call_id=5), r"\[0\]\.tool_call_id is 5 \(int\); expected"),
    "a result's name": (chat("tool", name=5), r"messages\[0\]\.name is 5 \(int\); expected a str"),
    "a recipient": (chat("assistant", recipient=5), r"messages\[0\]\.recipient is 5"),
    "the end": (chat("assistant", end_turn="no"), r"\.end_turn is 'no' \(str\); expected True"),
    "no role": ([{"content": "x"}], r"messages\[0\] has the role None; roles are"),
    "a role": (chat(5), r"messages\[0\] has the role 5"),
    "a role's list": (chat(["user"]), r"messages\[0\] has the role \['user'\]"),
    "a second message": ([USER, *chat("tool", name=5)], r"messages\[1\]\.name"),
    "calls": (chat("assistant", tool_calls=5), r"messages\[0\]\.tool_calls must be a sequence"),
    "a call": (chat("assistant", tool_calls=[5]), r"messages\[0\]\.tool_calls\[0\] is a int"),
    "a call's id": (
        chat("assistant", tool_calls=[{**CALLS[0], "id": 5}]),
        r"tool_calls\[0\]\.id is 5",
    ),
    "a user's calls": (chat("user", tool_calls=CALLS), "the role 'user' and 'tool_calls'"),
    "a result's calls": (chat("tool", tool_calls=CALLS), "the role 'tool' and 'tool_calls'"),
    "a system's thoughts": (chat("system", reasoning="Hm."), "'system' and 'reasoning'"),
    "a user's recipient": (chat("user", recipient="self"), "'user' and 'recipient'"),
    # Items
    "a namespace": (item(namespace=5), r"items\[0\]\.namespace is 5 \(int\); expected a string"),
    "an item's name": (item(name=5), r"items\[0\]\.name is 5"),
    "an item's id": (item(call_id=["c"]), r"items\[0\]\.call_id is \['c'\]"),
    "an item's calls": (
        [{"type": "message", "role": "assistant", "content": "x", "tool_calls": CALLS}],
        r"items\[0\] has 'tool_calls'",
    ),
    # Messages
    "a call object": (of(content="", calls=(5,)), r"message 0\.calls\[0\] is a int"),
    "no calls": (of(calls=None), r"message 0\.calls is None \(NoneType\); expected a tuple"),
    "a name": (of(role="tool", name=5), r"message 0\.name is 5"),
    "a message's recipient": (of(recipient=5), r"message 0\.recipient is 5"),
    "a call_id": (of(role="tool", call_id=[1]), r"message 0\.call_id is \[1\] \(list\)"),
    "a message's end": (of(end_turn="no"), r"message 0\.end_turn is 'no'"),
    "a message's role": (of(role=["user"]), r"message 0\.role is \['user'\]"),
    "a text part": (of(content=(TextPart(NO_TEXT),)), r"text part of message 0\.text is 5"),
    "a call's name": (made(raw_name=5), r"message 0\.calls\[0\]\.raw_name is 5"),
    "a call's arguments": (made(arguments=None), r"\.arguments is None \(NoneType\); expected a d"),
    "a rejected call's text": (
        of(content="", calls=(RejectedCall("malformed", None, "read", None, NO_TEXT),)),
        r"message 0\.calls\[0\]\.text is 5",
    ),
}


@pytest.mark.parametrize("name", WRONG)
def test_a_field_of_another_type_is_refused_by_name_place_and_remedy(name: str) -> None:
    conversation, said = WRONG[name]
    with pytest.raises(RenderError, match=said):
        render(conversation)


@pytest.mark.parametrize(
    ("option", "value"),
    [
        ("channel", 5),
        ("tool_namespace_descriptions", 5),
        ("tool_namespace_descriptions", {"mail": 5}),
        ("add_generation_prompt", "no"),
        ("current_date", 20260101),
        ("knowledge_cutoff", ["2025"]),
        ("recipients", 5),
        ("effort", ["low"]),
        ("reasoning_strength", {}),
    ],
)
def test_an_option_of_another_type_is_refused_by_name(option: str, value: Any) -> None:
    with pytest.raises(OptionError, match="mail" if isinstance(value, dict) and value else option):
        render([USER], **{option: value})


@pytest.mark.parametrize("read", [from_chat, from_items, render_turn])
@pytest.mark.parametrize("given", [None, 5, "hi", [5], [None]], ids=str)
def test_each_way_in_refuses_what_is_no_sequence_of_its_kind(
    read: Callable[[Any], object], given: object
) -> None:
    with pytest.raises(RenderError, match=r"must be a sequence|\[0\] is a"):
        read(given)


def test_a_field_that_is_none_or_missing_is_no_mistake() -> None:
    bare = {"role": "user", "content": "x"}
    full = dict.fromkeys(
        ("name", "tool_call_id", "recipient", "end_turn", "tool_calls", "thinking")
    )
    assert render([full | bare]) == render([bare])
    assert render(item(namespace=None)) == render(item())


def test_any_iterable_of_messages_and_calls_is_a_sequence() -> None:
    given = {"role": "assistant", "tool_calls": CALLS}
    assert from_chat(iter([{**given, "tool_calls": iter(CALLS)}])) == from_chat([given])
