"""A host of the model, as its author writes it: load, ask, read, and an engine of one's own."""

from __future__ import annotations

from contextlib import closing
from typing import TYPE_CHECKING, Literal, assert_type

import atem

if TYPE_CHECKING:
    from collections.abc import Iterator


def heard(progress: atem.Progress) -> None:
    assert_type(progress.stage, str)
    assert_type(progress.done / max(progress.total, 1), float)


def answer(path: str, question: str) -> str:
    prompt = atem.render([atem.Message("user", question)])
    request = atem.Request(
        prompt,
        atem.Sampling(temperature=0.7, top_p=0.9, seed=7),
        max_tokens=100,
        stop=("\n\n",),
        reasoning_budget=64,
    )
    try:
        with closing(atem.load(path, backend="auto", progress=heard)) as engine:
            assert_type(engine.info.context, int)
            turn = atem.collect(atem.parse_stream(engine.generate(request)))
    except atem.CheckpointError as error:
        return f"take another file: {error}"
    except (atem.OutOfMemory, atem.ContextOverflow, atem.RemoteError) as error:
        return str(error)
    return turn.content


def first_pieces(engine: atem.Engine, ids: list[int]) -> Iterator[str]:
    for step in engine.generate(atem.Request(ids, atem.GREEDY)):
        match step.piece:
            case atem.Piece(text=text, special=False):
                yield text
            case str(text):
                yield text
            case _:
                pass


class Silent:
    """Ends at once."""

    def __init__(self, tokenizer: object, info: atem.EngineInfo) -> None:
        from atem.tokenizer import wrap

        self.tokenizer = wrap(tokenizer)
        self.info = info

    def generate(self, request: atem.Request, /) -> Iterator[atem.Step]:
        yield atem.Step(finish="stop")

    def close(self) -> None:
        pass


def counted(engine: atem.Engine) -> int:
    return sum(len(step.ids) for step in engine.generate(atem.Request([1, 2])))


def examined(path: str, engine: Silent) -> tuple[bool, str, int]:
    checkup = atem.doctor(path, probe=True)
    plan = atem.plan(path, backend="reference")
    for check in checkup.checks:
        assert_type(check.verdict, Literal["ok", "warn", "fail", "skipped"])
    counted(engine)
    return checkup.ok, plan.verdict, plan.needed
