"""One real tokenizer for this folder, trained on a few sentences."""

from __future__ import annotations

import pytest
from tokenizers import AddedToken, Tokenizer, decoders, models, pre_tokenizers, trainers

from atem import wire

CORPUS = [
    "You are a helpful AI assistant. assistant to=self to=user tool system user <|eot|> <|patch|>",
    '<atem:function_calls>\n<atem:invoke name="read">\n<|start|>assistant to=read<|message|>',
    "In this environment you have access to a set of tools you can use to answer the question.",
] * 20


@pytest.fixture(scope="session")
def tokenizer() -> Tokenizer:
    """Byte-level BPE with ``ignore_merges``; the control tokens are added specials."""
    tok = Tokenizer(models.BPE(ignore_merges=True))
    tok.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tok.decoder = decoders.ByteLevel()
    alphabet = pre_tokenizers.ByteLevel.alphabet()
    tok.train_from_iterator(CORPUS, trainers.BpeTrainer(vocab_size=500, initial_alphabet=alphabet))
    tok.add_tokens([AddedToken(t, special=True, normalized=False) for t in wire.CONTROL])
    return tok
