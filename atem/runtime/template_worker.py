"""Renders one chat template: a task as JSON on standard input, the answer on standard output.

Rules: run as a script by ``template``, in a process of its own that has no
environment, and imports nothing of atem. The limits come with the task.
"""

from __future__ import annotations

import json
import sys
from typing import Any


def main() -> None:
    """Answer the task."""
    task = json.load(sys.stdin)
    _limit(task["seconds"], task["memory"])
    json.dump(_answer(task), sys.stdout)


def _limit(seconds: int, memory: int) -> None:
    try:
        import resource

        resource.setrlimit(resource.RLIMIT_CPU, (seconds, seconds))
        resource.setrlimit(resource.RLIMIT_AS, (memory, memory))
    except (ImportError, OSError, ValueError):
        pass  # no such limits on this system; the parent's time limit remains


def _answer(task: dict[str, Any]) -> dict[str, Any]:
    try:
        from jinja2.exceptions import SecurityError
    except ImportError:
        return {"missing": True}
    try:
        text = _rendered(task["template"], task["variables"])
    except (SecurityError, MemoryError, RecursionError) as error:
        return {"forbidden": f"{type(error).__name__} {str(error)[:300]}"}
    except Exception as error:  # noqa: BLE001 - a template may raise anything
        return {"error": f"{type(error).__name__}: {str(error)[:300]}"}
    if len(text) > task["output"]:
        return {"forbidden": f"it writes {len(text)} characters"}
    return {"text": text}


def _rendered(template: str, variables: dict[str, Any]) -> str:
    """As transformers sets jinja2 up for chat templates."""
    from jinja2.sandbox import ImmutableSandboxedEnvironment

    environment = ImmutableSandboxedEnvironment(
        trim_blocks=True, lstrip_blocks=True, extensions=["jinja2.ext.loopcontrols"]
    )
    environment.globals["raise_exception"] = _refuse
    environment.filters["tojson"] = _to_json
    return environment.from_string(template).render(variables)


def _refuse(message: str) -> None:
    from jinja2 import TemplateError

    raise TemplateError(message)


def _to_json(value: Any, indent: int | None = None) -> str:
    return json.dumps(value, ensure_ascii=False, indent=indent)


if __name__ == "__main__":
    main()
