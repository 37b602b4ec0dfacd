"""What a client sends in one turn, read again: each request goes on where the answer before ended.

Rules: the bodies are the clients' own. The tokenizer is the small one of the
scripted engine; ids are compared, not texts.
"""

from __future__ import annotations

import json
from itertools import accumulate, pairwise, takewhile
from operator import or_

from atem.responses.anthropic import from_messages
from atem.responses.blob import Blobs
from atem.responses.chat import from_chat
from atem.responses.request import from_request
from atem.testing.scripted import ScriptedEngine, wire_ids
from tests.golden.expectation import ROOT

BODIES = {
    "/v1/responses": dict,
    "/v1/chat/completions": from_chat,
    "/v1/messages": from_messages,
}
"""Path of a request -> what makes a create body of its body."""

FOLDER = ROOT / "tests" / "cases" / "clients"
CASES = {path.stem: json.loads(path.read_text("utf-8")) for path in sorted(FOLDER.glob("*.json"))}
"""Client -> what it sent and was answered; of each request only what the one before hadn't."""

ENGINE = ScriptedEngine([])
BLOBS = Blobs(None, ENGINE.info.model)


def bodies(case):
    """The requests, whole."""
    return list(accumulate(case["requests"], or_))


def asked(path, body):
    """What a body asks, as the server reads it."""
    return from_request(BODIES[path](body), blobs=BLOBS)


def prompt_of(path, body):
    return asked(path, body).prompt(ENGINE.info)


def ids_of(path, body):
    """The ids of a request's prompt."""
    return prompt_of(path, body).token_ids(ENGINE.tokenizer)


def kept(path, before, written, after):
    """``(common, whole)``: how many ids of one request and its answer the next one begins with."""
    return begun(ids_of(path, before), written, ids_of(path, after))


def begun(before, written, after):
    """The same of the ids of their prompts."""
    known = [*before, *wire_ids(written, ENGINE.tokenizer)]
    pairs = zip(known, after, strict=False)
    return sum(1 for _ in takewhile(lambda pair: pair[0] == pair[1], pairs)), len(known)


def goes_on(path, requests, written):
    """Whether each request begins with the whole prompt before it and with its answer."""
    steps = zip(pairwise(requests), written, strict=True)
    counts = [kept(path, before, answer, after) for (before, after), answer in steps]
    return all(common == whole for common, whole in counts)
