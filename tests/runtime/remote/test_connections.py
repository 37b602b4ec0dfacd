"""Opening, retrying, cutting and closing: when a request is sent, when again, when never."""

from __future__ import annotations

import contextlib
import gc
import logging
import shutil
import socket
import ssl
import subprocess
import sys
import threading
import time

import httpx2
import pytest

from atem.errors import ContextOverflow, EngineClosed, MissingExtra, OptionError, RemoteError
from atem.runtime.remote import Patience, RemoteEngine
from tests.runtime.remote.asking import ask, engine, hasty, text_of
from tests.runtime.remote.wires import (
    DONE,
    as_json,
    event,
    head,
    text_event,
    whole,
    wires,
)

GOOD = whole(text_event("hello", "stop") + DONE)
KEY = "sk-very-secret-1"


def status(code, message="no", **headers):
    return as_json({"error": {"message": message}}, f"{code} Oops", **headers)


def free_port():
    with socket.create_server(("127.0.0.1", 0)) as listening:
        return listening.getsockname()[1]


# --- retries ---


@pytest.mark.parametrize("code", [429, 502, 503, 504])
def test_a_busy_server_is_asked_again(code):
    patience, waits = hasty()
    with (
        wires(status(code), status(code), GOOD) as server,
        engine(server, retries=patience) as remote,
    ):
        assert text_of(remote.generate(ask())) == "hello"
    assert waits == [0.5, 1.0]


@pytest.mark.parametrize("code", [400, 401, 403, 404, 422, 500, 501])
def test_other_failures_are_reported_at_once_with_status_and_message(code):
    patience, waits = hasty()
    with (
        wires(status(code, "bad thing")) as server,
        engine(server, retries=patience) as remote,
        pytest.raises(RemoteError, match="bad thing") as caught,
    ):
        list(remote.generate(ask()))
    assert caught.value.status == code
    assert waits == []


def test_the_number_of_tries_has_an_end():
    patience, waits = hasty(3)
    with wires(*[status(503)] * 9) as server, engine(server, retries=patience) as remote:
        with pytest.raises(RemoteError) as caught:
            list(remote.generate(ask()))
        assert len(server.answers) == 5
    assert caught.value.status == 503
    assert len(waits) == 3


def test_nothing_is_sent_again_after_the_first_byte_of_a_body():
    with wires([head() + b":"], GOOD) as server, engine(server) as remote:
        with pytest.raises(RemoteError, match="broke off"):
            list(remote.generate(ask()))
        assert len(server.answers) == 1


def test_a_connection_that_dies_without_an_answer_is_not_tried_again():
    # The request may have been worked on; only one that never arrived is sent again.
    with wires([], GOOD) as server, engine(server) as remote:
        with pytest.raises(RemoteError, match="broke the connection off"):
            list(remote.generate(ask()))
        assert len(server.answers) == 1


def test_a_server_that_is_not_there_is_tried_again_and_then_reported():
    patience, waits = hasty()
    with pytest.raises(RemoteError, match="can't be reached"):
        RemoteEngine(f"http://127.0.0.1:{free_port()}", retries=patience)
    assert len(waits) == 2


def test_retry_after_is_read_from_the_answer():
    patience, waits = hasty()
    busy = status(429, Retry_After="3")
    with wires(busy, GOOD) as server, engine(server, retries=patience) as remote:
        list(remote.generate(ask()))
    assert waits == [3.0]


def test_closing_ends_a_wait_between_tries():
    with (
        wires(*[status(503)] * 5) as server,
        engine(server, retries=Patience(base=60, longest=60)) as remote,
    ):
        running = remote.generate(ask())
        waiting = threading.Thread(target=lambda: list(running))
        waiting.start()
        while len(server.posted()) < 2:
            time.sleep(0.005)
        running.close()
        waiting.join(5)
        assert not waiting.is_alive()


# --- addresses, keys, redirections ---


