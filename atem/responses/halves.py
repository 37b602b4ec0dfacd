"""Fields that are honoured in part: what of them has no effect, in words.

Rules: a field that has no effect at all is noted by its row in
:data:`~atem.responses.fields.FIELDS`; this is the rest (responses.md 1.2).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping

ENCRYPTED: Final = "reasoning.encrypted_content"
LOGPROBS: Final = "message.output_text.logprobs"

TIERS: Final = ("auto", "default")
MAX_NAMED: Final = 8
MAX_NAME: Final = 48


def half_notes(values: Mapping[str, Any]) -> list[str]:
    """Notes on the fields of a request, which have their values and defaults."""
    return [note for name, read in HALVES.items() if values[name] for note in read(values[name])]


def _include(given: Iterable[str]) -> Iterator[str]:
    unknown = [name[:MAX_NAME] for name in given if name not in (ENCRYPTED, LOGPROBS)]
    yield from (f"include {name!r} has no effect" for name in unknown[:MAX_NAMED])


def _tier(given: str) -> Iterator[str]:
    if given not in TIERS:
        yield f"service_tier {given[:MAX_NAME]!r} has no effect: there is one tier"


def _cache(given: Mapping[str, Any]) -> Iterator[str]:
    for name in [name for name in given if name != "prewarm"][:MAX_NAMED]:
        yield f"prompt_cache_options.{name[:MAX_NAME]} has no effect: the cache keeps what fits"


def _stream(given: Mapping[str, Any]) -> Iterator[str]:
    if given.get("include_obfuscation") is True:
        yield "stream_options.include_obfuscation has no effect: deltas are not obfuscated"
    for name in [name for name in given if name != "include_obfuscation"][:MAX_NAMED]:
        yield f"stream_options.{name[:MAX_NAME]} is no option of a stream"


HALVES: Final[dict[str, Callable[[Any], Iterable[str]]]] = {
    "include": _include,
    "service_tier": _tier,
    "prompt_cache_options": _cache,
    "stream_options": _stream,
}
