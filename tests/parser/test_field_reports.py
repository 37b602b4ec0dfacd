"""What must hold because somewhere it once did not: one test for each kind of reported fault.

Rules: a name says what holds, a docstring who reported that it did not: public issues, by repository
and number. Here are the reports that a parser, the tools or a prompt can have.
"""

from __future__ import annotations

import re

import pytest
from tokenizers import AddedToken, Tokenizer, decoders, models, pre_tokenizers

import atem
from atem import Piece
from tests.parser.folding import as_pieces
from tests.parser.spelling import (
    ANSWER,
    END,
    EOM,
    EOT,
    HALF,
    MESSAGE,
    NEXT,
    PING,
    START,
    TOOLS,
    argument,
    block,
    call,
    calls,
    invoke,
    parameter,
    prompt,
    read,
    to,
    turn,
    verdicts,
)
from tests.parser.strategies import STRING, tool

# ==== This model and its relatives ===========================================================

# ---- Arguments and names


def test_a_line_of_json_written_to_a_file_stays_text():
    """Reported as vllm-project/vllm#51655."""
    line = '{"id": 7, "tags": ["a"]}\n'
    assert argument(line, STRING) == line


def test_a_parameter_glued_to_the_name_is_answered_with_the_tool_that_exists():
    """Reported as vllm-project/vllm#51655."""
    glued = to(
        "save.path", block('<atem:invoke name="save.path">a.txt</atem:parameter>\n</atem:invoke>')
    )
    found = read(turn(glued))
    [rejected] = found.rejected
    assert (found.calls, rejected.raw_name) == ((), "save.path")
    assert "save" in str(atem.ToolSet(TOOLS).feedback(rejected).content)
    assert calls(read(turn(glued), recover={"glued"})) == [("save", {"path": "a.txt"})]


def test_a_glued_name_alone_is_not_forwarded_as_a_call_without_arguments():
    """Reported as vllm-project/vllm#51655."""
    found = read(turn(call("save.path")))
    assert (found.calls, verdicts(found)) == ((), ["unknown_tool"])
    assert found.rejected[0].suggestions[0] == "save"


@pytest.mark.parametrize("name", ["ping<|message|>", "<|message|>ping", "ping.ping<|message|>"])
def test_a_control_token_in_a_tool_name_is_dropped(name):
    """Reported as ollama/ollama#17664."""
    assert calls(read(turn(to("ping", f'<atem:invoke name="{name}"></atem:invoke>')))) == [
        ("ping", {})
    ]


def test_a_control_token_in_place_of_the_end_of_a_tag_is_no_call():
    """Reported as ollama/ollama#17664."""
    found = read(turn(to("ping", '<atem:invoke name="ping<|message|></atem:invoke>')))
    assert (found.calls, verdicts(found)) == ((), ["malformed"])


@pytest.mark.parametrize("name", ['say "hi"', "two words", "a<b", "a>b", "self", "user"])
def test_a_tool_that_can_never_be_called_is_found_before_it_is_advertised(name):
    """Reported as mlx-node/mlx-node#117."""
    with pytest.raises(atem.InvalidTool, match="can't be called"):
        atem.ToolSet([tool(name)]).check()


def test_a_tool_of_a_namespace_is_found_by_its_dotted_name_and_not_by_a_guess():
    """Reported as lidge-jun/opencodex#3403."""
    member = {"type": "function", "name": "post", "parameters": {"type": "object"}}
    tools = [{"type": "namespace", "name": "ledger", "tools": [member]}]
    assert [one.name for one in read(turn(call("ledger.post")), tools=tools).calls] == ["post"]
    [rejected] = read(turn(call("post")), tools=tools).rejected
    assert rejected.suggestions == ("ledger.post",)
    assert "ledger.post" in str(atem.ToolSet(tools).feedback(rejected).content)


def test_ids_do_not_repeat_between_turns_and_values_have_their_types():
    """Reported as NousResearch/hermes-agent#83824."""
    turns = [read(turn(call("count", n="5"), call("count", n="6"))) for _ in range(3)]
    assert len({one.id for found in turns for one in found.calls}) == 6
    assert calls(turns[0]) == [("count", {"n": 5}), ("count", {"n": 6})]


# ---- Channels


def test_a_header_quoted_in_reasoning_is_no_call():
    """Reported as vllm-project/vllm#52390."""
    body = f"I could write {START}assistant to=save{MESSAGE} or to=ping{MESSAGE}, then wait."
    found = read(turn(to("self", body), ANSWER))
    assert (found.reasoning, found.content, found.calls) == (body, "Done.", ())


