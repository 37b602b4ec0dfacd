"""Who may run what: order, patterns, and failing closed."""

from __future__ import annotations

import pytest

from atem.errors import OptionError
from atem.messages import ToolCall
from atem.tools import Allow, Ask, Deny, allow_all, ask_all, by_name, first_of


def call(name: str, namespace: str | None = None) -> ToolCall:
    return ToolCall(0, "id", name, namespace, name, None, {}, "{}")


READ, SEND = call("read"), call("send", "mail")


def test_the_two_constant_policies():
    assert allow_all(READ) == Allow()
    assert ask_all(READ) == Ask()


def test_without_an_opinion_a_person_is_asked():
    assert first_of()(READ) == Ask()
    assert first_of(lambda _: None, lambda _: None)(READ) == Ask()
    assert by_name({})(READ) == Ask()


def test_the_first_opinion_wins_and_later_policies_are_not_consulted():
    consulted = []

    def note(decision):
        def policy(_):
            consulted.append(decision)
            return decision

        return policy

    assert first_of(note(None), note(Deny("no")), note(Allow()))(READ) == Deny("no")
    assert consulted == [None, Deny("no")]


def test_a_name_wins_over_patterns_and_patterns_go_in_order():
    policy = by_name({"*": Deny("other"), "mail.*": Allow(), "read": Allow()})
    assert policy(READ) == Allow()
    assert policy(SEND) == Deny("other")
    assert by_name({"mail.*": Allow(), "*": Deny("other")})(SEND) == Allow()


def test_a_pattern_sees_the_namespace_and_the_case():
    policy = by_name(
        {"send": Allow(), "MAIL.*": Allow(), "mail.?end": Ask("Send?")}, default=Deny()
    )
    assert policy(SEND) == Ask("Send?")
    assert policy(call("send", "post")) == Deny()


def test_the_default_of_a_table_can_be_no_opinion():
    policy = first_of(by_name({"read": Allow()}, default=None), lambda _: Deny("second"))
    assert policy(READ) == Allow()
    assert policy(SEND) == Deny("second")


def test_the_resolved_name_decides_not_what_the_model_wrote():
    disguised = ToolCall(0, "id", "wipe", None, "functions.wipe", None, {}, "{}")
    policy = by_name({"functions.*": Allow(), "wipe": Deny("never")})
    assert policy(disguised) == Deny("never")


@pytest.mark.parametrize("answer", [True, "allow", Allow, 1, [Allow()]])
def test_an_answer_that_is_no_decision_is_an_error_never_a_permission(answer):
    with pytest.raises(OptionError, match="answer with Allow"):
        first_of(lambda _: answer)(READ)
    with pytest.raises(OptionError, match="'read'"):
        by_name({"read": answer})
