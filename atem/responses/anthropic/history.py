"""Messages of content blocks as items.

Rules: what follows each other in a user's message is one item, but for results
of tools, which are items of their own; every block of an assistant's message is
an item. Images come as base64. ``cache_control`` says nothing about an answer.
Blocks of tools that only their own service runs are left out and noted.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from itertools import groupby
from typing import Any, Final, TypeAlias

from .. import checks
from ..faults import bad_value, missing, unsupported
from ..places import Placed

Block: TypeAlias = Mapping[str, Any]
Part: TypeAlias = dict[str, Any]

BILLING: Final = "x-anthropic-billing-header:"
"""A line that clients put first into the system text, another one in every request."""

BETWEEN: Final = "\n\n"
FAILED: Final = "The tool failed."
"""Stands before the result of a tool that the client marks as an error."""

ROLES: Final = ("user", "assistant", "system")

REFERENCE: Final = "tool_reference"
"""A block of a result that names a tool which may be called from then on."""


def placed(messages: Any) -> list[Placed]:
    """The items that ``messages`` are, each with its place. Raises ApiError."""
    given = checks.array(messages, "messages")
    if not given:
        raise bad_value("messages", "messages is empty; there has to be one at least.")
    return [
        item
        for place, message in enumerate(given)
        for item in _message(checks.mapping(message, f"messages[{place}]"), f"messages[{place}]")
    ]


def system_text(given: Any, where: str) -> str:
    """The system text: a string, or blocks of text. The line about billing is left out."""
    if isinstance(given, str):
        return _without_billing(given)
    texts = []
    for place, raw in enumerate(checks.array(given, where)):
        block = _block(raw, f"{where}[{place}]")
        if block["type"] != "text":
            shown = str(block["type"])[:48]
            raise unsupported(f"{where}[{place}]", f"{where}[{place}] is {shown!r} and no text.")
        texts.append(_without_billing(_text_in(block, f"{where}[{place}]")))
    return BETWEEN.join(filter(None, texts))


def _without_billing(text: str) -> str:
    return text.partition("\n")[2] if text.startswith(BILLING) else text


def _message(message: Block, where: str) -> Iterator[Placed]:
    role = message.get("role")
    if role not in ROLES:
        said = "missing" if role is None else repr(str(role)[:48])
        raise bad_value(f"{where}.role", f"{where}.role is {said}; roles are {', '.join(ROLES)}.")
    content = message.get("content")
    if role == "system":
        text = system_text("" if content is None else content, f"{where}.content")
        yield Placed(where, {"type": "message", "role": role, "content": text})
    elif content is None or isinstance(content, str):
        yield Placed(where, {"type": "message", "role": role, "content": content or ""})
    elif role == "user":
        yield from _user(content, f"{where}.content")
    else:
        yield from _assistant(content, f"{where}.content")


def _blocks(content: Any, where: str) -> list[tuple[str, Block]]:
    """The blocks of a content, each with its place."""
    return [
        (f"{where}[{place}]", _block(raw, f"{where}[{place}]"))
        for place, raw in enumerate(checks.array(content, where))
    ]


def _block(raw: Any, where: str) -> Block:
    block: Block = checks.mapping(raw, where)
    if not isinstance(block.get("type"), str):
        raise missing(f"{where}.type")
    return block


def _user(content: Any, where: str) -> Iterator[Placed]:
    blocks = _blocks(content, where)
    for is_result, group in groupby(blocks, lambda pair: pair[1]["type"] == "tool_result"):
        if is_result:
            yield from (
                Placed(place, item) for place, block in group for item in _results(block, place)
            )
            continue
        parts = [(place, part) for place, block in group for part in _parts(block, place)]
        content = [part for _, part in parts]
        message = {"type": "message", "role": "user", "content": content}
        yield Placed(where.removesuffix(".content"), message, [place for place, _ in parts])


def _results(block: Block, where: str) -> Iterator[dict[str, Any]]:
    """What a tool gave; references to tools are what a search for them found."""
    call_id = _word(block, "tool_use_id", where)
    content, inside = block.get("content"), f"{where}.content"
    shown = [] if content is None or isinstance(content, str) else _blocks(content, inside)
    found = [_word(ref, "tool_name", at) for at, ref in shown if ref["type"] == REFERENCE]
    if found:
        yield {
            "type": "tool_search_output",
            "execution": "client",
            "call_id": call_id,
            "tools": [{"type": REFERENCE, "name": name} for name in found],
        }
    if len(found) < len(shown) or not found:
        yield {
            "type": "function_call_output",
            "call_id": call_id,
            "output": _marked_if_failed(block, _output(content, inside), where),
        }


def with_found(items: list[dict[str, Any]], declared: list[Any]) -> list[dict[str, Any]]:
    """``items`` with the declarations in the place of the references to them."""
    tools = {tool["name"]: tool for tool in declared if isinstance(tool.get("name"), str)}
    return [
        {**item, "tools": [tools[ref["name"]] for ref in item["tools"] if ref["name"] in tools]}
        if item["type"] == "tool_search_output"
        else item
        for item in items
    ]


def _marked_if_failed(block: Block, output: str | list[Part], where: str) -> str | list[Part]:
    failed = block.get("is_error")
    if failed is not None and checks.flag(failed, f"{where}.is_error"):
        return _marked(output)
    return output


def _output(content: Any, where: str) -> str | list[Part]:
    if content is None or isinstance(content, str):
        return content or ""
    return [
        part
        for place, block in _blocks(content, where)
        if block["type"] != REFERENCE
        for part in _parts(block, place)
    ]


def _marked(output: str | list[Part]) -> str | list[Part]:
    if isinstance(output, str):
        return f"{FAILED}\n{output}" if output else FAILED
    return [_shown(FAILED if not output else f"{FAILED}\n"), *output]


def _parts(block: Block, where: str) -> list[Part]:
    """What a block shows, as parts of an item. Raises ApiError for what can't be shown."""
    reader = PARTS.get(block["type"])
    if reader is None:
        shown = block["type"][:64]
        raise unsupported(where, f"{where} has type {shown!r}, which the model can't be shown.")
    return reader(block, where)


