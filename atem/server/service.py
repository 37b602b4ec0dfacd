"""What the routes share: the engine, the store, who may ask, what is running.

Rules: lives on one event loop, from :meth:`Service.open` to :meth:`Service.close`.
Reading a request, which may take long, is done in a thread.
"""

from __future__ import annotations

import asyncio
import logging
import time
import traceback
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from contextvars import copy_context
from datetime import UTC, datetime
from fnmatch import fnmatchcase
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, TypeAlias, TypeVar

from ..engine import tokenizer_of
from ..errors import OptionError
from ..responses.blob import Blobs
from ..responses.faults import (
    ApiError,
    missing,
    model_not_found,
    overloaded,
    server_error,
    unsupported,
)
from ..responses.ids import new_id
from ..responses.request import from_request, input_tokens, truncate
from . import tracing
from .auth import keys_of
from .conversations import conversation
from .guard import check_page
from .handover import Waker
from .inspector.live import Live
from .keeping import chain, referred
from .leases import recover, tend
from .metrics import Metrics
from .noting import noted
from .quota import Quota
from .reaching import Reaching
from .reply import DRAINED, Reply
from .settings import DAY, NO_DATE, TODAY
from .slots import Slots
from .store import Bounds
from .store.memory import MemoryStore

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Coroutine, Mapping, Sequence

    from ..engine import Engine, Sampling
    from ..responses.ask import Ask
    from ..tokenizer import Tokenizer
    from .jobs import Job
    from .settings import Settings
    from .store import Store

T = TypeVar("T")
Item: TypeAlias = dict[str, Any]

REMOTE_RUNNING: Final = 64
"""Generations at once for a server behind, which has a queue of its own."""

UNCOUNTED: Final = (
    "The tokens can't be counted: this engine has no tokenizer. Start the server with --tokenizer."
)

LAST_SECONDS: Final = 5.0
"""For what was told to stop."""

log = logging.getLogger("atem.server")


