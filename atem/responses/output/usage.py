"""What a response has used, in tokens.

Rules: plain counts that only grow; all five keys of the API are always there.
Source: responses.md 1.3.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any


@dataclass(slots=True)
class Usage:
    """``input`` of the prompts, ``cached`` of them reused, ``output`` written, ``reasoning`` of it.

    With several turns of the model in one response the numbers are their sums.
    """

    input: int = 0
    cached: int = 0
    output: int = 0
    reasoning: int = 0

    def body(self) -> dict[str, Any]:
        """The response object's ``usage``."""
        return {
            "input_tokens": self.input,
            "input_tokens_details": {"cached_tokens": self.cached, "cache_write_tokens": 0},
            "output_tokens": self.output,
            "output_tokens_details": {"reasoning_tokens": self.reasoning},
            "total_tokens": self.input + self.output,
        }
