"""What goes out: ids where they can, raw text only where nothing in it can forge a token."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from atem import render, wire
from atem.engine import Request, Sampling
from atem.errors import ContextOverflow, OptionError, Unsupported
from atem.grammar import Form, Grammar
from atem.render import Segment
from atem.render.prompt import Prompt
from atem.runtime.remote.prompts import SPECIAL, raw_text
from atem.testing.tiny import SPECIALS
from tests.runtime.remote.asking import PROMPT, TOKENIZER, ask, engine
from tests.runtime.remote.dialects import CONTEXT, speaking


def prompt_with(text):
    return Prompt((Segment("<|start|>", "control"), Segment(text), Segment("<|eot|>", "control")))


def sent(kind, request, **options):
    """The body that a request becomes."""
    with speaking(kind) as server, engine(server, **options) as remote:
        list(remote.generate(request))
        return server.bodies[-1]


# --- text that spells control tokens ---


def test_every_control_literal_and_named_special_looks_like_one():
    assert all(SPECIAL.fullmatch(text) for text in (*wire.CONTROL, *SPECIALS))


@pytest.mark.parametrize("literal", [*wire.CONTROL, *SPECIALS, "<|reserved_special_token_7|>"])
def test_text_that_spells_a_special_token_is_never_sent_raw(literal):
    for text in (literal, f"a{literal}b", f"<|{literal}", f"{literal}|>"):
        with pytest.raises(Unsupported, match="pass tokenizer="):
            raw_text(prompt_with(text))


def test_a_token_put_together_from_two_segments_is_never_sent_raw():
    with pytest.raises(Unsupported):
        raw_text(Prompt((Segment("<|eo"), Segment("t|>"))))


def test_a_control_token_is_sent_where_the_prompt_has_one():
    assert raw_text(PROMPT) == PROMPT.text()
    assert raw_text(prompt_with("<|")) == "<|start|><|<|eot|>"


@given(st.lists(st.sampled_from(["<|", "|>", "<", "|", "eot", "<|eot|>", "start", " a "])))
def test_a_raw_prompt_has_no_control_token_but_its_own(words):
    prompt = prompt_with("".join(words))
    try:
        text = raw_text(prompt)
    except Unsupported:
        return
    assert prompt.token_ids(TOKENIZER) == _as_a_server_reads(text)


def _as_a_server_reads(text):
    from atem.testing.scripted import wire_ids

    return wire_ids(text, TOKENIZER)


@pytest.mark.parametrize("prompt", [[1, 2], "text", 7, [Segment("a"), "b"]])
def test_a_prompt_that_does_not_tell_text_from_control_is_never_sent_raw(prompt):
    with pytest.raises(Unsupported, match="rendered prompt"):
        raw_text(prompt)


def test_the_engine_refuses_such_text_at_the_call_and_sends_nothing():
    with speaking("vllm") as server, engine(server) as remote:
        asked = len(server.bodies)
        with pytest.raises(Unsupported, match=r"<\|eot\|>"):
            remote.generate(ask(prompt_with("see <|eot|>")))
        assert len(server.bodies) == asked


@pytest.mark.parametrize("kind", ["vllm", "sglang", "llama.cpp"])
def test_with_a_tokenizer_such_text_goes_out_as_plain_ids(kind):
    prompt = prompt_with("see <|eot|>")
    body = sent(kind, ask(prompt), tokenizer=TOKENIZER)
    assert body["prompt"] == prompt.token_ids(TOKENIZER)
    assert body["prompt"].count(TOKENIZER.special_id("<|eot|>")) == 1


def test_a_server_that_takes_text_alone_gets_none_that_forges_even_with_a_tokenizer():
    with speaking("mlx") as server, engine(server, tokenizer=TOKENIZER, server="mlx") as remote:
        with pytest.raises(Unsupported):
            remote.generate(ask(prompt_with("see <|eot|>")))
        with pytest.raises(Unsupported, match="takes no ids"):
            remote.generate(ask([1, 2, 3]))


def test_a_video_is_refused():
    with (
        speaking("vllm") as server,
        engine(server, tokenizer=TOKENIZER) as remote,
        pytest.raises(Unsupported, match="video"),
    ):
        remote.generate(ask(Prompt((Segment("<|video|>", "video", "clip"),))))


# --- how a prompt begins ---


@pytest.mark.parametrize("kind", ["sglang", "llama.cpp", "mlx", "openai"])
@pytest.mark.parametrize("adds", [False, True])
def test_a_raw_prompt_begins_once(kind, adds):
    with speaking(kind, adds_begin=adds) as server, engine(server, server=kind) as remote:
        list(remote.generate(ask(sampling=Sampling(0, top_k=0))))
        assert remote.probe.adds_begin is adds
        assert server.bodies[-1]["prompt"].startswith("<|begin_of_text|>") is not adds


def test_vllm_is_told_to_add_nothing():
    body = sent("vllm", ask())
    assert body["add_special_tokens"] is False
    assert body["prompt"] == PROMPT.text()


# --- how much may be answered ---


@pytest.mark.parametrize("kind", ["vllm", "sglang", "llama.cpp"])
def test_without_a_limit_the_answer_may_fill_the_context(kind):
    body = sent(kind, ask(max_tokens=None), tokenizer=TOKENIZER)
    word = "n_predict" if kind == "llama.cpp" else "max_tokens"
    assert body[word] == CONTEXT - len(PROMPT.token_ids(TOKENIZER))


@pytest.mark.parametrize(
    ("kind", "limit"), [("vllm", None), ("sglang", None), ("llama.cpp", CONTEXT), ("mlx", 131072)]
)
def test_a_prompt_that_is_not_counted_here_leaves_the_limit_to_the_server(kind, limit):
    body = sent(kind, ask(max_tokens=None), server=kind)
    assert body["n_predict" if kind == "llama.cpp" else "max_tokens"] == limit


def test_an_unknown_server_is_never_left_to_its_own_limit():
    with (
        speaking("other") as server,
        engine(server) as remote,
        pytest.raises(Unsupported, match="max_tokens="),
    ):
        remote.generate(ask(sampling=Sampling(0), max_tokens=None))


def test_a_prompt_without_room_overflows_at_the_call():
    with (
        speaking("vllm") as server,
        engine(server, tokenizer=TOKENIZER) as remote,
        pytest.raises(ContextOverflow),
    ):
        remote.generate(ask([1] * CONTEXT))


# --- sampling ---

HOT = Sampling(temperature=0.7, top_k=5, top_p=0.9, min_p=0.1, seed=3)


@pytest.mark.parametrize("kind", ["vllm", "llama.cpp", "mlx"])
def test_sampling_goes_out_in_full(kind):
    body = sent(kind, ask(sampling=HOT), server=kind)
    assert {name: body[name] for name in ("temperature", "top_k", "top_p", "min_p", "seed")} == {
        "temperature": 0.7, "top_k": 5, "top_p": 0.9, "min_p": 0.1, "seed": 3,
    }  # fmt: skip


@pytest.mark.parametrize(
    ("kind", "off"), [("vllm", -1), ("sglang", -1), ("llama.cpp", 0), ("mlx", 0)]
)
def test_a_filter_that_is_off_is_said_to_be_off(kind, off):
    # A server's own default, from a generation config, would apply otherwise.
    body = sent(kind, ask(sampling=Sampling(top_k=0)), server=kind)
    assert body["top_k"] == off
    assert body["min_p"] == 0


def test_penalties_go_to_the_server_that_counts_them_alike():
    given_ = Sampling(top_k=0, repetition_penalty=1.1, presence_penalty=0.5, frequency_penalty=-0.5)
    body = sent("vllm", ask(sampling=given_))
    assert (body["repetition_penalty"], body["presence_penalty"], body["frequency_penalty"]) == (
        1.1,
        0.5,
        -0.5,
    )


@pytest.mark.parametrize("kind", ["sglang", "llama.cpp", "mlx", "other"])
def test_other_servers_refuse_penalties(kind):
    with (
        speaking(kind) as server,
        engine(server, server="openai" if kind == "other" else kind) as remote,
        pytest.raises(Unsupported, match="penalties"),
    ):
        remote.generate(ask(sampling=Sampling(top_k=0, presence_penalty=0.5)))


@pytest.mark.parametrize(
    "field", [{"reasoning_budget": 4}, {"grammar": Grammar(Form("regex", "x"))}]
)
@pytest.mark.parametrize("kind", ["vllm", "sglang", "llama.cpp", "mlx"])
def test_what_no_server_does_is_refused(kind, field):
    with (
        speaking(kind) as server,
        engine(server, server=kind) as remote,
        pytest.raises(Unsupported),
    ):
        remote.generate(ask(**field))


def test_a_seed_is_refused_where_it_is_not_obeyed():
    with (
        speaking("sglang") as server,
        engine(server) as remote,
        pytest.raises(Unsupported, match="seed"),
    ):
        remote.generate(ask(sampling=Sampling(seed=1)))


@pytest.mark.parametrize("kind", ["vllm", "sglang"])
def test_the_ends_of_a_turn_go_out_as_stop_ids_and_the_end_of_a_message_never(kind):
    body = sent(kind, ask(), tokenizer=TOKENIZER)
    ends = [TOKENIZER.special_id(text) for text in wire.TURN_ENDS]
    assert body["stop_token_ids"] == sorted(ends)
    assert "stop" not in body


def test_a_lone_surrogate_in_a_chat_is_carried():
    chat = {"messages": [{"role": "user", "content": "a\ud800"}]}
    with speaking("vllm", chat=lambda body: [{"content": "ok"}, "stop"]) as server:
        with engine(server, form="chat") as remote:
            list(remote.generate(Request(PROMPT, Sampling(0), chat=chat)))
        assert server.bodies[-1]["messages"] == chat["messages"]


@pytest.mark.parametrize(
    "chat",
    [
        {"messages": [], "temperature": 1},
        {"messages": [], "stream": False},
        {"messages": [float("nan")]},
        {"messages": [{1, 2}]},
    ],
)
def test_a_chat_that_sets_what_is_not_its_own_or_is_no_json_is_refused(chat):
    with (
        speaking("vllm", chat=lambda body: [{"content": "ok"}, "stop"]) as server,
        engine(server, form="chat") as remote,
        pytest.raises(OptionError),
    ):
        list(remote.generate(Request(PROMPT, Sampling(0), chat=chat)))


def test_a_real_rendered_prompt_goes_out_as_its_ids():
    prompt = render(atem_conversation())
    assert sent("vllm", ask(prompt), tokenizer=TOKENIZER)["prompt"] == prompt.token_ids(TOKENIZER)


def atem_conversation():
    from atem import from_chat

    return from_chat(
        [{"role": "system", "content": "Be brief."}, {"role": "user", "content": "<|eot|>?"}]
    )
