"""What is found out before the first request, and what is refused then."""

from __future__ import annotations

import pytest

from atem.errors import OptionError, RemoteError, Unsupported
from tests.runtime.remote.asking import TOKENIZER, ask, engine, text_of
from tests.runtime.remote.dialects import CONTEXT, speaking
from tests.runtime.remote.wires import COUNTED, PROBED, as_json, event, text_event, whole, wires


def probed(server, /, **options):
    with engine(server, **options) as remote:
        return remote.probe


@pytest.mark.parametrize("kind", ["vllm", "sglang", "llama.cpp"])
def test_a_server_is_recognised_by_what_it_says(kind):
    with speaking(kind) as server, engine(server) as remote:
        found = remote.probe
        assert (found.server, found.model, found.context, found.form) == (
            kind,
            "tiny",
            CONTEXT,
            "completions",
        )
        assert found.version == "1.2.3"
        assert remote.info.backend == f"remote {kind}"
        assert remote.info.max_batch == (3 if kind == "llama.cpp" else 64)


@pytest.mark.parametrize("kind", ["vllm", "sglang", "llama.cpp"])
def test_ids_are_answered_with_ids_where_there_is_a_tokenizer(kind):
    with speaking(kind) as server:
        with_one = probed(server, tokenizer=TOKENIZER)
        without = probed(server)
    assert (with_one.prompt, with_one.answer) == ("ids", "ids")
    assert (without.prompt, without.answer) == ("text", "text")


@pytest.mark.parametrize(
    ("kind", "option"),
    [
        ("vllm", "skip_special_tokens=false"),
        ("sglang", "skip_special_tokens=false"),
        ("llama.cpp", "--special"),
        ("mlx", "mlx_lm.server"),
        ("openai", "skip_special_tokens=false"),
    ],
)
def test_a_server_that_drops_special_tokens_is_refused_with_the_option_that_keeps_them(
    kind, option
):
    with speaking(kind, strips=True) as server, pytest.raises(RemoteError) as caught:
        probed(server, server=kind)
    assert "special tokens are dropped" in str(caught.value)
    assert option in str(caught.value)


@pytest.mark.parametrize("kind", ["vllm", "sglang", "llama.cpp"])
def test_ids_survive_where_text_does_not(kind):
    with speaking(kind, strips=True) as server:
        assert probed(server, tokenizer=TOKENIZER).answer == "ids"


def test_ids_of_another_tokenizer_are_refused():
    answer = whole(
        event(
            {
                "choices": [
                    {"index": 0, "text": "<|message|>", "token_ids": [7], "finish_reason": "length"}
                ]
            }
        )
    )
    with (
        wires(probes=[answer]) as server,
        pytest.raises(RemoteError, match="the tokenizer of the model"),
    ):
        probed(server, tokenizer=TOKENIZER)


def test_a_server_that_reads_control_tokens_as_text_is_refused():
    pieces = whole(event({"choices": [{"index": 0, "text": "x", "finish_reason": "length"}],
                          "usage": {"prompt_tokens": 9, "completion_tokens": 1}}))  # fmt: skip
    with wires(probes=[PROBED, pieces]) as server, pytest.raises(RemoteError, match="as 9 tokens"):
        probed(server, server="openai")


@pytest.mark.parametrize(
    "answer", [event({"choices": 1}), event("oops"), b"", text_event("a", "bored")]
)
def test_an_answer_to_the_probe_that_makes_no_sense_is_an_error(answer):
    with wires(probes=[whole(answer)]) as server, pytest.raises(RemoteError):
        probed(server)


def test_a_server_that_does_not_stop_is_not_listened_to_for_ever():
    endless = [part for _ in range(500) for part in (text_event("<|message|>" * 10),)]
    with (
        wires(probes=[[*whole(b""), *endless]]) as server,
        pytest.raises(RemoteError, match="doesn't stop"),
    ):
        probed(server)


def test_a_server_that_repeats_the_prompt_is_refused():
    echo = "<|begin_of_text|><|start|>user<|message|>Say hi.<|eot|><|start|>assistant to=user"
    for repeated in (echo, "userSay hi.assistant to=user<|message|>"):
        with (
            wires(probes=[whole(text_event(repeated, "length"))]) as server,
            pytest.raises(RemoteError, match="repeats the prompt"),
        ):
            probed(server)


def test_ids_beyond_those_that_were_asked_for_are_refused():
    message = TOKENIZER.special_id("<|message|>")
    choice = {"index": 0, "text": "", "token_ids": [message] * 5, "finish_reason": "length"}
    with (
        wires(probes=[whole(event({"choices": [choice]}))]) as server,
        pytest.raises(RemoteError, match="repeats the prompt"),
    ):
        probed(server, tokenizer=TOKENIZER)


def test_names_of_models_are_quoted_with_an_end_and_without_the_key():
    names = ["sk-secret" + "x" * 9000, "b"]
    get = {"/v1/models": as_json({"data": [{"id": name} for name in names]})}
    with wires(get=get) as server, pytest.raises(OptionError) as caught:
        probed(server, api_key="sk-secret")
    assert "sk-" not in str(caught.value)
    assert len(str(caught.value)) < 300


def test_what_is_not_found_out_is_noted():
    uncounted = whole(text_event("x", "length"))
    get = {"/v1/models": as_json({"data": [{"id": "m"}]})}
    with wires(probes=[PROBED, uncounted], get=get) as server:
        notes = " ".join(probed(server).notes)
    assert "its context is unknown" in notes
    assert "counts no tokens" in notes


