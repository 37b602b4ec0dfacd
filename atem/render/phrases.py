"""The sentences of the prompt that the model was trained on, each written once.

Rules: text only, nothing is computed from a conversation here. The wording is
part of the format and must not be improved. Source: ``chat_template.jinja`` of
meta-models/Muse-Glimmer-30B (wire_format 2).
"""

from __future__ import annotations

from typing import Final

from .. import wire

GREETING: Final = "You are a helpful AI assistant."

KNOWLEDGE_CUTOFF: Final = "2026-01-04"
"""The template's default."""

DEFAULT_DATE: Final = "2026-08-10"
"""The day on which the model was published, so that a default prompt is the same every day."""

CUTOFF_LINE: Final = "Knowledge cutoff: {}."
DATE_LINE: Final = "Current date: {}."
STRENGTH_LINE: Final = "Reasoning strength: {}."
RECIPIENTS_LINE: Final = "# Valid recipients: {}."

STRENGTH: Final = "reasoning strength"
"""In a system text, in any case, it stands for the strength line."""

EFFORT_WORDING: Final = (
    ("Reasoning effort", "Reasoning strength"),
    ("Reasoning Effort", "Reasoning Strength"),
    ("reasoning effort", "reasoning strength"),
    ("REASONING EFFORT", "REASONING STRENGTH"),
)
"""Rewritten in system texts, in this order."""

TOOL_OUTPUT_OPEN: Final = '<tool_output name="{}">\n'
TOOL_OUTPUT_CLOSE: Final = "\n</tool_output>"

_EXAMPLE: Final = "example_tool_name.example_function_name"

TOOLS_BEFORE: Final = (
    "In this environment you have access to a set of tools you can use to answer the user's "
    "question.\n\n"
    f'You can invoke a function by writing a "{wire.BLOCK_OPEN}" block like the following:\n'
    f"{wire.BLOCK_OPEN}\n"
    f"{wire.invoke_open('$FUNCTION_NAME')}\n"
    f"{wire.parameter_open('$PARAMETER_NAME')}$PARAMETER_VALUE{wire.PARAMETER_CLOSE}\n"
    "...\n"
    f"{wire.INVOKE_CLOSE}\n"
    f"{wire.BLOCK_CLOSE}\n\n"
    "String and scalar parameters should be specified as is, while lists and objects should use "
    "JSON format. Note that spaces for string values are not stripped. The output is not expected "
    "to be valid XML and is parsed with regular expressions.\n"
    "Here are the functions available in JSONSchema format:\n"
)

NAMESPACES: Final = "// Tool metadata\n"
"""Before the namespaces, a line each."""
FUNCTIONS: Final = "// Function schemas"
"""Between the namespaces and the functions, a line each."""

TOOLS_AFTER: Final = (
    "\n\nHere's an example of how to call a function in the tool set:\n"
    "(If the tool namespace is not specified, invoke the function directly as "
    f"`example_function_name` rather than `{_EXAMPLE}`)\n\n"
    f"{wire.TO}{_EXAMPLE}\n\n"
    f"{wire.BLOCK_OPEN}\n"
    f"{wire.invoke_open(_EXAMPLE)}\n"
    f"{wire.parameter_open('example_parameter_1')}value_1{wire.PARAMETER_CLOSE}\n"
    f"{wire.parameter_open('example_parameter_2')}This is the value for the second parameter\n"
    'that can span\n"multiple" lines\n'
    f"{wire.PARAMETER_CLOSE}\n"
    f"{wire.INVOKE_CLOSE}\n"
    f"{wire.BLOCK_CLOSE}"
)
