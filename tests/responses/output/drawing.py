"""Turns that a model might write, and how they end, for hypothesis to draw from."""

from __future__ import annotations

from hypothesis import strategies as st

from atem import wire
from tests.responses.output.writing import EOM, EOT, called, invoke, said, thought, turn

TEXT = st.text(st.sampled_from('ab \n"\\{}<>äß😀'), max_size=12)
NAMES = st.sampled_from(["read", "patch", "mail.send", "mail.draft", "nothing", "read.read"])
KEYS = st.sampled_from(["path", "lines", "input", "other"])
ENDS = st.sampled_from([EOM, EOM, EOM, EOT, ""])

INVOKES = st.builds(
    lambda name, arguments: invoke(name, **arguments),
    NAMES,
    st.dictionaries(KEYS, TEXT, max_size=2),
)
MESSAGES = st.one_of(
    st.builds(thought, TEXT, ENDS),
    st.builds(lambda text, end: said(text, end=end), TEXT, ENDS),
    st.builds(
        lambda invokes, to, end: called(*invokes, to=to, end=end),
        st.lists(INVOKES, max_size=3),
        NAMES,
        ENDS,
    ),
    st.builds(lambda to, text, end: said(text, to, end), NAMES, TEXT, ENDS),
)
PIECES = st.sampled_from([*wire.FRAMING, " to=self", " to=user", " to=read", "<atem:", '"', "x"])
TURNS = st.one_of(
    st.lists(MESSAGES, max_size=5).map(lambda messages: turn(*messages)),
    st.lists(PIECES, max_size=20).map("".join),
)
REASONS = st.sampled_from(["stop", "length"])
