"""Reasoning as a blob that a client carries and can't read as text.

Rules: a blob is bound to the model that wrote it, so that another model never
reads it as its own thoughts; whatever is not such a blob opens as None, and
never raises. With a key it is encrypted and authenticated (AES-256-GCM, from
the ``cryptography`` package). **Without a key it is compressed text and no
secret**: anybody can read it, and write one. Source: responses.md 5.
"""

from __future__ import annotations

import zlib
from base64 import urlsafe_b64decode, urlsafe_b64encode
from binascii import Error as NotBase64
from hashlib import sha256
from importlib import import_module
from os import urandom
from typing import Final, Protocol

from ..errors import MissingExtra

PREFIX: Final = "atem-r1."
MAX_TEXT: Final = 16 * 1024 * 1024
"""Bytes of reasoning that a blob may unpack to."""

PLAIN: Final = b"z"
SEALED: Final = b"a"
DIGEST: Final = 32
NONCE: Final = 12


class Cipher(Protocol):
    """An authenticated cipher, as ``cryptography`` has them."""

    def encrypt(self, nonce: bytes, data: bytes, associated_data: bytes | None, /) -> bytes:
        """``data`` encrypted, its tag behind it."""

    def decrypt(self, nonce: bytes, data: bytes, associated_data: bytes | None, /) -> bytes:
        """What was encrypted; raises for anything else."""


class Blobs:
    """Makes and opens the blobs of ``model``.

    ``key`` (any bytes, 16 or more) makes them secret; None leaves them readable.
    Raises ValueError for a shorter key, MissingExtra if a key is given and
    ``cryptography`` is not installed.
    """

    def __init__(self, key: bytes | None, model: str) -> None:
        self._model = sha256(model.encode("utf-8", "surrogatepass")).digest()
        self._cipher = None if key is None else _cipher(key)

    @property
    def secret(self) -> bool:
        """Whether a client can't read them."""
        return self._cipher is not None

    def seal(self, text: str) -> str:
        """``text`` as a blob. Half a character, which has no UTF-8 form, is replaced."""
        packed = zlib.compress(text.encode("utf-8", "replace"), 6)
        body = self._plain(packed) if self._cipher is None else self._encrypted(packed)
        return PREFIX + urlsafe_b64encode(body).decode().rstrip("=")

    def open(self, blob: object) -> str | None:
        """The text in ``blob``; None if it is foreign, of another model, broken or too large."""
        if not isinstance(blob, str) or not blob.startswith(PREFIX):
            return None
        packed = self._unwrapped(_decoded(blob.removeprefix(PREFIX)))
        return None if packed is None else _unpacked(packed)

    def _plain(self, packed: bytes) -> bytes:
        return PLAIN + sha256(self._model + packed).digest() + packed

    def _encrypted(self, packed: bytes) -> bytes:
        assert self._cipher is not None
        nonce = urandom(NONCE)
        return SEALED + nonce + self._cipher.encrypt(nonce, packed, self._model)

    def _unwrapped(self, body: bytes) -> bytes | None:
        # With a key, only what that key made counts: anybody can write the other kind.
        wanted = PLAIN if self._cipher is None else SEALED
        if body[:1] != wanted:
            return None
        if self._cipher is None:
            digest, packed = body[1 : 1 + DIGEST], body[1 + DIGEST :]
            return packed if sha256(self._model + packed).digest() == digest else None
        nonce, rest = body[1 : 1 + NONCE], body[1 + NONCE :]
        try:
            return self._cipher.decrypt(nonce, rest, self._model)
        except Exception:  # noqa: BLE001 - the package's own kinds; all mean: not made by us
            return None


def _cipher(key: bytes) -> Cipher:
    if len(key) < 16:
        raise ValueError(f"the key of reasoning blobs has {len(key)} bytes; use 16 or more")
    try:
        aead = import_module("cryptography.hazmat.primitives.ciphers.aead")
    except ImportError as error:
        raise MissingExtra("server", "a key for reasoning blobs (cryptography)") from error
    cipher: Cipher = aead.AESGCM(sha256(b"atem-r1" + key).digest())
    return cipher


def _decoded(text: str) -> bytes:
    try:
        return urlsafe_b64decode(text.encode("ascii") + b"=" * (-len(text) % 4))
    except (NotBase64, ValueError):
        return b""


def _unpacked(packed: bytes) -> str | None:
    """What zlib unpacks, up to the limit: a small blob must not become gigabytes."""
    unpacker = zlib.decompressobj()
    try:
        data = unpacker.decompress(packed, MAX_TEXT)
        text = data.decode("utf-8")
    except (zlib.error, UnicodeDecodeError):
        return None
    return text if unpacker.eof else None