@pytest.mark.parametrize("ending", ["", "/", "/v1", "/v1/"])
def test_an_address_may_end_with_v1_or_not(ending):
    with wires(GOOD) as server, engine(server.url + ending) as remote:
        assert text_of(remote.generate(ask())) == "hello"
        assert {line.split()[1] for line, _, _ in server.requests} >= {
            "/v1/models",
            "/v1/completions",
        }


def test_a_path_before_v1_is_kept():
    with wires() as server, pytest.raises(RemoteError):
        RemoteEngine(server.url + "/proxy/v1", model="m", retries=0, server="openai")
    assert next(line.split()[1] for line, _, _ in server.requests) == "/proxy/v1/models"


@pytest.mark.parametrize(
    "url",
    [
        "ftp://host",
        "file:///etc/passwd",
        "host:8000",
        "http://",
        "",
        "http://user:hunter2@host",
        "http://host/?key=hunter2",
        "http://host/#hunter2",
        "http://host:port",
        "http://[host",
        "http://ho\x00st",
        "http://\u2603.example",
        "http://host/\ud800",
        "http://host/" + "a" * 70_000,
        "http://hunter2@host",
    ],
)
def test_other_addresses_are_refused_without_repeating_them(url):
    with pytest.raises(OptionError) as caught:
        RemoteEngine(url)
    assert "hunter2" not in str(caught.value)


@pytest.mark.parametrize(
    "key", ["", "two words", "new\nline", "schlüssel", "it's", 'a"b', "a\\b", "a\x7f"]
)
def test_a_key_that_no_header_can_carry_is_refused_without_repeating_it(key):
    with pytest.raises(OptionError) as caught:
        RemoteEngine("http://127.0.0.1:1", api_key=key)
    assert not key or key not in str(caught.value)


def test_the_key_goes_into_the_authorization_header_and_nowhere_else(caplog):
    caplog.set_level(logging.DEBUG)
    echoing = status(401, f"Incorrect API key provided: {KEY}. Bearer {KEY}")
    with (
        wires(echoing, whole(event({"error": KEY}))) as server,
        engine(server, api_key=KEY) as remote,
    ):
        seen = [repr(remote), repr(remote.info), repr(remote.probe), repr(remote.generate(ask()))]
        for _ in range(2):
            with pytest.raises(RemoteError) as caught:
                list(remote.generate(ask()))
            seen += [str(caught.value), repr(caught.value.__cause__), repr(caught.value.__dict__)]
        assert all(headers["authorization"] == f"Bearer {KEY}" for _, headers, _ in server.requests)
    assert KEY not in "".join(seen) + caplog.text


def test_a_key_is_not_told_by_its_beginning_either():
    text = "x" * 195 + KEY + "y" * 9000
    answers = [
        whole(text.encode(), "500 Oops", "text/plain"),
        whole(text.encode(), kind="text/html"),
        whole(b"data: " + text.encode() + b"\n\n"),
        whole(event({"error": text})),
        whole(event({"choices": [{"index": 0, "text": {"a": text}}]})),
        whole(text_event("", text)),
    ]
    with wires(*answers) as server, engine(server, api_key=KEY) as remote:
        for _ in range(len(answers)):
            with pytest.raises(RemoteError) as caught:
                list(remote.generate(ask()))
            assert "sk-" not in str(caught.value)


def test_a_redirection_is_not_followed_and_gets_no_key():
    with wires() as elsewhere:
        moved = as_json({}, "307 Moved", Location=f"{elsewhere.url}/v1/completions?token=hunter2")
        with (
            wires(moved) as server,
            engine(server, api_key=KEY) as remote,
            pytest.raises(RemoteError, match=r"points elsewhere to host '127\.0\.0\.1'") as caught,
        ):
            list(remote.generate(ask()))
        assert elsewhere.requests == []
        assert "hunter2" not in str(caught.value)


def test_the_environments_proxies_and_netrc_are_not_used(monkeypatch, tmp_path):
    netrc = tmp_path / "netrc"
    netrc.write_text("machine 127.0.0.1 login me password hunter2")
    netrc.chmod(0o600)
    monkeypatch.setenv("NETRC", str(netrc))
    monkeypatch.setenv("HTTP_PROXY", f"http://127.0.0.1:{free_port()}")
    with wires(GOOD) as server, engine(server) as remote:
        assert text_of(remote.generate(ask())) == "hello"
        assert not any("authorization" in headers for _, headers, _ in server.requests)


