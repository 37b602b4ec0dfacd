"""From logits to the next token: penalties, filters, one random number.

Rules: NumPy and nothing else, and float64 for the few numbers that are drawn
from, so that one seed and one row of logits give one token, whatever the
backend or the batch. Backends hand over :class:`Candidates`; they never choose.
"""

from __future__ import annotations

import math
from random import Random
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import numpy as np

from ..engine import Sampling
from ..errors import ConfigError, EngineError, OptionError

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from numpy.typing import NDArray

_FEW: Final = 1024
"""So many of the likeliest nearly always hold what top_p asks for."""


class Candidates(NamedTuple):
    """What a sampler chooses from: one row of logits, or the best of it.

    ``ids`` int64 [n] and ``logits`` float32 [n] belong together: best first
    (the lower id of two that are equal), or all ids in order. ``log_total`` is
    the logarithm of the sum of exp(logit) over the whole vocabulary; it is not
    finite exactly if the row can't be sampled from.
    """

    ids: NDArray[np.int64]
    logits: NDArray[np.float32]
    log_total: float


class Picked(NamedTuple):
    """A chosen token. ``logprob`` and ``top`` are set if the request asks for them.

    Both are of the model's own distribution: natural logarithms, before
    penalties, temperature and filters.
    """

    id: int
    logprob: float | None = None
    top: tuple[tuple[int, float], ...] | None = None


def candidates(logits_row: NDArray[np.float32], need: int | None) -> Candidates:
    """The ``need`` best of ``logits_row`` [V], or all of it (None)."""
    ids = np.arange(len(logits_row), dtype=np.int64)
    if need is not None:
        ids = _best(logits_row, ids, need)
    return Candidates(ids, logits_row[ids], _log_total(logits_row))


class Sampler:
    """Chooses the tokens of one request.

    ``need`` is how many of the best candidates it wants to see, None for the
    whole vocabulary. Repetition counts ``prompt_ids`` and what was picked;
    ids are below ``vocab_size``.
    """

    def __init__(self, sampling: Sampling, prompt_ids: Iterable[int], vocab_size: int) -> None:
        self._sampling = sampling
        self._random = Random(sampling.seed)  # noqa: S311  (reproducible is the point)
        penalties = _Penalties(sampling, prompt_ids, vocab_size) if sampling.penalises else None
        self._penalties = penalties
        self.need = None if penalties else _need(sampling, vocab_size)

    def pick(self, candidates: Candidates, allowed: NDArray[np.bool_] | None = None) -> Picked:
        """The next token, of those that are ``allowed`` [V] if that is given.

        Filters apply to what is allowed; log-probabilities stay the model's own.
        Raises EngineError for logits that hold NaN or infinity, or nothing that
        is allowed.
        """
        _check(candidates)
        if allowed is None:
            return self._taken(candidates, self._place(candidates.ids, candidates.logits))
        kept = np.flatnonzero(allowed[candidates.ids])
        if not np.isfinite(candidates.logits[kept]).any():
            raise EngineError("the model gives no token that is allowed any probability")
        few = 1 if self._sampling.greedy else self._sampling.top_k
        if few and self._penalties is None:  # in float32, which is half the work
            kept = kept[_best(candidates.logits[kept], candidates.ids[kept], few)]
        place = self._place(candidates.ids[kept], candidates.logits[kept])
        return self._taken(candidates, int(kept[place]))

    def force(self, candidates: Candidates, token_id: int) -> Picked:
        """``token_id`` as if it had been picked; no random number is used up.

        If the request asks for log-probabilities, it is among ``candidates``.
        """
        if self._sampling.logprobs is None:
            self._record(token_id)
            return Picked(token_id)
        _check(candidates)
        return self._taken(candidates, int(np.flatnonzero(candidates.ids == token_id)[0]))

    def _place(self, ids: NDArray[np.int64], logits: NDArray[np.float32]) -> int:
        scores = logits.astype(np.float64)
        if self._penalties is not None:
            scores = self._penalties.apply(ids, scores)
        if self._sampling.greedy:
            return int(_best(scores, ids, 1)[0])
        return self._draw(ids, scores)

    def _draw(self, ids: NDArray[np.int64], scores: NDArray[np.float64]) -> int:
        kept, weights = kept_weights(self._sampling, ids, scores)
        # In the order of ids: rounding in a backend may swap two near equals, and then moves no
        # boundary but theirs.
        order = np.argsort(ids[kept], kind="stable")
        sums = np.cumsum(weights[order])
        target = min(self._random.random() * sums[-1], np.nextafter(sums[-1], 0))
        return int(kept[order][np.searchsorted(sums, target, side="right")])

    def _taken(self, candidates: Candidates, place: int) -> Picked:
        token_id = int(candidates.ids[place])
        self._record(token_id)
        wanted = self._sampling.logprobs
        if wanted is None:
            return Picked(token_id)
        logprob = float(candidates.logits[place]) - candidates.log_total
        return Picked(token_id, logprob, _top(candidates, wanted) if wanted else None)

    def _record(self, token_id: int) -> None:
        if self._penalties is not None:
            self._penalties.record(token_id)


