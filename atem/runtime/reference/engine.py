"""The reference model as an engine.

Rules: tensors only; what a request means is decided in ``generation``. They
may be read in turns, or by threads: only the prefix cache is theirs together.
"""

from __future__ import annotations

from threading import Lock
from typing import TYPE_CHECKING

import numpy as np

from ...engine import EngineInfo, Progress, Request, Step, require_features, require_whole
from ...errors import EngineClosed, OutOfMemory
from ...tokenizer import wrap
from ..generation import Generation, features
from ..grammar.vocabulary import Vocabulary
from ..prefix import PrefixCache
from ..sampling import candidates, default_sampling
from ..tokens import load_tokenizer, stop_ids
from .model import Model

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from ..checkpoint import Checkpoint
    from .model import Array, LayerCache


class ReferenceEngine:
    """Runs a checkpoint's text decoder in float32.

    All weights are read now and kept, 4 bytes each; ``progress`` is told the
    stored bytes read so far. The checkpoint may be closed afterwards. A
    ``context`` (tokens) below the configuration's may be set. Prompts are
    computed, and remembered within ``prefix_bytes``, in blocks of ``block``
    tokens. Raises OptionError for an option that can't work.
    """

    def __init__(
        self,
        checkpoint: Checkpoint,
        *,
        tokenizer: object = None,
        context: int | None = None,
        prefix_bytes: int = 1 << 28,
        block: int = 64,
        progress: Callable[[Progress], None] | None = None,
    ) -> None:
        most = checkpoint.config.max_position_embeddings
        require_whole("context", context, 1, most)
        self._prefix: PrefixCache[list[Array]] = PrefixCache(block, prefix_bytes)
        self._lock = Lock()
        self.tokenizer = load_tokenizer(checkpoint) if tokenizer is None else wrap(tokenizer)
        self.info = EngineInfo(
            model=checkpoint.path.name, backend="reference", context=context or most,
            stop_ids=stop_ids(self.tokenizer, checkpoint), features=features(self.tokenizer),
            dtype="float32", layout=checkpoint.layout,
            sampling=default_sampling(checkpoint.files.generation_config),
        )  # fmt: skip
        self._vocabulary = Vocabulary(
            self.tokenizer, self.info.stop_ids, checkpoint.config.vocab_size
        )
        weights = _read_all(checkpoint, progress or (lambda _: None))
        self._model: Model | None = Model(checkpoint.config, weights.__getitem__)

    def generate(self, request: Request, /) -> Iterator[Step]:
        """See :class:`atem.engine.Engine`."""
        self._open()
        require_features(self.info, request)
        ids = list(request.prompt_ids(self.tokenizer))
        generation = Generation(request, ids, self._vocabulary, context=self.info.context)
        return self._steps(generation, ids)

    def close(self) -> None:
        """See :class:`atem.engine.Engine`; what is still running ends in EngineClosed."""
        self._model = None
        with self._lock:
            self._prefix.clear()

    def _open(self) -> Model:
        if self._model is None:
            raise EngineClosed("the engine was closed; load another")
        return self._model

    def _steps(self, generation: Generation, ids: list[int]) -> Iterator[Step]:
        with self._lock:
            size, hit = self._prefix.block, self._prefix.lookup(ids)
        generation.cached_tokens = computed = hit.tokens
        caches = self._open().caches(slack=size)
        for block in hit.payloads:
            for cache, kept in zip(caches, block, strict=True):
                cache.append(kept)
        while not generation.finished:
            while computed < len(ids):
                piece = ids[computed : computed - computed % size + size]
                logits = self._logits(piece, caches)
                computed += len(piece)
                with self._lock:
                    if self._open() and (span := hit.trail.wanted(ids, computed)) is not None:
                        block = [cache.span(span) for cache in caches]
                        hit.trail.store(ids, block, sum(kept.nbytes for kept in block))
            yield generation.take(candidates(logits, generation.need))
            ids.append(generation.last_id)

    def _logits(self, ids: list[int], caches: list[LayerCache]) -> Array:
        """Logits [V] after ``ids``, which ``caches`` then hold too."""
        model = self._open()
        try:
            last: Array = model.logits(model.hidden(ids, caches)[-1:])[0]
        except MemoryError as error:
            raise OutOfMemory("no memory for more tokens; set a smaller context=") from error
        return last


def _read_all(checkpoint: Checkpoint, progress: Callable[[Progress], None]) -> dict[str, Array]:
    done, total = 0, sum(info.stored_bytes for info in checkpoint.tensors.values())
    weights = {}
    for name, info in checkpoint.tensors.items():
        weights[name] = np.array(checkpoint.read(name), dtype=np.float32)
        done += info.stored_bytes
        progress(Progress("read", done, total))
    return weights