def test_a_context_may_be_given():
    with wires(
        probes=[PROBED, COUNTED], get={"/v1/models": as_json({"data": [{"id": "m"}]})}
    ) as server:
        found = probed(server, context=4096)
    assert (found.context, found.notes) == (4096, ())


@pytest.mark.parametrize(
    "listing",
    [{}, [], {"data": None}, {"data": [1]}, {"data": [{"id": "a"}, {"id": "b"}]}],
)
def test_a_model_that_is_not_clear_has_to_be_named(listing):
    with wires(get={"/v1/models": as_json(listing)}, probes=[PROBED, COUNTED]) as server:
        with pytest.raises(OptionError, match="model="):
            probed(server)
        assert probed(server, model="mine").model == "mine"


def test_an_adapter_is_not_taken_for_the_model():
    listing = {
        "data": [
            {"id": "base", "owned_by": "vllm"},
            {"id": "lora", "parent": "base", "owned_by": "vllm"},
        ]
    }
    with wires(get={"/v1/models": as_json(listing)}) as server:
        assert probed(server).model == "base"


def test_a_server_without_a_model_list_is_asked_all_the_same():
    with wires(get={}, probes=[PROBED, COUNTED]) as server:
        found = probed(server, model="mine")
    assert (found.server, found.answer) == ("openai", "text")
    assert "it lists no models" in found.notes


def test_a_web_server_without_models_is_told_from_one_with_several():
    with (
        wires(get={}) as server,
        pytest.raises(OptionError, match=r"lists no models.*serve none.*set model="),
    ):
        probed(server)


def test_a_refused_prompt_of_ids_is_tried_as_text_and_noted():
    refused = as_json({"error": "prompt must be a string"}, "400 Bad")
    with wires(probes=[refused, PROBED, COUNTED], get={}) as server:
        found = probed(server, model="m", tokenizer=TOKENIZER)
    assert found.prompt == "text"
    assert "it refused a prompt of ids" in found.notes


def test_a_key_that_is_refused_ends_the_probe():
    with (
        wires(get={"/v1/models": as_json({"error": "no key"}, "401 No")}) as server,
        pytest.raises(RemoteError, match="check api_key="),
    ):
        probed(server)


def test_where_there_are_no_completions_auto_means_chat():
    absent = as_json({"error": "Not Found"}, "404 No")
    chatting = whole(
        event({"choices": [{"index": 0, "delta": {"content": "hi"}, "finish_reason": "stop"}]})
    )
    with wires(probes=[absent, chatting]) as server:
        found = probed(server)
    assert (found.form, found.prompt, found.answer) == ("chat", "messages", "parsed")
    with (
        wires(probes=[as_json({"error": "Not Found"}, "404 No")]) as server,
        pytest.raises(RemoteError),
    ):
        probed(server, form="completions")


@pytest.mark.parametrize(
    ("chunks", "answer"),
    [
        ([{"content": "Hi."}], "parsed"),
        ([{"reasoning_content": "A greeting."}], "parsed"),
        ([{"reasoning": "A greeting."}, {"content": "Hi."}], "parsed"),
        ([{"content": " to=user"}, {"content": "<|message|>Hi."}], "text"),
        (
            [{"content": " to=self<|message|>Hm.<|eom|><|start|>assistant to=user<|message|>Hi."}],
            "text",
        ),
    ],
)
def test_a_chat_says_whether_the_server_parses(chunks, answer):
    with speaking("vllm", chat=lambda body: [*chunks, "length"]) as server:
        assert probed(server, form="chat").answer == answer


@pytest.mark.parametrize(
    ("chunks", "said"),
    [([{"content": " to=selfA greeting."}], "without its special tokens"), ([], "nothing at all")],
)
def test_a_chat_without_framing_or_words_is_refused(chunks, said):
    with (
        speaking("vllm", chat=lambda body: [*chunks, "length"]) as server,
        pytest.raises(RemoteError, match=said),
    ):
        probed(server, form="chat")


@pytest.mark.parametrize(
    "options",
    [
        {"form": "grpc"},
        {"server": "ollama"},
        {"timeout": 0},
        {"timeout": None},
        {"context": 0},
        {"context": "9"},
        {"retries": -1},
        {"retries": None},
        {"api_key": 5},
    ],
)
def test_an_option_that_can_not_work_is_refused(options):
    with wires(probes=[PROBED, COUNTED]) as server, pytest.raises(OptionError):
        probed(server, **options)


def test_without_a_tokenizer_there_is_none_to_ask_for():
    with speaking("vllm") as server, engine(server) as remote:
        with pytest.raises(Unsupported, match="tokenizer="):
            _ = remote.tokenizer
        assert remote.info.stop_ids == frozenset()
        assert "logprobs" not in remote.info.features


def test_reused_tokens_are_told_once():
    for kind in ("vllm", "llama.cpp"):
        with speaking(kind, cached=5) as server, engine(server, tokenizer=TOKENIZER) as remote:
            told = [step.cached_tokens for step in remote.generate(ask())]
            assert [count for count in told if count is not None] == [5]


def test_raw_text_is_answered_with_raw_text():
    with speaking("vllm") as server, engine(server) as remote:
        steps = list(remote.generate(ask()))
    assert text_of(steps) == " to=user<|message|>High at noon.<|eot|>"
    assert all(isinstance(step.piece, str) for step in steps)
