"""The chat template of a checkpoint, rendered where it can do no harm (model.md 7.4).

Rules: a template is a program by somebody else. It runs in jinja2's immutable
sandbox, in a process of its own, without the environment, with limits on time,
memory and size; nothing but text comes back. atem's own prompts never come
from it: it is only compared with.
"""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from ..errors import CheckpointError, MissingExtra, UnsafeCheckpoint

if TYPE_CHECKING:
    from collections.abc import Mapping

MAX_TEMPLATE: Final = 256 * 1024
"""Characters of a template; the released one has about 7,000."""
MAX_OUTPUT: Final = 4 * 1024 * 1024
MAX_MEMORY: Final = 1024**3
SECONDS: Final = 5

_WORKER: Final = Path(__file__).with_name("template_worker.py")


def render_template(template: str, variables: Mapping[str, Any]) -> str:
    """What ``template`` makes of ``variables``, which must be JSON.

    Raises UnsafeCheckpoint if it is too large, takes too long, wants too much
    memory or what the sandbox forbids, CheckpointError if it fails otherwise,
    MissingExtra without jinja2.
    """
    if len(template) > MAX_TEMPLATE:
        raise UnsafeCheckpoint(
            f"the chat template has {len(template)} characters, {MAX_TEMPLATE} are the limit"
        )
    task = {
        "template": template,
        "variables": dict(variables),
        "seconds": SECONDS,
        "memory": MAX_MEMORY,
        "output": MAX_OUTPUT,
    }
    match _run(json.dumps(task)):
        case {"text": str(text)}:
            return text
        case {"missing": _}:
            raise MissingExtra("engine", "rendering a chat template")
        case {"forbidden": why}:
            raise UnsafeCheckpoint(f"the chat template does what no template needs: {_quoted(why)}")
        case answer:
            raise CheckpointError(f"the chat template fails: {_quoted(answer.get('error'))}")


def _quoted(text: object) -> str:
    """What the template may have worded itself."""
    return repr(f"{text!s:.300}")


def _run(task: str) -> dict[str, Any]:
    try:
        done = subprocess.run(  # noqa: S603 - our own interpreter and our own script
            [sys.executable, "-I", _WORKER],
            input=task.encode(),
            capture_output=True,
            timeout=SECONDS + 5,  # the worker's own limit comes first, where there is one
            env={},
            check=False,
        )
        answer: dict[str, Any] = json.loads(done.stdout)
    except subprocess.TimeoutExpired:
        return {"forbidden": f"it takes more than {SECONDS} s"}
    except ValueError:
        return {"forbidden": "it wants more time or memory than it gets"}
    return answer