def test_an_answer_whose_tail_shares_a_chunk_with_a_tool_header_keeps_it():
    """Reported as vllm-project/vllm#52390."""
    text = turn(to("user", "The tail."), call("ping"))
    at = text.index("tail.")
    found = atem.parse([text[:at], text[at : at + 60], text[at + 60 :]], tools=TOOLS)
    assert (found.content, calls(found)) == ("The tail.", [("ping", {})])


def test_a_continued_answer_is_content_from_its_first_character():
    """Reported as vllm-project/vllm#52390, vllm-project/vllm#46042."""
    example = f"an example: to=user{MESSAGE} or <|start|>user"
    assert read(example + EOT, channel="self").reasoning == example
    assert read(f"of the answer.{EOT}", channel="user").content == "of the answer."


@pytest.mark.parametrize("reason", ["stop", "length"])
def test_a_cut_in_the_last_thought_keeps_the_earlier_ones(reason):
    """Reported as vllm-project/vllm#52465."""
    found = read(
        turn(to("self", "One."), call("ping"), to("self", "Two."), to("self", "Thr"), end=""),
        reason=reason,
    )
    assert (found.reasoning, len(found.calls)) == ("One.\nTwo.\nThr", 1)


def test_reasoning_tokens_are_counted_also_behind_a_call():
    """Reported as vllm-project/vllm#54462, vllm-project/vllm#54091."""
    tokens = []
    for part in as_pieces(turn(to("self", "a b"), call("ping"), to("self", "c d e"), ANSWER)):
        tokens += [part] if part.special else map(Piece, re.findall(r"\s*\S+", part.text))
    recipient, thought = None, 0
    for event in atem.parse_stream(tokens, tools=TOOLS):
        if isinstance(event, atem.MessageStart):
            recipient = event.recipient
        elif isinstance(event, atem.MessageEnd) and recipient == "self":
            thought += event.tokens
    assert thought == 5


@pytest.mark.parametrize("cut", range(len(PING) + 1))
def test_no_part_of_a_tag_is_ever_content(cut):
    """Reported as vllm-project/vllm#55395."""
    shown = "".join(
        event.text
        for event in atem.parse_stream(
            to("ping", PING)[: -cut or None], tools=TOOLS, reason="length"
        )
        if isinstance(event, atem.ContentDelta | atem.ReasoningDelta)
    )
    assert "<" not in shown


def test_prose_followed_by_a_block_without_header_is_shown_or_recovered_never_both():
    """Reported as sgl-project/sglang#34577."""
    text = f"Let me look. {PING}"
    assert (read(text).content, read(text).calls) == (text, ())
    found = read(text, recover={"headerless"})
    assert (found.content, calls(found)) == ("Let me look. ", [("ping", {})])
    addressed = to("user", text)
    assert read(addressed, recover={"headerless"}).content == text


@pytest.mark.parametrize("space", [" ", ""])
def test_a_turn_may_open_with_a_call(space):
    """Reported as ggml-org/llama.cpp#29240, jundot/omlx#2599."""
    found = read(turn(space + call("ping").lstrip()))
    assert (calls(found), found.content, found.empty) == ([("ping", {})], "", False)


def test_an_answer_and_a_call_in_one_turn_are_both_kept():
    """Reported as ggml-org/llama.cpp release b10380."""
    found = read(turn(to("self", "Hm."), to("user", "I will look."), call("ping")))
    assert (found.content, calls(found), found.finish_reason) == (
        "I will look.",
        [("ping", {})],
        "tool_calls",
    )


def test_a_bare_header_to_the_user_is_not_shown():
    """Reported as Blaizzy/mlx-vlm#1843, raullenchai/Rapid-MLX#1802."""
    assert read(turn(to("user", "Hi."))).content == "Hi."
    assert read(turn(to("self", "Hm."), ANSWER), tools=None).content == "Done."


@pytest.mark.parametrize("end", [EOM, EOT, END, ""])
def test_no_marker_of_the_framing_is_left_in_any_text(end):
    """Reported as Blaizzy/mlx-vlm#1878, mlx-node/mlx-node#117."""
    found = read(
        turn(to("self", "Hm."), to("user", "One. "), call("ping"), to("user", "Two."), end=end)
    )
    assert (found.reasoning, found.content) == ("Hm.", "One. Two.")


@pytest.mark.parametrize("tools", [None, TOOLS])
@pytest.mark.parametrize("arguments", ["stream", "whole"])
def test_text_is_the_same_with_and_without_tools_streamed_or_not(tools, arguments):
    """Reported as raullenchai/Rapid-MLX#1802, ARahim3/mlx-dspark#34."""
    text = turn(to("self", "Hm."), to("user", "One."), to("commentary", " Two."))
    events = atem.parse_stream(text, tools=tools, arguments=arguments)
    found = atem.collect(events)
    assert (found.reasoning, found.content) == ("Hm.", "One. Two.")


