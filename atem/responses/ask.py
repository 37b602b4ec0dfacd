"""What a client asks, read and checked: all that an engine and a response need.

Rules: plain frozen data, made by :func:`~atem.responses.request.from_request`.
Nothing that was asked is dropped in silence: what an engine can't do is refused
(:meth:`Ask.engine_request`) or named (:meth:`Ask.lacking`).
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, Final, Literal, TypeAlias

from ..engine import Request, Sampling
from ..errors import InvalidTool, OptionError, RenderError
from ..messages import Content, ImagePart, Message, TextPart
from ..render import render
from ..render.chat_form import chat_of
from .choice import Choice
from .constraint import grammar_of
from .encoded import EncodedOnce
from .faults import bad_value, unsupported
from .parts import has_images
from .text_format import TextFormat
from .tools import ClientTools

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from ..engine import EngineInfo, Feature
    from ..grammar import Grammar
    from ..render import Prompt

Must: TypeAlias = Literal["call", "format"]
Truncation: TypeAlias = Literal["auto", "disabled"]

NO_IMAGE: Final = "[an image that this model can't see]"

NEUTRAL: Final[Mapping[str, tuple[Feature, Any]]] = {
    "seed": ("seed", None),
    "top_k": ("top_k", 0),
    "min_p": ("min_p", 0.0),
    "repetition_penalty": ("penalties", 1.0),
    "presence_penalty": ("penalties", 0.0),
    "frequency_penalty": ("penalties", 0.0),
}
"""Sampling option -> the feature it needs, and what stands for it where an engine lacks that."""


@dataclass(frozen=True, kw_only=True)
class Ask:
    """One request.

    ``echo`` are the keys of the response object that repeat the request, with
    effective values. ``messages`` are the whole conversation, ``items`` the new
    input items as they are stored. ``asked`` are the fields that the client set.

    ``must`` is what a turn has to be, whatever the engine can constrain: "call"
    for a call that ``choice`` allows, "format" for an answer without
    ``format.faults``. An engine that takes grammars is held to it while it
    writes. Whoever answers checks the finished turn in any case, and opens the
    only channel that is allowed for an engine without them (:meth:`channel`).

    ``summary``, ``encrypted`` and ``logprobs`` say what the output is to hold.
    ``prewarm`` asks for the prompt alone, ``compact`` for a compaction item.
    ``notes`` name what was accepted and has no effect, and ``left_out`` is the
    number of messages that didn't fit the context.
    """

    echo: Mapping[str, Any]
    messages: tuple[Message, ...]
    items: tuple[dict[str, Any], ...] = ()
    tools: ClientTools = field(default_factory=ClientTools)
    choice: Choice = field(default_factory=Choice)
    format: TextFormat = field(default_factory=TextFormat)
    sampling: Sampling = field(default_factory=Sampling)
    max_tokens: int | None = None
    strength: str | None = None
    stop: tuple[str, ...] = ()
    parallel: bool = True
    summary: bool = False
    encrypted: bool = False
    logprobs: bool = False
    store: bool = True
    background: bool = False
    stream: bool = False
    previous: str | None = None
    conversation: str | None = None
    truncation: Truncation = "disabled"
    prewarm: bool = False
    compact: bool = False
    current_date: str | None = None
    asked: frozenset[str] = frozenset()
    notes: tuple[str, ...] = ()
    left_out: int = 0
    _prompts: dict[tuple[bool, str | None], EncodedOnce] = field(
        default_factory=dict, init=False, repr=False, compare=False
    )
    """Those that were rendered, by whether images are seen and which channel is open."""

    @property
    def model(self) -> str:
        """The model's name as the client sent it."""
        return str(self.echo["model"])

    @property
    def must(self) -> frozenset[Must]:
        """What the finished turn has to be checked for."""
        wanted: dict[Must, bool] = {"call": self.choice.required, "format": self.format.enforced}
        return frozenset(name for name, asked in wanted.items() if asked)

    def channel(self, info: EngineInfo | None = None) -> str | None:
        """The channel that the prompt opens: to the only tool that has to be called.

        None where a grammar sees to that, which leaves room to reason first.
        """
        if not self.choice.required or (info and "grammar" in info.features):
            return None
        allowed = self.tools.callable(self.choice)
        return allowed[0].tool.wire_name if len(allowed) == 1 else None

    def then(self, messages: Iterable[Message], *, tools: ClientTools | None = None) -> Ask:
        """The same request after a turn inside it: ``messages`` more, and perhaps other tools."""
        return replace(
            self, messages=(*self.messages, *messages), tools=self.tools if tools is None else tools
        )

    def prompt(self, info: EngineInfo | None = None, *, channel: str | None = None) -> EncodedOnce:
        """The prompt, for the engine of ``info`` if that is given.

        ``channel`` opens the answer's channel; give the parser the same. Raises
        ApiError for an image that the engine can't see, but in a tool's output,
        where a text stands for it; and for what has no faithful form.
        It is rendered once, and encoded once for a tokenizer.
        """
        key = (info is None or "images" in info.features, channel)
        if key not in self._prompts:
            self._prompts[key] = EncodedOnce(self._rendered(info, channel).segments)
        return self._prompts[key]

    def _rendered(self, info: EngineInfo | None, channel: str | None) -> Prompt:
        try:
            return render(
                self._messages(info),
                tools=self.tools.shown,
                reasoning_strength=self.strength,
                current_date=self.current_date,
                channel=channel,
            )
        except (RenderError, OptionError) as error:
            raise bad_value("input", f"The input can't be shown to the model: {error}.") from error
        except InvalidTool as error:
            raise bad_value("tools", f"The tools can't be shown to the model: {error}.") from error

    def engine_request(
        self, info: EngineInfo, *, room: int | None = None, channel: str | None = None
    ) -> Request:
        """The request for the engine of ``info``; ``room`` is the number of tokens left.

        Raises ApiError for images and log-probabilities that it can't do, and
        for a format that it can't be held to. What :meth:`lacking` names is left
        out; stop strings are then for whoever reads the steps (``stop``).
        """
        if self.logprobs and "logprobs" not in info.features:
            raise unsupported("top_logprobs", "This model gives no log-probabilities.")
        chat = None
        if "chat" in info.features:
            chat = chat_of(self._messages(info), self.tools.toolset, self.strength)
        limits = [limit for limit in (self.max_tokens, room) if limit is not None]
        return Request(
            self.prompt(info, channel=channel),
            sampling=self._sampling(info),
            max_tokens=max(1, min(limits)) if limits else None,
            stop=self.stop if "stop" in info.features else (),
            grammar=self._grammar(info),
            chat=chat,
        )

    def lacking(self, info: EngineInfo, *, counts: bool = True) -> tuple[str, ...]:
        """What the client asked for and the engine of ``info`` leaves out, in words.

        ``counts`` says whether there is a tokenizer to count its prompts with.
        """
        found = [
            f"{name} has no effect: the engine lacks {feature}"
            for name, (feature, _) in NEUTRAL.items()
            if name in self.asked and feature not in info.features
        ]
        if "images" not in info.features and any(map(_shows_tool_image, self.messages)):
            found.append("images in a tool's output are not shown: the model sees none")
        if self.truncation == "auto" and not counts:
            found.append("truncation has no effect: the engine has no tokenizer to count with")
        return tuple(found)

    def _sampling(self, info: EngineInfo) -> Sampling:
        without = {
            name: neutral
            for name, (feature, neutral) in NEUTRAL.items()
            if feature not in info.features
        }
        return replace(self.sampling, **without)

    def _grammar(self, info: EngineInfo) -> Grammar | None:
        if "grammar" not in info.features or self.prewarm or self.compact:
            return None
        return grammar_of(self.choice, self.tools, self.format)

    def _messages(self, info: EngineInfo | None) -> tuple[Message, ...]:
        if info is None or "images" in info.features:
            return self.messages
        if any(has_images(m.content) and m.role != "tool" for m in self.messages):
            raise unsupported("input", "This model can't see images; send text alone.")
        return tuple(replace(m, content=_without_images(m.content)) for m in self.messages)


def _shows_tool_image(message: Message) -> bool:
    return message.role == "tool" and has_images(message.content)


def _without_images(content: Content) -> Content:
    if isinstance(content, str):
        return content
    return tuple(TextPart(NO_IMAGE) if isinstance(part, ImagePart) else part for part in content)
