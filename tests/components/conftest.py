"""What tests of components share."""

import asyncio
from collections.abc import Iterator

import pytest
from pulumi.runtime import resource
from pulumi.runtime.proto import source_pb2

_KEPT: list[asyncio.AbstractEventLoop] = []
"""What Pulumi's mocks have begun on a loop may end on it later, so none is thrown away."""


@pytest.fixture(autouse=True)
def a_loop_to_work_with() -> Iterator[None]:
    """Pulumi's mocks take the current event loop, and `asyncio.run` leaves none behind.

    A module's fixtures come before a test's: they find the loop that the last test leaves.
    """
    _ensure_loop()
    yield
    _ensure_loop()


def _ensure_loop() -> None:
    try:
        loop = asyncio.get_event_loop_policy().get_event_loop()
    except RuntimeError:
        loop = asyncio.new_event_loop()
        asyncio.set_event_loop(loop)
    if loop not in _KEPT:
        _KEPT.append(loop)


@pytest.fixture(scope="module", autouse=True)
def resources_without_stack_traces() -> Iterator[None]:
    """Pulumi reads the whole stack for each resource, pytest's part too: a sixth of the time.

    The engine shows the traces to users; nothing of ours depends on them.
    """
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(resource, "_get_stack_trace", source_pb2.StackTrace)
        yield
