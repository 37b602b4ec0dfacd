"""A turn as tokens whose origin is known: pieces, and ids of a real tokenizer.

Rules: as in ``spelling``. The tokenizer is the library's own, with a token for each byte.
"""

from __future__ import annotations

from typing import Any

from tokenizers import AddedToken, Tokenizer, decoders, models, pre_tokenizers

import atem
from atem import Piece
from atem.tokenizer import byte_table
from tests.parser.folding import as_pieces, tiled
from tests.parser.spelling import TOOLS, call, to, turn
from tests.parser.strategies import MARKERS

TURN = turn(
    to("self", "Ebb 🌊 at nine?"),
    call("save", path="潮.txt", body="é\n 5"),
    to("user", "Fertig: 👩‍🚀.\r\n"),
)
"""A turn in which every message ends with a terminator and no marker is quoted."""


def byte_tokenizer(*specials: str) -> Tokenizer:
    """A real tokenizer with a token for each byte, and those special tokens."""
    alphabet = sorted(pre_tokenizers.ByteLevel.alphabet())
    tokenizer = Tokenizer(models.BPE({char: i for i, char in enumerate(alphabet)}, []))
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)
    tokenizer.decoder = decoders.ByteLevel()
    tokenizer.add_special_tokens(
        [AddedToken(text, special=True, normalized=False) for text in specials]
    )
    return tokenizer


TOKENIZER = byte_tokenizer(*MARKERS, "<|patch|>")
BARE = byte_tokenizer()
BYTE_IDS = {byte: BARE.token_to_id(char) for char, byte in byte_table().items()}


def ids(text: str) -> list[int]:
    """``text`` with its markers as special tokens."""
    return list(TOKENIZER.encode(text, add_special_tokens=False).ids)


def spelled(text: str) -> list[int]:
    """``text`` with its markers spelled by ordinary tokens (both vocabularies share those)."""
    return list(BARE.encode(text, add_special_tokens=False).ids)


def pieces(text: str) -> list[Piece]:
    """``text`` with its markers as special pieces, and every other character a piece."""
    runs = as_pieces(text)
    return [piece for run in runs for piece in ([run] if run.special else plain(run.text))]


def plain(text: str) -> list[Piece]:
    """``text`` in pieces, with its markers spelled by ordinary ones."""
    return [Piece(char) for char in text]


def read(tokens: Any, **options: Any) -> atem.Turn:
    options.setdefault("tools", TOOLS)
    return atem.parse(tokens, **options)


def read_ids(*tokens: list[int], **options: Any) -> atem.Turn:
    """The turn of ids, checked to cover their decoded text."""
    stream = [token for part in tokens for token in part]
    options.setdefault("tools", TOOLS)
    options.setdefault("tokenizer", TOKENIZER)
    length = len(TOKENIZER.decode(stream, skip_special_tokens=False))
    return atem.collect(tiled(atem.parse_stream(stream, **options), length))