def kept_weights(
    sampling: Sampling, ids: NDArray[np.int64], scores: NDArray[np.float64]
) -> tuple[NDArray[np.intp], NDArray[np.float64]]:
    """Places [n] that the filters keep, and weights [n] in proportion to their probabilities.

    The likeliest has weight 1. Order of the filters: ``Sampling``.
    """
    kept = np.arange(len(ids))
    if sampling.top_k:
        kept = _best(scores, ids, sampling.top_k)
    with np.errstate(over="ignore"):  # a temperature near 0 takes all others to weight 0
        weights = np.exp((scores[kept] - scores[kept].max()) / sampling.temperature)
    if sampling.top_p < 1:
        likeliest = _nucleus(weights, ids[kept], sampling.top_p)
        kept, weights = kept[likeliest], weights[likeliest]
    if sampling.min_p > 0:
        enough = weights >= sampling.min_p
        kept, weights = kept[enough], weights[enough]
    return kept, weights


def default_sampling(generation_config: Mapping[str, Any]) -> Sampling:
    """What ``generation_config.json`` recommends, else the model card (model.md 5.4).

    ``do_sample`` false means greedy. Raises ConfigError for a value that can't work.
    """
    given = {key: generation_config.get(key) for key in _RECOMMENDED}
    changes = {key: value for key, value in given.items() if value is not None}
    if generation_config.get("do_sample") is False:
        changes["temperature"] = 0.0
    try:
        return Sampling(**changes)
    except OptionError as error:
        raise ConfigError(f"generation_config.json: {error}; correct or remove it") from error


_RECOMMENDED: Final = ("temperature", "top_k", "top_p", "min_p", "repetition_penalty")


class _Penalties:
    """Which ids were seen, and how often in the output."""

    def __init__(self, sampling: Sampling, prompt_ids: Iterable[int], vocab_size: int) -> None:
        self._sampling = sampling
        self._seen = np.zeros(vocab_size, dtype=np.bool_)
        self._counts = np.zeros(vocab_size)
        self._seen[list(prompt_ids)] = True

    def record(self, token_id: int) -> None:
        self._seen[token_id] = True
        self._counts[token_id] += 1

    def apply(self, ids: NDArray[np.int64], scores: NDArray[np.float64]) -> NDArray[np.float64]:
        factor = self._sampling.repetition_penalty
        repeated = np.where(scores > 0, scores / factor, scores * factor)
        counts = self._counts[ids]
        presence = self._sampling.presence_penalty * (counts > 0)
        frequency = self._sampling.frequency_penalty * counts
        penalised: NDArray[np.float64] = np.where(self._seen[ids], repeated, scores)
        return penalised - presence - frequency


def _need(sampling: Sampling, vocab_size: int) -> int | None:
    filtered = 1 if sampling.greedy else sampling.top_k
    need = max(filtered, sampling.logprobs or 0) if filtered else vocab_size
    return need if need < vocab_size else None


def _best(scores: NDArray[Any], ids: NDArray[np.int64], count: int) -> NDArray[np.intp]:
    """Places of the ``count`` best scores, best first, the lower id of two that are equal."""
    kept = np.arange(len(scores))
    if count == 1:
        first = scores.argmax()
        level = np.flatnonzero(scores == scores[first])  # none, if that is NaN
        return level[[ids[level].argmin()]] if len(level) else np.array([first])
    if count < len(scores):
        floor = np.partition(scores, len(scores) - count)[len(scores) - count]
        above, level = np.flatnonzero(scores > floor), np.flatnonzero(scores == floor)
        level = level[np.argsort(ids[level])][: count - len(above)]
        kept = np.concatenate((above, level))
    return kept[np.lexsort((ids[kept], -scores[kept]))]


def _nucleus(
    weights: NDArray[np.float64], ids: NDArray[np.int64], share: float
) -> NDArray[np.intp]:
    """Places of the fewest likeliest that have ``share`` of the total weight, best first."""
    goal = share * weights.sum()
    for count in (_FEW, len(weights)):  # sorting a whole vocabulary takes longer than a token may
        places = _best(weights, ids, count)
        sums = np.cumsum(weights[places])
        if sums[-1] >= goal:
            break
    return places[: np.searchsorted(sums, goal) + 1]


def _top(candidates: Candidates, count: int) -> tuple[tuple[int, float], ...]:
    places = _best(candidates.logits, candidates.ids, count)
    logprobs = candidates.logits[places].astype(np.float64) - candidates.log_total
    return tuple(zip(candidates.ids[places].tolist(), logprobs.tolist(), strict=True))


def _log_total(row: NDArray[np.float32]) -> float:
    with np.errstate(invalid="ignore"):
        top = float(row.max())
    if not math.isfinite(top):
        return top
    return top + math.log(np.exp(row.astype(np.float64) - top).sum())


def _check(candidates: Candidates) -> None:
    if not math.isfinite(candidates.log_total):
        raise EngineError(
            f"the logits can't be sampled from: log of their sum is {candidates.log_total}; the "
            "weights or the arithmetic are broken, so check the checkpoint and the dtype"
        )
