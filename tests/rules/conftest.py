"""Fixtures of this folder."""

from __future__ import annotations

from tests.listeners.oracle import oracle

__all__ = ["oracle"]
