"""Calls of the past as the model wrote them, from an item's name and arguments.

Rules: never refused for what a model or a client wrote into the arguments
(responses.md 1.4): what is no JSON object, or has names that the format can't
carry, is shown as the text that it is, under one parameter.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Final, NoReturn

from ..messages import Message, ToolCall
from ..render.fields import make_call
from ..tools.names import why_unwritable_key
from .faults import ApiError
from .plain import cleaned

if TYPE_CHECKING:
    from .tools import ClientTools

MAX_VALUES: Final = 100_000
"""Commas and brackets of arguments that are taken apart; the rest is shown as it is."""

RAW: Final = "arguments"
"""The parameter of arguments that can't be taken apart."""


def call_message(
    tools: ClientTools,
    namespace: str | None,
    name: str,
    arguments: Any,
    *,
    where: str,
    call_id: str,
) -> Message:
    """The assistant's message with one call, under the names that the model knows."""
    namespace, name = tools.written(namespace, name)
    made: ToolCall = make_call(
        name,
        readable(arguments),
        where=where,
        call_id=call_id,
        namespace=namespace,
        index=0,
    )
    return Message("assistant", recipient=made.recipient, calls=(made,))


def readable(arguments: Any) -> dict[str, Any]:
    """Arguments as a dict that can be written: decoded, or as they are under one name."""
    if arguments is None or arguments == "":
        return {}
    decoded = _decoded(arguments) if isinstance(arguments, str) else arguments
    if isinstance(decoded, Mapping) and not any(map(why_unwritable_key, decoded)):
        return dict(decoded)
    return {RAW: arguments if isinstance(arguments, str) else json.dumps(arguments)}


def _decoded(text: str) -> Any:
    """The JSON in ``text``, fit to be worked with; None if there is none, or far too much."""
    if sum(map(text.count, ",[{")) > MAX_VALUES:
        return None
    try:
        return cleaned(json.loads(text, parse_constant=_no_constant))[0]
    except (ValueError, RecursionError, ApiError):
        return None


def _no_constant(word: str) -> NoReturn:
    raise ValueError(word)
