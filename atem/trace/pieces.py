"""The pieces in which a turn is fed to the parser.

Rules: pieces in order are the text, whatever the cut. A text that somebody
pasted is cut into plain strings, whose provenance nobody knows; what an engine
gave keeps its own cut, and what it says of special tokens.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any, Final, Literal, TypeAlias, get_args

from .. import wire
from ..errors import OptionError, Unsupported
from ..wire import Piece

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from ..tokenizer import Tokenizer

AnyPiece: TypeAlias = str | Piece
Cut: TypeAlias = Literal["words", "characters", "tokens"]

CUTS: Final[tuple[str, ...]] = get_args(Cut)
MOST_PIECES: Final = 20_000
MOST_CHARACTERS: Final = 1 << 18

_CONTROL: Final = re.compile("(" + "|".join(map(re.escape, wire.CONTROL)) + ")")
_WORD: Final = re.compile(r" ?\w{1,12}| ?[^\w\s]{1,4}|\s{1,12}")
"""About as long as a model's tokens."""


def cut(text: str, how: str = "words", tokenizer: Tokenizer | None = None) -> list[str]:
    """``text`` in pieces, control tokens whole: as "words", "characters" or ``tokenizer``'s tokens.

    Raises OptionError for another cut, Unsupported for tokens without a tokenizer.
    """
    if how not in CUTS:
        raise OptionError(f"cut={how!r} is not a choice; use one of {', '.join(CUTS)}")
    if how == "tokens" and tokenizer is None:
        raise Unsupported("there is no tokenizer to cut by; use words or characters")
    ways: dict[str, Callable[[str], Iterable[str]]] = {
        "words": _WORD.findall,
        "characters": list,
        "tokens": lambda part: _tokens(part, tokenizer),  # type: ignore[arg-type]
    }
    found: list[str] = []
    for at, part in enumerate(_CONTROL.split(text)):
        found += [part] if at % 2 else ways[how](part)
    return found


def _tokens(text: str, tokenizer: Tokenizer) -> Iterable[str]:
    """The tokens of plain text; one that ends inside a character goes with the next."""
    held = b""
    for token_id in tokenizer.encode(text):
        held += tokenizer.token_bytes(token_id)
        try:
            yield held.decode()
        except UnicodeDecodeError:
            continue
        held = b""


def read_pieces(given: Any) -> list[AnyPiece]:
    """Pieces as JSON has them: texts, or objects with ``text`` and ``special``.

    Raises OptionError for anything else.
    """
    if not isinstance(given, list):
        raise OptionError("pieces is a list of texts, or of objects with text and special")
    return [_piece(each, place) for place, each in enumerate(given)]


def _piece(given: Any, place: int) -> AnyPiece:
    if isinstance(given, str):
        return given
    if isinstance(given, dict) and isinstance(given.get("text"), str):
        special = given.get("special")
        if isinstance(special, bool):
            return Piece(given["text"], special=special)
        if special is None:
            return str(given["text"])
    raise OptionError(f"pieces[{place}] is a text, or an object with text and special")


def piece_record(piece: AnyPiece) -> dict[str, Any]:
    """A piece as JSON; ``special`` is there if somebody knows."""
    if isinstance(piece, Piece):
        return {"text": piece.text, "special": piece.special}
    return {"text": piece}


def require_few(pieces: list[AnyPiece]) -> None:
    """Raise OptionError for more than a person could look at."""
    characters = sum(len(piece_record(piece)["text"]) for piece in pieces)
    if len(pieces) > MOST_PIECES or characters > MOST_CHARACTERS:
        raise OptionError(
            f"the turn has {len(pieces)} pieces and {characters} characters; a trace has at most "
            f"{MOST_PIECES} and {MOST_CHARACTERS}"
        )
