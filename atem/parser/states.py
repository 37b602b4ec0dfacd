"""The state machines of the parser as tables.

Rules: data only. The machine moves by :data:`TRANSITIONS` and by nothing else.
A reading takes tags by :data:`STRUCTURE`; the few moves that plain text makes
(a tag's ``>``, a closer that was none) stand in :mod:`calls`. The diagrams in
docs/states.md are drawn from here.
"""

from __future__ import annotations

from enum import Enum
from typing import Final

from .. import wire


class State(Enum):
    """Where the machine stands in the turn."""

    # Members are single objects; Enum's own hash is a Python call on the hot path.
    __hash__ = object.__hash__

    OPENING = "first header"
    BETWEEN = "between messages"
    HEADER = "header"
    ANSWER = "answer body"
    REASONING = "reasoning body"
    TOOL = "tool body"
    RECOVERY = "header inside reasoning"
    INTERRUPTION = "header inside a tool body"
    BOUNDARY = "terminator, undecided"
    OVER = "turn over"


class Signal(Enum):
    """What moves the machine."""

    __hash__ = object.__hash__

    TERMINATOR = "terminator"
    START = "<|start|>"
    ADDRESSED = "to="
    TEXT = "text"
    ANSWER_HEADER = "header: user"
    SELF_HEADER = "header: self"
    TOOL_HEADER = "header: tool"
    ROLE_HEADER = "header: other role"
    NO_HEADER = "not a header"
    LITERAL_IN_ANSWER = "text follows (answer)"
    LITERAL_IN_REASONING = "text follows (reasoning)"
    LITERAL_IN_TOOL = "text follows, or not decided (tool)"
    NEXT_HEADER = "a header follows"
    MESSAGE_OVER = "message decided"
    TURN_OVER = "end of turn"
    BLOCK = "ATEM block (recover headerless)"
    CONTENT = "block is content"


_HEADERS: Final = {
    Signal.ANSWER_HEADER: State.ANSWER,
    Signal.SELF_HEADER: State.REASONING,
    Signal.TOOL_HEADER: State.TOOL,
}

TRANSITIONS: Final[dict[State, dict[Signal, State]]] = {
    State.OPENING: {
        **_HEADERS,
        Signal.NO_HEADER: State.ANSWER,
        Signal.MESSAGE_OVER: State.BETWEEN,
    },
    State.BETWEEN: {
        Signal.START: State.HEADER,
        Signal.TEXT: State.OPENING,
        Signal.TURN_OVER: State.OVER,
    },
    State.HEADER: {
        **_HEADERS,
        Signal.NO_HEADER: State.ANSWER,
        Signal.ROLE_HEADER: State.OVER,
        Signal.TERMINATOR: State.BOUNDARY,
        Signal.MESSAGE_OVER: State.BETWEEN,
    },
    State.ANSWER: {
        Signal.TERMINATOR: State.BOUNDARY,
        Signal.MESSAGE_OVER: State.BETWEEN,
        Signal.BLOCK: State.TOOL,
    },
    State.REASONING: {
        Signal.TERMINATOR: State.BOUNDARY,
        Signal.START: State.RECOVERY,
        Signal.ADDRESSED: State.RECOVERY,
        Signal.MESSAGE_OVER: State.BETWEEN,
    },
    State.TOOL: {
        Signal.TERMINATOR: State.BOUNDARY,
        Signal.START: State.INTERRUPTION,
        Signal.MESSAGE_OVER: State.BETWEEN,
        Signal.CONTENT: State.ANSWER,
    },
    State.RECOVERY: {**_HEADERS, Signal.NO_HEADER: State.REASONING},
    State.INTERRUPTION: {
        **_HEADERS,
        Signal.NO_HEADER: State.TOOL,
        Signal.ROLE_HEADER: State.OVER,
    },
    State.BOUNDARY: {
        Signal.LITERAL_IN_ANSWER: State.ANSWER,
        Signal.LITERAL_IN_REASONING: State.REASONING,
        Signal.LITERAL_IN_TOOL: State.TOOL,
        Signal.NEXT_HEADER: State.HEADER,
        Signal.TURN_OVER: State.OVER,
        Signal.MESSAGE_OVER: State.BETWEEN,
    },
    State.OVER: {},
}


HOLDING: Final = frozenset(
    (State.OPENING, State.HEADER, State.RECOVERY, State.INTERRUPTION, State.BOUNDARY)
)
"""States in which text is held because it may be framing; bounded by ``max_header``."""


class Place(Enum):
    """Where a reading stands in a tool body (wire_format 3, 5.5)."""

    __hash__ = object.__hash__

    LEAD = "before the first block"
    BLOCK = "in a block"
    INVOKE_TAG = "in an invoke tag"
    INVOKE = "in an invoke"
    PARAMETER_TAG = "in a parameter tag"
    VALUE = "in a value"
    INNER_TAG = "in a tag inside a value"
    CLOSER = "behind a closer"
    AFTER = "after a block"
    TRAIL = "trailing prose"
    FAILED = "malformed"


_OPEN_CALLS: Final = {wire.BLOCK_OPEN: Place.BLOCK, wire.INVOKE_OPEN: Place.INVOKE_TAG}
_IN_INVOKE: Final = {
    wire.PARAMETER_OPEN: Place.PARAMETER_TAG,
    # Back into the block where there is one.
    wire.INVOKE_CLOSE: Place.AFTER,
}

STRUCTURE: Final[dict[Place, dict[str, Place]]] = {
    Place.LEAD: _OPEN_CALLS,
    Place.BLOCK: {wire.INVOKE_OPEN: Place.INVOKE_TAG, wire.BLOCK_CLOSE: Place.AFTER},
    Place.INVOKE_TAG: {},
    Place.INVOKE: _IN_INVOKE,
    Place.PARAMETER_TAG: {},
    Place.VALUE: {wire.PARAMETER_CLOSE: Place.CLOSER},
    Place.INNER_TAG: {},
    # A closer counts if one of these follows; otherwise it was text (reading 1 of 5.5).
    Place.CLOSER: _IN_INVOKE,
    Place.AFTER: _OPEN_CALLS,
    Place.TRAIL: {},
    Place.FAILED: {},
}
"""Tag -> next place. Outside values a tag that is not listed makes the reading fail."""

PROSE: Final[dict[Place, Place]] = {
    Place.LEAD: Place.LEAD,
    Place.AFTER: Place.TRAIL,
    Place.TRAIL: Place.TRAIL,
}
"""Where text that is not blank may stand outside values, and where it leads."""

FLAT: Final = frozenset((Place.VALUE, Place.TRAIL, Place.FAILED))
"""Places that text without a marker doesn't leave."""

IN_TAG: Final = frozenset((Place.INVOKE_TAG, Place.PARAMETER_TAG, Place.INNER_TAG))
OPEN: Final = frozenset(
    (
        Place.INVOKE_TAG,
        Place.INVOKE,
        Place.PARAMETER_TAG,
        Place.VALUE,
        Place.INNER_TAG,
        Place.CLOSER,
    )
)
"""Places inside an invoke that is not closed."""
