"""``RemoteEngine``: a server as an engine.

Rules: it renders nothing and parses nothing. A rendered prompt goes out as ids
where server and tokenizer allow it; what comes back is steps like those of any
engine.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from ... import wire
from ...engine import EngineInfo, Step, require_features
from ...errors import EngineClosed, OptionError, RemoteError, Unsupported
from ...tokenizer import wrap
from . import bodies, prompts
from .address import check_key, server_root
from .exchange import deltas, shape_of, understood
from .frames import Frames
from .line import Client
from .patience import Patience
from .probe import ABSENT, Form, Prober
from .reading import Text, Tokens, Writer, steps

if TYPE_CHECKING:
    from collections.abc import Generator, Iterator, Mapping

    from ...engine import Feature, Request
    from ...tokenizer import Tokenizer
    from .line import Line
    from .probe import Probe

_FORMS: Final = ("auto", "completions", "chat")


class RemoteEngine:
    """An OpenAI-style server behind the engine protocol.

    ``url`` is its address, with or without ``/v1``. With ``tokenizer`` (the
    model's own, anything that :func:`atem.tokenizer.wrap` takes) prompts go out
    as ids and answers come back as ids, on servers that can; without it, as raw
    text, and a prompt in which text spells a special token is refused. ``form``
    is "completions" (our prompt), "chat" (``Request.chat``, the server's own
    template and parsers) or "auto" (completions if there are any). ``server``
    names the kind of server where its answers don't: vllm, sglang, llama.cpp,
    mlx or openai. ``timeout`` is seconds without a byte; little more is given
    to an answer's head, and to a probe as a whole. ``retries`` counts
    further tries of a request that got no answer; a :class:`Patience` says more.
    ``transport`` is an httpx2 transport, for proxies and certificates; those of
    the environment are not used.

    The server is asked what it is and what it can do right here, with one to
    three requests of a few tokens; ``probe`` has what was found. Raises
    OptionError for an option that can't work, RemoteError for a server that
    can't be reached or drops special tokens, MissingExtra without httpx2.

    In form "chat" the server's parsers may have taken the turn apart. It is put
    together again: reasoning, content, then each call, framing as special
    pieces. A string argument that a tool's schema doesn't type as a string may
    be read back as JSON, as on the wire itself (wire_format 7).
    """

    def __init__(
        self,
        url: str,
        *,
        model: str | None = None,
        tokenizer: object | None = None,
        api_key: str | None = None,
        form: Form = "auto",
        server: str = "auto",
        context: int | None = None,
        timeout: float = 600.0,
        retries: int | Patience = 2,
        transport: Any = None,
    ) -> None:
        if form not in _FORMS:
            raise OptionError(f"form={form!r}; it is one of {', '.join(_FORMS)}")
        if not (isinstance(timeout, int | float) and 0 < timeout < 1e9):
            raise OptionError(f"timeout={timeout!r}; it is a number of seconds above 0")
        if context is not None and not (isinstance(context, int) and context >= 1):
            raise OptionError(f"context={context!r}; it is a number of tokens, 1 or more, or None")
        if not isinstance(retries, int | Patience):
            raise OptionError(f"retries={retries!r}; it is a number of tries, or a Patience")
        patience = Patience(retries) if isinstance(retries, int) else retries
        self._tokenizer = None if tokenizer is None else wrap(tokenizer)
        self._client = Client(
            server_root(url),
            key=check_key(api_key),
            timeout=timeout,
            patience=patience,
            transport=transport,
        )
        try:
            prober = Prober(
                self._client,
                server=server,
                model=model,
                tokenizer=self._tokenizer,
                context=context,
            )
            self._probe = prober.probe(form)
        except BaseException:
            self._client.close()
            raise
        self._server = prober.server
        self._info = self._described()

    def __repr__(self) -> str:
        found = self._probe
        return f"RemoteEngine(server={found.server!r}, model={found.model!r}, form={found.form!r})"

    @property
    def info(self) -> EngineInfo:
        """What the server is and can do."""
        return self._info

    @property
    def probe(self) -> Probe:
        """What was found out about the server."""
        return self._probe

    @property
    def upstream(self) -> Mapping[str, Any]:
        """How the server is asked and answers, from ``probe``, in short.

        ``special_tokens`` is "kept" where they come as the model wrote them, else
        "parsed": the server took the turn apart.
        """
        found = self._probe
        return {
            "server": found.server,
            "form": found.form,
            "prompt": found.prompt,
            "answer": found.answer,
            "special_tokens": "parsed" if found.answer == "parsed" else "kept",
        }

    @property
    def tokenizer(self) -> Tokenizer:
        """The tokenizer that was given. Raises Unsupported if none was."""
        if self._tokenizer is None:
            raise Unsupported("this engine has no tokenizer; pass tokenizer= to RemoteEngine")
        return self._tokenizer

    def generate(self, request: Request, /) -> Iterator[Step]:
        """Steps until one has a ``finish``; ``close`` ends the server's work, from any thread.

        The connection is made with the first step. ``cached_tokens`` stands on
        the last one, because servers tell it there. Raises Unsupported for what
        the server can't do, ContextOverflow for a prompt without room for an
        answer (later, if only the server can count it), EngineClosed. Later
        come RemoteError for a failure, and EngineClosed if the engine is closed
        meanwhile.
        """
        self._client.require_open()
        require_features(self._info, request)
        body = self._body(request)
        line = self._client.line()
        return Steps(self._run(request, body, line), line)

    def reach(self) -> None:
        """Ask the server, once and for few seconds, whether it works.

        A server without that route answered, and so works. Raises RemoteError, EngineClosed.
        """
        with self._client.line() as line:
            response = line.ask_once(self._server.health, self._client.shortest)
            if response.status_code not in (200, *ABSENT):
                raise self._client.faults.error(
                    f"HTTP {response.status_code} from {self._server.health}", response.status_code
                )

    def close(self) -> None:
        """Cut what is running and close all connections; a second call does nothing."""
        if not self._client.closed:
            self._client.close()

    def _run(
        self, request: Request, body: Mapping[str, Any], line: Line
    ) -> Generator[Step, None, None]:
        path, read = shape_of(self._server, chat=self._probe.form == "chat")
        try:
            with line, understood(self._client.faults):
                answer = deltas(self._client, line, path, body, read)
                wanted, limit = request.sampling.logprobs, body.get(self._server.limit)
                for step in steps(answer, self._writer(request), wanted, limit):
                    if line.is_cut:
                        break
                    yield step
                    if step.finish:
                        return
        except RemoteError:
            if not line.is_cut:
                raise
        if self._client.closed:
            raise EngineClosed("the engine was closed during this generation")
        # Closed by another thread: whoever reads must not take what came for a whole turn.
        yield Step(finish="abort")

    def _body(self, request: Request) -> dict[str, Any]:
        found = self._probe
        if found.form == "chat":
            return bodies.chat(self._server, request, model=found.model, context=found.context)
        ids = prompts.prompt_ids(request, self._tokenizer)
        limit = request.max_tokens
        if ids is not None:
            limit = prompts.room(len(ids), found.context, limit)
        return bodies.completions(
            self._server,
            request,
            model=found.model,
            prompt=self._prompt(request, ids),
            limit=limit,
            context=found.context,
            stop_ids=self._info.stop_ids,
            with_ids=found.answer == "ids",
        )

    def _prompt(self, request: Request, ids: list[int] | None) -> list[int] | str:
        if self._probe.prompt == "ids" or not hasattr(request.prompt, "token_ids"):
            if ids is None or "ids" not in self._server.prompts:
                raise Unsupported("this server takes no ids; give a rendered prompt")
            return ids
        text = prompts.raw_text(request.prompt)
        return prompts.without_begin(text) if self._probe.adds_begin else text

    def _writer(self, request: Request) -> Writer:
        if self._probe.answer == "parsed":
            return Frames(_without_parameters(request.chat))
        if self._probe.answer == "ids" and self._tokenizer is not None:
            return Tokens(self._tokenizer, request.stop)
        return Text(request.stop)

    def _described(self) -> EngineInfo:
        found = self._probe
        return EngineInfo(
            model=found.model,
            backend=f"remote {found.server}",
            context=found.context,
            stop_ids=self._stop_ids(),
            features=self._features(),
            max_batch=found.slots,
        )

    def _stop_ids(self) -> frozenset[int]:
        known = self._tokenizer
        found = [known.special_id(text) for text in wire.TURN_ENDS] if known else []
        return frozenset(number for number in found if number is not None)

    def _features(self) -> frozenset[Feature]:
        answer = self._probe.answer
        if self._probe.form == "chat":
            # Stop strings end raw text here; what the server takes apart has other words in it.
            return self._server.chat_features | ({"stop"} if answer == "text" else set())
        return self._server.features - (set() if answer == "ids" else {"logprobs"})


class Steps:
    """The iterator of one generation. ``close`` may be called from any thread."""

    def __init__(self, running: Generator[Step, None, None], line: Line) -> None:
        self._running = running
        self._line = line

    def __iter__(self) -> Iterator[Step]:
        return self

    def __next__(self) -> Step:
        return next(self._running)

    def close(self) -> None:
        """End the connection at once, also while another thread waits for the first byte."""
        self._line.cut()
        try:
            self._running.close()
        except ValueError:  # another thread is inside; it wakes up, and closes what it reads from
            return
        self._line.close()

    def __del__(self) -> None:
        self.close()


def _without_parameters(chat: Mapping[str, Any] | None) -> frozenset[str]:
    """The tools of a chat request that certainly take no arguments."""
    tools = [tool for tool in (chat or {}).get("tools") or () if isinstance(tool, dict)]
    functions = [tool.get("function") or tool for tool in tools]
    return frozenset(str(one.get("name")) for one in functions if _takes_nothing(one))


def _takes_nothing(function: Any) -> bool:
    if not isinstance(function, dict):
        return False
    schema = function.get("parameters") or {}
    return isinstance(schema, dict) and not any(map(schema.get, _PARAMETERS))


_PARAMETERS: Final = ("properties", "required", "$ref", "allOf", "anyOf", "oneOf")
