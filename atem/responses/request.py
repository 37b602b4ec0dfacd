"""A request's body as an :class:`~atem.responses.ask.Ask`.

Rules: any JSON gives an Ask or an ApiError with a 4xx status, in time linear in
its size. Everything that can be refused is refused here or by
``Ask.engine_request``, before a byte of an answer is sent. No clock, no random
number and no store but those that are passed in.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Final

from .. import wire
from ..engine import Sampling
from ..render.prompt import as_parts
from ..render.system import normalised, states_strength
from . import checks, compaction
from .ask import Ask
from .choice import Choice
from .effort import read_reasoning
from .faults import bad_value, missing, not_found, previous_not_found
from .fields import FIELDS, read_fields
from .halves import ENCRYPTED, LOGPROBS, half_notes
from .inputs import Lookup, NewId, read_history, read_input
from .plain import cleaned
from .script import Script
from .system_text import arranged
from .text_format import TextFormat
from .tools import ClientTools
from .truncation import input_tokens, truncate

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from ..messages import Message
    from .effort import Reasoning
    from .inputs import Item
    from .script import Opens

__all__ = ["Ask", "from_request", "input_tokens", "truncate"]

SAMPLING: Final = (
    "temperature", "top_p", "top_k", "min_p", "repetition_penalty", "presence_penalty",
    "frequency_penalty", "seed",
)  # fmt: skip

LEAST_TOP_P: Final = 1e-9
"""Stands for 0: the likeliest token alone."""

TIER: Final = "default"
VERBOSITY: Final = "medium"


def from_request(
    body: Mapping[str, Any],
    *,
    history: Sequence[Mapping[str, Any]] | None = None,
    lookup: Lookup | None = None,
    defaults: Sampling | None = None,
    new_id: NewId | None = None,
    blobs: Opens | None = None,
    current_date: str | None = None,
) -> Ask:
    """Read a create body (responses.md 1.2). Raises ApiError.

    ``history`` are the items of the responses or the conversation that it goes
    on from, oldest first; without them one that goes on is refused. ``lookup``
    finds an item that is referred to. ``defaults`` is how the model samples
    unasked, ``new_id`` makes the ids of items that have none, ``blobs`` reads
    encrypted reasoning and summaries, and ``current_date`` (YYYY-MM-DD) stands
    in the default system text.
    """
    plain, repaired = cleaned(body)
    if not isinstance(plain, dict):
        raise bad_value(None, "The request is no JSON object.")
    values, notes = read_fields(plain)
    notes += half_notes(values)
    _check_together(values)
    if history is None:
        _check_alone(values)
    items, left_out = read_input(values["input"], lookup=lookup, new_id=new_id or _new_id())
    if repaired:
        notes.append(f"{repaired} strings had half a character, which is shown as U+FFFD")
    reading = _Reading(
        values, [*read_history(history or ()), *items], defaults or Sampling(), blobs
    )
    ask = reading.ask()
    return replace(
        ask,
        items=tuple(item.fields for item in items),
        asked=frozenset(name for name in FIELDS if plain.get(name) is not None),
        notes=tuple(dict.fromkeys([*notes, *left_out, *ask.notes])),
        current_date=current_date,
    )


def _new_id() -> NewId:
    from .ids import new_id  # here, because it needs a source of random numbers

    return new_id


def _check_together(values: dict[str, Any]) -> None:
    """Fields that need or exclude each other; ``input`` may be missing where something goes on."""
    if not values["model"]:
        raise missing("model")
    if values["previous_response_id"] and values["conversation"]:
        raise bad_value(
            "previous_response_id", "previous_response_id and conversation exclude each other."
        )
    if values["background"] and not values["store"]:
        raise bad_value("background", "background needs store to be true.")
    if values["input"] is None:
        if not values["previous_response_id"] and not values["conversation"]:
            raise missing("input")
        values["input"] = []


def _check_alone(values: Mapping[str, Any]) -> None:
    """Nothing is kept that the request could go on from: better refused than forgotten."""
    if values["previous_response_id"]:
        raise previous_not_found(values["previous_response_id"][:100])
    if values["conversation"]:
        raise not_found("The conversation was not found.", param="conversation")


@dataclass
class _Reading:
    """The parts of one request that depend on each other."""

    values: dict[str, Any]
    items: list[Item]
    defaults: Sampling
    blobs: Opens | None

    def ask(self) -> Ask:
        """The Ask, but for what has nothing to do with the conversation."""
        values = self.values
        tools = self._tools()
        compact = compaction.wanted(self.items)
        choice = Choice("none", echo="none") if compact else Choice.of(values["tool_choice"], tools)
        reasoning, text = self._configuration()
        format_ = TextFormat.of(text.get("format"))
        script = Script(tools, self.blobs)
        script.read(compaction.shortened(self.items))
        messages = arranged(
            tuple(script.conversation()),
            before=values["instructions"] or "",
            after=format_.instruction(),
        )
        sampling = self._sampling()
        return Ask(
            echo=_echo(
                values,
                tools=tools,
                choice=choice,
                reasoning=reasoning,
                text=_text_echo(format_, text),
                sampling=sampling,
            ),
            messages=_recent_thoughts(messages) if reasoning.current_turn else messages,
            tools=tools,
            choice=choice,
            format=format_,
            sampling=sampling,
            max_tokens=values["max_output_tokens"],
            strength=reasoning.strength,
            stop=values["stop"],
            parallel=values["parallel_tool_calls"],
            summary=reasoning.summary,
            encrypted=ENCRYPTED in values["include"],
            logprobs=self._wants_logprobs(),
            store=values["store"],
            background=values["background"],
            stream=values["stream"],
            previous=values["previous_response_id"],
            conversation=values["conversation"],
            truncation=values["truncation"],
            prewarm=_prewarm(values),
            compact=compact,
            notes=(
                *tools.notes,
                *reasoning.notes,
                *script.notes,
                *_strength_note(reasoning, messages),
            ),
        )

    def _tools(self) -> ClientTools:
        """The tools of the request, and those that items brought before it."""
        brought = {
            kind: [
                (f"{item.where}.tools", item.fields.get("tools") or ())
                for item in self.items
                if item.type == kind
            ]
            for kind in ("additional_tools", "tool_search_output")
        }
        return ClientTools.of(
            self.values["tools"],
            more=brought["additional_tools"],
            found=brought["tool_search_output"],
        )

    def _configuration(self) -> tuple[Reasoning, dict[str, Any]]:
        """``reasoning`` and ``text``, as the last ``configuration_update`` has them."""
        given = {key: dict(self.values[key] or {}) for key in ("reasoning", "text")}
        for item in self.items:
            if item.type == "configuration_update":
                for key in given:
                    update = checks.mapping(item.fields.get(key) or {}, f"{item.where}.{key}")
                    given[key] |= {name: set_ for name, set_ in update.items() if set_ is not None}
        return read_reasoning(given["reasoning"]), given["text"]

    def _wants_logprobs(self) -> bool:
        return LOGPROBS in self.values["include"] or self.values["top_logprobs"] > 0

    def _sampling(self) -> Sampling:
        given = {name: self.values[name] for name in SAMPLING if self.values[name] is not None}
        if given.get("top_p") == 0:
            given["top_p"] = LEAST_TOP_P
        if "seed" in given:
            given["seed"] %= 2**64
        if "top_k" in given:
            given["top_k"] = max(0, given["top_k"])
        if self._wants_logprobs():
            given["logprobs"] = self.values["top_logprobs"]
        return replace(self.defaults, **given)


def _echo(
    values: dict[str, Any],
    *,
    tools: ClientTools,
    choice: Choice,
    reasoning: Reasoning,
    text: dict[str, Any],
    sampling: Sampling,
) -> dict[str, Any]:
    """The response object's keys that repeat the request, with effective values."""
    echo = {name: values[name] for name, field in FIELDS.items() if field.echo}
    sampled = ("temperature", "top_p", "presence_penalty", "frequency_penalty")
    echo |= {name: getattr(sampling, name) for name in sampled if echo[name] is None}
    echo |= {
        "tools": tools.echo,
        "tool_choice": choice.echo,
        "reasoning": reasoning.echo,
        "text": text,
        "service_tier": TIER,
    }
    if echo["user"] is None:
        del echo["user"]  # the API has it as a string, or not at all
    if values["conversation"]:
        echo["conversation"] = {"id": values["conversation"]}
    return echo


