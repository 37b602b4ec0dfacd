"""``python readers.py JSON``: clients that open the stream of a background response and don't read.

Rules: a small receive buffer, so that what isn't read stays with the server. ``waits`` seconds
after the last has come, what each received is thrown away, and they leave.
"""

from __future__ import annotations

import json
import socket
import sys
import time

BUFFER = 4096


def reader(port: int, path: str) -> socket.socket:
    """One client, whose request was sent."""
    link = socket.socket()
    link.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, BUFFER)
    link.connect(("127.0.0.1", port))
    link.sendall(f"GET {path}?stream=true HTTP/1.1\r\nhost: 127.0.0.1:{port}\r\n\r\n".encode())
    return link


def main() -> None:
    """Open, say so, wait, close."""
    options = json.loads(sys.argv[1])
    links = [reader(options["port"], options["path"]) for _ in range(options["readers"])]
    heads = [link.recv(12) for link in links]
    print(json.dumps({"open": sum(head.endswith(b"200") for head in heads)}), flush=True)
    time.sleep(options["waits"])
    for link in links:
        link.close()


if __name__ == "__main__":
    main()
