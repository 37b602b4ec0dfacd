"""Fixtures of the checks of scale-out."""

from __future__ import annotations

from tests.server.databases import free_port, postgres, redis

__all__ = ["free_port", "postgres", "redis"]
