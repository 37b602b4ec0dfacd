"""The anthropic SDK for Python: a tool loop in each of its ways."""

import anthropic
from pydantic import BaseModel

ASKED = {"role": "user", "content": "What is the weather in Oslo?"}
SCHEMA = {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]}
TOOL = {"name": "weather", "description": "The weather of a city.", "input_schema": SCHEMA}
FIXED = {"model": "scripted", "max_tokens": 500}


class Weather(BaseModel):
    city: str
    degrees: int


def client(url):
    return anthropic.Anthropic(
        base_url=url.removesuffix("/v1"), api_key="any", max_retries=0, timeout=20
    )


def _loop(ask):
    messages, looked = [ASKED], []
    while True:
        message = ask(messages)
        messages.append({"role": "assistant", "content": message.content})
        uses = [block for block in message.content if block.type == "tool_use"]
        if not uses:
            return told(message) | {"looked": looked}
        assert message.stop_reason == "tool_use"
        looked += [use.input["city"] for use in uses]
        results = [
            {"type": "tool_result", "tool_use_id": use.id, "content": "7 degrees"} for use in uses
        ]
        messages.append({"role": "user", "content": results})


def told(message):
    text = "".join(block.text for block in message.content if block.type == "text")
    return {
        "text": text,
        "blocks": [block.type for block in message.content],
        "stop": message.stop_reason,
        "used": message.usage.output_tokens,
    }


def create(url):
    sdk = client(url)
    return _loop(lambda messages: sdk.messages.create(messages=messages, tools=[TOOL], **FIXED))


def stream(url):
    sdk, kinds = client(url), set()

    def ask(messages):
        with sdk.messages.stream(messages=messages, tools=[TOOL], **FIXED) as events:
            kinds.update(event.type for event in events)
            return events.get_final_message()

    return _loop(ask) | {"kinds": sorted(kinds)}


def tool_runner(url):
    """The loop that the SDK itself has."""
    looked = []

    @anthropic.beta_tool
    def weather(city: str) -> str:
        """The weather of a city."""
        looked.append(city)
        return "7 degrees"

    runner = client(url).beta.messages.tool_runner(messages=[ASKED], tools=[weather], **FIXED)
    return told(runner.until_done()) | {"looked": looked}


def count(url):
    """What is counted is what is then read."""
    sdk = client(url)
    asked = {"model": "scripted", "messages": [ASKED], "tools": [TOOL], "system": "Be brief."}
    counted = sdk.messages.count_tokens(**asked)
    made = sdk.messages.create(max_tokens=500, **asked)
    return [counted.input_tokens, made.usage.input_tokens + made.usage.cache_read_input_tokens]


def parsed(url):
    asked = [{"role": "user", "content": "Tell me the weather as JSON."}]
    message = client(url).messages.parse(messages=asked, output_format=Weather, **FIXED)
    return message.parsed_output.model_dump()


def refused(url):
    """What the SDK raises for what can't be done."""
    found = {}
    for name, change in {"model": {"model": "unknown"}, "budget": {"max_tokens": 0}}.items():
        try:
            client(url).messages.create(messages=[ASKED], **FIXED | change)
        except anthropic.APIStatusError as error:
            found[name] = [type(error).__name__, error.status_code, error.body["error"]["type"]]
    return found
