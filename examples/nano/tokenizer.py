# ruff: noqa: E501 - pieces are quoted as they are
"""Trains nano's tokenizer: byte-level BPE of about a thousand pieces.

Rules: a word has the same pieces wherever it stands, so that quoting is
copying: a space is a piece of its own, a digit too, punctuation stands alone.
What the template writes in every prompt (the lines of its tool block, the
halves of a tag) are whole pieces of the base vocabulary, taken as they are
(``ignore_merges``). They are no added tokens: atem encodes text with the base
vocabulary alone, so an added token would never be found.

    python tokenizer.py --out build/tokenizer
"""

from __future__ import annotations

import argparse
import json
import random
import re
from pathlib import Path
from typing import TYPE_CHECKING, Final

import phrasing
from conversations import STRENGTHS, system_block
from tokenizers import AddedToken, Regex, Tokenizer, decoders, models, pre_tokenizers, trainers
from words import ENDINGS, Words

from atem.testing.tiny import SPECIALS

if TYPE_CHECKING:
    from collections.abc import Iterator

PIECES: Final = 1009
"""With the 15 specials 1024 in all."""

FUNCTION_WORDS: Final = """
the a in of to and is are was what which where me I it its that this for with about on from by at my you
we do does have has can give tell show find look read list open check need say says file files folder
line text words word please thanks here there out up not no tool much how many
""".split()
"""Words of requests and answers, seldom names, that have their space in the piece."""

TAGS: Final = (
    "<atem:", "</atem:", "function_calls>\n", "function_calls>", 'invoke name="', "invoke>\n",
    'parameter name="', "parameter>\n", '">\n', '">', '<tool_output name="', "</tool_output>",
)  # fmt: skip
"""Halves of a tag, so that each tag is two pieces or more, as in a large vocabulary."""

PARTS: Final = (
    " to=", "assistant", "system", "self", "user", "tool", *STRENGTHS, "Reasoning strength: ",
    "list_files", "read_file", "search", "write_file", "calculate",
    "path", "content", "text", "expression", *ENDINGS,
    "Knowledge cutoff: ", "Current date: ", "// Tool metadata\n", "// Function schemas\n",
    "$FUNCTION_NAME", "$PARAMETER_NAME", "$PARAMETER_VALUE", "example_tool_name",
    "example_function_name", "example_parameter_1", "example_parameter_2", "value_1",
    "This is the value for the second parameter\n", "that can span\n", '"multiple" lines\n', "...\n",
    "FileNotFoundError", ": there is no '", "'; there are ",
    "There is no tool called '", "'. This call was not run.\n", "Nearest: ", "Tools that exist: ",
    "Call one of the tools that exist, by its exact name.", "The arguments of '",
    "' don't fit its schema. This call was not run.\n", "- /: '",
    "' not declared; additional properties are not allowed\n", "' is a required property\n",
    "Correct these arguments and send the whole call again.",
    "Wrote ", " bytes", "(no match)", " says: ", "The files in ", " are:\n", "The first hit is in ",
    "None of my tools can do that.", "I list ", "I read ", "I write ", "I search for ",
    "I work out ", "I use ", "I take ", " I look for ", " It says ", "It is ", "The line is ",
    "No tool fits.", "No tool is needed.", "Quick question", "One thing", "Please ",
)  # fmt: skip
"""Other pieces that are not left to chance."""


def fixed_lines() -> list[str]:
    """The long lines of the system blocks, with the line break behind them."""
    blocks = [system_block(strength, writes=writes) for strength in STRENGTHS for writes in (0, 1)]
    lines = [
        line
        for block in blocks
        for part in block.segments
        for line in part.text.removeprefix("system").splitlines(keepends=True)
    ]
    return list(dict.fromkeys(line for line in lines if _is_fixed(line)))


def _is_fixed(line: str) -> bool:
    """Long lines and declarations, but no line of tags: a tag is two pieces or more."""
    return line.startswith('{"') or (len(line) > 50 and not line.startswith("<"))


