"""Tools: declared in any common form, found by the name the model wrote, checked, and allowed.

Rules: this package knows conversations as data and the wire's literals; it
knows neither the parser nor the renderer, and runs nothing but a function that
its caller declared. pydantic, jsonschema and difflib are imported where they
are used, because ``import atem`` must stay cheap.
"""

from __future__ import annotations

from .definition import Tool
from .function import tool
from .policy import (
    Allow,
    Ask,
    Decision,
    Deny,
    Opinion,
    Policy,
    allow_all,
    ask_all,
    by_name,
    first_of,
)
from .reply import feedback
from .toolset import ToolSet
from .validation import validate

__all__ = [
    "Allow",
    "Ask",
    "Decision",
    "Deny",
    "Opinion",
    "Policy",
    "Tool",
    "ToolSet",
    "allow_all",
    "ask_all",
    "by_name",
    "feedback",
    "first_of",
    "tool",
    "validate",
]
