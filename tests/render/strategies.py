"""Conversations that the template renders faithfully: chat messages, tools and options."""

from __future__ import annotations

from typing import Any

from hypothesis import strategies as st

from atem import wire

LITERALS = [
    *wire.CONTROL,
    "<|vid_start|>",
    "<|image|>",
    "<atem:function_calls>",
    "</atem:parameter>",
    "</atem:invoke>",
    "</tool_output>",
    "assistant to=self",
    "to=user",
    "Reasoning effort: low",
    "REASONING STRENGTH",
]
FRAGMENTS = [*LITERALS, "<|", "|>", "<|<|eot|>eot|>", "<|eo", "t|>", "\n", " ", "é", "🙂", "{{x}}"]

text = st.lists(st.sampled_from(FRAGMENTS) | st.text(max_size=6), max_size=5).map("".join)
tool_names = st.sampled_from(
    ["read", "shell", "mail.send", "mail.list", "ledger.post.all", "Ωmega"]
)
keys = st.sampled_from(["path", "n", "with space", "größe", "a.b"])
numbers = st.integers() | st.floats(allow_nan=False, allow_infinity=False)
scalars = st.none() | st.booleans() | numbers | text
values = st.recursive(
    scalars,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(text, inner, max_size=3),
    max_leaves=8,
)
arguments = st.dictionaries(keys, values, max_size=4)
parts = st.one_of(
    st.builds(lambda said: {"type": "text", "text": said}, text),
    st.just({"type": "image"}),
    st.just({"type": "video"}),
)
content = text | st.lists(parts, max_size=4)


@st.composite
def schemas(draw: st.DrawFn) -> dict[str, Any]:
    kinds = st.sampled_from(["string", "integer", "array", "object"])
    properties = draw(st.dictionaries(keys, st.builds(lambda k: {"type": k}, kinds), max_size=3))
    described = draw(st.none() | text)
    schema: dict[str, Any] = {"type": "object", "properties": properties}
    return schema if described is None else schema | {"description": described}


@st.composite
def toolsets(draw: st.DrawFn) -> list[dict[str, Any]]:
    names = draw(st.lists(tool_names, unique=True, max_size=4))
    return [
        {
            "type": "function",
            "function": {"name": n, "description": draw(text), "parameters": draw(schemas())},
        }
        for n in names
    ]


@st.composite
def calls(draw: st.DrawFn, prefix: str) -> list[dict[str, Any]]:
    """Calls whose ids no other message's calls have."""
    count = draw(st.integers(0, 3))
    return [
        {
            "id": f"{prefix}-{place}",
            "type": "function",
            "function": {"name": draw(tool_names), "arguments": draw(arguments)},
        }
        for place in range(count)
    ]


@st.composite
def assistants(draw: st.DrawFn, prefix: str) -> dict[str, Any]:
    """An assistant message with calls and no content, or with content and no calls."""
    message: dict[str, Any] = {"role": "assistant", "content": None}
    if draw(st.booleans()):
        message["reasoning_content"] = draw(text)
    if made := draw(calls(prefix)):
        return message | {"tool_calls": made}
    message["content"] = draw(content | st.none())
    if draw(st.booleans()):
        message["recipient"] = draw(st.sampled_from(["user", "commentary", "self", "read"]))
    if draw(st.booleans()):
        message["end_turn"] = draw(st.booleans() | st.none())
    return message


@st.composite
def conversations(draw: st.DrawFn, *, max_size: int = 7) -> list[dict[str, Any]]:
    messages: list[dict[str, Any]] = []
    ids: list[str] = []
    roles = st.sampled_from(["system", "user", "user", "assistant", "assistant", "tool"])
    for place, role in enumerate(draw(st.lists(roles, max_size=max_size))):
        if role == "assistant":
            message = draw(assistants(f"call-{place}"))
            ids += [call["id"] for call in message.get("tool_calls", ())]
        else:
            message = {"role": role, "content": draw(content)}
        if role == "tool":
            message |= draw(st.sampled_from([{"name": "read"}, {"tool_call_id": "orphan"}, {}]))
            if ids and draw(st.booleans()):
                message |= {"tool_call_id": draw(st.sampled_from(ids))}
        messages.append(message)
    return messages


strengths = st.sampled_from(["low", "medium", "high", "xhigh"])
dates = st.dates().map(str)
options = st.fixed_dictionaries(
    {"current_date": dates, "add_generation_prompt": st.booleans()},
    optional={
        "reasoning_strength": strengths,
        "knowledge_cutoff": dates,
        "tool_namespace_descriptions": st.dictionaries(
            st.sampled_from(["mail", "read", "unused"]), text, max_size=2
        ),
    },
)