@pytest.mark.parametrize("recipient", ["ping", "launch", "a.b", "weird-näme"])
def test_every_recipient_is_a_header_and_none_is_shown(recipient):
    """Reported as osaurus-ai/osaurus#2354."""
    found = read(turn(to("self", "Hm."), to(recipient, block(invoke(recipient))), ANSWER))
    assert (found.reasoning, found.content) == ("Hm.", "Done.")


def test_reasoning_is_an_event_of_its_own():
    """Reported as ml-explore/mlx-swift-lm#523."""
    [event] = [
        event
        for event in atem.parse_stream([turn(to("self", "Hm."), ANSWER)])
        if isinstance(event, atem.ReasoningDelta)
    ]
    assert event.text == "Hm."


def test_a_broken_call_never_gives_its_arguments_to_the_next_tool():
    """Reported as FlashML-org/FreeToken#4."""
    found = read(turn(HALF, call("count", n="5"), call("mail.send", body="x")))
    assert calls(found) == [("count", {"n": 5}), ("mail.send", {"body": "x"})]
    assert [one.index for one in found.calls] == [0, 1]


def test_a_call_behind_reasoning_without_its_end_is_not_lost():
    """Reported as FlashML-org/FreeToken#4."""
    found = read(turn(to("self", f"Hm. to=ping{MESSAGE}{PING}")))
    assert (found.reasoning, calls(found)) == ("Hm. ", [("ping", {})])


def test_text_behind_a_tool_message_without_terminator_is_not_lost():
    """Reported as FlashML-org/FreeToken#4."""
    found = read(f"{call('ping')}{START}assistant to=user{MESSAGE}Done.{EOT}")
    assert (calls(found), found.content) == ([("ping", {})], "Done.")


@pytest.mark.parametrize("held", ["<", "<|eo", EOT, f"{EOM}{START}", "to=sel"])
def test_closing_loses_nothing_that_was_held(held):
    """Reported as smg-project/smg#2270."""
    found = read(to("user", f"a {held}b {held}"))
    assert found.content.startswith(f"a {held}b ")
    assert found.content.removeprefix(f"a {held}b ") in ("", held)


@pytest.mark.parametrize("header", [f"{START}assistant to=user", f"{START}assistant", START])
def test_half_a_header_is_dropped_and_prose_that_looks_alike_is_kept(header):
    """Reported as ai-dynamo/frontend-crates#235."""
    assert read(header, reason="length").content == ""
    prose = header.removeprefix(START)
    assert read(prose, reason="length").content == prose


def test_prose_around_a_framed_message_is_kept():
    """Reported as leehack/llamadart#398."""
    found = read(
        f"Before.{NEXT} to=user{MESSAGE} Framed.{EOM}{START}assistant{MESSAGE} After.{EOT}"
    )
    assert found.content == "Before. Framed. After."


def test_a_stop_token_is_known_by_its_id_and_not_by_its_text():
    """Reported as Joakimpalm-Zen/xyntetik-runner#121."""
    tokenizer = Tokenizer(
        models.BPE({c: i for i, c in enumerate(sorted(pre_tokenizers.ByteLevel.alphabet()))}, [])
    )
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)
    tokenizer.decoder = decoders.ByteLevel()
    tokenizer.add_special_tokens([AddedToken(m, special=True) for m in (START, MESSAGE, EOM, EOT)])
    parser = atem.Parser(tools=TOOLS, tokenizer=tokenizer)
    for token in tokenizer.encode(turn(to("self", "Hm."), call("ping"))).ids:
        assert not parser.done
        parser.feed(token)
    assert parser.done


def test_a_call_in_a_turn_without_one_declared_is_answered_and_not_shown():
    """Reported as sgl-project/sglang#34781, Blaizzy/mlx-vlm#1841."""
    found = read(turn(call("ping")), tools=None)
    assert (found.content, verdicts(found)) == ("", ["unknown_tool"])
    assert str(atem.feedback(found.rejected[0]).content)


# ---- Never an error, never a wrong call


