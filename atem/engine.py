"""What stands between a rendered prompt and a parser: the engine, as plain data and a protocol.

Rules: no engine is imported here, and no tensor library. Engines deal in token
ids and text pieces and know nothing of parsers, tools or agents.
"""

from __future__ import annotations

import math
import operator
import reprlib
from contextlib import suppress
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final, Literal, NamedTuple, Protocol, TypeAlias, TypeGuard

from .errors import OptionError, Unsupported
from .grammar import Grammar
from .wire import Piece

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from .tokenizer import Tokenizer

Finish: TypeAlias = Literal["stop", "length", "abort"]

Feature: TypeAlias = Literal[
    "chat", "grammar", "images", "logprobs", "min_p", "penalties", "reasoning_budget", "seed",
    "stop", "top_k", "videos",
]  # fmt: skip
"""What a request may ask beyond a prompt, a temperature, ``top_p`` and ``max_tokens``."""


class Counted(NamedTuple):
    """Tokens of a whole generation, as whoever wrote it counts them.

    ``reasoning`` is a part of ``output``; None where that was not told.
    """

    prompt: int
    output: int
    reasoning: int | None = None


@dataclass(frozen=True, slots=True)
class Step:
    """One step of a generation.

    ``ids`` are the new token ids. ``piece`` is their text: a ``Piece`` (or one
    for each id) tells special tokens from text that spells them, a plain
    ``str`` leaves that to the reader; None leaves the decoding to whoever has
    the tokenizer. ``finish`` is set on the last step. ``logprobs`` has one
    number for each id (natural logarithm, of the model's own distribution,
    before temperature and filters), ``top_logprobs`` the likeliest ids at each
    place with theirs. ``cached_tokens`` counts prompt tokens that were reused;
    it stands on one step, the first where the engine knows it then. ``stop`` is
    the stop string that ended the text, on the last step; None if none did, or
    the engine can't say. ``counted`` is what a server says that it has counted,
    on the last step; for whoever has no tokenizer to count with.
    """

    ids: tuple[int, ...] = ()
    piece: str | Piece | tuple[Piece, ...] | None = None
    finish: Finish | None = None
    logprobs: tuple[float, ...] | None = None
    cached_tokens: int | None = None
    top_logprobs: tuple[tuple[tuple[int, float], ...], ...] | None = None
    stop: str | None = None
    counted: Counted | None = None

    @property
    def pieces(self) -> tuple[str | Piece, ...] | None:
        """``piece`` in its long form; None if it leaves the decoding to the reader."""
        if self.piece is None:
            return None
        # A Piece is a tuple itself, a named one.
        if isinstance(self.piece, str | Piece):
            return (self.piece,)
        return self.piece


@dataclass(frozen=True, slots=True)
class Sampling:
    """How the next token is chosen. The defaults are the model card's (model.md 5.4).

    ``temperature`` 0 is greedy, whatever the rest says. The filters apply in
    this order: penalties, ``top_k`` (0: off), temperature, ``top_p``, ``min_p``.
    ``repetition_penalty`` divides positive and multiplies negative logits of
    ids seen in prompt or output; presence and frequency penalties are
    subtracted for ids of the output alone. With ``seed`` (0 to 2**64 - 1) the
    same request gives the same tokens, whatever else runs beside it.
    ``logprobs`` (0 to 20) asks for log-probabilities and, if above 0, for that
    many of the likeliest ids. Raises OptionError for a value that can't work.
    """

    temperature: float = 1.0
    top_k: int = 64
    top_p: float = 0.95
    min_p: float = 0.0
    repetition_penalty: float = 1.0
    presence_penalty: float = 0.0
    frequency_penalty: float = 0.0
    seed: int | None = None
    logprobs: int | None = None

    def __post_init__(self) -> None:
        for name, (fits, wanted) in _RANGES.items():
            value = getattr(self, name)
            if not _is_number(value) or not fits(value):
                raise OptionError(f"{name}={value!r}; {name} is {wanted}")
        if not _is_whole(self.top_k):
            raise OptionError(f"top_k={self.top_k!r}; top_k is a whole number")
        require_whole("seed", self.seed, 0, 2**64 - 1)
        require_whole("logprobs", self.logprobs, 0, 20)

    @property
    def greedy(self) -> bool:
        """Whether the likeliest token is taken each time."""
        return self.temperature == 0

    @property
    def penalises(self) -> bool:
        """Whether what was written changes what comes next."""
        neutral = self.repetition_penalty == 1
        return not neutral or self.presence_penalty != 0 or self.frequency_penalty != 0


