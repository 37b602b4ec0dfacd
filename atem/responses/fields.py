"""The fields of a request: a table of what each may hold, and what becomes of it.

Rules: one row a field (responses.md 1.2). null is the same as leaving a field
out. A field is honoured, echoed, noted (accepted, and named in ``Ask.notes``),
ignored (accepted, and of no consequence for an answer) or refused. A key that
is not in the table is noted and never refused.
"""

from __future__ import annotations

from copy import copy
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, Literal, TypeAlias

from . import checks
from .faults import unsupported

if TYPE_CHECKING:
    from collections.abc import Mapping

    from .checks import Check

Effect: TypeAlias = Literal["honoured", "echoed", "noted", "ignored", "refused"]

MAX_UNKNOWN: Final = 8
"""Unknown keys that are named in the notes; the rest is counted."""

MAX_NAME: Final = 48


@dataclass(frozen=True, slots=True)
class Field:
    """One row.

    ``check`` reads a value that is not null, ``default`` stands for null and
    for nothing. ``effect`` is what becomes of it, ``says`` is that in words.
    ``echo`` says whether the response object has a key of this name.
    """

    check: Check
    default: Any
    effect: Effect
    says: str
    echo: bool = False


def _honoured(check: Check, says: str, *, default: Any = None, echo: bool = True) -> Field:
    return Field(check, default, "honoured", says, echo)


def _echoed(check: Check, says: str, *, default: Any = None) -> Field:
    return Field(check, default, "echoed", says, echo=True)


def _noted(says: str) -> Field:
    return Field(checks.anything, None, "noted", says)


def _ignored(says: str, check: Check = checks.anything) -> Field:
    return Field(check, None, "ignored", says)


FIELDS: Final[dict[str, Field]] = {
    "model": _honoured(checks.text, "which model; echoed as sent"),
    "input": _honoured(checks.anything, "the new items, or one user message", echo=False),
    "instructions": _honoured(checks.text, "system text of this call alone"),
    "previous_response_id": _honoured(checks.text, "goes on after that response"),
    "conversation": _honoured(checks.conversation, "goes on in that conversation", echo=False),
    "max_output_tokens": _honoured(checks.whole(1), "tokens of reasoning and answer together"),
    "temperature": _honoured(checks.number(0, 2), "0 is greedy"),
    "top_p": _honoured(checks.number(0, 1), "0 keeps the likeliest token alone"),
    "top_logprobs": _honoured(checks.whole(0, 20), "likeliest tokens at each place", default=0),
    "presence_penalty": _honoured(checks.number(-2, 2), "for tokens that were written"),
    "frequency_penalty": _honoured(checks.number(-2, 2), "for each time a token was written"),
    "stop": _honoured(checks.stops, "strings that end the text", default=(), echo=False),
    "seed": _honoured(checks.whole(), "same tokens for the same request", echo=False),
    "top_k": _honoured(checks.whole(), "0 or less is off", echo=False),
    "min_p": _honoured(checks.number(0, 1), "0 is off", echo=False),
    "repetition_penalty": _honoured(checks.number(0.01, 10), "1 is off", echo=False),
    "tools": _honoured(checks.array, "what may be called", default=()),
    "tool_choice": _honoured(checks.anything, "which of them, and whether it has to be"),
    "parallel_tool_calls": _honoured(checks.flag, "false: one call a turn", default=True),
    "text": _honoured(checks.mapping, "the format of the answer; verbosity is echoed"),
    "reasoning": _honoured(checks.mapping, "effort, summary and context; mode is noted"),
    "include": _honoured(
        checks.words, "encrypted reasoning, logprobs; others are noted", default=(), echo=False
    ),
    "store": _honoured(checks.flag, "keep it, so that a request can go on from it", default=True),
    "background": _honoured(checks.flag, "answer at once, work on", default=False),
    "stream": _honoured(checks.flag, "events instead of one object", default=False, echo=False),
    "truncation": _honoured(
        checks.one_of("auto", "disabled"), "auto: drop the oldest", default="disabled"
    ),
    "generate": _honoured(checks.flag, "false: prepare the cache", default=True, echo=False),
    "prompt_cache_options": _honoured(
        checks.mapping, "prewarm: prepare the cache; the rest is noted", echo=False
    ),
    "prompt_cache_key": _echoed(checks.text, "for whoever routes requests"),
    "max_tool_calls": _echoed(checks.whole(0), "counts hosted tools, and there are none"),
    "metadata": _echoed(checks.metadata, "the client's own words", default={}),
    "safety_identifier": _echoed(checks.text, "never logged as it is"),
    "user": _echoed(checks.text, "never logged as it is"),
    "service_tier": _echoed(checks.text, "every tier is answered by the default one"),
    "stream_options": _honoured(
        checks.mapping, "deltas are never obfuscated; asking for that is noted", echo=False
    ),
    "client_metadata": _ignored("the client's own"),
    "type": _ignored("a WebSocket frame's name"),
    "stream_id": _ignored("a WebSocket lane, for the server"),
    "prompt_cache_retention": _noted("the engine's cache keeps what fits"),
    "context_management": _noted("nothing is compacted unasked"),
    "logit_bias": _noted("no engine takes it"),
    "moderation": _noted("nothing is moderated"),
    "access_programs": _noted("there are none"),
    "image": _noted("images are not compressed"),
    "background_options": _noted("background work starts as soon as it can"),
    "prompt": Field(checks.anything, None, "refused", "there is no registry of prompt templates"),
}


def read_fields(body: Mapping[str, Any]) -> tuple[dict[str, Any], list[str]]:
    """Every field's value, defaults filled in, and notes on what has no effect.

    Raises ApiError for a value out of range, and for a field that is refused.
    """
    values: dict[str, Any] = {}
    notes: list[str] = []
    for name, field in FIELDS.items():
        given = body.get(name)
        values[name] = copy(field.default) if given is None else field.check(given, name)
        if given is None or given in ([], {}):
            continue
        if field.effect == "refused":
            raise unsupported(name, f"{name} can't be used here: {field.says}.")
        if field.effect == "noted":
            notes.append(f"{name} has no effect: {field.says}")
    return values, [*notes, *_unknown(body)]


def _unknown(body: Mapping[str, Any]) -> list[str]:
    unknown = [key[:MAX_NAME] for key in body if key not in FIELDS]
    named = [f"{key!r} is no field of a request" for key in unknown[:MAX_UNKNOWN]]
    rest = len(unknown) - MAX_UNKNOWN
    return [*named, f"and {rest} more unknown fields"] if rest > 0 else named