@pytest.mark.parametrize(
    "text",
    [
        to("ping", "<atem:invoke name="),
        turn(to("ping", "</atem:function_calls></atem:invoke></atem:parameter>")),
        turn(to("save", parameter("x", "y"))),
        turn(call("count", n="[" * 100_000)),
        turn(call("count", n="9" * 5_000)),
        turn(call("count", n="1e999999999")),
        f"{START}{START}{MESSAGE}{MESSAGE}{EOM}{EOT}{EOM}",
        turn(call("ping", **{"x" * 900: "y"})),
        turn(to("\ud800", "\udfff")),
        "\x00",
    ],
)
def test_no_text_of_a_model_raises(text):
    """Reported as ggml-org/llama.cpp#27025, raullenchai/Rapid-MLX#1791."""
    assert atem.collect(list(atem.parse_stream([text], tools=TOOLS))) == atem.parse(
        text, tools=TOOLS
    )


@pytest.mark.parametrize(
    ("value", "expected"),
    [(f"a {PING} b", [("save", {"body": f"a {PING} b"})]), ("null", [("save", {"body": "null"})])],
)
def test_a_block_inside_a_value_cuts_nothing(value, expected):
    """Reported as raullenchai/Rapid-MLX#1791, raullenchai/Rapid-MLX#1515."""
    assert calls(read(turn(call("save", body=value)))) == expected


def test_text_behind_a_block_is_not_lost_without_a_trace():
    """Reported as raullenchai/Rapid-MLX#1791."""
    found = read(turn(f"{call('ping')} and then?", ANSWER))
    assert found.content == "Done."
    assert calls(found) == [("ping", {})]


@pytest.mark.parametrize("reason", ["length", "abort", "stop"])
def test_a_truncated_message_is_not_accepted_as_a_call(reason):
    """Reported as mlx-node/mlx-node#117, FlashML-org/FreeToken#4, MiaAI-Lab/DeepSeek-v4-Flash-DSpark-2x-DGX-Spark#55, ahwurm/localharness#77."""
    found = read(HALF, reason=reason)
    assert (found.calls, verdicts(found)) == ((), ["incomplete"])
    assert (found.finish_reason, found.complete) == ("length", False)
    [rejected] = found.rejected
    assert "save" in str(atem.ToolSet(TOOLS).feedback(rejected).content)


# ---- Prompts


def test_a_system_text_that_mentions_effort_gives_one_line_about_it():
    """Reported as ollama/ollama#17732."""
    system = {"role": "system", "content": "Reasoning effort: low."}
    text = prompt([system, {"role": "user", "content": "Hi."}], effort="high")
    assert re.findall(r"[Rr]easoning (?:strength|effort)[^\n]*", text) == [
        "Reasoning strength: low."
    ]


@pytest.mark.parametrize(
    ("effort", "strength"),
    [
        ("none", "low"),
        ("minimal", "low"),
        ("low", "low"),
        ("medium", "medium"),
        ("high", "high"),
        ("max", "xhigh"),
    ],
)
def test_an_effort_reaches_the_prompt_as_a_strength(effort, strength):
    """Reported as vllm-project/vllm#54186, osaurus-ai/osaurus#2358."""
    assert f"Reasoning strength: {strength}." in prompt(effort=effort)


def test_an_effort_that_does_not_exist_is_refused():
    """Reported as vllm-project/vllm#54186, ggml-org/llama.cpp#27066."""
    with pytest.raises(ValueError, match="effort"):
        prompt(effort="extreme")


def test_a_picture_becomes_its_placeholder_and_another_part_is_refused():
    """Reported as osaurus-ai/osaurus#2340, ml-explore/mlx-swift-lm#523."""
    picture = {"type": "image_url", "image_url": {"url": "file:a.png"}}
    say = {"type": "text", "text": "What is it?"}
    rendered = atem.render([{"role": "user", "content": [picture, say]}])
    assert rendered.text().count("<|patch|>") == len(rendered.images) == 1
    with pytest.raises(atem.RenderError, match="input_audio"):
        prompt([{"role": "user", "content": [{"type": "input_audio", "input_audio": {}}]}])


def test_an_undotted_tool_can_be_advertised_by_its_bare_name():
    """Reported as onnxruntime/mobius#520."""
    text = prompt(tools=TOOLS, recipients="exact")
    assert '"ping"' in text
    assert '"ping.*"' not in text
    assert '"mail.*"' in text


def test_a_doubled_name_that_the_prompt_provokes_is_resolved():
    """Reported as onnxruntime/mobius#520."""
    assert calls(read(turn(call("save.save", path="p")))) == [("save", {"path": "p"})]


def test_the_option_of_a_caller_is_honoured_or_refused():
    """Reported as ggml-org/llama.cpp#27066, Blaizzy/mlx-vlm#2174."""
    with pytest.raises(TypeError, match="enable_thinking"):
        prompt(enable_thinking=False)
    with pytest.raises(TypeError, match="repair"):
        atem.Parser(repair=True)
