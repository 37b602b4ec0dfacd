"""litellm as a client, by each of the three APIs."""

import json
import os

os.environ["LITELLM_LOCAL_MODEL_COST_MAP"] = "True"  # else it is fetched from the network

import litellm

ASKED = "What is the weather in Oslo?"
PARAMETERS = {
    "type": "object",
    "properties": {"city": {"type": "string"}},
    "required": ["city"],
}
CHAT_TOOL = {"type": "function", "function": {"name": "weather", "parameters": PARAMETERS}}
TOOL = {"type": "function", "name": "weather", "parameters": PARAMETERS}


def _chat(model, url):
    messages, looked = [{"role": "user", "content": ASKED}], []
    asked = {"model": model, "api_base": url, "api_key": "any", "max_tokens": 200, "timeout": 20}
    while True:
        answer = litellm.completion(messages=messages, tools=[CHAT_TOOL], **asked)
        message = answer.choices[0].message
        messages.append(message.model_dump())
        if not message.tool_calls:
            return {"text": message.content, "looked": looked, "used": answer.usage.total_tokens}
        for call in message.tool_calls:
            looked.append(json.loads(call.function.arguments)["city"])
            messages.append({"role": "tool", "tool_call_id": call.id, "content": "7 degrees"})


def chat(url):
    return _chat("openai/scripted", url)


def messages(url):
    return _chat("anthropic/scripted", url.removesuffix("/v1"))


def chat_streamed(url):
    asked = {"model": "openai/scripted", "api_base": url, "api_key": "any", "timeout": 20}
    messages = [{"role": "user", "content": ASKED}]
    chunks = [*litellm.completion(messages=messages, tools=[CHAT_TOOL], stream=True, **asked)]
    built = litellm.stream_chunk_builder(chunks, messages=messages)
    (call,) = built.choices[0].message.tool_calls
    return {"looked": [json.loads(call.function.arguments)["city"]]}


def responses(url):
    items, looked = [{"role": "user", "content": ASKED}], []
    asked = {"model": "openai/scripted", "api_base": url, "api_key": "any", "timeout": 20}
    while True:
        answer = litellm.responses(input=items, tools=[TOOL], store=False, **asked)
        output = [item if isinstance(item, dict) else item.model_dump() for item in answer.output]
        calls = [item for item in output if item["type"] == "function_call"]
        if not calls:
            text = "".join(
                p["text"] for i in output if i["type"] == "message" for p in i["content"]
            )
            return {"text": text, "looked": looked, "used": answer.usage.total_tokens}
        items += output
        for call in calls:
            looked.append(json.loads(call["arguments"])["city"])
            out = {
                "type": "function_call_output",
                "call_id": call["call_id"],
                "output": "7 degrees",
            }
            items.append(out)


def responses_streamed(url):
    asked = {"model": "openai/scripted", "api_base": url, "api_key": "any", "timeout": 20}
    events = [*litellm.responses(input=ASKED, tools=[TOOL], stream=True, **asked)]
    calls = [item for item in events[-1].response.output if item.type == "function_call"]
    return {"looked": [json.loads(call.arguments)["city"] for call in calls]}
