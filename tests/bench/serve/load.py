"""``python load.py JSON``: clients that only write down what comes, and when.

Rules: one thread, and nothing is looked into while the clock runs: the clients share two cores
with the server that they measure.
"""

from __future__ import annotations

import json
import pickle
import selectors
import socket
import sys
import time

from plan import Plan

LAST = b"0\r\n\r\n"
PATIENCE = 30.0
"""Seconds without anything, after which the rest is given up."""

STAGGER = 1.0
"""Seconds over which the streams begin."""


def request(plan: Plan, stream: int) -> bytes:
    """The request for one stream."""
    body = json.dumps({"model": "scripted", "input": f"stream {stream}.", "stream": True}).encode()
    lines = (
        f"POST {plan.path} HTTP/1.1",
        f"host: 127.0.0.1:{plan.port}",
        "content-type: application/json",
        f"content-length: {len(body)}",
    )
    return "\r\n".join(lines).encode() + b"\r\n\r\n" + body


def run(plan: Plan) -> list[list[tuple[int, bytes]]]:
    """Nanoseconds and bytes of all that each stream received."""
    arrivals: list[list[tuple[int, bytes]]] = [[] for _ in range(plan.streams)]
    waiting = selectors.DefaultSelector()
    began, opened, ended = time.monotonic(), 0, 0
    quiet = began + PATIENCE
    while ended < plan.streams and time.monotonic() < quiet:
        while opened < plan.streams and time.monotonic() > began + opened * STAGGER / plan.streams:
            link = socket.create_connection(("127.0.0.1", plan.port), 10)
            link.sendall(request(plan, opened))
            waiting.register(link, selectors.EVENT_READ, arrivals[opened])
            opened += 1
        for key, _ in waiting.select(STAGGER / plan.streams if opened < plan.streams else 1.0):
            data = key.fileobj.recv(1 << 16)  # type: ignore[union-attr]
            key.data.append((time.monotonic_ns(), data))
            quiet = time.monotonic() + PATIENCE
            if data.endswith(LAST) or not data:
                waiting.unregister(key.fileobj)
                key.fileobj.close()  # type: ignore[union-attr]
                ended += 1
    return arrivals


def main() -> None:
    """Run, and write down."""
    plan = Plan(**json.loads(sys.argv[1]))
    plan.arrivals.write_bytes(pickle.dumps(run(plan)))


if __name__ == "__main__":
    main()
