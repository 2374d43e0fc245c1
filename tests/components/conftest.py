"""Fixtures of the tests of components."""

import asyncio
import warnings
from collections.abc import Iterator
from pathlib import Path

import pytest
from pulumi.runtime import resource
from pulumi.runtime.proto import source_pb2

_LOOPS: list[asyncio.AbstractEventLoop] = []
"""Loops of earlier tests: work of Pulumi's mocks may end later, so no loop is closed."""


@pytest.fixture(autouse=True)
def current_event_loop() -> Iterator[None]:
    """Sets a current event loop: Pulumi's mocks need one, and `asyncio.run` removes it.

    A parameter of a module's fixture is set up between two tests.
    """
    _ensure_loop()
    yield
    _ensure_loop()


@pytest.fixture(scope="module", autouse=True)
def current_event_loop_of_fixtures() -> None:
    """A module's own fixtures run before `current_event_loop`, maybe after tests of a folder that
    removed the loop."""
    _ensure_loop()


def _ensure_loop() -> None:
    try:
        with warnings.catch_warnings():  # Python 3.13 warns, and returns a new loop
            warnings.simplefilter("ignore", DeprecationWarning)
            loop = asyncio.get_event_loop_policy().get_event_loop()
    except RuntimeError:
        loop = asyncio.new_event_loop()
        asyncio.set_event_loop(loop)
    if loop not in _LOOPS:
        _LOOPS.append(loop)


@pytest.fixture(scope="module", autouse=True)
def resources_without_stack_traces() -> Iterator[None]:
    """Saves a sixth of the time: Pulumi records the whole stack of Python for each resource.

    The engine shows the traces to users; earshot does not read them.
    """
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(resource, "_get_stack_trace", source_pb2.StackTrace)
        yield


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with a Pulumi project, the current folder of the test."""
    (tmp_path / "Pulumi.yaml").write_text("name: earshot\n")
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("DOCKER_HOST", raising=False)
    return tmp_path
