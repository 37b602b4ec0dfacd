"""What a store keeps, and its form at rest.

Rules: a record is plain JSON under an id and a tenant. At rest it is
compressed, behind a byte that numbers the form, so that a later form can be
told apart.
"""

from __future__ import annotations

import json
import zlib
from dataclasses import dataclass
from typing import Any, Final

FORM: Final = b"\x01"
"""Compressed JSON in ASCII: a lone surrogate stays what it is."""


@dataclass(frozen=True, slots=True)
class Record:
    """A response, or another thing that clients name by an id.

    ``item_ids`` are the items in ``body``, by which it is found. ``owner`` is who
    still writes it, if somebody does. ``version`` is the store's: a record that it
    gave has one above 0.
    """

    tenant: str
    id: str
    body: dict[str, Any]
    item_ids: tuple[str, ...] = ()
    owner: str = ""
    version: int = 0

    @property
    def open(self) -> bool:
        """Whether it is still written: then it is neither dropped for room nor for age."""
        return self.owner != ""


def pack(value: Any) -> bytes:
    """``value`` as it is kept."""
    return FORM + zlib.compress(json.dumps(value, separators=(",", ":")).encode(), 1)


def unpack(packed: bytes) -> Any:
    """What :func:`pack` was given. Raises ValueError for another form."""
    if packed[:1] != FORM:
        raise ValueError(f"a stored payload has form {packed[:1]!r}; this version reads {FORM!r}")
    return json.loads(zlib.decompress(packed[1:]))
