"""pydantic-ai: an agent with a tool and an agent with a schema, by each API."""

import asyncio

from pydantic import BaseModel
from pydantic_ai import Agent, NativeOutput, ToolOutput
from pydantic_ai.models.anthropic import AnthropicModel
from pydantic_ai.models.openai import OpenAIChatModel, OpenAIResponsesModel
from pydantic_ai.providers.anthropic import AnthropicProvider
from pydantic_ai.providers.openai import OpenAIProvider

ASKED = "What is the weather in Oslo?"


class Weather(BaseModel):
    city: str
    degrees: int


def model(kind, url):
    if kind is AnthropicModel:
        provider = AnthropicProvider(api_key="any", base_url=url.removesuffix("/v1"))
    else:
        provider = OpenAIProvider(base_url=url, api_key="any")
    return kind("scripted", provider=provider)


def _agent(kind, url, **options):
    looked = []
    agent = Agent(model(kind, url), instructions="Be brief.", **options)

    @agent.tool_plain
    def weather(city: str) -> str:
        """The weather of a city."""
        looked.append(city)
        return "7 degrees"

    return agent, looked


def _whole(kind, url, asked=ASKED, **options):
    agent, looked = _agent(kind, url, **options)
    result = agent.run_sync(asked)
    parts = [part.part_kind for message in result.all_messages() for part in message.parts]
    return {"text": result.output, "looked": looked, "parts": parts}


def responses(url):
    return _whole(OpenAIResponsesModel, url)


def chat(url):
    return _whole(OpenAIChatModel, url)


def messages(url):
    return _whole(AnthropicModel, url)


def _streamed(kind, url):
    async def go():
        agent, looked = _agent(kind, url)
        async with agent.run_stream(ASKED) as result:
            text = [delta async for delta in result.stream_text(delta=True)]
        return {"text": "".join(text), "looked": looked}

    return asyncio.run(go())


def responses_streamed(url):
    return _streamed(OpenAIResponsesModel, url)


def chat_streamed(url):
    return _streamed(OpenAIChatModel, url)


def _structured(kind, url, form):
    asked = f"{ASKED} Answer as JSON." if form is NativeOutput else ASKED
    found = _whole(kind, url, asked, output_type=form(Weather))
    return found | {"text": found["text"].model_dump()}


def responses_schema(url):
    return _structured(OpenAIResponsesModel, url, NativeOutput)


def chat_schema(url):
    return _structured(OpenAIChatModel, url, NativeOutput)


def responses_final_tool(url):
    """The answer itself is a call, and one is required."""
    return _structured(OpenAIResponsesModel, url, ToolOutput)


def chat_final_tool(url):
    return _structured(OpenAIChatModel, url, ToolOutput)
