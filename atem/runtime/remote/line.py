"""One exchange with a server: opened with patience, read once, cut from any thread.

Rules: a request is sent again only before the first byte of an answer's body,
never after it. The transport's timeouts begin again with every byte, so
everything but an answer's events has a time as a whole too. Every exchange has
a connection of its own, so that ending one ends the server's work on it, at
once, and touches no other. Redirections are not followed.
"""

from __future__ import annotations

import contextlib
import socket
import threading
from typing import TYPE_CHECKING, Any, Final, Self

from ...errors import EngineClosed, MissingExtra, OptionError, RemoteError
from .faults import Faults, bounded
from .patience import RETRIED, Patience

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from types import TracebackType

    import httpx2

_HEADERS: Final = {
    # Compressed events would wait in a compressor until it has enough of them.
    "Accept-Encoding": "identity",
    "Connection": "close",
}
_CONNECTED: Final = ("connect_tcp.complete", "start_tls.complete")


def import_httpx() -> Any:
    """The httpx2 module. Raises MissingExtra if it is not installed."""
    try:
        import httpx2
    except ImportError as error:
        raise MissingExtra("remote", "RemoteEngine") from error
    return httpx2


class Client:
    """The connections of one engine: what all of its exchanges share."""

    def __init__(
        self,
        root: str,
        *,
        key: str,
        timeout: float,
        patience: Patience,
        transport: Any = None,
    ) -> None:
        """Raises MissingExtra without httpx2, OptionError for an address that none can be."""
        httpx = import_httpx()
        self.faults = Faults(root, key)
        self.patience = patience
        self.patient: httpx2.Timeout = httpx.Timeout(timeout, connect=min(timeout, 10.0), pool=None)
        self.brief: httpx2.Timeout = httpx.Timeout(min(timeout, 10.0), pool=None)
        self.shortest: httpx2.Timeout = httpx.Timeout(min(timeout, 2.0), pool=None)
        self.closed = False
        self._lines: set[Line] = set()
        # An iterator that is collected while this thread holds the lock takes it once more.
        self._lock = threading.RLock()
        try:
            self._http: httpx2.Client = httpx.Client(
                base_url=root,
                headers=_HEADERS | _authorization(key),
                limits=httpx.Limits(max_connections=None, max_keepalive_connections=0),
                follow_redirects=False,
                # No proxies and no .netrc file of the environment: what goes where is said here.
                trust_env=False,
                transport=transport,
            )
        except (httpx.InvalidURL, UnicodeError):
            raise OptionError("url= can't be read as an address; is its host a name?") from None

    def line(self) -> Line:
        """A new exchange. Raises EngineClosed after ``close``."""
        line = Line(self, self._http)
        with self._lock:
            self.require_open()
            self._lines.add(line)
        return line

    def drop(self, line: Line) -> None:
        """Forget an exchange that is over."""
        with self._lock:
            self._lines.discard(line)

    def require_open(self) -> None:
        """Raise EngineClosed after ``close``."""
        if self.closed:
            raise EngineClosed("the engine is closed; make a new one")

    def close(self) -> None:
        """Cut every exchange; later ones raise EngineClosed."""
        with self._lock:
            self.closed = True
            lines = list(self._lines)
        for line in lines:
            line.cut()
        self._http.close()


def _authorization(key: str) -> dict[str, str]:
    return {"Authorization": f"Bearer {key}"} if key else {}


