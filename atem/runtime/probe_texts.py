# ruff: noqa: E501 - the text is quoted as it is
"""The texts that the probe lets a model predict.

Rules: literal, so that a loss is that of the same text in every version (a test
compares the second with what atem renders). Parts are given and judged by turns.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, NamedTuple

from .. import wire
from ..errors import CheckpointError

if TYPE_CHECKING:
    from collections.abc import Iterator

    from ..tokenizer import Tokenizer

_SPECIAL: Final = re.compile("(" + "|".join(map(re.escape, wire.CONTROL)) + ")")


class Spelt(NamedTuple):
    """A text in ids; ``judged`` says of each whether its loss counts."""

    ids: list[int]
    judged: list[bool]


@dataclass(frozen=True, slots=True)
class Text:
    """``parts``: what is given, what the model has to predict, and so on by turns.

    A whole model's loss is below ``good`` times ln(vocabulary).
    """

    name: str
    good: float
    parts: tuple[str, ...]

    def spelt(self, tokenizer: Tokenizer) -> Spelt:
        """The text in ids. Raises CheckpointError if a special token is missing."""
        ids: list[int] = []
        judged: list[bool] = []
        for number, part in enumerate(self.parts):
            ids += _ids(part, tokenizer)
            judged += [number % 2 == 1] * (len(ids) - len(judged))
        return Spelt(ids, judged)


def _ids(text: str, tokenizer: Tokenizer) -> Iterator[int]:
    for piece in filter(None, _SPECIAL.split(text)):
        special = tokenizer.special_id(piece)
        if piece in wire.CONTROL and special is None:
            raise CheckpointError(f"the tokenizer has no special {piece}; the probe needs it")
        yield from tokenizer.encode(piece) if special is None else [special]


_DAYS: Final = "Monday, Tuesday, Wednesday, Thursday, Friday, Saturday, Sunday."
PLAIN: Final = Text(
    "plain text",
    0.7,
    (
        "<|begin_of_text|>",
        f"""<|start|>system<|message|>You are a helpful AI assistant.<|eot|>\
<|start|>user<|message|>List the days of the week, please.<|eot|>\
<|start|>assistant to=self<|message|>The user wants the days of the week in a list.<|eom|>\
<|start|>assistant to=user<|message|>{_DAYS}
Again: {_DAYS}<|eot|>""",
    ),
)
"""What a general model has seen much of: the format, plain English, a repetition."""

TOOL_CALLS: Final = Text(
    "tool calls",
    0.03,
    (
        """<|begin_of_text|><|start|>system<|message|>You are a helpful AI assistant.
Knowledge cutoff: 2026-01-04.
Current date: 2026-08-10.

Reasoning strength: xhigh.

In this environment you have access to a set of tools you can use to answer the user's question.

You can invoke a function by writing a "<atem:function_calls>" block like the following:
<atem:function_calls>
<atem:invoke name="$FUNCTION_NAME">
<atem:parameter name="$PARAMETER_NAME">$PARAMETER_VALUE</atem:parameter>
...
</atem:invoke>
</atem:function_calls>

String and scalar parameters should be specified as is, while lists and objects should use JSON format. Note that spaces for string values are not stripped. The output is not expected to be valid XML and is parsed with regular expressions.
Here are the functions available in JSONSchema format:
// Tool metadata
{"name": "list_files", "description": ""}
{"name": "read_file", "description": ""}
{"name": "search", "description": ""}
{"name": "write_file", "description": ""}
{"name": "calculate", "description": ""}
// Function schemas
{"name": "list_files", "description": "List the files in a folder.", "parameters": {"properties": {"path": {"default": ".", "type": "string"}}, "type": "object", "additionalProperties": false}}
{"name": "read_file", "description": "Read a text file.", "parameters": {"properties": {"path": {"type": "string"}}, "required": ["path"], "type": "object", "additionalProperties": false}}
{"name": "search", "description": "Find lines that contain a text.", "parameters": {"properties": {"text": {"type": "string"}}, "required": ["text"], "type": "object", "additionalProperties": false}}
{"name": "write_file", "description": "Write a text file.", "parameters": {"properties": {"path": {"type": "string"}, "content": {"type": "string"}}, "required": ["path", "content"], "type": "object", "additionalProperties": false}}
{"name": "calculate", "description": "Work out a sum or a product.", "parameters": {"properties": {"expression": {"type": "string"}}, "required": ["expression"], "type": "object", "additionalProperties": false}}

Here's an example of how to call a function in the tool set:
(If the tool namespace is not specified, invoke the function directly as `example_function_name` rather than `example_tool_name.example_function_name`)

to=example_tool_name.example_function_name

<atem:function_calls>
<atem:invoke name="example_tool_name.example_function_name">
<atem:parameter name="example_parameter_1">value_1</atem:parameter>
<atem:parameter name="example_parameter_2">This is the value for the second parameter
that can span
"multiple" lines
</atem:parameter>
</atem:invoke>
</atem:function_calls>

# Valid recipients: "self", "list_files.*", "read_file.*", "search.*", "write_file.*", "calculate.*", "user".<|eot|><|start|>user<|message|>Read notes.txt and tell me the line about milk.<|eot|><|start|>assistant""",
        """ to=self<|message|>I read notes.txt. I look for milk.<|eom|><|start|>assistant to=read_file<|message|><atem:function_calls>
<atem:invoke name="read_file">
<atem:parameter name="path">notes.txt</atem:parameter>
</atem:invoke>
</atem:function_calls><|eot|>""",
        """<|start|>tool read_file<|message|><tool_output name="read_file">
bread: two
milk: green bottle
tea: none
</tool_output><|eot|><|start|>assistant""",
        """ to=self<|message|>The line is milk: green bottle.<|eom|><|start|>assistant to=user<|message|>notes.txt says: milk: green bottle<|eot|>""",
        """<|start|>user<|message|>What is 27 plus 15?<|eot|><|start|>assistant""",
        """ to=self<|message|>I work out 27 + 15.<|eom|><|start|>assistant to=calculate<|message|><atem:function_calls>
<atem:invoke name="calculate">
<atem:parameter name="expression">27 + 15</atem:parameter>
</atem:invoke>
</atem:function_calls><|eot|>""",
        """<|start|>tool calculate<|message|><tool_output name="calculate">
42
</tool_output><|eot|><|start|>assistant""",
        """ to=user<|message|>27 + 15 = 42<|eot|>""",
    ),
)
"""What a model for tools has seen much of: the tools of ``atem.agent``, called and quoted.

Most of it is there to be copied, so a whole model is sure of nearly all.
"""
