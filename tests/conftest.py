"""Fixtures for all tests."""

from __future__ import annotations

from tests.listeners.oracle import oracle

__all__ = ["oracle"]