def _shown(text: str) -> Part:
    return {"type": "input_text", "text": text}


def _text_in(block: Block, where: str) -> str:
    return str(checks.text(block.get("text"), f"{where}.text"))


def _text(block: Block, where: str) -> list[Part]:
    return [_shown(_text_in(block, where))]


def _image(block: Block, where: str) -> list[Part]:
    source = _source(block, where)
    if source.get("type") != "base64":
        raise unsupported(
            f"{where}.source",
            f"{where}.source is {str(source.get('type'))[:32]!r}; only base64 is read, and nothing "
            "is fetched.",
        )
    kind = _word(source, "media_type", f"{where}.source")
    data = _word(source, "data", f"{where}.source")
    url = f"data:{kind};base64,{data}"
    return [{"type": "input_image", "image_url": url, "detail": "auto"}]


def _document(block: Block, where: str) -> list[Part]:
    source = _source(block, where)
    named = [block[key] for key in ("title", "context") if isinstance(block.get(key), str)]
    about = [_shown("\n".join([*named, ""]))] if named else []
    if source.get("type") == "text":
        return [*about, _shown(_word(source, "data", f"{where}.source"))]
    if source.get("type") == "content":
        content = source.get("content")
        inner = [_shown(content)] if isinstance(content, str) else None
        return [*about, *(inner or _listed(content, f"{where}.source.content"))]
    shown = str(source.get("type"))[:32]
    raise unsupported(f"{where}.source", f"{where}.source is {shown!r}; send the document's text.")


def _listed(content: Any, where: str) -> list[Part]:
    """Blocks of text and images inside a block."""
    return [
        part
        for place, block in _blocks(content, where)
        for part in (_text if block["type"] == "text" else _image)(block, place)
    ]


def _search_result(block: Block, where: str) -> list[Part]:
    head = [block[key] for key in ("title", "source") if isinstance(block.get(key), str)]
    return [_shown("\n".join([*head, ""])), *_listed(block.get("content"), f"{where}.content")]


def _tool_reference(block: Block, where: str) -> list[Part]:
    return [_shown(f"The tool {_word(block, 'tool_name', where)!r} was found.")]


PARTS: Final[dict[str, Callable[[Block, str], list[Part]]]] = {
    "text": _text,
    "image": _image,
    "document": _document,
    "search_result": _search_result,
    "tool_reference": _tool_reference,
}
"""Type of a block that a user or a tool shows -> its reader."""


def _source(block: Block, where: str) -> Block:
    source = block.get("source")
    if not isinstance(source, Mapping):
        raise missing(f"{where}.source")
    return source


def _assistant(content: Any, where: str) -> Iterator[Placed]:
    for place, block in _blocks(content, where):
        reader = SAID.get(block["type"])
        # An item of an unknown type is left out where items are read, and noted.
        foreign = {"type": f"messages.{block['type'][:48]}"}
        yield Placed(place, foreign if reader is None else reader(block, place))


def _answer(block: Block, where: str) -> dict[str, Any]:
    part = {"type": "output_text", "text": _text_in(block, where)}
    return {"type": "message", "role": "assistant", "content": [part]}


def _thinking(block: Block, where: str) -> dict[str, Any]:
    """The signature is our blob, and goes before the text; a foreign one says nothing."""
    text = checks.text(block.get("thinking") or "", f"{where}.thinking")
    return {
        "type": "reasoning",
        "summary": [],
        "content": [{"type": "reasoning_text", "text": text}] if text else [],
        "encrypted_content": block.get("signature"),
    }


def _redacted(block: Block, where: str) -> dict[str, Any]:
    return {"type": "reasoning", "summary": [], "encrypted_content": block.get("data")}


def _tool_use(block: Block, where: str) -> dict[str, Any]:
    return {
        "type": "function_call",
        "call_id": _word(block, "id", where),
        "name": _word(block, "name", where),
        "arguments": checks.mapping(block.get("input") or {}, f"{where}.input"),
    }


SAID: Final[dict[str, Callable[[Block, str], dict[str, Any]]]] = {
    "text": _answer,
    "thinking": _thinking,
    "redacted_thinking": _redacted,
    "tool_use": _tool_use,
}
"""Type of a block that the assistant said -> its reader."""


def _word(fields: Block, key: str, where: str) -> str:
    word = fields.get(key)
    if word is None or word == "":
        raise missing(f"{where}.{key}")
    return str(checks.text(word, f"{where}.{key}"))
