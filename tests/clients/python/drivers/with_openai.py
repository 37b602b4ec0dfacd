"""The openai SDK for Python: each way it has to make a response."""

import json

import openai
from pydantic import BaseModel

ASKED = "What is the weather in Oslo?"
PARAMETERS = {
    "type": "object",
    "properties": {"city": {"type": "string"}},
    "required": ["city"],
    "additionalProperties": False,
}
TOOL = {"type": "function", "name": "weather", "parameters": PARAMETERS, "strict": True}
CHAT_TOOL = {"type": "function", "function": {"name": "weather", "parameters": PARAMETERS}}


class Weather(BaseModel):
    city: str
    degrees: int


def client(url):
    return openai.OpenAI(base_url=url, api_key="any", max_retries=0, timeout=20)


def ran(call):
    """The output of a call, as the API wants it back."""
    assert (call.name, json.loads(call.arguments)) == ("weather", {"city": "Oslo"}), call
    return {"type": "function_call_output", "call_id": call.call_id, "output": "7 degrees"}


def calls(response):
    return [item for item in response.output if item.type == "function_call"]


def told(response):
    return {
        "text": response.output_text,
        "status": response.status,
        "items": [item.type for item in response.output],
        "usage": response.usage.model_dump(),
    }


def json_form(url):
    """Two requests, the second with all items of the first."""
    sdk, items = client(url), [{"role": "user", "content": ASKED}]
    first = sdk.responses.create(model="scripted", input=items, tools=[TOOL], store=False)
    items += [*first.output, *map(ran, calls(first))]
    return told(sdk.responses.create(model="scripted", input=items, tools=[TOOL], store=False))


def by_id(url):
    """Two requests, the second with the id of the first."""
    sdk = client(url)
    first = sdk.responses.create(model="scripted", input=ASKED, tools=[TOOL])
    second = sdk.responses.create(
        model="scripted",
        input=[*map(ran, calls(first))],
        tools=[TOOL],
        previous_response_id=first.id,
    )
    assert sdk.responses.retrieve(second.id) == second
    kept = [item.type for item in sdk.responses.input_items.list(second.id)]
    sdk.responses.delete(second.id)
    return told(second) | {"kept": kept}


def stream(url):
    """``create(stream=True)`` for both requests."""
    sdk, items = client(url), [{"role": "user", "content": ASKED}]
    types = []
    for _ in range(2):
        asked = {"model": "scripted", "input": items, "tools": [TOOL]}
        for event in sdk.responses.create(**asked, stream=True):
            types.append(event.type)
        items = [*items, *event.response.output, *map(ran, calls(event.response))]
    return told(event.response) | {"types": types}


def stream_helper(url):
    """``responses.stream()``, which keeps its own account of the items."""
    sdk, items = client(url), [{"role": "user", "content": ASKED}]
    deltas = []
    for _ in range(2):
        with sdk.responses.stream(model="scripted", input=items, tools=[TOOL]) as events:
            deltas += [e.delta for e in events if e.type == "response.output_text.delta"]
            final = events.get_final_response()
        parsed = [call.parsed_arguments for call in calls(final)]
        assert parsed in ([{"city": "Oslo"}], []), parsed
        items = [*items, *map(plain, final.output), *map(ran, calls(final))]
    return told(final) | {"deltas": "".join(deltas)}


def plain(item):
    """An item without what the SDK has added to it."""
    return {k: v for k, v in item.to_dict().items() if k != "parsed_arguments"}


def websocket(url):
    """``responses.connect()``: both requests over one socket."""
    types, seen = [], None
    with client(url).responses.connect() as link:
        asked = {"input": ASKED}
        for _ in range(2):
            link.response.create(model="scripted", tools=[TOOL], store=False, **asked)
            for event in link:
                types.append(event.type)
                if event.type in ("response.completed", "error"):
                    break
            seen = event.response
            asked = {"input": [*map(ran, calls(seen))], "previous_response_id": seen.id}
    return told(seen) | {"types": types}


def background(url):
    """A background stream that is left, and gone on with from where it was left."""
    sdk = client(url)
    before = []
    asked = {"model": "scripted", "input": ASKED, "background": True, "stream": True}
    with sdk.responses.create(**asked) as events:
        for event in events:
            before.append(event.sequence_number)
            if event.type == "response.created":
                made = event.response.id
            if len(before) == 6:
                break
    after = [*sdk.responses.retrieve(made, stream=True, starting_after=before[-1])]
    numbers = before + [event.sequence_number for event in after]
    assert numbers == [*range(len(numbers))], numbers
    return told(sdk.responses.retrieve(made))


def polled(url):
    """A background response that is polled, and one that is cancelled."""
    sdk = client(url)
    made = sdk.responses.create(model="scripted", input=ASKED, background=True)
    while made.status in ("queued", "in_progress"):
        made = sdk.responses.retrieve(made.id)
    other = sdk.responses.create(model="scripted", input="long", background=True)
    cancelled = sdk.responses.cancel(other.id)
    return told(made) | {"cancelled": cancelled.status}


def parsed(url):
    """``responses.parse`` and ``chat.completions.parse``."""
    sdk = client(url)
    asked = "Tell me the weather as JSON."
    one = sdk.responses.parse(model="scripted", input=asked, text_format=Weather)
    two = sdk.chat.completions.parse(
        model="scripted",
        messages=[{"role": "user", "content": asked}],
        response_format=Weather,
    )
    return [one.output_parsed.model_dump(), two.choices[0].message.parsed.model_dump()]


def chat(url):
    """Chat Completions, in one piece and then as a stream."""
    sdk, messages = client(url), [{"role": "user", "content": ASKED}]
    first = sdk.chat.completions.create(model="scripted", messages=messages, tools=[CHAT_TOOL])
    (call,) = first.choices[0].message.tool_calls
    assert json.loads(call.function.arguments) == {"city": "Oslo"}, call
    messages += [first.choices[0].message]
    messages += [{"role": "tool", "tool_call_id": call.id, "content": "7 degrees"}]
    text, used = [], None
    options = {"stream": True, "stream_options": {"include_usage": True}}
    for chunk in sdk.chat.completions.create(
        model="scripted", messages=messages, tools=[CHAT_TOOL], **options
    ):
        used = chunk.usage or used
        text += [choice.delta.content or "" for choice in chunk.choices]
    return {
        "text": "".join(text),
        "finish": first.choices[0].finish_reason,
        "used": used.total_tokens,
    }


def chat_helper(url):
    """``chat.completions.stream()``, which keeps its own account of the message."""
    sdk, messages = client(url), [{"role": "user", "content": ASKED}]
    kinds = set()
    with sdk.chat.completions.stream(
        model="scripted", messages=messages, tools=[CHAT_TOOL]
    ) as events:
        kinds |= {event.type for event in events}
        message = events.get_final_completion().choices[0].message
    (call,) = message.tool_calls
    return {"arguments": json.loads(call.function.arguments), "kinds": sorted(kinds)}


def refused(url):
    """What the SDK raises for what can't be done."""
    sdk, found = client(url), {}
    asked = {"model": "scripted", "input": ASKED}
    for name, change in {
        "model": {"model": "unknown-model"},
        "temperature": {"temperature": 9},
        "previous": {"previous_response_id": "resp_0"},
        "schema": {
            "text": {"format": {"type": "json_schema", "name": "n", "strict": True, "schema": {}}}
        },
    }.items():
        try:
            sdk.responses.create(**asked | change)
        except openai.APIStatusError as error:
            found[name] = [type(error).__name__, error.status_code, error.code, error.param]
    return found
