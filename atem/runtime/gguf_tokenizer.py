"""The tokenizer that a GGUF file's metadata describes (model.md 5.3).

Rules: nothing is guessed. A pre-tokenizer that is not in the table, a type that
does not exist, an id that would move: each is an error, because another split
or another id is another text. Every token keeps its place in the list as its id.
"""

from __future__ import annotations

from reprlib import repr as short
from typing import TYPE_CHECKING, Any, Final

from ..errors import CheckpointError, MissingExtra
from ..tokenizer import library_errors

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

TOKENS: Final = "tokenizer.ggml.tokens"
TYPES: Final = "tokenizer.ggml.token_type"
MERGES: Final = "tokenizer.ggml.merges"
MODEL: Final = "tokenizer.ggml.model"
PRE: Final = "tokenizer.ggml.pre"

MAX_TOKENS: Final = 1 << 20
"""The released vocabulary has 202,048."""
MAX_MERGES: Final = 1 << 22

CONTROL: Final = 3
USER_DEFINED: Final = 4
KINDS: Final = range(1, 7)
"""NORMAL, UNKNOWN, CONTROL, USER_DEFINED, UNUSED, BYTE."""

_CONTRACTION: Final = r"(?i:'s|'t|'re|'ve|'m|'ll|'d)"
_UPPER: Final = r"[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]"
_LOWER: Final = r"[\p{Ll}\p{Lm}\p{Lo}\p{M}]"
_BEFORE_WORD: Final = r"[^\r\n\p{L}\p{N}]?"
_SPACES: Final = (r"\s*[\r\n]+", r"\s+(?!\S)", r"\s+")
O200K: Final = "|".join(
    (
        f"{_BEFORE_WORD}{_UPPER}*{_LOWER}+{_CONTRACTION}?",
        f"{_BEFORE_WORD}{_UPPER}+{_LOWER}*{_CONTRACTION}?",
        r"\p{N}{1,3}",
        r" ?[^\s\p{L}\p{N}]+[\r\n/]*",
        *_SPACES,
    )
)
LLAMA3: Final = "|".join(
    (
        _CONTRACTION,
        _BEFORE_WORD + r"\p{L}+",
        r"\p{N}{1,3}",
        r" ?[^\s\p{L}\p{N}]+[\r\n]*",
        *_SPACES,
    )
)
SPLITS: Final = {"llama4": O200K, "gpt-4o": O200K, "llama-bpe": LLAMA3}
"""``tokenizer.ggml.pre`` -> the pattern of one piece (model.md 5.2)."""


def build(metadata: Mapping[str, Any]) -> Any:
    """A ``tokenizers.Tokenizer`` of GGUF ``metadata``.

    Tokens of type CONTROL become special, USER_DEFINED ones added but not
    special; neither is normalised or stripped. ``add_bos_token`` is left
    alone: prompts bring their own. Raises CheckpointError naming the key that
    is missing, of no known value or inconsistent; MissingExtra without
    ``tokenizers``.
    """
    split = _split(metadata)
    tokens = _strings(metadata, TOKENS, MAX_TOKENS)
    kinds = _kinds(metadata, len(tokens))
    if len(set(tokens)) != len(tokens):
        raise CheckpointError(f"{TOKENS} has a token twice, so that ids would move; fetch it again")
    backend = _backend(tokens, _merges(metadata), split)
    _add(backend, tokens, kinds)
    return backend


def _split(metadata: Mapping[str, Any]) -> str:
    if metadata.get(MODEL) != "gpt2":
        raise CheckpointError(
            f"{MODEL} is {short(metadata.get(MODEL))}; Muse Glimmer's is 'gpt2' (byte-level BPE)"
        )
    pre = metadata.get(PRE)
    if not isinstance(pre, str) or pre not in SPLITS:
        raise CheckpointError(
            f"{PRE} is {short(pre)}, a split that is not known, and another one gives other "
            f"tokens; known are {', '.join(SPLITS)}: convert the file again, or put the model's "
            "tokenizer.json beside it"
        )
    return SPLITS[pre]


def _strings(metadata: Mapping[str, Any], key: str, limit: int) -> list[str]:
    found = metadata.get(key)
    if not isinstance(found, list) or not 0 < len(found) <= limit:
        raise CheckpointError(f"{key} is missing or no list of 1 to {limit} strings")
    wrong = next((place for place, text in enumerate(found) if not _is_text(text)), None)
    if wrong is not None:
        raise CheckpointError(
            f"{key}[{wrong}] is {short(found[wrong])}, not a text that is not empty"
        )
    return found


def _is_text(value: object) -> bool:
    return isinstance(value, str) and value != ""


def _kinds(metadata: Mapping[str, Any], size: int) -> list[int]:
    found = metadata.get(TYPES)
    if not isinstance(found, list) or len(found) != size:
        raise CheckpointError(
            f"{TYPES} is missing or not as long as {TOKENS} ({size}), and without it special "
            "tokens can't be told from text"
        )
    wrong = next((kind for kind in found if type(kind) is not int or kind not in KINDS), None)
    if wrong is not None:
        raise CheckpointError(f"{TYPES} has {short(wrong)}; a type is a number from 1 to 6")
    return found


def _merges(metadata: Mapping[str, Any]) -> list[tuple[str, str]]:
    merges: list[tuple[str, str]] = []
    for line in _strings(metadata, MERGES, MAX_MERGES):
        left, _, right = line.partition(" ")
        if not left or not right or " " in right:
            raise CheckpointError(f"{MERGES} has {short(line)}; a merge is two tokens and a space")
        merges.append((left, right))
    return merges


def _backend(tokens: Sequence[str], merges: list[tuple[str, str]], split: str) -> Any:
    try:
        from tokenizers import Regex, Tokenizer, decoders, models, pre_tokenizers
    except ImportError as error:
        raise MissingExtra("engine", "the tokenizer of a GGUF file") from error
    vocabulary = {token: place for place, token in enumerate(tokens)}
    with library_errors(lambda why: CheckpointError(f"{MERGES} doesn't fit {TOKENS}: {why}")):
        model = models.BPE(vocab=vocabulary, merges=merges, ignore_merges=True)
    backend = Tokenizer(model)
    backend.pre_tokenizer = pre_tokenizers.Sequence(
        [
            pre_tokenizers.Split(Regex(split), behavior="isolated"),
            pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False),
        ]
    )
    backend.decoder = decoders.ByteLevel()
    return backend


def _add(backend: Any, tokens: Sequence[str], kinds: Sequence[int]) -> None:
    """Mark what is no ordinary vocabulary; an added token that is in the model keeps its id."""
    from tokenizers import AddedToken

    backend.add_tokens(
        [
            AddedToken(token, special=kind == CONTROL, normalized=False)
            for token, kind in zip(tokens, kinds, strict=True)
            if kind in (CONTROL, USER_DEFINED)
        ]
    )
    if backend.get_vocab_size(with_added_tokens=True) != len(tokens):
        raise CheckpointError(f"{TOKENS} and {TYPES} give other ids than the places in the list")
