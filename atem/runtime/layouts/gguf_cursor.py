"""Bounded reading of the little-endian values of which a GGUF header is made.

Rules: nothing is taken, and nothing allocated, before it is known to lie inside
the header and inside the limits below. What a header gives is therefore at most
a few times ``MAX_HEADER`` in memory, whatever its counts and lengths say. Text
of the file is quoted and cut short in messages.
"""

from __future__ import annotations

import struct
from typing import TYPE_CHECKING, Any, Final, NoReturn, TypeAlias

from ...errors import UnsafeCheckpoint

if TYPE_CHECKING:
    import mmap

Buffer: TypeAlias = "bytes | mmap.mmap"

MAX_HEADER: Final = 64 << 20
"""Bytes of metadata and tensor table; those of the released files are about 13 MB."""

MAX_VALUES: Final = 4 << 20
"""Values in all arrays of one file; a vocabulary with its merges has about a million."""

_FORMS: Final = {
    0: "B", 1: "b", 2: "H", 3: "h", 4: "I", 5: "i", 6: "f", 7: "?", 10: "Q", 11: "q", 12: "d",
}  # fmt: skip
"""Type number of a value -> its letter in ``struct`` (the GGUF specification's table)."""

_BOOL: Final = 7
_STRING: Final = 8
_ARRAY: Final = 9
_U32: Final = struct.Struct("<I")
_U64: Final = struct.Struct("<Q")


class Cursor:
    """A place in the header of ``data``. Every method raises UnsafeCheckpoint at its end."""

    def __init__(self, data: Buffer, name: str) -> None:
        self._data = data
        self._name = name
        self._end = min(len(data), MAX_HEADER)
        self._values_left = MAX_VALUES
        self.position = 0

    def fail(self, problem: str) -> NoReturn:
        """Raise UnsafeCheckpoint for ``problem`` at the present place."""
        raise UnsafeCheckpoint(
            f"{self._name}: {problem} (byte {self.position}); the file is cut, damaged or made to "
            "harm: fetch it again from where it was published"
        )

    def need(self, size: int, what: str) -> None:
        """Refuse ``size`` bytes more than the header has."""
        left = self._end - self.position
        if size <= left:
            return
        where = "the file" if self._end == len(self._data) else f"a header of {MAX_HEADER} bytes"
        self.fail(f"{what} needs {size} bytes, and {where} has {left} more")

    def take(self, size: int, what: str) -> bytes:
        """The next ``size`` bytes."""
        self.need(size, what)
        start = self.position
        self.position += size
        return self._data[start : self.position]

    def u32(self, what: str) -> int:
        """An unsigned number of 4 bytes."""
        value: int = _U32.unpack(self.take(4, what))[0]
        return value

    def u64(self, what: str) -> int:
        """An unsigned number of 8 bytes."""
        value: int = _U64.unpack(self.take(8, what))[0]
        return value

    def count(self, smallest: int, limit: int, what: str) -> int:
        """A number of things of at least ``smallest`` bytes each, ``limit`` of them at most."""
        number = self.u64(f"the number of {what}")
        if number > limit:
            self.fail(f"{number} {what}; {limit} are the most that is read")
        self.need(number * smallest, f"{number} {what}")
        return number

    def string(self, limit: int, what: str) -> str:
        """A text with its length before it, ``limit`` bytes at most."""
        size = self.u64(f"the length of {what}")
        if size > limit:
            self.fail(f"{what} has {size} bytes; {limit} are the most that is read")
        return self._text(self.take(size, what), what)

    def value(self, what: str) -> Any:
        """A typed value: a number, a bool, a text, or a list of one of these."""
        kind = self.u32(f"the type of {what}")
        if kind == _STRING:
            return self.string(MAX_HEADER, what)
        if kind != _ARRAY:
            return self._numbers(kind, 1, what)[0]
        kind = self.u32(f"the type of {what}")
        if kind == _ARRAY:
            self.fail(f"{what} is an array of arrays, which no model of this kind has")
        smallest = 8 if kind == _STRING else self._size(kind, what)
        number = self.count(smallest, self._values_left, f"values in {what}")
        self._values_left -= number
        return self._strings(number, what) if kind == _STRING else self._numbers(kind, number, what)

    def _size(self, kind: int, what: str) -> int:
        if kind not in _FORMS:
            self.fail(f"{what} is of type {kind}, which GGUF does not have")
        return struct.calcsize("<" + _FORMS[kind])

    def _numbers(self, kind: int, number: int, what: str) -> list[Any]:
        raw = self.take(number * self._size(kind, what), what)
        if kind == _BOOL and raw.translate(None, b"\0\1"):
            self.fail(f"{what} is a bool that is neither 0 nor 1")
        return list(struct.unpack(f"<{number}{_FORMS[kind]}", raw))

    def _strings(self, number: int, what: str) -> list[str]:
        # One loop without calls: a vocabulary and its merges are more than half a million texts.
        data, end, unpack, start = self._data, self._end, _U64.unpack_from, self.position
        texts = []
        try:
            for _ in range(number):
                self.position, start = start, start + 8
                stop = start + unpack(data, start - 8)[0]
                if stop > end:
                    break
                texts.append(str(data[start:stop], "utf-8"))
                start = stop
        except (struct.error, UnicodeDecodeError):
            self.fail(f"value {len(texts)} of {what} is cut or not UTF-8")
        if len(texts) < number:
            self.fail(f"value {len(texts)} of {what} passes the end")
        self.position = start
        return texts

    def _text(self, raw: bytes, what: str) -> str:
        try:
            return raw.decode("utf-8")
        except UnicodeDecodeError:
            self.fail(f"{what} is not UTF-8")