def test_importing_the_engine_imports_no_client_and_no_tensor_library():
    heavy = ("httpx2", "numpy", "torch", "starlette")
    code = (
        f"import sys, atem.runtime.remote; sys.exit(any(name in sys.modules for name in {heavy}))"
    )
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


def test_without_the_extra_its_install_line_is_the_error(monkeypatch):
    monkeypatch.setitem(sys.modules, "httpx2", None)
    with pytest.raises(MissingExtra, match=r"muse-atem\[remote\]"):
        RemoteEngine("http://127.0.0.1:1")


@pytest.mark.parametrize(
    "message",
    [
        "This model's maximum context length is 512 tokens.",
        "the request exceeds the available context size (512)",
        "The input is too long for this model",
    ],
)
def test_a_prompt_that_only_the_server_can_count_overflows_with_the_same_error(message):
    with (
        wires(status(400, message)) as server,
        engine(server) as remote,
        pytest.raises(ContextOverflow, match="shorten the prompt"),
    ):
        list(remote.generate(ask()))


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"\xff\xfe",
        b"[" * 100_000,
        b'{"error": null}',
        b'{"error": {"error": {"error": {}}}}',
        b"x" * 1_000_000,
    ],
)
def test_no_body_of_a_failure_is_too_strange_to_report(body):
    with (
        wires(whole(body, "500 Oops", "application/json")) as server,
        engine(server) as remote,
        pytest.raises(RemoteError, match="HTTP 500") as caught,
    ):
        list(remote.generate(ask()))
    assert len(str(caught.value)) < 600


# --- cancelling and closing ---


def endless(server):
    """An answer that goes on until its client is gone, which is noted."""
    yield head()
    try:
        for _ in range(4000):
            yield text_event("more ")
            time.sleep(0.005)
    except GeneratorExit:
        server.gone.set()
        raise


@contextlib.contextmanager
def generating():
    with wires() as server, engine(server) as remote:
        server.answers.append(endless(server))
        yield server, remote


def test_closing_the_iterator_ends_the_servers_work():
    with generating() as (server, remote):
        running = remote.generate(ask())
        assert text_of([next(running)]) == "more "
        running.close()
        gc.collect()
        assert server.gone.wait(5)
        assert list(running) == []


def test_dropping_the_iterator_ends_the_servers_work():
    with generating() as (server, remote):
        running = remote.generate(ask())
        next(running)
        del running
        gc.collect()
        assert server.gone.wait(5)


def test_a_stop_string_ends_the_servers_work():
    with generating() as (server, remote):
        steps = list(remote.generate(ask(stop=("re mo",))))
        assert text_of(steps) == "mo"
        assert steps[-1].finish == "stop"
        assert server.gone.wait(5)


def blocked(running, collected):
    """A thread that waits for the first byte of an answer."""

    def wait():
        try:
            collected.append(list(running))
        except EngineClosed as error:
            collected.append(error)

    thread = threading.Thread(target=wait)
    thread.start()
    return thread


def test_closing_wakes_a_thread_and_what_it_reads_is_no_whole_turn():
    with wires([None]) as server, engine(server) as remote:
        collected = []
        running = remote.generate(ask())
        thread = blocked(running, collected)
        while len(server.posted()) < 2:
            time.sleep(0.005)
        running.close()
        thread.join(5)
        assert [step.finish for step in collected[0]] == ["abort"]


