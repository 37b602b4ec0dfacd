"""The server of docs/responses.md is a server: the openai SDK talks to it over a socket."""

from __future__ import annotations

import threading
import time
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import openai
import pytest
import uvicorn

import atem
from atem.server.serving import listen
from atem.testing.scripted import ScriptedEngine
from tests.golden.expectation import ROOT
from tests.responses.output.writing import EOT, READ, called, invoke, said, thought, turn

if TYPE_CHECKING:
    from collections.abc import Iterator

PAGE = (ROOT / "docs" / "responses.md").read_text("utf-8")
CODE = PAGE.partition("```python\n")[2].partition("```")[0]
MOST_LINES = 30


def model(request: Any) -> str:
    prompt = request.prompt.text()
    if "<tool_output" in prompt:
        return turn(said("It says hi.", end=EOT))
    if "a.txt" in prompt:
        return turn(thought("Look."), called(invoke("read", path="a.txt")))
    return turn(thought("Hm."), said("Hello.", end=EOT))


@contextmanager
def serving(app: Any) -> Iterator[str]:
    server = uvicorn.Server(uvicorn.Config(app, log_config=None, lifespan="off"))
    with listen("127.0.0.1", 0) as socket:
        thread = threading.Thread(target=server.run, kwargs={"sockets": [socket]})
        thread.start()
        while not server.started and thread.is_alive():
            time.sleep(0.005)
        yield f"http://127.0.0.1:{socket.getsockname()[1]}/v1"
        server.should_exit = True
        thread.join(20)
    assert not thread.is_alive()


@pytest.fixture(scope="module")
def client() -> Iterator[openai.OpenAI]:
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(atem, "load", lambda name: ScriptedEngine(model))
        page: dict[str, Any] = {"__name__": "page"}
        exec(compile(CODE, "docs/responses.md", "exec"), page)
    with (
        serving(page["app"]) as url,
        openai.OpenAI(base_url=url, api_key="none", max_retries=0) as made,
    ):
        yield made


def test_it_is_as_short_as_the_page_says() -> None:
    lines = [line for line in CODE.splitlines() if line and "import" not in line]
    assert len(lines) <= MOST_LINES


def test_it_answers_in_one_piece(client: openai.OpenAI) -> None:
    response = client.responses.create(model="muse", input="Hi")
    assert (response.status, response.output_text) == ("completed", "Hello.")
    assert response.usage is not None
    assert response.usage.output_tokens > 0


def test_it_answers_as_a_stream(client: openai.OpenAI) -> None:
    with client.responses.stream(model="muse", input="Hi") as stream:
        words = [event.delta for event in stream if event.type == "response.output_text.delta"]
        assert "".join(words) == stream.get_final_response().output_text == "Hello."


@pytest.mark.parametrize("streamed", [False, True])
def test_a_tool_turn_goes_on_from_the_one_before(client: openai.OpenAI, streamed: bool) -> None:
    tools: Any = [READ]
    asked: dict[str, Any] = {"model": "muse", "input": "What is in a.txt?", "tools": tools}
    if streamed:
        with client.responses.stream(**asked) as stream:
            first = stream.get_final_response()
    else:
        first = client.responses.create(**asked)
    called_ = first.output[-1]
    assert called_.type == "function_call"
    assert (called_.name, called_.arguments) == ("read", '{"path": "a.txt"}')
    result: Any = [{"type": "function_call_output", "call_id": called_.call_id, "output": "hi"}]
    second = client.responses.create(
        model="muse", input=result, tools=tools, previous_response_id=first.id
    )
    assert second.output_text == "It says hi."


def test_what_is_wrong_is_an_error_that_the_sdk_knows(client: openai.OpenAI) -> None:
    with pytest.raises(openai.BadRequestError) as wrong:
        client.responses.create(model="muse", input="Hi", previous_response_id="resp_none")
    assert wrong.value.code == "previous_response_not_found"
    with pytest.raises(openai.BadRequestError, match="temperature"):
        client.responses.create(model="muse", input="Hi", temperature=9)


def test_what_has_no_effect_is_named(client: openai.OpenAI) -> None:
    raw = client.responses.with_raw_response.create(
        model="muse", input="Hi", extra_body={"wishes": 3}
    )
    assert raw.headers["x-notes"] == "'wishes' is no field of a request"