class Line:
    """One exchange, a context manager; leaving it closes the connection."""

    def __init__(self, client: Client, http: httpx2.Client) -> None:
        self._client = client
        self._http = http
        self._response: httpx2.Response | None = None
        self._sockets: list[socket.socket] = []
        self._cut = threading.Event()
        self._late = False

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    @property
    def is_cut(self) -> bool:
        """Whether ``cut`` was called."""
        return self._cut.is_set()

    def cut(self) -> None:
        """End the connection, from any thread; one that waits for the server wakes up."""
        self._cut.set()
        self._shut_all()

    def close(self) -> None:
        """Close the connection, from the thread that reads from it."""
        self._hang_up()
        self._client.drop(self)

    def open(self, path: str, body: bytes | None = None) -> httpx2.Response:
        """The answer's status and headers, its body still to be read: of a GET without ``body``.

        Raises RemoteError for anything but status 200, ContextOverflow where
        the server says that a prompt is too long.
        """
        tried = 0
        while True:
            response, wait = self._try(path, body, tried)
            if response is not None:
                return response
            self._sleep(wait)
            tried += 1

    def ask_once(self, path: str, timeout: httpx2.Timeout) -> httpx2.Response:
        """The status and headers of a GET, whatever they are; it is not sent again.

        Raises RemoteError if there is none in time.
        """
        with self.within(timeout), self.faults():
            return self._send(path, None, timeout)

    def read(self, limit: int) -> bytes:
        """Up to ``limit`` bytes of the body. Raises RemoteError if it breaks off or trickles."""
        with self.within(self._client.brief), self.faults():
            assert self._response is not None
            return bounded(self._response.iter_raw(), limit)

    @contextlib.contextmanager
    def within(self, timeout: httpx2.Timeout) -> Iterator[None]:
        """A time after which RemoteError is raised, even if single bytes come all the while.

        It is longer than the transport's own, which tells silence from trickling.
        """
        watch = threading.Timer(_whole(timeout), self._expire)
        watch.daemon = True
        watch.start()
        try:
            yield
        except RemoteError:
            self._require_in_time(timeout)
            raise
        finally:
            watch.cancel()
        self._require_in_time(timeout)

    @contextlib.contextmanager
    def faults(self) -> Iterator[None]:
        """What the transport raises, as RemoteError."""
        httpx = import_httpx()
        try:
            yield
        except (httpx.HTTPError, httpx.InvalidURL, OSError, ValueError, RuntimeError) as error:
            # RuntimeError is also a client's that another thread closed.
            # The transport's own error is left out: its request carries the key.
            late = isinstance(error, httpx.TimeoutException)
            raise self._client.faults.error(_described(error), late=late) from None

    def _try(
        self, path: str, body: bytes | None, tried: int
    ) -> tuple[httpx2.Response | None, float]:
        """An answer of status 200, or how long to wait before the next try."""
        httpx = import_httpx()
        patience, last = self._client.patience, tried >= self._client.patience.retries
        with self.within(self._patience_for(body)), self.faults():
            try:
                response = self._send(path, body, self._patience_for(body))
            except (httpx.ConnectError, httpx.ConnectTimeout):
                if last or self.is_cut:
                    raise
                return None, patience.wait(tried, None)
        if response.status_code == 200:
            self._require_plain(response)
            return response, 0.0
        if last or response.status_code not in RETRIED:
            self._refuse(response)
        self._hang_up()
        return None, patience.wait(tried, response.headers.get("retry-after"))

    def _send(self, path: str, body: bytes | None, timeout: httpx2.Timeout) -> httpx2.Response:
        if self.is_cut:
            raise OSError("the request was cancelled")
        request = self._http.build_request(
            "GET" if body is None else "POST",
            path,
            content=body,
            headers={} if body is None else {"Content-Type": "application/json"},
            timeout=timeout,
            extensions={"trace": self._trace},
        )
        self._response = self._http.send(request, stream=True)
        return self._response

    def _patience_for(self, body: bytes | None) -> httpx2.Timeout:
        return self._client.brief if body is None else self._client.patient

    def _require_plain(self, response: httpx2.Response) -> None:
        """Nothing is unpacked: a few bytes could become any number."""
        packed = response.headers.get("content-encoding", "identity")
        if packed.strip().lower() != "identity":
            said = self._client.faults.quoted(packed, 40)
            raise self._client.faults.error(
                f"answered in the Content-Encoding {said} where none was asked for; "
                "is there a proxy that compresses?"
            )

    def _require_in_time(self, timeout: httpx2.Timeout) -> None:
        if self._late:
            raise self._client.faults.error(
                f"sent bytes for {_whole(timeout):g} seconds and was not ready; is it overloaded?",
                late=True,
            ) from None

    def _expire(self) -> None:
        self._late = True
        self._shut_all()

    def _refuse(self, response: httpx2.Response) -> None:
        status, faults = response.status_code, self._client.faults
        if 300 <= status < 400:
            raise faults.moved(status, response.headers.get("location", ""))
        try:
            body = self.read(64 * 1024)
        except ConnectionError:  # the status says more than a body that broke off
            body = b""
        raise faults.refused(status, body)

    def _trace(self, name: str, info: Mapping[str, Any]) -> None:
        """Keep the socket, the one way to wake a thread that reads from it."""
        if name.endswith(_CONNECTED):
            connection = info["return_value"].get_extra_info("socket")
            if isinstance(connection, socket.socket):
                self._sockets.append(connection)
                if self.is_cut or self._late:
                    _shut(connection)

    def _shut_all(self) -> None:
        for connection in tuple(self._sockets):
            _shut(connection)

    def _sleep(self, seconds: float) -> None:
        sleep = self._client.patience.sleep
        (sleep or self._cut.wait)(seconds)

    def _hang_up(self) -> None:
        if self._response is not None:
            self._response.close()
            self._response = None
        self._sockets.clear()


def _whole(timeout: httpx2.Timeout) -> float:
    return (timeout.connect or 0.0) + (timeout.read or 0.0)


def _shut(connection: socket.socket) -> None:
    """End both directions below any TLS, whose state belongs to the thread that reads."""
    with contextlib.suppress(OSError):
        socket.socket.shutdown(connection, socket.SHUT_RDWR)


def _described(error: Exception) -> str:
    """The kind of failure in words, and the transport's own."""
    name = type(error).__name__
    words = {
        "ConnectError": "can't be reached; is the server running, and url= right",
        "ConnectTimeout": "can't be reached in time; is url= right",
        "ReadTimeout": "sent nothing for too long; a larger timeout= waits longer",
        "RemoteProtocolError": "broke the connection off",
    }
    return f"{words.get(name, 'the connection failed')} ({name}: {error})"
