"""langchain-openai: bound tools, a stream and a schema, by each API."""

from langchain_core.messages import HumanMessage, ToolMessage
from langchain_core.tools import tool
from langchain_openai import ChatOpenAI
from pydantic import BaseModel

RESPONSES, CHAT = True, False
ASKED = "What is the weather in Oslo?"


class Weather(BaseModel):
    """The weather of a city."""

    city: str
    degrees: int


@tool
def weather(city: str) -> str:
    """The weather of a city."""
    return f"7 degrees in {city}"


def model(url, api, **options):
    return ChatOpenAI(
        model="scripted",
        base_url=url,
        api_key="any",
        use_responses_api=api,
        max_retries=0,
        timeout=20,
        **options,
    )


def _loop(url, api, ask, **options):
    bound = model(url, api, **options).bind_tools([weather])
    messages, looked = [HumanMessage(ASKED)], []
    while True:
        answer = ask(bound, messages)
        messages.append(answer)
        if not answer.tool_calls:
            used = answer.usage_metadata or {}
            return {"text": answer.text, "looked": looked, "used": used.get("output_tokens", 0)}
        for call in answer.tool_calls:
            looked.append(call["args"]["city"])
            messages.append(ToolMessage(weather.invoke(call["args"]), tool_call_id=call["id"]))


def _invoke(bound, messages):
    return bound.invoke(messages)


def _stream(bound, messages):
    chunks = [*bound.stream(messages)]
    whole = chunks[0]
    for chunk in chunks[1:]:
        whole += chunk
    return whole


def responses(url):
    return _loop(url, RESPONSES, _invoke)


def responses_by_id(url):
    return _loop(url, RESPONSES, _invoke, use_previous_response_id=True)


def responses_streamed(url):
    return _loop(url, RESPONSES, _stream)


def chat(url):
    return _loop(url, CHAT, _invoke)


def chat_streamed(url):
    return _loop(url, CHAT, _stream, stream_usage=True)


def _schema(url, api):
    bound = model(url, api).with_structured_output(Weather, method="json_schema")
    return bound.invoke("Tell me the weather as JSON.").model_dump()


def responses_schema(url):
    return _schema(url, RESPONSES)


def chat_schema(url):
    return _schema(url, CHAT)
