"""The body of a chat request as the create body that asks the same.

Rules: a table with one row for each field. A value is checked where its meaning
changes; what goes on under its own name is checked by
:func:`~atem.responses.request.from_request`. What has no effect goes on under a
name that no field has, so that it is noted there and never refused.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final, TypeAlias

from .. import checks
from ..faults import ApiError, bad_value, missing, unsupported
from ..fields import FIELDS
from ..places import Words, replaced
from .history import placed
from .tools import choice, tools

Body: TypeAlias = dict[str, Any]
Reader: TypeAlias = Callable[[Body, str, Any], None]

LOGPROBS: Final = "message.output_text.logprobs"


def from_chat(body: Mapping[str, Any]) -> Body:
    """The create body of a chat request. Raises ApiError, in the words of this API.

    Errors of ``from_request`` about the result are told in them by :func:`in_chat`.
    """
    if not isinstance(body, Mapping):
        raise bad_value(None, "The request is no JSON object.")
    if body.get("messages") is None:
        raise missing("messages")
    made: Body = {"store": False}
    for key, value in body.items():
        if value is not None:
            READERS.get(key, _unknown)(made, key, value)
    if "top_logprobs" in made and LOGPROBS not in made.get("include", ()):
        raise bad_value("top_logprobs", "top_logprobs needs logprobs to be true.")
    return made


def in_chat(error: ApiError, body: Mapping[str, Any]) -> ApiError:
    """``error`` of ``from_request`` about ``from_chat(body)``, in the client's field names."""
    return replaced(error, placed(body.get("messages")), WORDS)


def wants_usage(body: Mapping[str, Any]) -> bool:
    """Whether the stream is to end with a chunk of usage."""
    options = body.get("stream_options")
    return isinstance(options, Mapping) and options.get("include_usage") is True


WORDS: Final[Words] = (
    (r"^input$", "messages"),
    (r"^max_output_tokens$", "max_completion_tokens"),
    (r"^text\.verbosity$", "verbosity"),
    (r"^text\.format\.type$", "response_format.type"),
    (r"^text\.format\b", "response_format.json_schema"),
    (r"^reasoning\.effort$", "reasoning_effort"),
    (r"^(messages\[\d+\])\.call_id$", r"\1.tool_call_id"),
    (r"^(messages\[\d+\])\.output\b", r"\1.content"),
    (r"^(tools\[\d+\])\.(name|parameters|strict)\b", r"\1.function.\2"),
)
"""The path of a field in the create body -> its path here."""


def _same(made: Body, key: str, value: Any) -> None:
    made[key] = value


def _unknown(made: Body, key: str, value: Any) -> None:
    made[f"chat.{key}" if key in FIELDS else key] = True


def _noted(made: Body, key: str, value: Any) -> None:
    made[f"chat.{key}"] = True


def _noted_if_asked(made: Body, key: str, value: Any) -> None:
    if checks.flag(value, key):
        _noted(made, key, value)


def _refused(advice: str) -> Reader:
    def read(made: Body, key: str, value: Any) -> None:
        if value not in ([], {}):
            raise unsupported(key, f"{key} can't be used here: {advice}.")

    return read


def _messages(made: Body, key: str, value: Any) -> None:
    made["input"] = [place.item for place in placed(value)]


def _most_tokens(made: Body, key: str, value: Any) -> None:
    limit = checks.whole(1)(value, key)
    if made.setdefault("max_output_tokens", limit) != limit:
        raise bad_value(
            "max_tokens", "max_tokens and max_completion_tokens differ; send one of them."
        )


def _one_choice(made: Body, key: str, value: Any) -> None:
    if checks.whole(1)(value, key) != 1:
        raise unsupported(key, "n is 1 here: send a request for each choice.")


def _text_alone(made: Body, key: str, value: Any) -> None:
    if list(checks.words(value, key)) != ["text"]:
        raise unsupported(key, 'modalities is ["text"]: the model writes nothing else.')


def _response_format(made: Body, key: str, value: Any) -> None:
    fields = checks.mapping(value, key)
    if isinstance(nested := fields.pop("json_schema", None), Mapping):
        fields |= {name: given for name, given in nested.items() if name != "type"}
    made.setdefault("text", {})["format"] = fields


def _verbosity(made: Body, key: str, value: Any) -> None:
    made.setdefault("text", {})["verbosity"] = value


def _effort(made: Body, key: str, value: Any) -> None:
    made.setdefault("reasoning", {})["effort"] = value


def _reasoning(made: Body, key: str, value: Any) -> None:
    """``reasoning`` as other servers of this API have it; ``reasoning_effort`` goes before it."""
    effort = checks.mapping(value, key).get("effort")
    if effort is not None:
        made.setdefault("reasoning", {}).setdefault("effort", effort)


def _logprobs(made: Body, key: str, value: Any) -> None:
    if checks.flag(value, key):
        made["include"] = [LOGPROBS]


def _top_logprobs(made: Body, key: str, value: Any) -> None:
    if count := checks.whole(0, 20)(value, key):
        made[key] = count


def _stream_options(made: Body, key: str, value: Any) -> None:
    options = checks.mapping(value, key)
    usage = options.pop("include_usage", None)
    if usage is not None:
        checks.flag(usage, f"{key}.include_usage")
    made[key] = options


def _tools(made: Body, key: str, value: Any) -> None:
    made[key] = tools(value)


def _tool_choice(made: Body, key: str, value: Any) -> None:
    made[key] = choice(value)


SAME: Final = (
    "model", "stream", "temperature", "top_p", "presence_penalty", "frequency_penalty", "stop",
    "seed", "top_k", "min_p", "repetition_penalty", "parallel_tool_calls", "metadata", "user",
    "safety_identifier", "prompt_cache_key", "prompt_cache_options", "prompt_cache_retention",
    "service_tier", "logit_bias", "moderation", "truncation",
)  # fmt: skip
"""Fields that both APIs have under one name."""

READERS: Final[dict[str, Reader]] = {
    **dict.fromkeys(SAME, _same),
    "messages": _messages,
    "max_completion_tokens": _most_tokens,
    "max_tokens": _most_tokens,
    "n": _one_choice,
    "response_format": _response_format,
    "verbosity": _verbosity,
    "reasoning_effort": _effort,
    "reasoning": _reasoning,
    "logprobs": _logprobs,
    "top_logprobs": _top_logprobs,
    "stream_options": _stream_options,
    "tools": _tools,
    "tool_choice": _tool_choice,
    "modalities": _text_alone,
    "store": _noted_if_asked,
    "prediction": _noted,
    "web_search_options": _noted,
    "audio": _refused("the model writes text alone"),
    "functions": _refused("declare them in tools"),
    "function_call": _refused("use tool_choice"),
}
