"""Engines as another package would have them."""

from __future__ import annotations


class Engine:
    """Takes a checkpoint and one option."""

    def __init__(self, checkpoint, *, colour="blue", progress=None):
        self.checkpoint, self.colour = checkpoint, colour


class Broken:
    """Fails while it loads."""

    def __init__(self, checkpoint, *, progress=None):
        error = RuntimeError("broken")
        error.checkpoint = checkpoint
        raise error
