"""openai-agents: a tool loop by each of its model classes. Tracing is off: it would call home."""

import asyncio

from agents import (
    Agent,
    ModelSettings,
    OpenAIChatCompletionsModel,
    OpenAIResponsesModel,
    OpenAIResponsesWSModel,
    Runner,
    function_tool,
    set_tracing_disabled,
)
from openai import AsyncOpenAI
from openai.types.shared import Reasoning
from pydantic import BaseModel

ASKED = "What is the weather in Oslo?"

set_tracing_disabled(True)


class Weather(BaseModel):
    city: str
    degrees: int


class Looked(list):
    """The cities that were looked up."""

    @property
    def tool(self):
        @function_tool
        def weather(city: str) -> str:
            """The weather of a city."""
            self.append(city)
            return "7 degrees"

        return weather


def agent(model, url, looked, **options):
    client = AsyncOpenAI(base_url=url, api_key="any", max_retries=0, timeout=20)
    made = model(model="scripted", openai_client=client)
    return Agent(
        name="Helper", instructions="Be brief.", tools=[looked.tool], model=made, **options
    )


def told(result, looked):
    kinds = [item.type for item in result.new_items]
    return {"text": result.final_output, "looked": looked, "items": kinds}


def _whole(model, url, asked=ASKED, **options):
    looked = Looked()
    return told(Runner.run_sync(agent(model, url, looked, **options), asked), looked)


def responses(url):
    """The Responses API; the reasoning goes back and forth encrypted, nothing is stored."""
    include = ["reasoning.encrypted_content"]
    settings = ModelSettings(
        store=False, response_include=include, reasoning=Reasoning(effort="low")
    )
    return _whole(OpenAIResponsesModel, url, model_settings=settings)


def chat(url):
    return _whole(OpenAIChatCompletionsModel, url)


def websocket(url):
    return _whole(OpenAIResponsesWSModel, url)


def _streamed(model, url):
    async def go():
        looked, deltas = Looked(), []
        result = Runner.run_streamed(agent(model, url, looked), ASKED)
        async for event in result.stream_events():
            if (
                event.type == "raw_response_event"
                and event.data.type == "response.output_text.delta"
            ):
                deltas.append(event.data.delta)
        return told(result, looked) | {"deltas": "".join(deltas)}

    return asyncio.run(go())


def responses_streamed(url):
    return _streamed(OpenAIResponsesModel, url)


def chat_streamed(url):
    return _streamed(OpenAIChatCompletionsModel, url)


def structured(url):
    """A schema for the answer and tools at once."""
    asked = f"{ASKED} Answer as JSON."
    found = _whole(OpenAIResponsesModel, url, asked, output_type=Weather)
    return found | {"text": found["text"].model_dump()}
