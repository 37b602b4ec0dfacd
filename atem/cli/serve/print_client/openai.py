"""The openai package: a few lines of Python.

Rules: they run as they stand.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from .endpoint import KEY_VARIABLE, NO_KEY

if TYPE_CHECKING:
    from .endpoint import Endpoint

LINES: Final = """\
# pip install openai. These two take the place of OpenAI()'s arguments:
# export OPENAI_BASE_URL={url} OPENAI_API_KEY={variable}
{imports}from openai import OpenAI

client = OpenAI(base_url={quoted}, api_key={key})
response = client.responses.create(model={model!r}, input="What can you do?")
print(response.output_text)
"""


def openai(endpoint: Endpoint) -> str:
    """The lines."""
    return LINES.format(
        imports="import os\n\n" if endpoint.keyed else "",
        url=endpoint.url,
        quoted=repr(endpoint.url),
        variable=f'"${KEY_VARIABLE}"' if endpoint.keyed else NO_KEY,
        key=f"os.environ[{KEY_VARIABLE!r}]" if endpoint.keyed else repr(NO_KEY),
        model=endpoint.model,
    )