def _is_number(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _is_whole(value: object) -> TypeGuard[int]:
    return isinstance(value, int) and not isinstance(value, bool)


def require_whole(name: str, value: object, least: int, most: float = math.inf) -> None:
    """Raise OptionError unless ``value`` is None or a whole number in the range."""
    if value is not None and not (_is_whole(value) and least <= value <= most):
        wanted = f"from {least} to {most}" if most < math.inf else f"of {least} or more"
        raise OptionError(f"{name}={value!r}; it is a whole number {wanted}, or None")


_RANGES: Final[dict[str, tuple[Callable[[float], bool], str]]] = {
    "temperature": (lambda v: 0 <= v <= 100, "a number from 0 to 100"),
    "top_k": (lambda v: v >= 0, "0 (off) or a positive whole number"),
    "top_p": (lambda v: 0 < v <= 1, "above 0 and at most 1"),
    "min_p": (lambda v: 0 <= v <= 1, "from 0 to 1"),
    "repetition_penalty": (lambda v: 0.01 <= v <= 10, "from 0.01 to 10"),
    "presence_penalty": (lambda v: -2 <= v <= 2, "from -2 to 2"),
    "frequency_penalty": (lambda v: -2 <= v <= 2, "from -2 to 2"),
}

GREEDY: Final = Sampling(temperature=0.0)


class PromptLike(Protocol):
    """A rendered prompt, as ``atem.render`` makes it."""

    def text(self) -> str:
        """The prompt as text, control tokens spelled out."""

    def token_ids(self, tokenizer: object, /) -> list[int]:
        """The prompt's ids; text in it never becomes a control token."""

    @property
    def images(self) -> tuple[Any, ...]:
        """The sources of its images."""


@dataclass(frozen=True, slots=True)
class Request:
    """One generation.

    ``prompt`` is a rendered prompt or its ids. ``max_tokens`` None means as far
    as the context goes. ``stop`` are strings at which the text ends, without
    them. ``reasoning_budget`` is the number of tokens in ``to=self`` bodies
    after which the engine closes the channel and opens the answer
    (wire_format 8). ``grammar`` is what the turn has to be; the prompt ends in
    the message that it continues, or before one.
    ``chat`` is the same conversation in the shape of OpenAI chat completions
    (``messages``, ``tools``, ...), for servers that take nothing else.
    Raises OptionError for a value that can't work.
    """

    prompt: PromptLike | Sequence[int]
    sampling: Sampling = field(default_factory=Sampling)
    max_tokens: int | None = None
    stop: tuple[str, ...] = ()
    reasoning_budget: int | None = None
    grammar: Grammar | None = None
    chat: Mapping[str, Any] | None = None

    def __post_init__(self) -> None:
        if not hasattr(self.prompt, "token_ids"):
            _plain_ids(self.prompt)
        if not isinstance(self.sampling, Sampling):
            raise OptionError(f"sampling={self.sampling!r}; it is a Sampling")
        require_whole("max_tokens", self.max_tokens, 1)
        require_whole("reasoning_budget", self.reasoning_budget, 0)
        if not (isinstance(self.stop, tuple) and all(map(_is_text, self.stop))):
            raise OptionError(f"stop={self.stop!r}; it is a tuple of strings, none of them empty")
        if self.grammar is not None and not isinstance(self.grammar, Grammar):
            raise OptionError(f"grammar={self.grammar!r}; it is a Grammar, or None")

    def prompt_ids(self, tokenizer: Tokenizer) -> list[int]:
        """The ids of the prompt. Raises what ``Prompt.token_ids`` raises, and OptionError."""
        if hasattr(self.prompt, "token_ids"):
            return _plain_ids(self.prompt.token_ids(tokenizer))
        return _plain_ids(self.prompt)


def _is_text(value: object) -> bool:
    return isinstance(value, str) and value != ""


def _plain_ids(prompt: Sequence[int]) -> list[int]:
    """The ids in a list, array or tensor. Raises OptionError; the text "12" is not 1 and 2."""
    text = isinstance(prompt, str | bytes | bytearray)
    if text or not hasattr(prompt, "__getitem__") or getattr(prompt, "shape", None) == ():
        raise OptionError(
            f"prompt= got {type(prompt).__name__}; pass a rendered prompt (atem.render), or its ids"
        )
    return list(map(_plain_id, prompt))


def _plain_id(number: object) -> int:
    with suppress(TypeError):
        if not isinstance(number, bool):
            return operator.index(number)  # type: ignore[arg-type]
    raise OptionError(
        f"prompt= has {reprlib.repr(number)} where a token id has to be; messages are made into "
        "a prompt by atem.render"
    )


class Progress(NamedTuple):
    """How far something slow has come: ``stage`` is a short name, the numbers count bytes."""

    stage: str
    done: int
    total: int


@dataclass(frozen=True, slots=True)
class EngineInfo:
    """What an engine is and can do.

    ``context`` counts tokens, prompt and answer together. ``sampling`` is what
    the checkpoint recommends, else the model card.
    """

    model: str
    backend: str
    context: int
    stop_ids: frozenset[int]
    features: frozenset[Feature]
    max_batch: int = 1
    dtype: str = ""
    layout: str = ""
    sampling: Sampling = field(default_factory=Sampling)


class Engine(Protocol):
    """Anything that makes tokens. Every one passes ``atem.testing.contract``."""

    @property
    def info(self) -> EngineInfo:
        """What it is and can do."""

    @property
    def tokenizer(self) -> Tokenizer:
        """The tokenizer of its ids."""

    def generate(self, request: Request, /) -> Iterator[Step]:
        """Steps until one has a ``finish``; closing the iterator cancels at once.

        What can be refused is refused by this call, before the first step:
        Unsupported, ContextOverflow. OutOfMemory may come later and leaves the
        engine usable.
        """

    def close(self) -> None:
        """Give everything back. Later calls raise EngineClosed; a second close does nothing."""


def tokenizer_of(engine: Engine) -> Tokenizer | None:
    """The engine's tokenizer; None for a server that answers in text, and counts for itself."""
    try:
        return engine.tokenizer
    except Unsupported:
        return None


def reach(engine: Engine) -> None:
    """Raise EngineError if ``engine`` says by a method ``reach`` that it can't be reached now.

    The method is for what works elsewhere; without one an engine is ready as long as it is open.
    """
    reaching = getattr(engine, "reach", None)
    if reaching is not None:
        reaching()


def upstream_of(engine: Engine) -> Mapping[str, Any] | None:
    """What ``engine`` tells of the server that it asks, in its ``upstream``; None if there is none.

    Plain JSON for whoever runs it, without addresses or keys.
    """
    found: Mapping[str, Any] | None = getattr(engine, "upstream", None)
    return found


def close(iterator: object) -> None:
    """Close it now, if it can be closed; waiting for the garbage collector would run on."""
    closing = getattr(iterator, "close", None)
    if closing is not None:
        closing()


_ASKS: Final[dict[Feature, Callable[[Request], bool]]] = {
    "grammar": lambda r: r.grammar is not None,
    "images": lambda r: bool(getattr(r.prompt, "images", ())),
    "videos": lambda r: bool(getattr(r.prompt, "videos", ())),
    "logprobs": lambda r: r.sampling.logprobs is not None,
    "min_p": lambda r: r.sampling.min_p > 0 and not r.sampling.greedy,
    "penalties": lambda r: r.sampling.penalises,
    "reasoning_budget": lambda r: r.reasoning_budget is not None,
    "seed": lambda r: r.sampling.seed is not None,
    "stop": lambda r: bool(r.stop),
    "top_k": lambda r: r.sampling.top_k > 0 and not r.sampling.greedy,
}


def require_features(info: EngineInfo, request: Request) -> None:
    """Raise Unsupported, with all of their names, for what ``request`` asks and ``info`` lacks.

    ``chat`` is never refused: it repeats the prompt, for engines that want it so.
    Raises OptionError for what is no request.
    """
    if not isinstance(request, Request):
        raise OptionError(
            f"generate takes a Request, not {type(request).__name__}: atem.Request(prompt)"
        )
    missing = [name for name, asks in _ASKS.items() if asks(request) and name not in info.features]
    if missing:
        raise Unsupported(
            f"the {info.backend} engine can't honour {', '.join(missing)}; leave it out, or use "
            f"an engine that has it (this one has: {', '.join(sorted(info.features)) or 'none'})"
        )
