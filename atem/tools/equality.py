"""When two values are equal to JSON Schema.

Rules: values as Python's json reads them, and mappings and tuples in their place.
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from typing import Any, TypeAlias

Key: TypeAlias = Hashable


def key_of(value: Any) -> Key:
    """Equal for two values that JSON Schema calls equal: 1 and 1.0 are, 1 and true are not."""
    if isinstance(value, Mapping):
        return "object", frozenset((name, key_of(item)) for name, item in value.items())
    if isinstance(value, (list, tuple)):
        return "array", tuple(map(key_of, value))
    return isinstance(value, bool), value if isinstance(value, Hashable) else repr(value)
