"""The body of a Messages request as the create body that asks the same.

Rules: a table with one row for each field. A value is checked where its meaning
changes; what goes on under its own name is checked by
:func:`~atem.responses.request.from_request`. What has no effect goes on under a
name that no field has, so that it is noted there and never refused.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final, Literal, TypeAlias

from .. import checks
from ..faults import ApiError, bad_value, missing, unsupported
from ..fields import FIELDS
from ..places import Words, replaced
from ..text_format import CHECKED
from .faults import NO_THREADS
from .history import placed, system_text, with_found
from .tools import choice, tools

Body: TypeAlias = dict[str, Any]
Reader: TypeAlias = Callable[[Body, str, Any], None]

Display: TypeAlias = Literal["shown", "omitted", "hidden"]
"""Thinking blocks with their text, with their signature alone, or no such blocks."""

ENCRYPTED: Final = "reasoning.encrypted_content"

EFFORTS: Final = ((2_048, "low"), (8_192, "medium"), (24_576, "high"))
"""``budget_tokens`` up to a number -> the effort; above all of them "xhigh"."""

THINKING: Final = ("type", "budget_tokens", "display")
TIERS: Final = ("auto", "standard_only")
"""Tiers that are what there is here."""

FORMAT_NAME: Final = "output"


def from_messages(body: Mapping[str, Any], *, counting: bool = False) -> Body:
    """The create body of a Messages request. Raises ApiError, in the words of this API.

    ``counting``: only its tokens are to be counted, so that nothing has to say
    how many may be written, and the last message may be the assistant's. Errors
    of ``from_request`` about the result are told in this API's words by
    :func:`in_messages`.
    """
    if not isinstance(body, Mapping):
        raise bad_value(None, "The request is no JSON object.")
    needed = ("messages",) if counting else ("messages", "max_tokens")
    for key in needed:
        if body.get(key) is None:
            raise missing(key)
    made: Body = {"store": False, "include": [ENCRYPTED]}
    for key, value in body.items():
        if value is not None:
            READERS.get(key, _unknown)(made, key, value)
    made["input"] = with_found(made["input"], made.get("tools", []))
    if not counting:
        _check_last(body["messages"])
    return made


def in_messages(error: ApiError, body: Mapping[str, Any]) -> ApiError:
    """``error`` of ``from_request`` about ``from_messages(body)``, in the client's words."""
    return replaced(error, placed(body.get("messages")), WORDS)


def display(body: Mapping[str, Any]) -> Display:
    """What the client wants to see of the reasoning; all of it, unless it says otherwise."""
    thinking = body.get("thinking")
    fields = thinking if isinstance(thinking, Mapping) else {}
    if fields.get("type") == "disabled":
        return "hidden"
    return "omitted" if fields.get("display") == "omitted" else "shown"


WORDS: Final[Words] = (
    (r"^input$", "messages"),
    (r"^max_output_tokens$", "max_tokens"),
    (r"^instructions$", "system"),
    (r"^stop\b", "stop_sequences"),
    (r"^text\.format\b", "output_config.format"),
    (r"^reasoning\.effort$", "output_config.effort"),
    (r"^safety_identifier$", "metadata.user_id"),
    (r"^(messages\[\d+\]\.content\[\d+\])\.call_id$", r"\1.tool_use_id"),
    (r"^(messages\[\d+\]\.content\[\d+\])\.output\b", r"\1.content"),
    (r"\.image_url$", ".source"),
    (r"^(tools\[\d+\])\.parameters\b", r"\1.input_schema"),
)
"""The path of a field in the create body -> its path here."""


def _check_last(messages: Any) -> None:
    last = messages[-1]
    if last["role"] == "assistant":
        raise unsupported(
            f"messages[{len(messages) - 1}]",
            "The last message is the assistant's. This model can't go on in a message that was "
            "begun for it; end with a user message.",
        )


def _same(made: Body, key: str, value: Any) -> None:
    made[key] = value


def _unknown(made: Body, key: str, value: Any) -> None:
    made[f"messages.{key}" if key in FIELDS else key] = True


