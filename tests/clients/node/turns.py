"""Turns of a script, in the model's own text.

Rules: `^tool` and `^user` tell apart whom the last message is from.
"""

from __future__ import annotations

import re

from tests.session.scripts import block, call, invoke

__all__ = ["THOUGHT", "answer", "block", "call", "invoke", "thinking", "together", "turn"]

THOUGHT = "Look first, then act."


def thinking(rest, thought=THOUGHT):
    """``rest`` with reasoning before it."""
    return f" to=self<|message|>{thought}<|eom|><|start|>assistant{rest}"


def answer(text, thought=THOUGHT):
    """A turn that thinks and answers."""
    return thinking(f" to=user<|message|>{text}<|eot|>", thought)


def together(*calls):
    """Turns of one call each as one turn, in the template's way: a message for each call."""
    return (
        "<|eom|><|start|>assistant".join(each.removesuffix("<|eot|>") for each in calls) + "<|eot|>"
    )


def turn(write, **found):
    """A turn of a script: ``last`` and ``all`` are patterns."""
    for pattern in found.values():
        re.compile(pattern)
    return {"write": write, **found}
