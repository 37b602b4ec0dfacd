"""The pixels of a PNG, as far as Chromium writes them: eight bits, no interlacing."""

from __future__ import annotations

import struct
import zlib


def pixels(png):
    """The rows of the picture, each a list of (r, g, b) or (r, g, b, a)."""
    assert png[:8] == b"\x89PNG\r\n\x1a\n"
    chunks, at = {}, 8
    while at < len(png):
        (size,) = struct.unpack_from(">I", png, at)
        kind = png[at + 4 : at + 8]
        chunks[kind] = chunks.get(kind, b"") + png[at + 8 : at + 8 + size]
        at += size + 12
    width, height, depth, colour, _, _, interlaced = struct.unpack(">IIBBBBB", chunks[b"IHDR"])
    channels = {2: 3, 6: 4}[colour]
    assert (depth, interlaced) == (8, 0)
    raw, stride = zlib.decompress(chunks[b"IDAT"]), width * channels + 1
    above, rows = bytes(stride - 1), []
    for start in range(0, height * stride, stride):
        above = _unfiltered(raw[start], raw[start + 1 : start + stride], above, channels)
        rows.append([tuple(above[x : x + channels]) for x in range(0, len(above), channels)])
    return rows


def _unfiltered(kind, line, above, channels):
    out = bytearray(line)
    for x in range(len(out)):
        left = out[x - channels] if x >= channels else 0
        corner = above[x - channels] if x >= channels else 0
        guesses = (0, left, above[x], (left + above[x]) // 2)
        guess = guesses[kind] if kind < 4 else _paeth(left, above[x], corner)
        out[x] = (out[x] + guess) & 255
    return out


def _paeth(left, above, corner):
    guess = left + above - corner
    return min(
        (abs(guess - left), 0, left),
        (abs(guess - above), 1, above),
        (abs(guess - corner), 2, corner),
    )[2]
