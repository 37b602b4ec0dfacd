"""A prompt that is encoded once, however many ask for its ids.

Rules: it is counted, checked against the context and generated from, and each of
them wants the same ids of the same tokenizer. Those of another are made anew.
Where the prompt has one token for an image, the count has as many as the model
will read.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ..render.prompt import Prompt
from ..runtime.image_grid import image_tokens
from .image_size import size_of

if TYPE_CHECKING:
    from collections.abc import Sequence


class EncodedOnce(Prompt):
    """``prompt``, which remembers the ids that it gave last."""

    __slots__ = ("_known", "_more")
    _known: list[tuple[object, bool, Sequence[int]]]
    _more: list[int]

    def __init__(self, prompt: Prompt) -> None:
        super().__init__(prompt.segments)
        object.__setattr__(self, "_known", [])  # a Prompt is frozen, and what it is stays so
        object.__setattr__(self, "_more", [])

    def token_ids(self, tokenizer: object, *, legacy: bool = False) -> list[int]:
        """See :class:`~atem.render.Prompt`; the list is the caller's."""
        for of, spelled, ids in self._known:
            if of is tokenizer and spelled == legacy:
                return list(ids)
        made = Prompt.token_ids(self, tokenizer, legacy=legacy)
        self._known[:] = [(tokenizer, legacy, tuple(made))]
        return made

    def count(self, tokenizer: object) -> int:
        """Its tokens with those of its images. Raises ApiError for an image that has no size."""
        if not self._more:
            self._more[:] = [sum(image_tokens(*size_of(source)) - 1 for source in self.images)]
        return len(self.token_ids(tokenizer)) + self._more[0]