def _text_echo(format_: TextFormat, text: dict[str, Any]) -> dict[str, Any]:
    verbosity = text.get("verbosity")
    if verbosity is not None:
        verbosity = checks.one_of("low", "medium", "high")(verbosity, "text.verbosity")
    return {"format": format_.echo, "verbosity": verbosity or VERBOSITY}


def _prewarm(values: dict[str, Any]) -> bool:
    options = values["prompt_cache_options"] or {}
    return not values["generate"] or options.get("prewarm") is True


def _recent_thoughts(messages: Sequence[Message]) -> tuple[Message, ...]:
    """``messages`` without the reasoning before the newest user message."""
    asked = [place for place, message in enumerate(messages) if message.role == "user"]
    newest = asked[-1] if asked else 0
    return tuple(
        message
        for place, message in enumerate(messages)
        if place > newest or message.recipient != wire.SELF
    )


def _strength_note(reasoning: Reasoning, messages: Sequence[Message]) -> tuple[str, ...]:
    """The model's own template leaves the strength to a system text that speaks of it."""
    system = [message for message in messages[:1] if message.role == "system"]
    if reasoning.strength and any(
        states_strength(normalised(as_parts(message.content))) for message in system
    ):
        return ("reasoning.effort has no effect: the system text says how hard to think",)
    return ()
