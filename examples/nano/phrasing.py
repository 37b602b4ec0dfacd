# ruff: noqa: E501 - a phrasing is one line
"""Requests composed from parts: an opening, a body with choices, an ending.

Rules: "[a|b]" is a choice and "{name}" a place to fill. Each composed request
belongs to one split by its checksum, so that held-out ones combine known parts
in ways that were never seen. Bodies in NEW are in no training conversation.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final, Literal, TypeAlias
from zlib import crc32

from words import HELD_OUT

if TYPE_CHECKING:
    import random

Phrasings: TypeAlias = Literal["train", "held_out", "new"]

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

MORE: Final[dict[str, tuple[str, ...]]] = {
    "read": (
        "[can you|could you|would you] [read|open|check] {path} and [tell|give] me [the|its] {key}",
        "[i want to know|i would like to know|do you know] [the|what is the] {key} [in|from|of] {path}",
        "[how|where] does {path} [describe|mention|name] {key}",
        "[search|look] in {path} for [the line on|the line about|] {key}",
        "[use|take] {path} and [answer|say]: [what is|which is] [the|] {key}",
        "{key} [in|from|of] {path}",
        "about {key}: what [does|did] {path} [say|hold]",
        "my question is about {key}, the answer is in {path}",
        "[list|print|type] the {key} [line|entry] of [the file|] {path}",
        "there is a line about {key} in {path}, [quote|read|show] it",
    ),
    "read_all": (
        "[can you|could you|would you] [read|open|show|print] {path}",
        "[i want|i would like] to [see|read|know] [the file|] {path}",
        "[display|type out|dump|view] [the file|all of|] {path}",
        "the [text|content] of {path}",
        "read {path} [to me|aloud|for me]",
        "what did [i|we] write in {path}",
    ),
    "list": (
        "[can you|could you|would you] [list|show] [me|] [the folder|the files in|] {folder}",
        "[i want|i would like] to [see|know] [the files in|what is in] {folder}",
        "[name|count out|print|write down] [the|all] [files|names] [of|from|in] {folder}",
        "the files [of|in] {folder}",
        "[have we|do you have|is there] anything in {folder}",
        "what can i find in [the folder|] {folder}",
        "which names are in [the folder|] {folder}",
    ),
    "list_here": (
        "[can you|could you|would you] [list|show] [me|] the files [here|in this folder]",
        "[i want|i would like] to [see|know] [what is here|the files here]",
        "[name|print|write down] [the|all] [files|names] [here|in this folder]",
        "what can i find [here|in this folder]",
        "[list files|list the files|ls|files]",
    ),
    "search": (
        "[can you|could you|would you] [search|look] for {text}",
        "[i want|i would like|i need] [to find|to know which file has|the file with] {text}",
        "[does|did] any file [mention|contain|have] {text}",
        "[i am looking for|i search for|i lost] {text}",
        "[tell me|say|show me] [which|what] file [has|mentions|contains] {text}",
        "{text}: [which|what] file [has it|is it in|mentions it]",
        "grep {text}",
        "in [which|what] file [did i write about|do we speak of|does it say] {text}",
    ),
    "write": (
        '[can you|could you|would you] [write|save|put] "{text}" [to|into|in] {path}',
        '[i want|i would like] [to save|to write|to have] "{text}" in {path}',
        "[write|save] to {path}: {text}",
        '[write|save|store] [this|the following] in {path}: "{text}"',
        'in {path}, [write|save|put] "{text}"',
        '[start|begin|open] a [new file|file] {path} with "{text}"',
        '[fill|update] {path} with "{text}"',
        'let {path} say "{text}"',
        'remember "{text}" in {path}',
    ),
    "sum": (
        "[can you|could you] [add|sum up] {a} and {b}",
        "{a} plus {b}",
        "[i want|i would like|i need] [to know|] {a} plus {b}",
        "[sum|sum up|total] {a} and {b}",
        "if i have {a} and get {b} more, how many is that",
        "the sum of {a} and {b}",
    ),
    "product": (
        "[can you|could you] multiply {a} [by|and|with] {b}",
        "{a} times {b}",
        "[i want|i would like|i need] [to know|] {a} times {b}",
        "if each of {a} boxes has {b}, how many is that",
        "the product of {a} and {b}",
    ),
    "formula": (
        "[can you|could you] [calculate|solve|work out] {formula}",
        "{formula}",
        "{formula} =",
        "[do you know|i want to know|compute] {formula}",
    ),
    "chain": (
        "[can you|could you] [find|open|read] the [{topic} file|file about {topic}] in {folder} and [tell|give] me its {key}",
        "[i want to know|do you know] the {key} [from|in|of] the file [about|on] {topic} in {folder}",
        "{folder} has a file [about|on|for] {topic}: [what is|tell me|give me] its {key}",
        "there is a file [about|on|for] {topic} in {folder}, [what does it say about|read me the line on|quote] {key}",
        "about {key}: [see|read|ask] the {topic} file in {folder}",
        "[search|go through] {folder} for the file [on|about] {topic}, then [read|say|tell me] {key}",
    ),
    "parallel_one": (
        "[can you|could you] [compare|read|show me] [the|] {key} in {path} and {path2}",
        "[i want to know|do you know] the {key} of {path} and of {path2}",
        "both {path} and {path2} have [a line on|a line about] {key}, [show|quote|read] them",
        "what is the {key} in {path} and what is it in {path2}",
        "{key} in {path} and {path2}",
    ),
    "parallel_two": (
        "[can you|could you] [find|read|give me] {key} in {path} and {key2} in {path2}",
        "[i want to know|i need] what {path} says about {key} and what {path2} says about {key2}",
        "from {path} {key}, and from {path2} {key2}",
        "in {path}, [what is|find] {key}, and in {path2}, [what is|find] {key2}",
    ),
    "parallel_sums": (
        "[can you|could you] [calculate|solve|work out] {formula} and {formula2}",
        "{formula} and {formula2}",
        "first {formula}, then {formula2}",
        "[do you know|i want to know|compute] {formula} and {formula2}",
    ),
    "say": (
        '[can you|could you|would you] [say|repeat] "{text}"',
        "[please just|just|simply] [say|answer|write] {text}",
        "[answer|reply] with {text}",
        "say it [back|again|to me]: {text}",
        "after me: {text}",
        '[print|write|type] "{text}" as your answer',
    ),
    "hello": ("[how are you|how do you do|good day|welcome|hello and good day] [nano|there|today|]",),
    "thanks": ("[that was great|very good|well done|thank you, nano|that is all] [thanks|nano|]",),
    "who": ("[are you a model|what kind of model are you|do you have a name|who is there] [please|nano|]",),
    "can": ("[what are you able to do|which tools do you have|help|what is there to do] [nano|please|]",),
    "none": (
        "[can you|could you] [send a mail|speak|sing|dance|drive] to {word}",
        "[who is|where is|how old is] [the king of|the city of|the capital of] {word}",
        "[write|tell me] a [poem|joke|story] about {word}",
        "[what do you think|what is your opinion] of {word}",
        "[remind|wake] me [about {word}|at {number}]",
        "[connect|log in] to {word}",
        "[why|when] [is|was|did] {word} [so late|built|end]",
        "[pay|sell|clean|paint|repair] the {word} [for me|today|please|]",
        "[explain|teach me] {word}",
        "[show|make] a [film|chart|table] of {word}",
    ),
}  # fmt: skip
"""Bodies that a stage of training adds, or leaves out."""

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


def template(rng: random.Random, kind: str, split: Phrasings, *, more: bool = True) -> str:
    """A request of ``kind`` with its places still open; one of MORE only if ``more``."""
    bodies = (*BODIES[kind], *(MORE.get(kind, ()) if more else ()))
    if split == "new":
        return rng.choice(OPENINGS) + _opened("", rng.choice(NEW[kind]))
    while True:
        found = _composed(rng, rng.choice(bodies))
        if (crc32(found.encode()) % HELD_OUT == 0) == (split == "held_out"):
            return found


def _composed(rng: random.Random, body: str) -> str:
    chosen = _CHOICE.sub(lambda found: rng.choice(found[1].split("|")), body)
    opening = rng.choice(OPENINGS)
    return _opened(opening, " ".join(chosen.split())) + rng.choice(ENDINGS)


def _opened(opening: str, body: str) -> str:
    """``body`` behind ``opening``, with a capital where a sentence begins."""
    begins = not opening or opening.endswith(". ")
    return opening + (body[0].upper() + body[1:] if begins and body[0] != "{" else body)
