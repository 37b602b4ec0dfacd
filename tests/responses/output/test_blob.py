"""Reasoning blobs: what opens them, and what doesn't."""

from __future__ import annotations

import sys
import zlib
from base64 import urlsafe_b64encode
from hashlib import sha256
from types import ModuleType
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from atem.errors import MissingExtra
from atem.responses.blob import MAX_TEXT, PREFIX, Blobs

OURS = Blobs(None, "muse")


@given(st.text())
def test_a_blob_opens_as_what_was_sealed(text: str) -> None:
    assert OURS.open(OURS.seal(text)) == text


def test_a_blob_of_another_model_is_none() -> None:
    assert Blobs(None, "other").open(OURS.seal("thought")) is None


@given(st.one_of(st.text(), st.text().map(lambda text: PREFIX + text), st.none(), st.integers()))
def test_nothing_else_opens(blob: object) -> None:
    assert OURS.open(blob) is None


@given(st.integers(0), st.sampled_from("aZ_-0"))
def test_a_changed_blob_does_not_open(place: int, char: str) -> None:
    blob = OURS.seal("a thought of some length")
    at = len(PREFIX) + place % (len(blob) - len(PREFIX))
    changed = blob[:at] + char + blob[at + 1 :]
    assert OURS.open(changed) in (None, "a thought of some length")
    assert changed == blob or OURS.open(changed) is None or at == len(blob) - 1


def test_half_a_character_is_replaced() -> None:
    assert OURS.open(OURS.seal("a\ud800")) == "a?"


def test_a_blob_that_unpacks_without_end_is_none() -> None:
    packed = zlib.compress(b"a" * (MAX_TEXT + 1))
    digest = sha256(sha256(b"muse").digest() + packed).digest()
    bomb = PREFIX + urlsafe_b64encode(b"z" + digest + packed).decode().rstrip("=")
    assert len(bomb) < 50_000
    assert OURS.open(bomb) is None


def test_a_short_key_is_refused() -> None:
    with pytest.raises(ValueError, match="8 bytes"):
        Blobs(b"x" * 8, "muse")


def test_a_key_without_its_package_says_what_is_missing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "cryptography", None)
    with pytest.raises(MissingExtra, match="cryptography"):
        Blobs(b"x" * 32, "muse")


class _Cipher:
    """Stands for AES-GCM: bound to key, nonce and associated data, and not to be trusted."""

    def __init__(self, key: bytes) -> None:
        self._key = key

    def _tag(self, nonce: bytes, data: bytes, bound: bytes | None) -> bytes:
        return sha256(self._key + nonce + data + (bound or b"")).digest()

    def encrypt(self, nonce: bytes, data: bytes, bound: bytes | None) -> bytes:
        return self._tag(nonce, data, bound) + bytes(255 - byte for byte in data)

    def decrypt(self, nonce: bytes, data: bytes, bound: bytes | None) -> bytes:
        plain = bytes(255 - byte for byte in data[32:])
        if self._tag(nonce, plain, bound) != data[:32]:
            raise ValueError("tag")
        return plain


@pytest.fixture
def aead(monkeypatch: pytest.MonkeyPatch) -> None:
    package = "cryptography.hazmat.primitives.ciphers.aead"
    parts = package.split(".")
    for place in range(1, len(parts) + 1):
        module: Any = ModuleType(".".join(parts[:place]))
        module.__path__ = []
        module.AESGCM = _Cipher
        monkeypatch.setitem(sys.modules, module.__name__, module)


@pytest.mark.usefixtures("aead")
def test_with_a_key_only_its_own_blobs_open() -> None:
    secret = Blobs(b"k" * 16, "muse")
    blob = secret.seal("thought")
    assert secret.secret
    assert secret.open(blob) == "thought"
    assert secret.seal("thought") != blob
    assert Blobs(b"l" * 16, "muse").open(blob) is None
    assert Blobs(b"k" * 16, "other").open(blob) is None
    assert secret.open(OURS.seal("forged")) is None
    assert OURS.open(blob) is None
