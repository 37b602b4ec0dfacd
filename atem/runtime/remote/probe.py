"""What is found out about a server before the first request.

Rules: nothing is guessed in silence. Which server it is, which form of request
works and whether framing tokens survive is asked, by requests of a few tokens,
and kept in a record. A server that drops them is refused, with the option that
keeps them.
"""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final, Literal, TypeAlias

from ... import wire
from ...engine import GREEDY, Request
from ...errors import OptionError, RemoteError, Unsupported
from . import bodies
from .exchange import deltas, shape_of
from .servers import OPENAI, named, recognised

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from ...engine import Counted
    from ...tokenizer import Tokenizer
    from .line import Client
    from .servers import PromptKind

Form: TypeAlias = Literal["auto", "completions", "chat"]
Answer: TypeAlias = Literal["ids", "text", "parsed"]

CONTEXT: Final = 131072
"""Tokens of the released model (model.md 1.1), for a server that doesn't tell."""

_SLOTS: Final = 64
_LONGEST: Final = 10_000
_ASKED: Final = 48
"""Tokens that a probe asks for at most."""

_LISTING: Final = 4 * 1024 * 1024
ABSENT: Final = frozenset({404, 405, 501})
"""Statuses of a route that a server hasn't."""

_REFUSED_PROMPT: Final = frozenset({400, 422})
_FEW: Final = 4
_SAID: Final = "Say hi."
_PROMPT: Final = (
    (wire.BEGIN_OF_TEXT, True), (wire.START, True), (wire.USER, False), (wire.MESSAGE, True),
    (_SAID, False), (wire.EOT, True), (wire.START, True),
    (f"{wire.ASSISTANT} {wire.TO}{wire.USER}", False),
)  # fmt: skip
"""After it ``<|message|>`` must come: a header that only lacks its end."""


@dataclass(frozen=True, slots=True)
class Probe:
    """What was found.

    ``server`` is its kind and ``version`` its own word for it. ``prompt`` is
    how a prompt is sent, ``answer`` how an answer comes: as ids, as raw text,
    or as text that the server parsed. ``adds_begin`` says that it begins a raw
    prompt with ``<|begin_of_text|>`` itself, so that ours is left out.
    ``context`` counts tokens. ``slots`` is how many requests it takes at once.
    ``notes`` are what could not be found out.
    """

    server: str
    model: str
    form: Literal["completions", "chat"]
    prompt: PromptKind
    answer: Answer
    version: str = ""
    context: int = CONTEXT
    slots: int = _SLOTS
    adds_begin: bool = False
    notes: tuple[str, ...] = ()


@dataclass(slots=True)
class _Seen:
    """The answer to one small request."""

    text: str = ""
    apart: bool = False
    ids: list[int] = field(default_factory=list)
    counted: Counted | None = None


