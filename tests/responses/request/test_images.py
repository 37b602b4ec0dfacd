"""Images: counted as the model reads them, refused where it sees none."""

from __future__ import annotations

import base64
import struct
import sys
from dataclasses import replace
from typing import Any

import pytest

from atem.errors import MissingExtra
from atem.responses.answer import answer, new_builder
from atem.responses.faults import ApiError
from atem.responses.image_size import size_of
from atem.responses.truncation import input_tokens, truncate
from atem.testing.scripted import ScriptedEngine
from tests.responses.request.asking import PNG, ask, call, function, output, refused, user

SAID = " to=user<|message|>A cat.<|eot|>"


def url(data: bytes, kind: str = "png") -> str:
    return f"data:image/{kind};base64,{base64.b64encode(data).decode()}"


def png(width: int, height: int) -> str:
    head = struct.pack(">I4sIIBBBBB", 13, b"IHDR", width, height, 8, 2, 0, 0, 0)
    return url(b"\x89PNG\r\n\x1a\n" + head)


def gif(width: int, height: int) -> str:
    return url(b"GIF89a" + struct.pack("<HH", width, height), "gif")


def jpeg(width: int, height: int) -> str:
    frame = struct.pack(">HBHHB", 11, 8, height, width, 1) + b"\x01\x11\x00"
    return url(b"\xff\xd8\xff\xe0" + struct.pack(">H", 16) + b"JFIF".ljust(14, b"\0") + b"\xff\xc0" + frame, "jpeg")  # fmt: skip


def webp(width: int, height: int) -> str:
    lossy = b"\x00\x00\x00\x9d\x01\x2a" + struct.pack("<HH", width, height)
    chunk = b"VP8 " + struct.pack("<I", len(lossy)) + lossy
    return url(b"RIFF" + struct.pack("<I", 4 + len(chunk)) + b"WEBP" + chunk, "webp")


def seeing() -> ScriptedEngine:
    """An engine that takes images, and any number of turns."""
    engine = ScriptedEngine(lambda request: SAID)
    engine.info = replace(engine.info, features=engine.info.features | {"images"})
    return engine


def showing(source: str, words: str = "What is it?") -> list[dict[str, Any]]:
    parts = [{"type": "input_image", "image_url": source}, {"type": "input_text", "text": words}]
    return [{"role": "user", "content": parts}]


@pytest.mark.parametrize("form", [png, gif, jpeg, webp])
def test_the_size_is_in_the_first_bytes_of_every_usual_form(form: Any) -> None:
    assert size_of(form(640, 480)) == (480, 640)


@pytest.mark.parametrize(
    "source", [PNG, url(b""), url(b"no image"), png(0, 5), png(1 << 30, 1 << 30)]
)
def test_an_image_without_a_size_is_refused(source: str) -> None:
    engine = seeing()
    with pytest.raises(ApiError) as caught:
        input_tokens(ask(showing(source)), engine.tokenizer, engine.info)
    assert (caught.value.status, caught.value.code) == (400, "invalid_image")


def test_an_image_counts_as_many_tokens_as_the_model_reads() -> None:
    engine = seeing()
    small, large = (
        input_tokens(ask(showing(png(*size))), engine.tokenizer, engine.info)
        for size in ((28, 28), (280, 560))
    )
    assert large - small == 10 * 20 - 1


def test_what_is_counted_before_is_what_the_usage_says() -> None:
    engine, made = seeing(), ask(showing(png(280, 560)))
    builder = new_builder(made, created_at=0)
    for _ in answer(made, engine, builder, clock=lambda: 0):
        pass
    counted = input_tokens(made, engine.tokenizer, engine.info)
    assert builder.response["usage"]["input_tokens"] == counted > 200


def test_an_image_that_fills_the_context_is_too_long_and_is_left_out_if_it_may_be() -> None:
    engine = seeing()
    items = [*showing(png(2800, 2800)), {"role": "assistant", "content": "A cat."}, user("Sure?")]
    with pytest.raises(ApiError) as caught:
        truncate(ask(items), engine.tokenizer, 2000, engine.info)
    assert caught.value.code == "context_length_exceeded"
    shorter = truncate(ask(items, truncation="auto"), engine.tokenizer, 2000, engine.info)
    assert shorter.left_out == 2 or shorter.prompt(engine.info).images == ()


def test_where_the_engine_sees_no_images_one_is_a_clear_400() -> None:
    engine = ScriptedEngine([])
    with pytest.raises(ApiError) as caught:
        input_tokens(ask(showing(png(28, 28))), engine.tokenizer, engine.info)
    assert (caught.value.status, caught.value.code) == (400, "unsupported_parameter")
    assert "can't see images" in caught.value.message


def test_an_image_of_a_tool_is_replaced_there_and_noted() -> None:
    engine = ScriptedEngine([])
    shown = [{"type": "input_image", "image_url": png(28, 28)}]
    made = ask([user(), call(), output(shown)], tools=[function()])
    assert "can't see" in made.prompt(engine.info).text()
    assert any("images in a tool's output" in note for note in made.lacking(engine.info))


def test_an_image_that_lies_elsewhere_is_refused() -> None:
    assert refused(showing("https://example.com/cat.png")).code == "unsupported_parameter"


def test_without_the_package_the_error_says_what_to_install(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setitem(sys.modules, "imagesize", None)
    with pytest.raises(MissingExtra, match="server"):
        size_of(png(28, 28))
