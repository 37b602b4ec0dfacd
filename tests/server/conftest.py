"""Fixtures of the server's tests."""

from __future__ import annotations

from tests.server.databases import database, free_port, postgres, redis

__all__ = ["database", "free_port", "postgres", "redis"]
