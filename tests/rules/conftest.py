"""Fixtures of this folder."""

from tests.listeners.oracle import kafkas_own_exceptions, oracle

__all__ = ["kafkas_own_exceptions", "oracle"]
