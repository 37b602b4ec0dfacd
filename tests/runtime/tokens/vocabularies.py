"""Vocabularies trained here, as GGUF metadata and as files, and a checkpoint that holds them.

Rules: training, the split and the ids are the library's; nothing of atem's runtime makes any of it.
"""

from __future__ import annotations

import json
from functools import cache
from pathlib import Path
from types import SimpleNamespace
from typing import Any

from tokenizers import AddedToken, Regex, Tokenizer, decoders, models, pre_tokenizers, trainers
from transformers.integrations.gguf.gguf_tokenizer_mapping import GGUF_PRE_TOKENIZER_SPLITS

from atem.runtime.checkpoint import SideFiles
from atem.testing.tiny import SPECIALS, tiny_config

CORPUS = [
    "The quick brown fox's README reads 12345 files to=self, and HELLO WORLD, it's 3.14 //\n\n",
    "<atem:function_calls>\n<atem:invoke name='x'>  naïve café 東京 🙂 ﬁ ǅungla İstanbul\r\n\t ",
    "def f(x):\n    return x  # they'LL we've I'd\n\n\n" + 'path/to/file.py "quoted" \u00a0 end ',
] * 10
NORMAL, CONTROL, USER_DEFINED, UNUSED = 1, 3, 4, 5
PRES = ("llama4", "gpt-4o", "llama-bpe")


@cache
def trained(pre: str, size: int = 700) -> Tokenizer:
    """A byte-level BPE of the split that ``pre`` names, the special tokens behind its vocabulary."""
    backend = Tokenizer(models.BPE(ignore_merges=True))
    backend.pre_tokenizer = pre_tokenizers.Sequence(
        [
            pre_tokenizers.Split(Regex(GGUF_PRE_TOKENIZER_SPLITS[pre]), behavior="isolated"),
            pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False),
        ]
    )
    backend.decoder = decoders.ByteLevel()
    alphabet = pre_tokenizers.ByteLevel.alphabet()
    trainer = trainers.BpeTrainer(vocab_size=size, initial_alphabet=alphabet, show_progress=False)
    backend.train_from_iterator(CORPUS, trainer)
    backend.add_special_tokens([AddedToken(text, normalized=False) for text in SPECIALS])
    return backend


def metadata(backend: Tokenizer, pre: str, /, **changes: Any) -> dict[str, Any]:
    """``backend`` as a converter writes it, with ``changes`` (without their prefix)."""
    spec = json.loads(backend.to_str())
    size = backend.get_vocab_size(with_added_tokens=True)
    tokens = [backend.id_to_token(number) for number in range(size)]
    special = {token["content"] for token in spec["added_tokens"]}
    end = backend.token_to_id("<|end_of_text|>")
    found = {
        "model": "gpt2",
        "pre": pre,
        "tokens": tokens,
        "token_type": [CONTROL if token in special else NORMAL for token in tokens],
        "merges": [" ".join(merge) for merge in spec["model"]["merges"]],
        "bos_token_id": backend.token_to_id("<|begin_of_text|>"),
        "eos_token_id": end,
    }
    return {f"tokenizer.ggml.{key}": value for key, value in (found | changes).items()}


def checkpoint(vocab_size: int = 1024, **files: Any) -> Any:
    """Something with the fields of a ``Checkpoint`` that the tokenizer's side reads."""
    return SimpleNamespace(
        path=Path("some.gguf"),
        config=tiny_config(vocab_size=vocab_size),
        files=SideFiles(**files),
    )
