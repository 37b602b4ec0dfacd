"""How many tokens a request has, before it is sent.

Rules: the tokens of the prompt that would be made of it (system text, tools,
template and all), counted and not estimated: a client compacts a conversation
by this number.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ..faults import ApiError
from ..request import from_request, input_tokens
from .request import from_messages, in_messages

if TYPE_CHECKING:
    from collections.abc import Mapping

    from ...tokenizer import Tokenizer


def token_count(body: Mapping[str, Any], tokenizer: Tokenizer, **reading: Any) -> dict[str, Any]:
    """The answer of ``/v1/messages/count_tokens``.

    ``reading`` are the options of ``from_request``; give the same as for a
    request that is answered. Raises ApiError, in the words of this API.
    """
    made = from_messages(body, counting=True)
    try:
        return {"input_tokens": input_tokens(from_request(made, **reading), tokenizer)}
    except ApiError as error:
        raise in_messages(error, body) from error
