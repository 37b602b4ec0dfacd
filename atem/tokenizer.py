"""A tokenizer as atem needs it: the bytes of an id, what is special, plain text to ids.

Rules: no tokenizer library is imported here; what is passed in is recognised by
its methods. Nothing here knows the grammar of the format, only which literals
are control tokens (``wire.CONTROL``). The caller's object is never changed.

Two promises hold for everything that :func:`wrap` adapts:

- ``encode`` writes text with the base vocabulary alone, so that no text can
  become an added token, special or not (huggingface/transformers#29279), and the bytes
  of the ids are exactly the text's.
- a token that spells a control literal is special, also when the export forgot
  to flag it (wire_format 1: MLX exports).
"""

from __future__ import annotations

import json
from contextlib import contextmanager
from functools import cached_property, lru_cache
from typing import TYPE_CHECKING, Any, Final, Protocol, cast

from . import wire
from .errors import AtemError, OptionError, TokenError

if TYPE_CHECKING:
    from collections.abc import Callable, Container, Iterator, Mapping

SUPPORTED: Final = (
    "supported: an object with token_bytes, is_special, special_id and encode; a byte-level BPE "
    "tokenizers.Tokenizer; a transformers fast tokenizer that holds one"
)
_OURS: Final = ("token_bytes", "is_special", "special_id", "encode")
_HUGGING_FACE: Final = ("id_to_token", "get_added_tokens_decoder", "encode", "to_str")


class Tokenizer(Protocol):
    """What parser, renderer and engines ask of a tokenizer."""

    def token_bytes(self, token_id: int, /) -> bytes:
        """UTF-8 bytes of one token, possibly half a character. Raises TokenError if unknown."""

    def is_special(self, token_id: int, /) -> bool:
        """Whether the id is a special token. An unknown id is not."""

    def special_id(self, text: str, /) -> int | None:
        """The id of the one special token spelled ``text``, or None if there is none."""

    def encode(self, text: str, /) -> list[int]:
        """Ids of plain text, no special among them. Raises TokenError if it can't be spelled."""


def wrap(tokenizer: object) -> Tokenizer:
    """``tokenizer`` as a :class:`Tokenizer`; raises OptionError if it is of no supported kind.

    An object that has the four methods is returned as it is. The added tokens
    of an adapted one are read once, here.
    """
    if _has(tokenizer, _OURS):
        return cast("Tokenizer", tokenizer)
    backend = getattr(tokenizer, "backend_tokenizer", tokenizer)
    if _has(backend, _HUGGING_FACE):
        return ByteLevelTokenizer(backend)
    raise OptionError(f"tokenizer= got {type(tokenizer).__name__}; {SUPPORTED}")


class ByteLevelTokenizer:
    """A byte-level BPE ``tokenizers.Tokenizer`` behind the :class:`Tokenizer` protocol."""

    def __init__(self, backend: Any) -> None:
        """Raises OptionError if the tokenizer's model is not byte-level BPE."""
        spec = json.loads(backend.to_str())
        _require_byte_level(spec)
        added = backend.get_added_tokens_decoder()
        self._backend = backend
        self._added: dict[int, bytes] = {
            number: token.content.encode() for number, token in added.items()
        }
        self._specials = _find_specials(added, spec["model"]["vocab"])
        self._special_ids = frozenset(self._specials.values())
        self._bytes: dict[int, bytes] = {}

    def token_bytes(self, token_id: int, /) -> bytes:
        """See :class:`Tokenizer`."""
        known = self._bytes.get(token_id)
        if known is None:
            known = self._bytes[token_id] = self._read(token_id)
        return known

    def is_special(self, token_id: int, /) -> bool:
        """See :class:`Tokenizer`."""
        return token_id in self._special_ids

    def special_id(self, text: str, /) -> int | None:
        """See :class:`Tokenizer`."""
        return self._specials.get(text)

    def encode(self, text: str, /) -> list[int]:
        """See :class:`Tokenizer`."""
        try:
            raw = text.encode()
        except UnicodeEncodeError as error:
            raise TokenError(
                f"text has a lone surrogate at character {error.start} and no UTF-8 form; "
                "replace it before encoding"
            ) from error
        with library_errors(_unspelled):
            ids: list[int] = self._plain.encode(text, add_special_tokens=False).ids
        self._verify(ids, raw)
        return ids

    @cached_property
    def _plain(self) -> Any:
        """A private copy that knows the base vocabulary only.

        Built on the first ``encode``: a parser never needs it, and it is a
        second copy of the vocabulary in memory.
        """
        spec = json.loads(self._backend.to_str())
        return type(self._backend).from_str(json.dumps(_plain_spec(spec, self._specials)))

    def _read(self, token_id: int) -> bytes:
        if token_id in self._added:
            return self._added[token_id]
        try:
            text = self._backend.id_to_token(token_id)
        except (OverflowError, TypeError):  # negative, wider than 32 bits, or no int at all
            text = None
        if text is None:
            raise TokenError(
                f"the tokenizer has no token {token_id!r}; use the tokenizer that the ids come from"
            )
        return _from_byte_level(text)

    def _verify(self, ids: list[int], raw: bytes) -> None:
        if not self._special_ids.isdisjoint(ids):
            raise TokenError("plain text was encoded with a special token; refusing the ids")
        if b"".join(map(self.token_bytes, ids)) != raw:
            raise TokenError(
                "the tokenizer can't spell the text byte for byte: its vocabulary lacks "
                "single bytes, or its pre-tokenizer changes text"
            )


