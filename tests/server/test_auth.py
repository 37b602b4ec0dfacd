"""Keys: who may ask, and that nothing of a key is kept."""

from __future__ import annotations

import hmac
from hashlib import sha256

import pytest

from atem.errors import OptionError
from atem.responses.faults import ApiError
from atem.server.auth import Keys, keys_of
from atem.server.settings import Settings

KEY = "a-key-of-a-client"
HASHED = "sha256:" + sha256(KEY.encode()).hexdigest()


@pytest.mark.parametrize("known", [KEY, HASHED])
@pytest.mark.parametrize(
    "headers",
    [{"authorization": f"Bearer {KEY}"}, {"authorization": f"bearer  {KEY}"}, {"x-api-key": KEY}],
)
def test_a_known_key_is_let_in_either_header_known_as_itself_or_as_its_hash(known, headers):
    keys = Keys(["another-key", known])
    assert keys.tenant(headers) == Keys([KEY]).tenant({"x-api-key": KEY}) != ""


@pytest.mark.parametrize(
    "headers",
    [
        {},
        {"authorization": "Bearer "},
        {"authorization": f"Basic {KEY}"},
        {"authorization": f"Bearer {KEY}x"},
        {"x-api-key": KEY[:-1]},
        {"x-api-key": HASHED},
        {"x-api-key": "\udcff"},
    ],
)
def test_anything_else_is_refused_without_quoting_it(headers):
    with pytest.raises(ApiError) as refused:
        Keys([KEY]).tenant(headers)
    assert (refused.value.status, refused.value.code) == (401, "invalid_api_key")
    assert "a-key" not in str(refused.value)


def test_each_key_is_a_tenant_of_its_own_and_a_server_without_keys_has_one():
    keys = Keys([KEY, "another-key"])
    assert keys.tenant({"x-api-key": KEY}) != keys.tenant({"x-api-key": "another-key"})
    assert Keys().tenant({"x-api-key": KEY}) == Keys().tenant({})


def test_a_key_is_compared_in_constant_time_with_every_known_one(monkeypatch):
    seen = []
    monkeypatch.setattr(hmac, "compare_digest", lambda a, b: seen.append(b) or a == b)
    Keys([KEY, "another-key"]).tenant({"x-api-key": KEY})
    assert len(seen) == 2


def test_nothing_that_is_kept_holds_a_key():
    keys = Keys([KEY])
    assert KEY not in f"{vars(keys)}{keys.tenant({'x-api-key': KEY})}"


@pytest.mark.parametrize("host", ["0.0.0.0", "::", "192.0.2.1", "example.org"])
def test_without_a_key_it_listens_to_its_own_machine_alone(host):
    with pytest.raises(OptionError, match="no API key"):
        keys_of(Settings(host=host))
    assert keys_of(Settings(host=host, api_key=(KEY,)))


@pytest.mark.parametrize("host", ["127.0.0.1", "127.1.2.3", "::1", "localhost"])
def test_on_its_own_machine_it_needs_no_key(host):
    assert not keys_of(Settings(host=host))


def test_a_file_has_a_key_on_each_line(tmp_path):
    path = tmp_path / "keys"
    path.write_text(f"# of the office\n{HASHED}\n\nanother-key\n")
    keys = keys_of(Settings(api_key_file=str(path)))
    assert keys.tenant({"x-api-key": KEY})
    assert keys.tenant({"x-api-key": "another-key"})


def test_a_hash_that_is_none_is_refused_and_not_taken_for_a_key():
    assert Keys(["sha256:" + HASHED.removeprefix("sha256:").upper()]).tenant({"x-api-key": KEY})
    for broken in (HASHED[:-1], HASHED + "0", "sha256:", "sha256:" + "z" * 64):
        with pytest.raises(OptionError, match="64 hex digits"):
            Keys([broken])


@pytest.mark.parametrize(("text", "message"), [("# none\n", "no key"), ("short\n", "8 at least")])
def test_a_file_without_keys_or_with_one_too_short_is_refused(tmp_path, text, message):
    path = tmp_path / "keys"
    path.write_text(text)
    with pytest.raises(OptionError, match=message):
        keys_of(Settings(api_key_file=str(path)))
    with pytest.raises(OptionError, match="can't be read"):
        keys_of(Settings(api_key_file=str(tmp_path / "absent")))
