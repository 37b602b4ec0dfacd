"""One event of an answer, in any server's shape, as one ``Delta``.

Rules: a field of a wrong type is RemoteError, an absent one is nothing. No text
is looked at. What the shapes are: OpenAI's text completions with the ``token_ids`` that
vLLM and SGLang add, llama.cpp's own completions, OpenAI's chat chunks.
"""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any, Final, NamedTuple, TypeAlias

from ...engine import Counted

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from ...engine import Finish

    Read: TypeAlias = Callable[["Fields"], "Delta"]

Top: TypeAlias = tuple[tuple[int, float], ...]

FINISH: Final[Mapping[str, Finish]] = {
    "stop": "stop", "eos": "stop", "eos_token": "stop", "end_turn": "stop",
    "stop_sequence": "stop", "word": "stop", "tool_calls": "stop", "function_call": "stop",
    "length": "length", "limit": "length", "max_tokens": "length", "none": "length",
    "abort": "abort", "cancelled": "abort", "content_filter": "abort",
}  # fmt: skip
"""A server's reasons; ``tool_calls`` is "stop", since the text decides what was called."""


class Malformed(Exception):
    """An event is not as it must be; the text says what."""


class Delta(NamedTuple):
    """What one event adds. ``stopped_by`` is what ended it, an id or a text, as the server says."""

    text: str = ""
    ids: tuple[int, ...] = ()
    reasoning: str = ""
    calls: tuple[Fields, ...] = ()
    logprobs: tuple[float, ...] | None = None
    top: tuple[Top, ...] | None = None
    finish: Finish | None = None
    stopped_by: object = None
    cached: int | None = None
    counted: Counted | None = None

    @property
    def says(self) -> bool:
        """Whether it has anything of the answer."""
        return bool(self.text or self.ids or self.reasoning or self.calls)


class Fields:
    """A JSON object read by type."""

    def __init__(self, raw: Mapping[str, Any]) -> None:
        self.raw = raw

    def text(self, *names: str) -> str:
        """The text under any of ``names``, "" if there is none; servers repeat one under two.

        Half of a surrogate pair, which JSON can spell and UTF-8 can't, is U+FFFD.
        """
        found = [self.raw[name] for name in names if self.raw.get(name)]
        value = found[0] if found else ""
        if not isinstance(value, str):
            raise Malformed(f"{names[0]} is no text: {value!r}")
        if any(other != value for other in found[1:]):
            raise Malformed(f"{' and '.join(names)} say different things")
        return value.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")

    def whole(self, name: str) -> int | None:
        """A number that counts or names something."""
        value = self.raw.get(name)
        if value is None or (type(value) is int and value >= 0):
            return value
        raise Malformed(f"{name} is no whole number: {value!r}")

    def fields(self, name: str) -> Fields:
        """An object, empty if it is not there."""
        return _fields(self.raw.get(name) or {}, name)

    def listed(self, name: str) -> list[Any]:
        """A list, empty if it is not there."""
        value = self.raw.get(name)
        if value is None or isinstance(value, list):
            return value or []
        raise Malformed(f"{name} is no list: {value!r}")

    def ids(self, name: str) -> tuple[int, ...]:
        """A list of token ids."""
        values = self.listed(name)
        if all(type(value) is int and value >= 0 for value in values):
            return tuple(values)
        raise Malformed(f"{name} has what is no token id")


def completion(event: Fields) -> Delta:
    """A chunk of ``/v1/completions``."""
    choice = _choice(event)
    logprobs, top = _openai_logprobs(choice.fields("logprobs"))
    return Delta(
        text=choice.text("text"),
        ids=choice.ids("token_ids"),
        logprobs=logprobs,
        top=top,
        finish=_finish(choice.text("finish_reason")),
        stopped_by=choice.raw.get("stop_reason", choice.raw.get("matched_stop")),
        **_usage(event),
    )


