"""What a scripted model writes, and sessions with it.

Rules: engines are ``ScriptedEngine``; tools are functions that note that they ran.
"""

from __future__ import annotations

import atem
from atem.session import Session
from atem.testing.scripted import ScriptedEngine

THOUGHT = " to=self<|message|>Look first.<|eom|><|start|>assistant"
DONE = " to=user<|message|>It is so.<|eot|>"


def invoke(name, **arguments):
    """One call as the model writes it."""
    inside = "".join(
        f'<atem:parameter name="{key}">{value}</atem:parameter>\n'
        for key, value in arguments.items()
    )
    return f'<atem:invoke name="{name}">\n{inside}</atem:invoke>\n'


def block(*invokes, to):
    return (
        f" to={to}<|message|><atem:function_calls>\n{''.join(invokes)}</atem:function_calls><|eot|>"
    )


def call(name, **arguments):
    """A turn with one call."""
    return block(invoke(name, **arguments), to=name)


class Ran(list):
    """The calls that were run, by a tool ``note(text)`` that may fail."""

    @property
    def tools(self):
        def note(text: str) -> str:
            """Note a text."""
            self.append(text)
            if text == "bad":
                raise ValueError("it is bad")
            return f"noted {text}"

        return [note]


def session(*turns, ran=None, **options):
    """A session with a model that writes ``turns``, whose ``note`` appends to ``ran``."""
    options = {"policy": atem.allow_all, "tools": (Ran() if ran is None else ran).tools} | options
    return Session(ScriptedEngine(turns), **options)


def of(kind, events):
    return [event for event in events if isinstance(event, kind)]


def results(session):
    """The contents of the tool messages, in order."""
    return [message.content for message in session.history if message.role == "tool"]
