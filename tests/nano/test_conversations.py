"""What nano is trained on is what an agent's loop asks with, in every turn."""

from __future__ import annotations

import random
import tempfile
from typing import TYPE_CHECKING

import phrasing
import pytest
from conversations import STAGES, Draw, conversation, marked, sample, tasks_of
from evaluate import KINDS, cases
from families import FAMILIES, Clash
from tokenizers import Tokenizer
from train import COPY, letter_pieces
from words import REQUEST_WORDS, Words, split_of
from world import READ_ONLY, TOOLS

import atem
from atem.agent import calculate, file_tools
from atem.runtime.embedded import located
from atem.tokenizer import wrap

if TYPE_CHECKING:
    from pathlib import Path

TOKENIZER = wrap(Tokenizer.from_file(f"{located('nano')}/tokenizer.json"))
EVERY = [*phrasing.BODIES]
TRAINING = [
    pytest.param(Draw(stage=stage, pieces=letter_pieces(TOKENIZER)), id=f"stage {number}")
    for number, stage in STAGES.items()
] + [pytest.param(COPY, id="copying")]


def drawn(count: int, draw: Draw | None = None) -> list:
    rng = random.Random(7)
    return [conversation(draw or Draw(), rng) for _ in range(count)]


def rendered(made, messages, **options) -> list[int]:
    return atem.render(
        messages, tools=made.tools, reasoning_strength=made.strength, **options
    ).token_ids(TOKENIZER)


def turn_starts(messages) -> list[int]:
    roles = [message.role for message in messages]
    pairs = enumerate(zip(["", *roles], roles, strict=False))
    return [n for n, (before, role) in pairs if role == "assistant" != before]


def test_a_trained_conversation_is_what_atem_renders() -> None:
    for made in drawn(30):
        assert sample(made, TOKENIZER).ids == rendered(
            made, made.messages, add_generation_prompt=False
        )


def test_each_turn_begins_behind_the_prompt_that_the_loop_asks_with() -> None:
    end = TOKENIZER.special_id("<|eot|>")
    for made in drawn(30):
        ids, learnt = sample(made, TOKENIZER)
        behind = 0
        for number, start in enumerate(turn_starts(made.messages)):
            prompt = rendered(made, made.messages[:start])
            stop = ids.index(end, len(prompt)) + 1
            assert ids[: len(prompt)] == prompt
            assert not any(learnt[behind : len(prompt)])
            assert set(learnt[len(prompt) : stop]) == {number not in made.untrained}
            behind = stop
        assert not any(learnt[behind:])


def test_headers_inside_a_turn_are_learnt_and_the_generation_prompt_is_not() -> None:
    text = (
        "<|start|>assistant to=self<|message|>x<|eom|><|start|>assistant to=user<|message|>y<|eot|>"
    )
    turn = atem.parse(text.removeprefix("<|start|>assistant"), reason="stop")
    prompt = atem.render([atem.Message("user", "z"), *turn.messages], add_generation_prompt=False)
    ids, learnt = marked(prompt.token_ids(TOKENIZER), TOKENIZER, set())
    taught = [token for token, each in zip(ids, learnt, strict=True) if each]
    assert b"".join(map(TOKENIZER.token_bytes, taught)).decode() == text.removeprefix(
        "<|start|>assistant"
    )


def test_a_turn_read_by_the_parser_is_the_turn_that_was_meant() -> None:
    for made in drawn(20):
        for start in turn_starts(made.messages):
            following = list(made.messages[start:])
            turn = following[
                : next((n for n, m in enumerate(following) if m.role != "assistant"), None)
            ]
            if any(isinstance(call, atem.RejectedCall) for m in turn for call in m.calls):
                continue
            again = atem.parse(atem.render_turn(turn).text(), tools=made.tools, reason="stop")
            assert again.complete
            assert again.messages == tuple(turn)


