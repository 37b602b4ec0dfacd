"""The torch engine: requests share passes, without a thread of its own.

Rules: whoever asks for a step and finds none does one for everybody, under the
lock: one token of every request that is ready, then a piece of one prompt. What
goes wrong is charged to the requests it was done for.
"""

from __future__ import annotations

from threading import Lock
from typing import TYPE_CHECKING, Any, Final

import torch

from ...engine import EngineInfo, Progress, Request, Step, require_features
from ...errors import EngineClosed, EngineError, OptionError, OutOfMemory
from ...tokenizer import wrap
from ..generation import Generation, features
from ..grammar.vocabulary import Vocabulary
from ..memory import Needs
from ..prefix import PrefixCache
from ..sampling import default_sampling
from ..tokens import load_tokenizer, stop_ids
from .cache import Block, Cache
from .device import DTYPES, device_of, dtype_of, free_memory, is_out_of_memory
from .model import Model
from .runner import Runner
from .schedule import Job, Schedule, longest
from .weights import Loader

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from ...tokenizer import Tokenizer
    from ..checkpoint import Checkpoint
    from ..sampling import Candidates

GIB: Final = 1 << 30


class TorchEngine:
    """Runs a checkpoint's text decoder on ``device`` ("auto", "cpu", "cuda", "cuda:1", ...).

    ``dtype`` is "float32" or "bfloat16"; "auto" is float32 on the CPU and for
    weights stored so. ``context`` (tokens) may be below the configuration's. Up
    to ``max_batch`` requests share each pass; more wait, and where all of those
    are left unread, one of them makes room and is computed again when it is
    read. ``prefill_chunk`` is the number of prompt tokens computed at once (1024
    on CUDA, 256 on the CPU).
    Beginnings of prompts are remembered in blocks of ``block`` tokens, within
    ``prefix_bytes`` (2 GiB on CUDA, 256 MiB on the CPU; 0: not at all). Keys
    and values of running requests are kept within ``cache_bytes`` (None: as far
    as memory goes). ``cuda_graphs`` None means on CUDA. ``progress`` hears the
    stored bytes read so far. The checkpoint may be closed afterwards.

    Raises OptionError for an option that can't work or be had, OutOfMemory if
    there is no memory for the weights.
    """

    def __init__(
        self,
        checkpoint: Checkpoint,
        *,
        tokenizer: object = None,
        device: str = "auto",
        dtype: str = "auto",
        context: int | None = None,
        max_batch: int = 8,
        prefill_chunk: int | None = None,
        prefix_bytes: int | None = None,
        block: int = 64,
        cache_bytes: int | None = None,
        cuda_graphs: bool | None = None,
        progress: Callable[[Progress], None] | None = None,
    ) -> None:
        place, config = device_of(device), checkpoint.config
        on_gpu = place.type == "cuda"
        number_type = dtype_of(dtype, place, checkpoint)
        context = _within("context", context, config.max_position_embeddings)
        chunk = _positive("prefill_chunk", prefill_chunk, 1024 if on_gpu else 256)
        max_batch = _positive("max_batch", max_batch, 8)
        if cuda_graphs and not on_gpu:
            raise OptionError("cuda_graphs=True and the device is the CPU; leave it out")
        budget = _prefix_budget(place) if prefix_bytes is None else prefix_bytes
        self._prefix: PrefixCache[Block] = PrefixCache(block, budget)
        self.tokenizer: Tokenizer = (
            load_tokenizer(checkpoint) if tokenizer is None else wrap(tokenizer)
        )
        self.info = EngineInfo(
            checkpoint.path.name, "torch", context, stop_ids(self.tokenizer, checkpoint),
            features(self.tokenizer),
            max_batch=max_batch, dtype=number_type, layout=checkpoint.layout,
            sampling=default_sampling(checkpoint.files.generation_config),
        )  # fmt: skip
        self._vocabulary = Vocabulary(self.tokenizer, self.info.stop_ids, config.vocab_size)
        self._lock = Lock()
        self._schedule = Schedule(max_batch, chunk)
        cache = Cache(
            config, device=place, dtype=DTYPES[number_type], context=context,
            slack=chunk + block, max_slots=max_batch,
            limit=None if cache_bytes is None else _positive("cache_bytes", cache_bytes, 1),
        )  # fmt: skip
        model = _load(checkpoint, place, DTYPES[number_type], progress)
        static = on_gpu if cuda_graphs is None else cuda_graphs
        self._runner: Runner | None = Runner(model, cache, max_batch=max_batch, static=static)

    @staticmethod
    def needs(
        checkpoint: Checkpoint,
        *,
        device: str = "auto",
        dtype: str = "auto",
        context: int | None = None,
        prefix_bytes: int | None = None,
        **_: Any,
    ) -> Needs:
        """What these options would use."""
        place = device_of(device)
        longest = context or checkpoint.config.max_position_embeddings
        budget = _prefix_budget(place) if prefix_bytes is None else prefix_bytes
        return Needs(dtype_of(dtype, place, checkpoint), free_memory(place), longest, budget)

    def generate(self, request: Request, /) -> Iterator[Step]:
        """See :class:`atem.engine.Engine`. Iterators may be read in turns, or by many threads."""
        self._open()
        require_features(self.info, request)
        ids = list(request.prompt_ids(self.tokenizer))
        generation = Generation(request, ids, self._vocabulary, context=self.info.context)
        return self._steps(Job(generation, ids))

    def close(self) -> None:
        """See :class:`atem.engine.Engine`; what is still running ends in EngineClosed."""
        with self._lock:
            self._runner = None
            self._schedule.clear()
            self._prefix.clear()

    def _open(self) -> Runner:
        if self._runner is None:
            raise EngineClosed("the engine was closed; load another")
        return self._runner

    def _steps(self, job: Job) -> Iterator[Step]:
        try:
            while True:
                step = self._next(job)
                yield step
                if step.finish is not None:
                    return
        finally:
            job.gone = True
            # Not waited for: the garbage collector may close an iterator while this very thread
            # does a step. Whoever has the lock looks again before its next one.
            if self._lock.acquire(blocking=False):
                try:
                    self._dismiss()
                finally:
                    self._lock.release()

    def _next(self, job: Job) -> Step:
        while True:
            runner = self._open()
            if job.steps:
                return job.steps.popleft()
            with self._lock:
                if job.error is not None:
                    raise job.error
                if not job.steps and self._runner is runner:
                    self._advance(runner, job)

    # -- one step for everybody; the lock is held --------------------------------

    def _advance(self, runner: Runner, job: Job) -> None:
        """Bring ``job`` nearer to its next step, and the others with it."""
        self._dismiss()
        self._schedule.ask(job)
        self._admit(runner)
        self._make_room(runner)
        decoded = self._decode(runner)
        filled = self._fill(runner)  # last: a first token doesn't wait for the second
        if not filled and not decoded and self._schedule.waiting and self._schedule.seats:
            # Nobody reads what all seats have made, perhaps because the reader is us. One of them
            # starts again later; its beginning is in the prefix cache, with some luck.
            idlest = self._schedule.idlest()
            idlest.done, idlest.trail = 0, None
            self._unseat(runner, idlest)

    def _dismiss(self) -> None:
        """Give the seats of closed iterators back."""
        if self._runner is not None:
            for job in [*self._schedule.seats, *self._schedule.waiting]:
                if job.gone:
                    self._unseat(self._runner, job)

    def _admit(self, runner: Runner) -> None:
        schedule = self._schedule
        while schedule.waiting and schedule.has_seat:
            job = schedule.waiting[0]
            try:
                hit = self._prefix.lookup(job.ids)
                seats = [*schedule.seats, job]
                self._reserve(runner, seats)
                runner.restore(len(schedule.seats), hit.payloads)
            except Exception as error:  # noqa: BLE001 - it is raised where the job is read
                self._fail(runner, [job], error)
                continue
            job.generation.cached_tokens = job.done = hit.tokens
            job.trail = hit.trail
            schedule.seats.append(schedule.waiting.popleft())

    def _make_room(self, runner: Runner) -> None:
        """Room for one more token of everybody; if there is none, the longest request ends."""
        while seats := self._schedule.seats:
            try:
                return self._reserve(runner, seats)
            except Exception as error:  # noqa: BLE001 - as above
                self._fail(runner, [longest(seats)], error)
        return None

    def _reserve(self, runner: Runner, jobs: Sequence[Job]) -> None:
        need = len(jobs), len(longest(jobs).ids)
        try:
            runner.reserve(*need)
        except Exception as error:
            limited = isinstance(error, OutOfMemory)  # by cache_bytes, which counts no prefixes
            if limited or not is_out_of_memory(error) or not len(self._prefix):
                raise
            self._prefix.clear()  # what runs goes before what may come back
            runner.reserve(*need)

    def _fill(self, runner: Runner) -> bool:
        """A piece of one prompt, and its first token if it was the last piece."""
        turn = self._schedule.filling()
        if turn is None:
            return False
        seat, span = turn
        job = self._schedule.seats[seat]
        last = span.stop == len(job.ids)
        try:
            piece = job.ids[span.start : span.stop]
            logits = runner.fill(seat, span.start, piece, rows=int(last))
            found = runner.choose(logits, [0], [job.generation.need]) if last else []
        except Exception as error:  # noqa: BLE001 - as above
            self._fail(runner, [job], error)
            return True
        self._settle(runner, job, span.stop, *found)
        return True

    def _decode(self, runner: Runner) -> bool:
        """One token of every request that is ready."""
        ready, seats = self._schedule.ready(), list(self._schedule.seats)
        if not ready:
            return False
        jobs = [seats[seat] for seat in ready]
        rows = [(job.ids[job.done], job.done) for job in seats]
        try:
            logits = runner.decode(rows, ready[-1] + 1)
            found = runner.choose(logits, ready, [job.generation.need for job in jobs])
        except Exception as error:  # noqa: BLE001 - as above
            short = is_out_of_memory(error)
            self._fail(runner, [longest(jobs)] if short else jobs, error)
            return True
        for job, candidates in zip(jobs, found, strict=True):
            self._settle(runner, job, job.done + 1, candidates)
        return True

    def _settle(self, runner: Runner, job: Job, done: int, *found: Candidates) -> None:
        """The first ``done`` tokens are in the cache; the next one is among ``found``."""
        try:
            job.done = done
            self._remember(runner, job)
            for candidates in found:
                step = job.generation.take(candidates)
                job.ids.append(job.generation.last_id)
                job.steps.append(step)
        except BaseException as error:
            # Half a step can't be taken back, not even by whoever interrupts.
            self._fail(runner, [job], error)
            if not isinstance(error, Exception):
                raise
        if job.generation.finished:
            job.gone = True
            self._unseat(runner, job)

    def _remember(self, runner: Runner, job: Job) -> None:
        """Store the blocks that are complete now."""
        if job.trail is None or not self._prefix.budget:
            return
        try:
            while (span := job.trail.wanted(job.ids, job.done)) is not None:
                block = runner.copy(self._schedule.seats.index(job), span)
                job.trail.store(job.ids, block, sum(part.nbytes for part in block))
        except Exception as error:
            if not is_out_of_memory(error):
                raise
            job.trail = None  # what isn't remembered is computed again, that's all

    def _fail(self, runner: Runner, jobs: Sequence[Job], error: BaseException) -> None:
        """End ``jobs``; their readers get ``error``."""
        told = error
        if is_out_of_memory(error) and not isinstance(error, OutOfMemory):
            told = OutOfMemory(f"no memory for this request ({error}); make it shorter")
        elif not isinstance(error, Exception):
            told = EngineError(f"a step was interrupted ({error!r}); send the request again")
        if told is not error:
            told.__cause__ = error
        for job in jobs:
            job.error, job.gone = told, True
            self._unseat(runner, job)

    def _unseat(self, runner: Runner, job: Job) -> None:
        # Copied first: whoever interrupts between the two leaves a job that is gone in its seat.
        if (gap := self._schedule.gap(job)) is not None:
            runner.move(*gap)
        self._schedule.leave(job)


def _prefix_budget(place: torch.device) -> int:
    return 2 * GIB if place.type == "cuda" else GIB // 4


def _load(
    checkpoint: Checkpoint,
    device: torch.device,
    dtype: torch.dtype,
    progress: Callable[[Progress], None] | None,
) -> Model:
    try:
        with torch.inference_mode():
            loader = Loader(checkpoint, device, dtype, progress or (lambda _: None))
            return Model(checkpoint.config, loader.load())
    except Exception as error:
        if not is_out_of_memory(error):
            raise
        raise OutOfMemory(
            f"{checkpoint.path}: no memory on {device} for the weights in {dtype} ({error}); use a "
            "smaller dtype or another device"
        ) from error


def _positive(name: str, value: int | None, default: int) -> int:
    value = default if value is None else value
    if not isinstance(value, int) or value < 1:
        raise OptionError(f"{name}={value!r}; it is a whole number, 1 or more")
    return value


def _within(name: str, value: int | None, most: int) -> int:
    value = _positive(name, value, most)
    if value > most:
        raise OptionError(f"{name}={value}; it is at most this model's {most}")
    return value
