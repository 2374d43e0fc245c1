"""What tests of components share."""

from __future__ import annotations

import asyncio

import pytest

_KEPT: list[asyncio.AbstractEventLoop] = []
"""What Pulumi's mocks have begun on a loop may end on it later, so none is thrown away."""


@pytest.fixture(autouse=True)
def a_loop_to_work_with() -> None:
    """Pulumi's mocks take the current event loop, and `asyncio.run` leaves none behind."""
    try:
        loop = asyncio.get_event_loop_policy().get_event_loop()
    except RuntimeError:
        loop = asyncio.new_event_loop()
        asyncio.set_event_loop(loop)
    if loop not in _KEPT:
        _KEPT.append(loop)