class Prober:
    """Asks one server."""

    def __init__(
        self,
        client: Client,
        *,
        server: str,
        model: str | None,
        tokenizer: Tokenizer | None,
        context: int | None,
    ) -> None:
        """Raises RemoteError if the server can't be reached, OptionError for what can't be."""
        self._client = client
        self._tokenizer = tokenizer
        self._notes: list[str] = []
        models, header = self._models()
        self.server = recognised(models, header) if server == "auto" else named(server)
        facts = self._get(self.server.version) if self.server.version else {}
        self._version = str(facts.get("version") or facts.get("build_info") or "")[:100]
        self._model = self._named(models) if model is None else model
        self._slots = _whole(facts.get("total_slots")) or _SLOTS
        self._context = context or _context(models, self._model, facts) or self._unknown_context()

    def probe(self, form: Form) -> Probe:
        """Try ``form``; "auto" is completions, or chat where the server has no completions.

        Raises RemoteError where framing tokens don't survive, and what a
        failing server raises.
        """
        if form == "chat":
            return self._chat()
        try:
            return self._completions()
        except RemoteError as error:
            if form != "auto" or error.status not in ABSENT:
                raise
            self._notes.append("it has no completions")
            return self._chat()

    def _completions(self) -> Probe:
        kinds = [kind for kind in self.server.prompts if kind == "text" or self._tokenizer]
        for kind in kinds:
            try:
                return self._completions_of(kind)
            except RemoteError as error:
                if kind == kinds[-1] or error.status not in _REFUSED_PROMPT:
                    raise
                self._notes.append(f"it refused a prompt of {kind}")
        raise Unsupported("this server takes ids alone; pass tokenizer=")

    def _completions_of(self, kind: PromptKind) -> Probe:
        seen = self._ask(self._small(kind))
        answer = self._survival(seen)
        begins = kind == "text" and self.server.name != "vllm" and self._adds_begin()
        return self._record("completions", kind, answer, adds_begin=begins)

    def _small(self, kind: PromptKind) -> dict[str, Any]:
        """A request whose answer must be a framing token; with its id at hand, is made to be."""
        text = "".join(part for part, _ in _PROMPT)
        body = self._body(self._ids() if kind == "ids" else text, _FEW)
        number = self._message_id()
        if number is not None:
            native = self.server.limit != "max_tokens"
            body["logit_bias"] = [[number, 100]] if native else {str(number): 100}
        return body

    def _body(self, prompt: list[int] | str, limit: int) -> dict[str, Any]:
        return bodies.completions(
            self.server,
            Request([], GREEDY),
            model=self._model,
            prompt=prompt,
            limit=limit,
            context=self._context,
            stop_ids=(),
            with_ids=self._tokenizer is not None,
        )

    def _ids(self) -> list[int]:
        assert self._tokenizer is not None
        ids: list[int] = []
        for part, control in _PROMPT:
            special = self._tokenizer.special_id(part) if control else None
            ids += self._tokenizer.encode(part) if special is None else [special]
        return ids

    def _message_id(self) -> int | None:
        return self._tokenizer.special_id(wire.MESSAGE) if self._tokenizer else None

    def _survival(self, seen: _Seen) -> Answer:
        """Whether the answer comes as ids or as text that has its framing."""
        number = self._message_id()
        if any(part in seen.text.partition(wire.MESSAGE)[0] for part in (wire.START, _SAID)):
            raise self._client.faults.error(
                "it repeats the prompt before its answer, so that old calls would be new ones; "
                "switch echo off in the server"
            )
        if number is not None and number in seen.ids:
            return "ids"
        if seen.ids and number is not None and wire.MESSAGE in seen.text:
            raise self._client.faults.error(
                f"its id of {wire.MESSAGE} is among {seen.ids[:4]}, and tokenizer= has {number}; "
                "pass the tokenizer of the model that it serves"
            )
        if wire.MESSAGE in seen.text:
            return "text"
        said = self._client.faults.quoted(seen.text, 40)
        raise self._client.faults.error(
            f"a probe had to be answered with {wire.MESSAGE} and was answered with {said}: "
            f"special tokens are dropped, or this is another model. {self.server.keep}. "
            "With a server that parses by itself use form='chat'"
        )

    def _adds_begin(self) -> bool:
        """Whether a raw prompt gets ``<|begin_of_text|>`` before it: it counts 2 then, not 1."""
        counted = self._ask(self._body(wire.BEGIN_OF_TEXT, 1)).counted
        if counted is None:
            self._notes.append("whether it begins prompts itself is unknown: it counts no tokens")
            return False
        if counted[0] > 2:
            raise self._client.faults.error(
                f"it reads {wire.BEGIN_OF_TEXT} in a raw prompt as {counted[0]} tokens, and not as "
                "a control token; pass tokenizer= so that ids are sent, or use form='chat'"
            )
        return counted[0] == 2

    def _chat(self) -> Probe:
        asked = Request([], GREEDY, max_tokens=_ASKED, chat={"messages": _SAY_HI})
        body = bodies.chat(self.server, asked, model=self._model, context=self._context)
        seen = self._ask(body, chat=True)
        start = seen.text.lstrip()[:300]
        if wire.MESSAGE in start and not seen.apart:
            return self._record("chat", "messages", "text")
        if start.startswith((wire.TO + wire.SELF, wire.TO + wire.USER)):
            said = self._client.faults.quoted(start, 40)
            raise self._client.faults.error(
                f"a chat was answered with {said}, a header without its special tokens. "
                f"{self.server.keep}; or start it with its reasoning and tool parsers"
            )
        if not (seen.text or seen.apart):
            raise self._client.faults.error("a chat was answered with nothing at all")
        return self._record("chat", "messages", "parsed")

    def _record(
        self,
        form: Literal["completions", "chat"],
        prompt: PromptKind,
        answer: Answer,
        *,
        adds_begin: bool = False,
    ) -> Probe:
        return Probe(
            server=self.server.name,
            model=self._model,
            form=form,
            prompt=prompt,
            answer=answer,
            version=self._version,
            context=self._context,
            slots=self._slots,
            adds_begin=adds_begin,
            notes=tuple(self._notes),
        )

    def _ask(self, body: Mapping[str, Any], *, chat: bool = False) -> _Seen:
        path, read = shape_of(self.server, chat=chat)
        seen, limit = _Seen(), body.get(self.server.limit) or _ASKED
        with self._client.line() as line:
            for delta in deltas(self._client, line, path, body, read, short=True):
                seen.text += delta.text
                seen.ids += delta.ids
                seen.apart = seen.apart or bool(delta.reasoning or delta.calls)
                seen.counted = delta.counted or seen.counted
                if len(seen.text) > _LONGEST or len(seen.ids) > limit:
                    raise self._client.faults.error(
                        "a few tokens were asked for; it doesn't stop, or repeats the prompt"
                    )
        return seen

    def _models(self) -> tuple[list[Mapping[str, Any]], str]:
        """The entries of the model list, none if there is no list, and the ``Server`` header."""
        with self._client.line() as line:
            try:
                response = line.open("/v1/models")
            except RemoteError as error:
                if error.status not in ABSENT:
                    raise
                self._notes.append("it lists no models")
                return [], ""
            listing = _object(line.read(_LISTING)).get("data")
            entries = listing if isinstance(listing, list) else []
            header = response.headers.get("server", "")
            return [entry for entry in entries if isinstance(entry, dict)], header

    def _get(self, path: str) -> Mapping[str, Any]:
        """A JSON object that tells more about the server; empty if it doesn't."""
        with self._client.line() as line:
            try:
                line.open(path)
                return _object(line.read(_LISTING))
            except RemoteError:
                self._notes.append(f"{path} can't be read")
                return {}

    def _named(self, models: Sequence[Mapping[str, Any]]) -> str:
        """The name to ask for. Raises OptionError if there are several."""
        # vLLM lists adapters beside the model that they change.
        ids = [model.get("id") for model in models if not model.get("parent")]
        names = [name for name in ids if isinstance(name, str) and name]
        if len(names) == 1:
            return names[0]
        if self.server.name == "mlx":
            return "default_model"
        if names or self.server is OPENAI:
            shown = ", ".join(self._client.faults.quoted(name, 60) for name in names[:4])
            listed = f"has the models {shown}" if names else "lists no models (it may serve none)"
            raise OptionError(f"the server {listed}; set model=")
        return ""

    def _unknown_context(self) -> int:
        self._notes.append(f"its context is unknown; {CONTEXT} is assumed, context= sets it")
        return CONTEXT


_SAY_HI: Final = [{"role": "user", "content": _SAID}]


def _object(body: bytes) -> Mapping[str, Any]:
    try:
        value = json.loads(body)
    except (ValueError, RecursionError):
        return {}
    return value if isinstance(value, dict) else {}


def _whole(value: object) -> int | None:
    return value if type(value) is int and value > 0 else None


def _context(
    models: Sequence[Mapping[str, Any]], model: str, facts: Mapping[str, Any]
) -> int | None:
    settings = facts.get("default_generation_settings")
    slot = settings.get("n_ctx") if isinstance(settings, dict) else None
    listed = [_whole(entry.get("max_model_len")) for entry in models if entry.get("id") == model]
    return _whole(slot) or next(iter(listed), None)