@pytest.mark.parametrize("family", FAMILIES)
def test_the_folder_in_memory_answers_as_the_real_tools_do(family: str, tmp_path: Path) -> None:
    rng = random.Random(3)
    for number in range(8):
        folder = tmp_path / str(number)
        world, tasks = tasks_of(Draw(families=(family,), tasks=(1, 3)), rng)
        for path, text in world.files.items():
            (folder / path).parent.mkdir(parents=True, exist_ok=True)
            (folder / path).write_text(text)
        folder.mkdir(exist_ok=True)
        tools = atem.ToolSet([*file_tools(folder, allow_write=True), calculate])
        for name, arguments in calls_of(tasks):
            assert world.run(name, arguments) == really(tools, name, arguments)


def calls_of(tasks):
    try:
        for task in tasks:
            for turn in task.steps():
                yield from turn.calls
    except Clash:  # such a conversation is drawn again
        return


def really(tools: atem.ToolSet, name: str, arguments: dict) -> str:
    try:
        return tools.get(name).call(arguments)
    except Exception as error:  # noqa: BLE001 - as an agent's loop does
        return f"{type(error).__name__}: {error}"


@pytest.mark.parametrize("writes", [True, False])
def test_nano_is_trained_on_the_declarations_of_the_agents_own_tools(writes: bool) -> None:
    with tempfile.TemporaryDirectory() as folder:
        own = atem.ToolSet([*file_tools(folder, allow_write=writes), calculate])
    user = [atem.Message("user", "?")]
    known = TOOLS if writes else READ_ONLY
    assert atem.render(user, tools=own).text() == atem.render(user, tools=known).text()


@pytest.mark.parametrize("kind", EVERY)
def test_every_request_has_thirty_phrasings_and_none_is_in_both_splits(kind: str) -> None:
    rng = random.Random(1)
    found = {
        split: {phrasing.template(rng, kind, split) for _ in range(1500)}
        for split in ("train", "held_out")
    }
    assert len(found["train"]) >= 30
    assert not found["train"] & found["held_out"]


def test_no_word_is_in_both_splits() -> None:
    for split in ("train", "held_out"):
        words = Words(random.Random(2), split)
        assert {split_of(words.word()) for _ in range(300)} == {split}


@pytest.mark.parametrize("kind", KINDS)
def test_evaluation_asks_the_same_every_time(kind: str) -> None:
    for family in FAMILIES:
        once, again = ([task.request for _, task, _ in cases(kind, family, 5)] for _ in range(2))
        assert once == again
        assert len(set(once)) > 1


@pytest.mark.parametrize("draw", TRAINING)
def test_training_asks_in_no_phrasing_that_is_held_out(monkeypatch, draw: Draw) -> None:
    asked = watched(monkeypatch, phrasing, "template")
    drawn(100, draw)
    assert len(asked) >= 100
    assert {split_of(each) for each in asked} == {"train"}


@pytest.mark.parametrize("draw", TRAINING)
def test_training_uses_no_word_that_is_held_out_but_requests_words_in_the_last_stage(
    monkeypatch, draw: Draw
) -> None:
    words = watched(monkeypatch, Words, "word")
    drawn(100, draw)
    assert len(words) >= 500
    held_out = {each for each in words if split_of(each) == "held_out"}
    allowed = {each for each in REQUEST_WORDS if split_of(each) == "held_out"}
    assert held_out == (allowed if draw.stage == STAGES[4] else set())


@pytest.mark.parametrize("draw", TRAINING)
def test_training_uses_no_number_of_three_digits_or_more_that_is_held_out(
    monkeypatch, draw: Draw
) -> None:
    numbers = watched(monkeypatch, Words, "number")
    drawn(100, draw)
    assert {split_of(each) for each in numbers if len(each) > 2} == {"train"}


@pytest.mark.parametrize("family", FAMILIES)
def test_what_is_measured_as_held_out_has_held_out_words_and_phrasings_alone(
    monkeypatch, family: str
) -> None:
    words = watched(monkeypatch, Words, "word")
    asked = watched(monkeypatch, phrasing, "template")
    assert len([*cases("held out", family, 8)]) <= len(asked)
    assert {split_of(each) for each in (*words, *asked)} == {"held_out"}


def watched(monkeypatch, owner, name: str) -> list[str]:
    """Everything that ``owner.name`` gives from now on."""
    given, real = [], getattr(owner, name)

    def kept(*args, **options):
        given.append(real(*args, **options))
        return given[-1]

    monkeypatch.setattr(owner, name, kept)
    return given
