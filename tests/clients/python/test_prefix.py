"""What each library sends behind a call begins with the prompt before it and with its answer.

Rules: ids are compared, as a prefix cache does. Two libraries leave the
reasoning out over Chat Completions; of those the prompt alone is kept.
"""

from __future__ import annotations

import pytest

from tests.clients.node.serving import Server
from tests.clients.python.driving import CALLS, TURNS, Driver
from tests.responses.replaying import ids_of, kept

pytestmark = pytest.mark.clients

RESPONSES, CHAT, MESSAGES = "/v1/responses", "/v1/chat/completions", "/v1/messages"
KEEP = [
    ("with_openai", "json_form", RESPONSES),
    ("with_openai", "stream_helper", RESPONSES),
    ("with_agents", "responses", RESPONSES),
    ("with_pydantic_ai", "responses", RESPONSES),
    ("with_pydantic_ai", "chat", CHAT),
    ("with_pydantic_ai", "messages", MESSAGES),
    ("with_langchain", "responses", RESPONSES),
    ("with_litellm", "responses", RESPONSES),
    ("with_litellm", "chat", CHAT),
    ("with_litellm", "messages", MESSAGES),
    ("with_anthropic", "create", MESSAGES),
    ("with_anthropic", "tool_runner", MESSAGES),
]
FORGET = [("with_agents", "chat", CHAT), ("with_langchain", "chat", CHAT)]


@pytest.fixture(scope="module")
def sent(tmp_path_factory):
    """The two requests of a turn with a tool."""
    folder = tmp_path_factory.mktemp("prefix")
    with Server(folder / "server", TURNS) as server:

        def of(module, function, path):
            bodies = Driver(server, module, folder).bodies(function, path)
            before, after = (body for body in bodies if "thread" not in body)
            return before, after

        yield of


@pytest.mark.parametrize(("module", "function", "path"), KEEP)
def test_the_next_request_goes_on_where_the_answer_ended(sent, module, function, path):
    before, after = sent(module, function, path)
    common, whole = kept(path, before, CALLS, after)
    assert common == whole


@pytest.mark.parametrize(("module", "function", "path"), FORGET)
def test_without_its_reasoning_the_prompt_before_is_still_kept(sent, module, function, path):
    before, after = sent(module, function, path)
    common, whole = kept(path, before, CALLS, after)
    assert len(ids_of(path, before)) <= common < whole
