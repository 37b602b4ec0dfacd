"""The tokenizer of a checkpoint, and the ids at which its generations stop.

Rules: special tokens are looked up by name, never by number: other sets of ids
are in circulation (wire_format 1). ``tokenizer.json`` goes before what a GGUF
file says. An export that spells framing with ordinary pieces is read all the
same: its text is handed on as text, and :func:`missing_specials` names what it
lacks.
"""

from __future__ import annotations

from reprlib import repr as short
from typing import TYPE_CHECKING, Any, Final

from .. import wire
from ..errors import CheckpointError, ConfigError, MissingExtra, OptionError
from ..tokenizer import library_errors, wrap
from .gate import parse_json
from .gguf_tokenizer import TOKENS, build
from .quoting import named

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from pathlib import Path

    from ..tokenizer import Tokenizer
    from .checkpoint import Checkpoint, SideFiles

MAX_FILE: Final = 64 * 1024 * 1024
"""Bytes of a ``tokenizer.json``; the released one has about 28 million."""

GGUF_STOPS: Final = ("tokenizer.ggml.eos_token_id", "tokenizer.ggml.eot_token_id")


def load_tokenizer(checkpoint: Checkpoint) -> Tokenizer:
    """The tokenizer of ``checkpoint``: ``tokenizer.json``, or built from GGUF metadata.

    Raises CheckpointError, naming the file, if there is none, if it can't be
    read, is not byte-level BPE, or has ids beyond the model's vocabulary;
    MissingExtra without ``tokenizers``.
    """
    files = checkpoint.files
    if files.tokenizer is not None:
        name, backend = str(files.tokenizer), read_tokenizer(files.tokenizer)
    elif TOKENS in files.gguf:
        name, backend = str(checkpoint.path), build(files.gguf)
    else:
        raise CheckpointError(
            f"{checkpoint.path}: no tokenizer.json; fetch it from where the model is from, and "
            "put it beside the weights"
        )
    _check_size(backend, checkpoint.config.vocab_size, name)
    try:
        return wrap(backend)
    except OptionError as error:
        raise CheckpointError(f"{name}: {error}") from error


def missing_specials(tokenizer: Tokenizer) -> tuple[str, ...]:
    """Framing markers that are no single special token; with one of them missing only text is read.

    Then steps carry plain text, a parser is in text mode (wire_format 1.1),
    and prompts need ``Prompt.token_ids(..., legacy=True)``.
    """
    return tuple(text for text in wire.REQUIRED_SPECIALS if tokenizer.special_id(text) is None)


def stop_ids(tokenizer: Tokenizer, checkpoint: Checkpoint | None) -> frozenset[int]:
    """The ids that end a generation (model.md 5.4).

    Those of ``<|end_of_text|>`` and ``<|eot|>``, with what the files of
    ``checkpoint`` declare as the end; never ``<|eom|>``, which goes before a
    further message. Raises ConfigError for a declared id that can't be one,
    and if there is none at all.
    """
    ids = {tokenizer.special_id(text) for text in wire.TURN_ENDS}
    if checkpoint is not None:
        ids |= {tokenizer.special_id(_eos_text(checkpoint.files))}
        for where, value in _declared(checkpoint.files):
            ids |= _checked(where, value, checkpoint.config.vocab_size)
    stops = frozenset(ids - {None, tokenizer.special_id(wire.EOM)})
    if not stops:
        raise ConfigError(
            f"no id ends a generation: the tokenizer has none of {', '.join(wire.TURN_ENDS)}, and "
            "generation_config.json declares no eos_token_id; add it there"
        )
    return frozenset(number for number in stops if number is not None)


def read_tokenizer(path: Path) -> Any:
    """The ``tokenizers.Tokenizer`` in a file, with the ids that the file says.

    Raises CheckpointError, MissingExtra.
    """
    try:
        from tokenizers import Tokenizer as Library
    except ImportError as error:
        raise MissingExtra("engine", "reading tokenizer.json") from error
    try:
        size = path.stat().st_size
        if size > MAX_FILE:
            raise CheckpointError(f"{path}: {size} bytes, {MAX_FILE} are the limit: no tokenizer")
        raw = path.read_bytes()
    except OSError as error:
        raise CheckpointError(f"{path}: {error.strerror or error}") from error
    with library_errors(
        lambda why: CheckpointError(f"{path}: can't be read ({why}); fetch it again")
    ):
        backend = Library.from_buffer(raw)
    _check_ids(backend, parse_json(raw, path), path)
    return backend


def _check_ids(backend: Any, spec: Mapping[str, Any], path: Path) -> None:
    """The library numbers added tokens on from the vocabulary, whatever the file says."""
    for token in spec.get("added_tokens") or ():
        text, declared = token["content"], token["id"]
        found = backend.token_to_id(text)
        if found != declared:
            raise CheckpointError(
                f"{path}: {named(text)} has the id {declared}, and the library that reads the file"
                f" makes it {found}: added tokens are missing before it, or the vocabulary has"
                " gaps; take the tokenizer.json that came with the model"
            )


def _check_size(backend: Any, vocab_size: int, name: str) -> None:
    vocabulary = backend.get_vocab(with_added_tokens=True)
    token, highest = max(vocabulary.items(), key=lambda item: item[1], default=("", -1))
    if not 0 <= highest < vocab_size:
        raise CheckpointError(
            f"{name}: its highest id is {highest} ({short(token)}), and the model has {vocab_size} "
            "ids; it is another model's tokenizer"
        )


def _eos_text(files: SideFiles) -> str:
    """``eos_token`` of ``tokenizer_config.json``: a text, or an object around it."""
    found = files.tokenizer_config.get("eos_token")
    text = found.get("content") if isinstance(found, dict) else found
    return text if isinstance(text, str) else ""


def _declared(files: SideFiles) -> Iterator[tuple[str, object]]:
    yield "generation_config.json: eos_token_id", files.generation_config.get("eos_token_id")
    for key in GGUF_STOPS:
        yield key, files.gguf.get(key)


def _checked(where: str, value: object, vocab_size: int) -> set[int]:
    found = value if isinstance(value, list) else [] if value is None else [value]
    for number in found:
        if type(number) is not int or not 0 <= number < vocab_size:
            raise ConfigError(
                f"{where} is {short(value)}; it is a token id, or a list of them, from 0 to "
                f"{vocab_size - 1}"
            )
    return set(found)