class Service:
    """One server's state. Raises OptionError for settings that can't work."""

    def __init__(
        self,
        engine: Engine,
        settings: Settings,
        *,
        store: Store | None = None,
        sampling: Sampling | None = None,
    ) -> None:
        self.engine = engine
        self.settings = settings
        self.keys = keys_of(settings)
        self.blobs = blobs_of(settings, engine.info.model)
        self.sampling = sampling or engine.info.sampling
        self.store = store or store_of(settings)
        self.names = settings.model_name or (engine.info.model,)
        running = settings.running or _running(engine)
        self.slots = Slots(running, settings.queue, settings.key_running)
        self.quota = Quota(settings.key_requests)
        self.metrics = Metrics(self.slots)
        self.reaching = Reaching(engine)
        self.replies: set[Reply] = set()
        self.live = Live(settings.inspect_last)
        self.jobs: dict[tuple[str, str], Job] = {}
        self.draining = False
        self.ending = asyncio.Event()
        self.owner = new_id("server")
        self.waker: Waker
        self._idle = asyncio.Event()
        self.started = time.time()
        self._workers = ThreadPoolExecutor(2 * running, "atem-engine")
        self._tasks: set[asyncio.Task[Any]] = set()

    async def open(self) -> None:
        """Begin: close what nobody writes any more, and let time pass in the store."""
        self.waker = Waker(asyncio.get_running_loop())
        await recover(self.store, self.owner)
        await self.store.expire()
        self.spawn(tend(self))

    async def close(self) -> None:
        """End: what still runs fails, and the store is closed. The engine stays the caller's."""
        await self.drain(0)
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        self._workers.shutdown(wait=False)
        await self.store.close()

    async def drain(self, seconds: float) -> None:
        """Take nothing new; let what runs finish for some seconds, then fail it."""
        self.draining = True
        self.ending.set()
        await self._quiet(seconds)
        for reply in list(self.replies):
            reply.stop(server_error(DRAINED))
        await self._quiet(LAST_SECONDS)
        await asyncio.gather(*(job.done() for job in list(self.jobs.values())))

    def began(self, reply: Reply) -> None:
        """``reply`` is being written, or waits for that."""
        self.replies.add(reply)
        self._idle.clear()

    def answered(self, reply: Reply) -> None:
        """``reply`` came to its end."""
        self.metrics.answered(reply)
        error = reply.builder.error
        if error is not None and not isinstance(error, ApiError):
            self.report(error, f"response {reply.id}")

    def ended(self, reply: Reply) -> None:
        """``reply`` is not being written any more."""
        tracing.ended(reply.span, reply)
        self.replies.discard(reply)
        if not self.replies:
            self._idle.set()

    async def _quiet(self, seconds: float) -> None:
        """Wait until nothing is being written, but not for long."""
        if self.replies:
            with suppress(TimeoutError):
                async with asyncio.timeout(seconds):
                    await self._idle.wait()

    def admit(self, headers: Mapping[str, str]) -> str:
        """In whose name a request with these headers asks. Raises ApiError (401, 403)."""
        if not self.keys:
            check_page(self.settings, headers)
        return self.keys.tenant(headers)

    async def begin(
        self, body: dict[str, Any], tenant: str, near: Store | None = None
    ) -> tuple[Reply, dict[str, str]]:
        """A reply to a create body, and the headers that name what of it has no effect.

        ``near`` is a store to look into first, which keeps the reply too. Raises ApiError.
        """
        if self.draining:
            raise overloaded("The server is shutting down; try another, or try again later.")
        self.quota.take(tenant)
        history, found = await self.before(body, tenant, () if near is None else (near,))
        ask = await asyncio.to_thread(self._read, body, history, found)
        notes = noted(ask, self.engine.info, counts=self.tokenizer is not None)
        return Reply(self, ask, tenant, near), notes

    async def before(
        self, body: dict[str, Any], tenant: str, near: Sequence[Store] = ()
    ) -> tuple[list[Item], dict[str, Item]]:
        """The items that a body goes on from, and those that it names. Raises ApiError."""
        self.model(body.get("model"))
        stores = (*near, self.store)
        found = await referred(stores, tenant, body.get("input"))
        if body.get("conversation") is not None and body.get("previous_response_id") is None:
            record = await conversation(self.store, tenant, body["conversation"])
            return record.body["items"], found
        return await chain(stores, tenant, body.get("previous_response_id")), found

    async def count(self, body: dict[str, Any], tenant: str) -> int:
        """The tokens of the prompt of a create body. Raises ApiError."""
        tokenizer = self.tokenizer
        if tokenizer is None:
            raise unsupported(None, UNCOUNTED)
        history, found = await self.before(body, tenant)
        ask = await asyncio.to_thread(self._ask, body, history, found)
        return await asyncio.to_thread(input_tokens, ask, tokenizer, self.engine.info)

    def model(self, name: Any) -> str:
        """``name``, if it is served. Raises ApiError (400, 404)."""
        if not isinstance(name, str) or not name:
            raise missing("model")
        if not any(_fits(name, served) for served in self.names):
            raise model_not_found(name[:100])
        return name

    @property
    def tokenizer(self) -> Tokenizer | None:
        """The engine's; None for a server that answers in text."""
        return tokenizer_of(self.engine)

    async def tried(self, work: Awaitable[Any], doing: str) -> None:
        """Wait for ``work`` with a store; if it fails, that is reported and spoils no answer."""
        try:
            await work
        except Exception as error:  # noqa: BLE001 - a full disk has many types
            self.report(error, doing)

    def work(self, function: Callable[..., T], *arguments: Any) -> asyncio.Future[T]:
        """Run ``function`` in a thread of the engine's; the trace goes on there."""
        running = self._workers.submit(copy_context().run, function, *arguments)
        return asyncio.wrap_future(running)

    def spawn(self, work: Coroutine[Any, Any, T]) -> asyncio.Task[T]:
        """Run ``work`` beside everything else; what it raises is reported."""
        task = asyncio.ensure_future(work)
        self._tasks.add(task)
        task.add_done_callback(self._ended)
        return task

    def report(self, error: BaseException, doing: str) -> None:
        """Log that something broke: where and what kind, without a word of anybody's text."""
        self.metrics.error()
        frames = traceback.extract_tb(error.__traceback__)[-6:]
        where = " < ".join(f"{Path(f.filename).name}:{f.lineno}" for f in reversed(frames))
        log.error("%s: %s at %s", doing, type(error).__name__, where)

    def _ask(self, body: dict[str, Any], history: list[Item], found: dict[str, Item]) -> Ask:
        return from_request(
            body,
            history=history,
            lookup=found.get,
            defaults=self.sampling,
            blobs=self.blobs,
            current_date=_date(self.settings.current_date),
        )

    def _read(self, body: dict[str, Any], history: list[Item], found: dict[str, Item]) -> Ask:
        """As an Ask that fits the context."""
        ask = self._ask(body, history, found)
        info = self.engine.info
        if self.tokenizer is not None:
            ask = truncate(ask, self.tokenizer, info.context, info)
        if ask.logprobs or self.tokenizer is None:
            ask.engine_request(info)  # what it refuses is refused before anything is sent
        return ask

    def _ended(self, task: asyncio.Task[Any]) -> None:
        self._tasks.discard(task)
        error = None if task.cancelled() else task.exception()
        if error is not None and not isinstance(error, ApiError):
            self.report(error, "a task")


def _date(setting: str) -> str | None:
    """The date for the model; None for its template's own."""
    if setting == TODAY:
        return datetime.now(UTC).date().isoformat()
    return None if setting == NO_DATE else setting


def _fits(name: str, served: str) -> bool:
    return name == served or ("*" in served and fnmatchcase(name, served))


def _running(engine: Engine) -> int:
    least = REMOTE_RUNNING if engine.info.backend.startswith("remote") else 1
    return max(least, engine.info.max_batch)


def blobs_of(settings: Settings, model: str) -> Blobs:
    """How the reasoning of ``model`` is sealed. Raises OptionError for a key that can't be used."""
    key_file = settings.blob_key_file
    if key_file is None:
        return Blobs(None, model)
    try:
        return Blobs(Path(key_file).read_bytes().strip(), model)
    except (OSError, ValueError) as error:
        raise OptionError(f"blob_key_file={key_file!r} can't be used: {error}") from error


def store_of(settings: Settings) -> Store:
    """The store that the settings ask for. With "off" it is one in memory that keeps nothing.

    Raises OptionError for one that can't be, MissingExtra without its package.
    """
    bounds = Bounds(
        settings.store_days * DAY, settings.store_bytes, lease_seconds=settings.lease_seconds
    )
    if settings.store == "sqlite":
        from .store.sqlite import SQLiteStore, default_path

        return SQLiteStore(settings.store_path or default_path(), bounds)
    if settings.store == "postgres":
        from .store.postgres import PostgresStore

        return PostgresStore(settings.store_url or "", bounds, name=settings.store_name)
    if settings.store == "redis":
        from .store.redis import RedisStore

        return RedisStore(settings.store_url or "", bounds, name=settings.store_name)
    return MemoryStore(bounds)
