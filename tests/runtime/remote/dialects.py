"""Servers that speak as vLLM, SGLang, llama.cpp and mlx servers do, on starlette and uvicorn.

Rules: shapes and defaults are those of the servers' own sources; special tokens
are dropped from text unless a request says otherwise, in each one's words. The
model behind them is scripted. Text comes from ``tokenizers``' own stream decoder.
"""

from __future__ import annotations

import asyncio
import contextlib
import functools
import json
import threading
from dataclasses import dataclass, field

import uvicorn
from starlette.applications import Starlette
from starlette.responses import JSONResponse, StreamingResponse
from starlette.routing import Route
from tokenizers.decoders import DecodeStream

from atem.engine import Request, Sampling
from atem.testing.scripted import ScriptedEngine, wire_ids
from atem.testing.tiny import tiny_tokenizer
from atem.tokenizer import wrap

BACKEND = tiny_tokenizer()
TOKENIZER = wrap(BACKEND)
END = TOKENIZER.special_id("<|eot|>")
CONTEXT = 300


def turn_of(text):
    """A script that says ``text`` whatever it is asked, control tokens spelled out."""
    return lambda request: wire_ids(text, TOKENIZER)


@dataclass
class Dialect:
    """One server. ``script`` is from a request to the ids of its turn; ``chat`` are chunks."""

    kind: str = "vllm"
    script: object = field(
        default_factory=lambda: turn_of(" to=user<|message|>High at noon.<|eot|>")
    )
    chat: object = None
    adds_begin: bool = False
    strips: bool = False
    cached: int | None = None
    bodies: list = field(default_factory=list)
    gone: threading.Event = field(default_factory=threading.Event)
    pause: float = 0.0
    context: int = CONTEXT
    url: str = ""

    def routes(self):
        props = {"total_slots": 3, "default_generation_settings": {"n_ctx": self.context}}
        told = {
            "vllm": ("/version", {"version": "1.2.3"}),
            "sglang": ("/get_server_info", {"version": "1.2.3"}),
            "llama.cpp": ("/props", {"build_info": "1.2.3", **props}),
        }
        completions = "/completion" if self.kind == "llama.cpp" else "/v1/completions"
        yield Route("/v1/models", lambda request: JSONResponse(self.models()))
        yield Route(completions, self.complete, methods=["POST"])
        yield Route("/v1/chat/completions", self.converse, methods=["POST"])
        if self.kind in told:
            path, facts = told[self.kind]
            yield Route(path, lambda request: JSONResponse(facts))

    def models(self):
        owner = {"llama.cpp": "llamacpp"}.get(self.kind, self.kind)
        model = {"id": "tiny", "object": "model", "owned_by": owner}
        if self.kind in ("vllm", "sglang"):
            model["max_model_len"] = self.context
        return {"object": "list", "data": [model]}

    async def complete(self, request):
        body = await request.json()
        self.bodies.append(body)
        prompt = body["prompt"]
        if isinstance(prompt, str):
            prompt = wire_ids("<|begin_of_text|>" * self.adds_begin + prompt, TOKENIZER)
        elif self.kind == "mlx":
            return JSONResponse({"error": "prompt must be a string"}, 404)
        return self.stream(self.events(body, prompt))

    async def converse(self, request):
        body = await request.json()
        self.bodies.append(body)
        if self.chat is None:
            return JSONResponse({"error": {"message": "no chat template"}}, 400)
        return self.stream(_chat_events(self.chat(body)))

    def stream(self, events):
        async def sent():
            try:
                for event in events:
                    yield f"data: {event if isinstance(event, str) else json.dumps(event)}\n\n"
                    await asyncio.sleep(self.pause)
            except asyncio.CancelledError:
                self.gone.set()
                raise

        return StreamingResponse(sent(), media_type="text/event-stream")

    def events(self, body, prompt):
        steps = list(_played(self, body, prompt))
        return (
            _llama(self, body, prompt, steps)
            if self.kind == "llama.cpp"
            else _openai(self, body, prompt, steps)
        )


def _played(dialect, body, prompt):
    logprobs = body.get("logprobs", body.get("n_probs"))
    sampling = Sampling(
        temperature=body["temperature"],
        top_p=body["top_p"],
        top_k=max(body.get("top_k", 0), 0),
        seed=body.get("seed"),
        logprobs=logprobs,
    )
    limit = body.get("max_tokens", body.get("n_predict"))
    forced = body.get("logit_bias")
    if forced:
        ids = [int(next(iter(forced)) if isinstance(forced, dict) else forced[0][0])] * 64
        engine = ScriptedEngine([ids], tokenizer=BACKEND, context=dialect.context)
    else:
        engine = ScriptedEngine(dialect.script, tokenizer=BACKEND, context=dialect.context)
    return engine.generate(Request(prompt, sampling, max_tokens=limit))