def llama_completion(event: Fields) -> Delta:
    """A chunk of llama.cpp's ``/completion``."""
    ended = event.raw.get("stop") is True
    places = [_fields(place, "completion_probabilities") for place in event.listed(_PLACES)]
    finish = _finish(event.text("stop_type") or "none") if ended else None
    if finish == "stop" and event.raw.get("truncated") is True:
        raise Malformed("the server dropped a part of the conversation; give it a larger context")
    done, prompt = event.whole("tokens_predicted"), event.whole("tokens_evaluated")
    return Delta(
        text=event.text("content"),
        ids=event.ids("tokens"),
        logprobs=tuple(_number(place.raw.get("logprob")) for place in places) or None,
        top=tuple(_llama_top(place) for place in places) or None,
        finish=finish,
        cached=event.fields("timings").whole("cache_n"),
        counted=None if done is None or prompt is None else Counted(prompt, done),
    )


def chat_chunk(event: Fields) -> Delta:
    """A chunk of ``/v1/chat/completions``."""
    choice = _choice(event)
    delta = choice.fields("delta")
    calls = delta.listed("tool_calls")
    if delta.raw.get("function_call"):
        calls = [{"index": 0, "function": delta.raw["function_call"]}]
    return Delta(
        text=delta.text("content") + delta.text("refusal"),
        reasoning=delta.text("reasoning_content", "reasoning"),
        calls=tuple(_fields(call, "tool_calls") for call in calls),
        finish=_finish(choice.text("finish_reason")),
        **_usage(event),
    )


_PLACES: Final = "completion_probabilities"


def _fields(value: object, name: str) -> Fields:
    if isinstance(value, dict):
        return Fields(value)
    raise Malformed(f"{name} is no object: {value!r}")


def _choice(event: Fields) -> Fields:
    """The one choice; an event without any (usage alone) has an empty one."""
    choices = [_fields(choice, "choices") for choice in event.listed("choices")]
    if len(choices) > 1 or any(choice.whole("index") for choice in choices):
        raise Malformed("there is more than one choice, and one was asked for")
    return choices[0] if choices else Fields({})


def _finish(reason: str) -> Finish | None:
    if reason and reason not in FINISH:
        raise Malformed(f"the answer ended for an unknown reason: {reason!r}")
    return FINISH[reason] if reason else None


def _usage(event: Fields) -> dict[str, Any]:
    usage = event.fields("usage")
    prompt, done = usage.whole("prompt_tokens"), usage.whole("completion_tokens")
    reasoning = usage.fields("completion_tokens_details").whole("reasoning_tokens")
    return {
        "cached": usage.fields("prompt_tokens_details").whole("cached_tokens"),
        "counted": None if prompt is None or done is None else Counted(prompt, done, reasoning),
    }


def _openai_logprobs(logprobs: Fields) -> tuple[tuple[float, ...] | None, tuple[Top, ...] | None]:
    """Numbers by place, and by ids where the server writes tokens as ``token_id:7``."""
    numbers = tuple(_number(value) for value in logprobs.listed("token_logprobs"))
    tops = tuple(
        tuple((_token_id(name), _number(value)) for name, value in _fields(top, "top").raw.items())
        for top in logprobs.listed("top_logprobs")
    )
    return numbers or None, tops or None


def _token_id(name: str) -> int:
    mark, _, number = name.partition(":")
    if mark == "token_id" and number.isascii() and number.isdigit():
        return int(number)
    raise Malformed(f"a log-probability has no token id but {name!r}")


def _number(value: object) -> float:
    if (
        isinstance(value, int | float)
        and not isinstance(value, bool)
        and value < sys.float_info.max
    ):
        return float(value)
    raise Malformed(f"a log-probability is no number: {value!r}")


def _llama_top(place: Fields) -> Top:
    tops = [_fields(top, "top_logprobs") for top in place.listed("top_logprobs")]
    return tuple((_place_id(top), _number(top.raw.get("logprob"))) for top in tops)


def _place_id(top: Fields) -> int:
    number = top.whole("id")
    if number is None:
        raise Malformed("a log-probability has no token id")
    return number
