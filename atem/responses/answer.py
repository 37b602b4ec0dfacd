"""A request answered: prompt, engine, parser and builder in a row.

Rules: nothing between them reads the text again. :class:`~atem.responses.run.Run`
says what follows from each turn.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from . import ids
from .builder import ResponseBuilder
from .run import Run
from .running.writing import Writing

if TYPE_CHECKING:
    from collections.abc import Callable, Generator

    from ..engine import Engine, Step
    from .ask import Ask
    from .blob import Blobs
    from .builder import Arguments
    from .ids import NewId
    from .output.open_text import EventNames
    from .run import Batch


def new_builder(
    ask: Ask,
    *,
    created_at: int,
    blobs: Blobs | None = None,
    new_id: NewId = ids.new_id,
    arguments: Arguments = "whole",
    event_names: EventNames = "openai",
    id: str | None = None,  # noqa: A002 - the API's name for it
) -> ResponseBuilder:
    """The builder for ``ask``. ``blobs`` seals reasoning, if the client asked for that."""
    return ResponseBuilder(
        ask.echo,
        ask.tools,
        created_at=created_at,
        new_id=new_id,
        summary=ask.summary,
        encrypted=blobs if ask.encrypted else None,
        choice=ask.choice,
        arguments=arguments,
        event_names=event_names,
        id=id,
    )


def run_of(
    ask: Ask,
    engine: Engine,
    builder: ResponseBuilder,
    *,
    clock: Callable[[], int],
    retries: int = 1,
    **options: Any,
) -> Run[Step]:
    """The answer of ``engine``, not begun; for ``options`` see :class:`~atem.responses.run.Run`."""
    info = engine.info

    def writes(ask: Ask, room: int | None) -> Writing:
        return Writing(ask, engine, builder, channel=ask.channel(info), room=room)

    constrained = "grammar" in info.features
    return Run(ask, writes, builder, clock, retries=retries, constrained=constrained, **options)


def answer(
    ask: Ask, engine: Engine, builder: ResponseBuilder, **options: Any
) -> Generator[Batch, None, None]:
    """The events of the whole response, in batches, the last of which ends it.

    ``options`` are those of :func:`run_of`. What can be refused is refused by this
    call, as an ApiError. Later errors end the response as failed; ``builder.error``
    holds them. Closing the iterator stops the engine at once and tells nothing.
    """
    run = run_of(ask, engine, builder, **options)
    run.begin()
    return run.events()
