"""Rendering: a conversation in three forms, its segments, its ids."""

from __future__ import annotations

from typing import Any, assert_type

import atem

TOOLS = [atem.Tool("find", "Finds a word.", {"properties": {"word": {"type": "string"}}})]

messages = [atem.Message("system", "Be brief."), atem.Message("user", "When is high water?")]
chat: list[dict[str, Any]] = [{"role": "user", "content": "When is high water?"}]
items: list[dict[str, Any]] = [{"type": "message", "role": "user", "content": "When?"}]

prompt = atem.render(messages, tools=TOOLS, effort="medium", recipients="exact")
assert_type(prompt, atem.Prompt)
assert_type(prompt.text(), str)
assert atem.render(chat).text().endswith("<|start|>assistant")
assert atem.render(items, channel="user").text().endswith(" to=user<|message|>")
assert_type(atem.from_chat(chat), tuple[atem.Message, ...])
assert_type(atem.from_items(items), tuple[atem.Message, ...])

for segment in prompt:
    assert_type(segment.text, str)
    assert_type(segment.control, bool)


class Bytes:
    """A tokenizer of one's own: no base class to inherit from."""

    def token_bytes(self, token_id: int, /) -> bytes:
        """The byte, or the marker."""
        return bytes([token_id]) if token_id < 256 else b"<|start|>"

    def is_special(self, token_id: int, /) -> bool:
        """Everything that is no byte."""
        return token_id >= 256

    def special_id(self, text: str, /) -> int | None:
        """One number for all markers will do here."""
        return 256 if text.startswith("<|") else None

    def encode(self, text: str, /) -> list[int]:
        """UTF-8."""
        return list(text.encode())


assert_type(prompt.token_ids(Bytes()), list[int])

# A turn that was parsed goes back into the conversation as it was.
turn = atem.parse(" to=user<|message|>At noon.<|eot|>")
history: list[atem.Message] = [*messages, *turn.messages]
assert atem.render(history).text().count("At noon.") == 1
assert atem.render_turn(turn).text() == " to=user<|message|>At noon.<|eot|>"
content = turn.messages[0].content
assert isinstance(content, str)
assert_type(content, str)

pictures = (atem.ImagePart(b"..."), "and", atem.VideoPart("clip.mp4"), atem.TextPart("?"))
assert atem.render([atem.Message("user", pictures)]).images == (b"...",)

# What the first of two parser stages yields is text here too.
staged = [part for part in atem.split_channels(["Noon."]) if isinstance(part, atem.Text)]
assert "Noon." in atem.render([atem.Message("user", tuple(staged))]).text()

# A rejected call, and the reply to it, are history like everything else.
wrong = atem.parse(" to=find<|message|>tide<|eot|>", tools=TOOLS)
replies = [atem.feedback(rejected) for rejected in wrong.rejected]
assert "to=find<|message|>tide<|eot|>" in atem.render([*wrong.messages, *replies]).text()

try:
    atem.render([{"role": "narrator", "content": "Meanwhile"}])
except atem.RenderError as error:
    assert_type(error, atem.RenderError)
    as_value_error: ValueError = error
