"""A prompt that is encoded once, however many ask for its ids.

Rules: it is counted, checked against the context and generated from, and each of
them wants the same ids of the same tokenizer. Those of another are made anew.
Where the prompt has one token for an image, the count has as many as the model
will read.
"""

from __future__ import annotations

from functools import cached_property, lru_cache
from typing import TYPE_CHECKING

from ..render.prompt import Prompt
from ..runtime.image_grid import image_tokens
from .image_size import size_of

if TYPE_CHECKING:
    from collections.abc import Callable


class EncodedOnce(Prompt):
    """A prompt that remembers the ids that it gave last. It has no slots, so that it can."""

    def token_ids(self, tokenizer: object, *, legacy: bool = False) -> list[int]:
        """See :class:`~atem.render.Prompt`; the list is the caller's."""
        return list(self._encode(tokenizer, legacy=legacy))

    def count(self, tokenizer: object) -> int:
        """Its tokens with those of its images. Raises ApiError for an image that has no size."""
        return len(self.token_ids(tokenizer)) + self._more

    @cached_property
    def length(self) -> int:
        """Characters."""
        return sum(len(segment.text) for segment in self.segments)

    @cached_property
    def _encode(self) -> Callable[..., list[int]]:
        return lru_cache(maxsize=1)(Prompt(self.segments).token_ids)

    @cached_property
    def _more(self) -> int:
        return sum(image_tokens(*size_of(source)) - 1 for source in self.images)