@contextmanager
def library_errors(blame: Callable[[str], AtemError]) -> Iterator[None]:
    """Whatever the tokenizer library raises becomes ``blame(text)``, with its text cut short.

    A panic of the library (a pattern that gives up, a table that contradicts
    itself) is no Exception, so that nobody who handles errors would see it.
    """
    try:
        yield
    except (KeyboardInterrupt, SystemExit):
        raise
    except BaseException as error:
        raise blame(repr(f"{error!s:.200}")) from error


def _unspelled(why: str) -> TokenError:
    return TokenError(f"the tokenizer fails on the text: {why}; use another tokenizer.json")


def _has(value: object, names: tuple[str, ...]) -> bool:
    return all(callable(getattr(value, name, None)) for name in names)


@lru_cache(maxsize=1)
def byte_table() -> Mapping[str, int]:
    """Character -> byte of GPT-2's byte-level alphabet.

    A printable Latin-1 byte is the character of the same number; the others, in
    order, are the characters from U+0100 on.
    """
    printable = {*range(0x21, 0x7F), *range(0xA1, 0xAD), *range(0xAE, 0x100)}
    others = (byte for byte in range(256) if byte not in printable)
    table = {chr(byte): byte for byte in printable}
    return table | {chr(256 + place): byte for place, byte in enumerate(others)}


def _from_byte_level(text: str) -> bytes:
    table = byte_table()
    try:
        return bytes(table[char] for char in text)
    except KeyError:  # never byte-encoded, for example a control token kept in the base vocabulary
        return text.encode()


def _types(node: object) -> Iterator[str]:
    """The ``type`` of a component and of those it is a sequence of."""
    if isinstance(node, dict):
        yield str(node.get("type"))
        for part in (*node.get("pretokenizers", ()), *node.get("decoders", ())):
            yield from _types(part)


def _require_byte_level(spec: Mapping[str, Any]) -> None:
    model = spec["model"].get("type")
    before = list(_types(spec.get("pre_tokenizer")))
    after = list(_types(spec.get("decoder")))
    if model == "BPE" and "ByteLevel" in before and (not after or "ByteLevel" in after):
        return
    raise OptionError(
        f"tokenizer= is a {model} model with pre-tokenizer {before or 'none'} and decoder "
        f"{after or 'none'}, which is not byte-level; {SUPPORTED}"
    )


def _find_specials(added: Mapping[int, Any], vocabulary: Mapping[str, int]) -> dict[str, int]:
    in_vocabulary = {text: vocabulary[text] for text in wire.CONTROL if text in vocabulary}
    flagged = {
        token.content: number
        for number, token in added.items()
        if token.special or token.content in wire.CONTROL
    }
    return in_vocabulary | flagged


def _plain_spec(spec: Mapping[str, Any], specials: Container[str]) -> dict[str, Any]:
    """``spec`` without added tokens and without anything else that rewrites text.

    Specials are also taken out of the base vocabulary, where trainers put
    them: a model with ``ignore_merges`` would take a whole piece from there.
    """
    model = spec["model"]
    return {
        **spec,
        "added_tokens": [],
        "normalizer": None,
        "post_processor": None,
        "truncation": None,
        "padding": None,
        "pre_tokenizer": _without_prefix_space(spec["pre_tokenizer"]),
        "model": {
            **model,
            "dropout": None,  # of training: with it the ids would be drawn by chance
            "vocab": {t: i for t, i in model["vocab"].items() if t not in specials},
            "merges": [merge for merge in model["merges"] if not _touches(merge, specials)],
        },
    }


def _without_prefix_space(node: Any) -> Any:
    """Segments stand in the middle of a prompt, where an added space would be a change of text."""
    if "pretokenizers" in node:
        return {**node, "pretokenizers": [_without_prefix_space(p) for p in node["pretokenizers"]]}
    return {**node, "add_prefix_space": False} if "add_prefix_space" in node else node


def _touches(merge: str | list[str], specials: Container[str]) -> bool:
    left, right = merge.split(" ") if isinstance(merge, str) else merge
    return left in specials or right in specials or left + right in specials
