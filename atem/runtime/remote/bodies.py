"""The body of a request, in a server's own words.

Rules: everything that a request asks is in it or was refused before. Values are
sent also where they are the usual ones, because a server's own defaults come
from elsewhere (a generation config, its command line).
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any, Final

from ...errors import OptionError, Unsupported

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping

    from ...engine import Request, Sampling
    from .servers import Rest, Server

OURS: Final = frozenset(
    "model stream stream_options n max_tokens max_completion_tokens n_predict temperature top_p "
    "top_k min_p seed stop stop_token_ids logprobs top_logprobs logit_bias presence_penalty "
    "frequency_penalty repetition_penalty skip_special_tokens".split()
)
"""What ``Request.chat`` can't set: the request has fields of its own for it, or the engine does."""


def completions(
    server: Server,
    request: Request,
    *,
    model: str,
    prompt: list[int] | str,
    limit: int | None,
    context: int,
    stop_ids: Collection[int],
    with_ids: bool,
) -> dict[str, Any]:
    """For ``/v1/completions`` and llama.cpp's ``/completion``.

    ``limit`` None means as far as the context goes, for a prompt that couldn't
    be counted. Raises Unsupported where the server has no word for that.
    """
    native = server.limit != "max_tokens"
    body: dict[str, Any] = {"prompt": prompt, "stream": True, **server.completions}
    if not native:
        body |= {"model": model, "stream_options": {"include_usage": True}}
    if server.stops and stop_ids:
        body["stop_token_ids"] = sorted(stop_ids)
    if server.ids and with_ids and not native:
        body["return_token_ids"] = True
    return (
        body
        | _sampling(server, request.sampling)
        | _limit(server.limit, limit, server.rest, context)
        | _logprobs(request.sampling.logprobs, native=native)
    )


def chat(server: Server, request: Request, *, model: str, context: int) -> dict[str, Any]:
    """For ``/v1/chat/completions``.

    Raises Unsupported without ``Request.chat``, OptionError if that sets what
    is not its to set.
    """
    given = request.chat
    if given is None or not isinstance(given.get("messages"), list | tuple):
        raise Unsupported(
            "this server is asked by chat completions, and chat= has no messages; give the "
            "conversation there as well, or use a server whose completions keep special tokens"
        )
    taken = sorted(OURS.intersection(given))
    if taken:
        raise OptionError(f"chat= sets {', '.join(taken)}; set it by the request's own fields")
    body = {**given, "model": model, "stream": True, "stream_options": {"include_usage": True}}
    rest = _limit("max_tokens", request.max_tokens, server.chat_rest, context)
    return body | dict(server.chat) | _sampling(server, request.sampling) | rest


def encoded(body: Mapping[str, Any]) -> bytes:
    """``body`` as JSON in ASCII, which carries any text.

    Raises OptionError for what JSON can't say, such as NaN.
    """
    try:
        return json.dumps(body, allow_nan=False).encode()
    except (TypeError, ValueError, RecursionError) as error:
        raise OptionError(f"chat= is no JSON: {error}") from None


def _sampling(server: Server, sampling: Sampling) -> dict[str, Any]:
    """Temperature, ``top_p`` and whatever else the server has a word for."""
    if sampling.greedy:
        fields: dict[str, Any] = {"temperature": 0.0, "top_p": 1.0}
        neutral = {"top_k": server.off, "min_p": 0.0}
    else:
        fields = {"temperature": sampling.temperature, "top_p": sampling.top_p}
        neutral = {"top_k": sampling.top_k or server.off}
    for name, word in server.sampling.items():
        value = neutral.get(name, getattr(sampling, name))
        if value is not None:
            fields[word] = value
    return fields


def _limit(word: str, limit: int | None, rest: Rest, context: int) -> dict[str, Any]:
    if limit is not None:
        return {word: limit}
    if rest == "ask":
        raise Unsupported(
            "this server has no word for 'as far as the context goes', and the prompt can't be "
            "counted without a tokenizer; set max_tokens=, or pass tokenizer="
        )
    values: dict[str, dict[str, Any]] = {"null": {word: None}, "context": {word: context}}
    return values.get(rest, {})


def _logprobs(wanted: int | None, *, native: bool) -> dict[str, Any]:
    if wanted is None:
        return {}
    if native:  # 0 would mean none at all; the one too many is taken off again
        return {"n_probs": max(wanted, 1)}
    return {"logprobs": wanted, "return_tokens_as_token_ids": True}
