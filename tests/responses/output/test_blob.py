"""Reasoning blobs: what opens them, and what doesn't."""

from __future__ import annotations

import sys
import zlib
from base64 import urlsafe_b64decode, urlsafe_b64encode
from hashlib import sha256

import pytest
from cryptography.hazmat.primitives.ciphers.aead import AESGCM
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
    monkeypatch.setitem(sys.modules, "cryptography.hazmat.primitives.ciphers.aead", None)
    with pytest.raises(MissingExtra, match="cryptography"):
        Blobs(b"x" * 32, "muse")


SECRET = Blobs(b"k" * 16, "muse")


def test_with_a_key_only_its_own_blobs_open() -> None:
    blob = SECRET.seal("thought")
    assert SECRET.secret
    assert SECRET.open(blob) == "thought"
    assert SECRET.seal("thought") != blob
    assert Blobs(b"l" * 16, "muse").open(blob) is None
    assert Blobs(b"k" * 16, "other").open(blob) is None
    assert SECRET.open(OURS.seal("forged")) is None
    assert OURS.open(blob) is None


@given(st.text())
def test_with_a_key_every_text_comes_back_and_can_not_be_read_without(text: str) -> None:
    blob = SECRET.seal(text)
    assert SECRET.open(blob) == text
    body = urlsafe_b64decode(blob.removeprefix(PREFIX) + "==")
    assert len(text) < 4 or zlib.compress(text.encode()) not in body


@given(st.integers(0), st.integers(1, 255))
def test_with_a_key_no_byte_can_be_changed(place: int, by: int) -> None:
    body = bytearray(urlsafe_b64decode(SEALED.removeprefix(PREFIX) + "=="))
    body[place % len(body)] ^= by
    assert SECRET.open(PREFIX + urlsafe_b64encode(bytes(body)).decode().rstrip("=")) is None


SEALED = SECRET.seal("a thought of some length")


def test_a_sealed_blob_is_what_the_standard_says() -> None:
    """AES-GCM of the package itself, with the key, nonce and bound data that are documented."""
    body = urlsafe_b64decode(SEALED.removeprefix(PREFIX) + "==")
    key = sha256(b"atem-r1" + b"k" * 16).digest()
    packed = AESGCM(key).decrypt(body[1:13], body[13:], sha256(b"muse").digest())
    assert zlib.decompress(packed) == b"a thought of some length"
