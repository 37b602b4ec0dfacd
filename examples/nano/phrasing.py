# ruff: noqa: E501 - a phrasing is one line
"""Requests composed from parts: an opening, a body with choices, an ending.

Rules: "[a|b]" is a choice and "{name}" a place to fill. Each composed request
belongs to one split by its checksum, so that held-out ones combine known parts
in ways that were never seen. Bodies in NEW are in no training conversation.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final
from zlib import crc32

from words import HELD_OUT

if TYPE_CHECKING:
    import random

OPENINGS: Final = (
    "", "", "", "Please ", "Hi, ", "Now ", "OK, ", "Next: ", "One thing: ", "Then ",
    "Thanks. ", "Quick question: ", "Hello. ", "Good. ", "So ",
)  # fmt: skip
ENDINGS: Final = ("", "", ".", "?", " please", ", please.", ", thanks", "!")

BODIES: Final[dict[str, tuple[str, ...]]] = {
    "read": (
        "[what does|tell me what|say what] {path} [says|say|has|holds] [about|on|for] {key}",
        "[read|open|look into|check] {path} and [tell me|give me|say] [the line on|what it says about|the entry for] {key}",
        "[find|look up|get|give me|tell me] [the|] {key} [in|from|of] {path}",
        "[i need|show me|give me|find] the [line|entry] [about|on|for|with] {key} [of|in|from] {path}",
        "[which|what] {key} is [given|named|noted] in {path}",
        "[in|from] {path}, [what is|give me|tell me|i need] [the|] {key}",
        "{path}: [what is|which is|tell me|find] [the|] {key}",
        "[what is|give me|say] {key} according to {path}",
        "[quote|repeat|copy] the line [about|on|for] {key} [from|of|in] {path}",
    ),
    "read_all": (
        "[read|open|show|show me|print|quote] [the file|] {path}",
        "[what does|tell me what|say what] {path} [says|say|has|holds]",
        "[what is|what do we have|what is there] in [the file|] {path}",
        "[i need|give me] [all of|the text of|the lines of] {path}",
    ),
    "list": (
        "[list|show me|show|give me] the [files|names] in [the folder|folder|] {folder}",
        "[what is|what do we have|what is there] in [the folder|folder|] {folder}",
        "[which|what] files [are|are there|do we have] in [the folder|folder|] {folder}",
        "[look into|open|check|list] the folder {folder}",
        "[tell me|say|i need to know] what [the folder|folder|] {folder} [has|holds]",
        "[list|show me] {folder}",
    ),
    "list_here": (
        "[list|show me|show|give me] the [files|names] here",
        "[what is|what do we have|what is there] [here|in this folder]",
        "[which|what] files [are|are there|do we have] [here|in this folder]",
        "[list|show me|check|look into] this folder",
    ),
    "search": (
        "[which|what] file [mentions|contains|has|speaks of] {text}",
        "[search|look] for {text}",
        "[where|in which file] is {text} [mentioned|found|named]",
        "[find|search] the [first|] file [with|that has|that mentions|that contains] {text}",
        "[where can i find|where is|find] the [text|word|words] {text}",
        "[search|look through] [all|the|my] files for {text}",
        '[who|what|which file] [mentions|has] [the text|the words|] "{text}"',
    ),
    "write": (
        "[write|save|put|store] {text} [to|into|in] [the file|] {path}",
        '[write|save|put|store] [the words|the text|] "{text}" [to|into|in] [the file|] {path}',
        '[create|make|write] [the file|a file|] {path} [with|that has|that holds] [the words|the text|] "{text}"',
        "[create|make|write] a file {path} [that says|which says|with the text] {text}",
        '[i need|i want|make] a [new|] file {path} [that says|with the text] "{text}"',
        '{path} [must|should] [say|hold] "{text}"',
    ),
    "sum": (
        "[what is|work out|calculate|tell me] {a} [plus|+] {b}",
        "[what is|work out|calculate|tell me] the sum of {a} and {b}",
        "add {a} and {b}",
        "[how much is|how much makes] {a} [plus|and|+] {b}",
        "[i have|there are] {a} and {b}, [how many is that|what is the sum]",
    ),
    "product": (
        "[what is|work out|calculate|tell me] {a} [times|*] {b}",
        "[what is|work out|calculate|tell me] the product of {a} and {b}",
        "multiply {a} [and|by|with] {b}",
        "[how much is|how much makes] {a} [times|*] {b}",
        "[i have|there are] {a} [boxes|bags|rows] of {b}, [how many is that|what is the product]",
    ),
    "formula": (
        "[what is|work out|calculate|tell me|evaluate|solve] {formula}",
        "[how much is|give me|i need] {formula}",
        "[what is|tell me] the [result|value] of {formula}",
        "{formula}, [what is it|how much is that]",
    ),
    "chain": (
        "[in|from] [the folder|] {folder}, [find|open|read|take] the file [about|on|for] {topic} and [tell me|give me|say] [its|the] {key}",
        "[what does|tell me what|say what] the file [about|on|for] {topic} in {folder} [says|say] [about|on|for] {key}",
        "[find|open|read|look into] the file [about|on|for] {topic} in {folder} and [tell me|give me|say] [its|the|what it says about] {key}",
        "[look into|check|list] {folder} for the {topic} file and [tell me|give me|quote] its {key}",
        "[what is|give me|tell me|i need] the {key} [in|from|of] the {topic} file in {folder}",
        "[find|get|look up] {key} in the file [about|on] {topic}, it is in {folder}",
    ),
    "parallel_one": (
        "[what do|tell me what|say what] {path} and {path2} say [about|on|for] {key}",
        "[read|open|check|look into] {path} and {path2} and [tell me|give me|say] [the|] {key} [in each|of both|from both]",
        "[compare|find|look up|get] [the|] {key} in {path} and {path2}",
        "[in|from] {path} and {path2}, [what is|give me|tell me] [the|] {key}",
        "[show me|give me|quote] the lines [about|on|for] {key} [of|in|from] {path} and {path2}",
    ),
    "parallel_two": (
        "[find|look up|get|give me|tell me] {key} in {path} and {key2} in {path2}",
        "[what is|tell me|i need] [the|] {key} [in|of|from] {path} and [the|] {key2} [in|of|from] {path2}",
        "[what does|say what] {path} [say|says] [about|on] {key} and {path2} [about|on] {key2}",
        "[read|open|check] {path} for {key} and {path2} for {key2}",
    ),
    "parallel_sums": (
        "[what are|work out|calculate|tell me|i need|give me] {formula} and {formula2}",
        "[what is|how much is] {formula}, and [what is|how much is] {formula2}",
        "[work out|calculate|solve] both {formula} and {formula2}",
    ),
    "say": (
        "[say|repeat|echo|answer|write back] {text}",
        "[say|repeat|echo|answer] [the words|the text|just|only] {text}",
        '[say|repeat|echo|answer] [the words|the text|just|only|] "{text}"',
        "[i want|i need] you to [say|repeat] {text}",
        "[tell me|give me] the words {text}",
    ),
    "hello": ("[hello|hi|hey|good morning|good evening|greetings] [nano|there|again|to you|]",),
    "thanks": ("[thanks|thank you|many thanks] [a lot|so much|for that|for the help|nano|]",),
    "who": ("[who are you|what are you|what is your name|tell me who you are] [nano|exactly|again|]",),
    "can": ("[what can you do|how can you help|what do you do|what are you good at] [for me|here|nano|again|]",),
    "none": (
        "[send|forward] [a mail|a letter|a message|{path}] to {word}",
        "[what is|how is|tell me] the [weather|time|news] in {word}",
        "[book|reserve|order|buy] [a table|a flight|a room|a ticket|two seats] in {word}",
        "[play|sing|record] [the song|some music by|a tune of] {word}",
        "[turn on|turn off|switch on|dim] the {word} [light|heater|radio|]",
        "[call|phone|ring|invite] {word} [today|tonight|for me|now]",
        "[translate|put] {text} into [french|german|spanish|latin]",
        "[draw|paint|print] [a picture|a map|a plan] of [the|a] {word}",
        "[visit|browse|load] the [web page|site] {word}.com",
        "[set|start] [an alarm|a timer] for {number} [minutes|hours]",
        "[run|start|install|compile] the program {path}",
        "[delete|remove|erase|rename|copy|move] [the file|] {path}",
        "[take|make|send] a photo of [the|my] {word}",
    ),
}  # fmt: skip

NEW: Final[dict[str, tuple[str, ...]]] = {
    "read": (
        "I wonder about {key}; it should be written down in {path}",
        "have a look at {path}, I want to see its {key} line",
        "can you see {key} anywhere inside {path}",
    ),
    "read_all": ("let me see what you find inside {path}", "{path} is what I would like to hear"),
    "list": ("let me see everything inside {folder}", "does {folder} contain any files, and which"),
    "list_here": ("let me see everything you have around here", "name each file lying here"),
    "search": ("I forgot where I wrote down {text}", "does any file know about {text}"),
    "write": (
        'note "{text}" down under the name {path}',
        'please keep "{text}" for me, {path} would be a good place',
    ),
    "sum": ("if I put {a} and {b} together, what do I get", "take {a}, then count {b} more"),
    "product": ("what do I get from {a} groups with {b} each", "take {a} exactly {b} times"),
    "formula": ("my homework says {formula}, can you help", "let a machine do {formula}"),
    "chain": (
        "somewhere in {folder} there is a file for {topic}, I would like its {key}",
        "go to {folder}, pick whatever concerns {topic}, then quote {key}",
    ),
    "parallel_one": ("{path} and {path2} both have a {key}, let me see them",),
    "parallel_two": ("let me see {key}, which is in {path}, next to {key2}, which is in {path2}",),
    "parallel_sums": ("do {formula} as well as {formula2} for me",),
    "say": ("let me hear {text}", 'your answer must be "{text}"'),
    "hello": ("nice to meet you",),
    "thanks": ("you were very kind",),
    "who": ("introduce yourself",),
    "can": ("I wonder what your talents are",),
    "none": (
        "my {word} is broken, could you repair it",
        "it is cold in {word}, bring me a coat",
        "pay the bill of {number} for {word}",
    ),
}  # fmt: skip

_CHOICE: Final = re.compile(r"\[([^\[\]]*)\]")


def template(random: random.Random, kind: str, split: str) -> str:
    """A request of ``kind`` with its places still open; ``split`` may also be "new"."""
    if split == "new":
        return random.choice(OPENINGS) + _opened("", random.choice(NEW[kind]))
    while True:
        found = _composed(random, random.choice(BODIES[kind]))
        if (crc32(found.encode()) % HELD_OUT == 0) == (split == "held_out"):
            return found


def _composed(random: random.Random, body: str) -> str:
    chosen = _CHOICE.sub(lambda found: random.choice(found[1].split("|")), body)
    opening = random.choice(OPENINGS)
    return _opened(opening, " ".join(chosen.split())) + random.choice(ENDINGS)


def _opened(opening: str, body: str) -> str:
    """``body`` behind ``opening``, with a capital where a sentence begins."""
    begins = not opening or opening.endswith(". ")
    return opening + (body[0].upper() + body[1:] if begins and body[0] != "{" else body)