def _nothing(made: Body, key: str, value: Any) -> None:
    """Accepted, and of no consequence for an answer."""


def _service_tier(made: Body, key: str, value: Any) -> None:
    if checks.text(value, key) not in TIERS:
        made[f"messages.{key}"] = True


def _thread(made: Body, key: str, value: Any) -> None:
    """A conversation kept by the server; to leave it out would lose what was said before."""
    told = "Messages are not kept here; send the whole conversation each time."
    raise bad_value(key, told, code=NO_THREADS)


def _max_tokens(made: Body, key: str, value: Any) -> None:
    made["max_output_tokens"] = checks.whole(1)(value, key)


def _messages(made: Body, key: str, value: Any) -> None:
    made["input"] = [place.item for place in placed(value)]


def _system(made: Body, key: str, value: Any) -> None:
    if text := system_text(value, key):
        made["instructions"] = text


def _stop_sequences(made: Body, key: str, value: Any) -> None:
    made["stop"] = list(checks.words(value, key))


def _tools(made: Body, key: str, value: Any) -> None:
    made[key] = tools(value)


def _tool_choice(made: Body, key: str, value: Any) -> None:
    fields = checks.mapping(value, key)
    made[key] = choice(fields)
    single = fields.get("disable_parallel_tool_use")
    if single is not None:
        made["parallel_tool_calls"] = not checks.flag(single, f"{key}.disable_parallel_tool_use")


def _metadata(made: Body, key: str, value: Any) -> None:
    fields = checks.mapping(value, key)
    made["safety_identifier"] = fields.get("user_id")
    made |= {f"{key}.{name}": True for name in fields if name != "user_id"}


def _thinking(made: Body, key: str, value: Any) -> None:
    """How hard to think: "disabled" is the least there is, and a budget a guide to the effort."""
    fields = checks.mapping(value, key)
    kind = checks.one_of("enabled", "adaptive", "disabled", "between_tools")(
        fields.get("type"), f"{key}.type"
    )
    reasoning = made.setdefault("reasoning", {})
    if kind == "disabled":
        reasoning["effort"] = "none"
    elif fields.get("budget_tokens") is not None:
        budget = checks.whole(0)(fields["budget_tokens"], f"{key}.budget_tokens")
        near = next((effort for most, effort in EFFORTS if budget <= most), "xhigh")
        reasoning.setdefault("effort", near)
        made[f"{key}.budget_tokens as a limit"] = True
    if kind == "between_tools":
        made[f"{key}.type {kind}"] = True
    made |= {f"{key}.{name}": True for name in fields if name not in THINKING}


def _output_config(made: Body, key: str, value: Any) -> None:
    fields = checks.mapping(value, key)
    if (format_ := fields.pop("format", None)) is not None:
        _output_format(made, f"{key}.format", format_)
    effort = fields.pop("effort", None)
    reasoning = made.setdefault("reasoning", {})
    if effort is not None and reasoning.get("effort") != "none":
        reasoning["effort"] = effort
    made |= {f"{key}.{name}": True for name in fields}


def _output_format(made: Body, key: str, value: Any) -> None:
    """A schema that the answer must have; this API has no other kind, and no name for it.

    Its properties may be optional, which the other API's strict formats don't allow.
    """
    fields = checks.mapping(value, key)
    checks.one_of("json_schema")(fields.get("type"), f"{key}.type")
    given = {"type": "json_schema", "name": FORMAT_NAME, CHECKED: True}
    made["text"] = {"format": {**given, "schema": fields.get("schema")}}


SAME: Final = ("model", "stream", "temperature", "top_p", "top_k", "context_management")
"""Fields that both APIs have under one name."""

READERS: Final[dict[str, Reader]] = {
    **dict.fromkeys(SAME, _same),
    "max_tokens": _max_tokens,
    "messages": _messages,
    "system": _system,
    "stop_sequences": _stop_sequences,
    "tools": _tools,
    "tool_choice": _tool_choice,
    "metadata": _metadata,
    "thinking": _thinking,
    "output_config": _output_config,
    "output_format": _output_format,
    "cache_control": _nothing,
    "service_tier": _service_tier,
    "thread": _thread,
}