@pytest.mark.skipif(shutil.which("openssl") is None, reason="a certificate is made by openssl")
@pytest.mark.parametrize("begun", [False, True])
def test_closing_wakes_a_thread_also_under_tls(tmp_path, begun):
    served, trusted = certified(tmp_path)
    transport = httpx2.HTTPTransport(verify=trusted)
    answer = [head() + text_event("a"), None] if begun else [None]
    with wires(answer, tls=served) as server, engine(server, transport=transport) as remote:
        collected = []
        running = remote.generate(ask())
        if begun:
            next(running)
        thread = blocked(running, collected)
        while len(server.posted()) < 2:
            time.sleep(0.005)
        running.close()
        thread.join(5)
        assert [step.finish for step in collected[0]] == ["abort"]


def certified(folder):
    """What a server proves itself with, and what a client trusts it by."""
    key, certificate = folder / "key.pem", folder / "certificate.pem"
    subject = ["-subj", "/CN=localhost", "-addext", "subjectAltName=IP:127.0.0.1", "-days", "2"]
    making = ["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", *subject]
    files = ["-keyout", str(key), "-out", str(certificate)]
    subprocess.run([*making, *files], check=True, capture_output=True)
    served = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    served.load_cert_chain(certificate, key)
    return served, ssl.create_default_context(cafile=certificate)


def test_closing_the_engine_wakes_a_thread_and_tells_it_why():
    with wires([head(), None]) as server, engine(server) as remote:
        collected = []
        thread = blocked(remote.generate(ask()), collected)
        while len(server.posted()) < 2:
            time.sleep(0.005)
        remote.close()
        thread.join(5)
        assert isinstance(collected[0], EngineClosed)


def test_what_was_read_before_the_engine_closed_is_not_handed_on():
    both = whole(text_event("a") + text_event("b") + text_event("", "stop"))
    with wires(both) as server, engine(server) as remote:
        running = remote.generate(ask())
        assert text_of([next(running)]) == "a"
        remote.close()
        with pytest.raises(EngineClosed):
            next(running)


def test_an_answer_that_was_whole_stays_whole_when_the_engine_closes():
    with wires(GOOD) as server, engine(server) as remote:
        running = remote.generate(ask())
        assert next(running).finish == "stop"
        remote.close()
        assert list(running) == []


def test_an_engine_that_is_closed_refuses_at_the_call_and_in_iterators_not_begun():
    with wires() as server, engine(server) as remote:
        begun_later = remote.generate(ask())
        remote.close()
        remote.close()
        with pytest.raises(EngineClosed):
            remote.generate(ask())
        with pytest.raises(EngineClosed):
            next(begun_later)


def test_several_generations_run_at_once():
    with (
        wires(
            *[[head() + text_event(f"{n} "), None, text_event("end", "stop")] for n in range(4)]
        ) as server,
        engine(server) as remote,
    ):
        running = [remote.generate(ask()) for _ in range(4)]
        assert sorted(text_of([next(one)]) for one in running) == ["0 ", "1 ", "2 ", "3 "]
        server.go.set()
        assert [text_of(one) for one in running] == ["end"] * 4


def test_closing_one_generation_leaves_the_others():
    with (
        wires(
            *[[head() + text_event("a"), None, text_event("b", "stop")] for _ in range(2)]
        ) as server,
        engine(server) as remote,
    ):
        first, second = remote.generate(ask()), remote.generate(ask())
        next(first), next(second)
        first.close()
        server.go.set()
        assert text_of(second) == "b"


def test_an_iterator_may_be_collected_while_its_engine_is_busy():
    with wires([head() + text_event("a"), None]) as server, engine(server) as remote:
        running = remote.generate(ask())
        next(running)

        def collect():
            with remote._client._lock:
                running.close()

        thread = threading.Thread(target=collect, daemon=True)
        thread.start()
        thread.join(5)
        assert not thread.is_alive()


def test_nothing_is_left_open_when_the_probe_fails():
    with wires(probes=[status(500)]) as server, pytest.raises(RemoteError):
        RemoteEngine(server.url, retries=0)


def test_every_request_asks_for_a_connection_of_its_own_and_no_compression():
    with wires(GOOD) as server, engine(server) as remote:
        list(remote.generate(ask()))
        sent = {(h["accept-encoding"], h["connection"]) for _, h, _ in server.requests}
        assert sent == {("identity", "close")}
