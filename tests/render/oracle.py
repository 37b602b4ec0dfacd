"""A chat template under jinja2, set up as transformers sets it up."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from jinja2.ext import loopcontrols
from jinja2.sandbox import ImmutableSandboxedEnvironment

TEMPLATE = Path(__file__).with_name("template.jinja")


class TemplateError(Exception):
    """The template called ``raise_exception``."""


def _tojson(value: Any, indent: int | None = None) -> str:
    return json.dumps(value, ensure_ascii=False, indent=indent)


def _raise(message: str) -> None:
    raise TemplateError(message)


def environment() -> ImmutableSandboxedEnvironment:
    env = ImmutableSandboxedEnvironment(
        trim_blocks=True, lstrip_blocks=True, extensions=[loopcontrols]
    )
    env.filters["tojson"] = _tojson
    env.globals["raise_exception"] = _raise
    env.globals["strftime_now"] = lambda form: datetime.now(UTC).strftime(form)
    return env


def template(source: Path = TEMPLATE) -> Any:
    return environment().from_string(source.read_text(encoding="utf-8"))


def apply(
    compiled: Any,
    messages: list[dict[str, Any]],
    *,
    tools: list[dict[str, Any]] | None = None,
    add_generation_prompt: bool = True,
    **options: Any,
) -> str:
    """What ``apply_chat_template(tokenize=False)`` gives. Options left out are not defined."""
    rendered: str = compiled.render(
        messages=messages,
        tools=tools,
        add_generation_prompt=add_generation_prompt,
        bos_token="<|begin_of_text|>",
        **options,
    )
    return rendered