def pattern() -> str:
    """The pre-tokenizer: fixed text as it is, words, and everything else alone."""
    fixed = sorted({*fixed_lines(), *TAGS, *PARTS}, key=lambda text: (-len(text), text))
    words = "|".join(FUNCTION_WORDS)
    return "|".join(
        (*map(_literal, fixed), rf" (?:{words})(?![\p{{L}}\d_])", r"\p{L}+", r"\s", r"[^\s\p{L}]")
    )


def _literal(text: str) -> str:
    """``text`` as an expression; a piece of letters must not be the beginning of a longer word."""
    ends = r"(?![\p{L}\d])" if text[-1].isalpha() else ""
    starts = r"(?<![\p{L}\d])" if text[0].isalpha() else ""
    return starts + re.sub(r"([\\^$.|?*+()\[\]{}/-])", r"\\\1", text).replace("\n", r"\n") + ends


def train(seed: int) -> Tokenizer:
    """The tokenizer; the same for the same seed."""
    fixed = [*fixed_lines(), *TAGS, *PARTS, *(f" {word}" for word in FUNCTION_WORDS)]
    alphabet = sorted(pre_tokenizers.ByteLevel.alphabet())
    whole = [piece for piece in dict.fromkeys(map(byte_level, fixed)) if len(piece) > 1]
    learner = Tokenizer(models.BPE())
    learner.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)
    trainer = trainers.BpeTrainer(  # enough that, with what is fixed, PIECES are reached
        vocab_size=PIECES, initial_alphabet=alphabet, show_progress=False
    )
    learner.train_from_iterator(_corpus(seed), trainer)
    model = json.loads(learner.to_str())["model"]
    merges = [tuple(merge) for merge in model["merges"]]
    pieces = list(alphabet)
    kept = []
    for left, right in merges:
        if len(set(pieces) | set(whole)) >= PIECES:
            break
        pieces.append(left + right)
        kept.append((left, right))
    vocabulary = {piece: n for n, piece in enumerate(dict.fromkeys([*pieces, *whole]))}
    return _assembled(vocabulary, kept)


def byte_level(text: str) -> str:
    """``text`` in the alphabet of byte-level pieces."""
    step = pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)
    return "".join(piece for piece, _ in step.pre_tokenize_str(text))


def _assembled(vocabulary: dict[str, int], merges: list[tuple[str, str]]) -> Tokenizer:
    made = Tokenizer(models.BPE(vocab=vocabulary, merges=merges, ignore_merges=True))
    made.pre_tokenizer = pre_tokenizers.Sequence([
        pre_tokenizers.Split(Regex(pattern()), behavior="isolated"),
        pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False),
    ])  # fmt: skip
    made.decoder = decoders.ByteLevel()
    made.add_special_tokens([AddedToken(text, special=True, normalized=False) for text in SPECIALS])
    return made


def _corpus(seed: int) -> Iterator[str]:
    """Single words, of training words and of what the requests are made of."""
    words = Words(random.Random(seed), "train")  # noqa: S311 - the same every time
    for _ in range(60_000):
        yield words.word()
    bodies = [body for kind in phrasing.BODIES.values() for body in kind]
    for body in bodies * 60:
        yield from re.findall(r"[A-Za-z]+", re.sub(r"\{\w+\}", "", body))
    for line in (*phrasing.OPENINGS, *phrasing.ENDINGS, *PARTS, *fixed_lines()):
        yield from re.findall(r"[A-Za-z]+", line) * 10


def main() -> None:
    """Write tokenizer.json."""
    arguments = argparse.ArgumentParser(description=__doc__)
    arguments.add_argument("--out", type=Path, default=Path("build/tokenizer"))
    arguments.add_argument("--seed", type=int, default=1)
    given = arguments.parse_args()
    given.out.mkdir(parents=True, exist_ok=True)
    made = train(given.seed)
    made.save(str(given.out / "tokenizer.json"))
    print(f"{made.get_vocab_size()} pieces, {len(fixed_lines())} of them lines of the system block")


if __name__ == "__main__":
    main()