def _texts(dialect, body, steps):
    """The text of each step as the server would send it."""
    kept = (
        dialect.kind == "mlx"
        or body.get("skip_special_tokens") is False
        or "preserved_tokens" in body
    )
    decoder = DecodeStream(skip_special_tokens=dialect.strips or not kept)
    trimmed = not (body.get("no_stop_trim") or body.get("include_stop_str_in_output"))
    for step in steps:
        text = decoder.step(BACKEND, step.ids[0]) or ""
        yield "" if trimmed and step.finish == "stop" else text


def _openai(dialect, body, prompt, steps):
    for step, text in zip(steps, _texts(dialect, body, steps), strict=True):
        choice = {"index": 0, "text": text, "logprobs": None, "finish_reason": step.finish}
        if body.get("return_token_ids"):
            choice["token_ids"] = list(step.ids)
        if step.logprobs is not None:
            # Servers add the token that was taken, and give them in no order to rely on.
            top = {*reversed((step.top_logprobs or ((),))[0]), (step.ids[0], step.logprobs[0])}
            choice["logprobs"] = {
                "token_logprobs": list(step.logprobs),
                "top_logprobs": [{f"token_id:{n}": value for n, value in top}],
            }
        yield {"object": "text_completion", "choices": [choice]}
    if body["stream_options"]["include_usage"]:
        yield {"choices": [], "usage": _usage(dialect, prompt, steps)}
    yield "[DONE]"


def _usage(dialect, prompt, steps):
    usage = {"prompt_tokens": len(prompt), "completion_tokens": len(steps)}
    details = {"prompt_tokens_details": {"cached_tokens": dialect.cached}}
    return usage | (details if dialect.cached is not None else {})


def _llama(dialect, body, prompt, steps):
    for step, text in zip(steps, _texts(dialect, body, steps), strict=True):
        event = {"content": text, "tokens": list(step.ids), "stop": False}
        if step.logprobs is not None:
            top = [{"id": n, "logprob": value} for n, value in (step.top_logprobs or ((),))[0]]
            event["completion_probabilities"] = [
                {"id": step.ids[0], "logprob": step.logprobs[0], "top_logprobs": top}
            ]
        yield event
    stop_type = {"stop": "eos", "length": "limit"}[steps[-1].finish]
    yield {
        "content": "", "tokens": [], "stop": True, "stop_type": stop_type, "truncated": False,
        "tokens_evaluated": len(prompt), "tokens_predicted": len(steps),
        "timings": {} if dialect.cached is None else {"cache_n": dialect.cached},
    }  # fmt: skip


def _chat_events(deltas):
    """``deltas`` are what goes into a chunk's delta, the last one a reason to finish."""
    yield {
        "choices": [
            {"index": 0, "delta": {"role": "assistant", "content": ""}, "finish_reason": None}
        ]
    }
    for delta in deltas[:-1]:
        yield {"choices": [{"index": 0, "delta": delta, "finish_reason": None}]}
    yield {"choices": [{"index": 0, "delta": {}, "finish_reason": deltas[-1]}]}
    yield "[DONE]"


class _Host:
    """One uvicorn for all of a run's servers, each under a path of its own; it ends with the run."""

    def __init__(self):
        self.apps = {}
        config = uvicorn.Config(self, port=0, log_level="error", lifespan="off", ws="none")
        server = uvicorn.Server(config)
        thread = threading.Thread(target=server.run, daemon=True)
        thread.start()
        while not server.started:
            thread.join(0.005)
        port = server.servers[0].sockets[0].getsockname()[1]
        self.url = f"http://127.0.0.1:{port}"

    async def __call__(self, scope, receive, send):
        _, name, rest = scope["path"].split("/", 2)
        await self.apps[name](scope | {"path": f"/{rest}", "raw_path": None}, receive, send)


host = functools.lru_cache(maxsize=1)(_Host)


@contextlib.contextmanager
def speaking(kind="vllm", **fields):
    """A running server on loopback."""
    dialect = Dialect(kind, **fields)
    name = str(id(dialect))
    host().apps[name] = Starlette(routes=list(dialect.routes()))
    dialect.url = f"{host().url}/{name}"
    try:
        yield dialect
    finally:
        del host().apps[name]
