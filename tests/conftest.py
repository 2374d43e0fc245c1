"""What all tests share: what they may ask of the machine, and that they leave nothing running.

How several processes share them (`-n`) is in `tests/shares.py`, what they have in common
in `tests/shared_engine.py`, and how they end together in `tests/interrupts.py`.
"""

from __future__ import annotations

import gc
import os
import signal
import time
import uuid
from collections.abc import Iterator
from contextlib import AbstractContextManager
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import HealthCheck, settings

from tests import durations
from tests.e2e.ports import MOST_WORKERS
from tests.interrupts import GONE_SECONDS, marked
from tests.interrupts import pytest_configure as pytest_configure
from tests.interrupts import pytest_keyboard_interrupt as pytest_keyboard_interrupt
from tests.interrupts import pytest_unconfigure as pytest_unconfigure
from tests.measured import MEASURED
from tests.shared_engine import pytest_sessionstart as pytest_sessionstart
from tests.shares import Shares
from tests.skips import in_ci, lacking
from toolchain.system_packages import TOOLS, install_command

if TYPE_CHECKING:  # not needed, and slow to import, where no test uses an engine
    from tests.e2e.docker_engine import Engine

SESSION_VARIABLE = "EARSHOT_TEST_SESSION"


# how long an example takes, and to draw it, depends on how busy the machine is
_profile = settings.get_profile(settings.get_current_profile_name())
settings.register_profile(
    "untimed",
    _profile,
    deadline=None,
    suppress_health_check=[*_profile.suppress_health_check, HealthCheck.too_slow],
)
settings.load_profile("untimed")


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_auto_num_workers(config: pytest.Config) -> int:
    """One per core, and two at least, for some of the time is spent waiting.

    Each may have three brokers and a Spark session at a time: about 2 GB. One more than there are
    cores was no quicker on two, but for unit tests, which wait for a third of their time.
    """
    cores = os.cpu_count() or 2
    alone: bool = config.getoption("markexpr") == "not e2e"
    return max(2, min(cores + alone, MOST_WORKERS))


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> Shares:
    return Shares(config, log)


def pytest_collection_finish() -> None:
    """What has been imported and collected stays to the end: no search for garbage looks at it.

    And there are fewer searches, as memory is not scarce: they took a sixth of all unit tests.
    """
    gc.collect()
    gc.freeze()
    gc.set_threshold(20_000, 20, 20)


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """What tests have measured, asserted or not, and the slowest ones."""
    for report in terminalreporter.getreports("passed"):
        for key, value in report.user_properties:
            if key == MEASURED:
                terminalreporter.write_line(str(value))
    reports = [it for listed in terminalreporter.stats.values() for it in listed]
    spent = [(it.nodeid, it.duration) for it in reports if isinstance(it, pytest.TestReport)]
    if len({nodeid for nodeid, _ in spent}) > durations.SHOWN:
        for line in durations.slowest(spent):
            terminalreporter.write_line(line)


def pytest_runtest_setup(item: pytest.Item) -> None:
    """``@pytest.mark.requires("kcat", ...)``: skip where a tool is missing, but fail in CI.

    A CI machine has been given all of them, so that no test is passed over there unnoticed.
    """
    known = {tool.command: tool for tool in TOOLS}
    wanted = [known[name] for mark in item.iter_markers("requires") for name in mark.args]
    missing = [tool for tool in wanted if not tool.is_installed()]
    if not missing:
        return
    names = ", ".join(tool.command for tool in missing)
    reason = f"not on this machine: {names}; to have it: {install_command(missing)}"
    lacking(f"{reason} (make test does it in CI as root)" if in_ci() else reason)


@pytest.fixture
def root_only() -> None:
    if os.geteuid() != 0:
        lacking("takes root: sudo make test")


@pytest.fixture(autouse=True)
def signal_handlers_end_with_their_test() -> Iterator[None]:
    """A command that a test runs in this process sets them for good."""
    before = {number: signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)}
    yield
    for number, handler in before.items():
        signal.signal(number, handler)


@pytest.fixture(scope="session", autouse=True)
def nothing_left_running() -> Iterator[None]:
    """Fail if a process started during the session, detached ones included, is still there."""
    mark = str(uuid.uuid4())
    os.environ[SESSION_VARIABLE] = mark
    yield
    deadline = time.monotonic() + GONE_SECONDS
    while (left := marked(SESSION_VARIABLE, mark)) and time.monotonic() < deadline:
        time.sleep(0.2)
    described = [f"{process.pid} {' '.join(process.cmdline())[:200]}" for process in left]
    for process in left:
        process.kill()
    del os.environ[SESSION_VARIABLE]
    assert not described, "left running by tests:\n" + "\n".join(described)


@pytest.fixture(scope="session")
def docker_engine() -> Iterator[Engine]:
    """A Docker engine: the one that answers, or one of ours until the session ends; else skipped.

    Other tests may run on it at the same time. To be had only here: two of ours on one machine
    would erase each other's packet rules.
    """
    from tests.e2e.docker_engine import engine_for_tests

    with engine_for_tests() as engine:
        yield engine


@pytest.fixture(scope="session")
def kafka_image(docker_engine: Engine, pytestconfig: pytest.Config) -> str:
    """The stand-in for ``apache/kafka`` in `docker_engine`."""
    from tests.e2e.images.load import kafka_image

    with _shown(pytestconfig):
        return kafka_image(docker_engine)


@pytest.fixture(scope="session")
def client_image(docker_engine: Engine, pytestconfig: pytest.Config) -> str:
    """An image with kcat, netcat, dig and curl in `docker_engine`."""
    from tests.e2e.images.load import client_image

    with _shown(pytestconfig):
        return client_image(docker_engine)


def _shown(config: pytest.Config) -> AbstractContextManager[None]:
    """Let the long step of making images say on the terminal that it goes on."""
    from tests.e2e.images.base import hindrance

    if (reason := hindrance()) is not None:
        lacking(reason)
    capture = config.pluginmanager.get_plugin("capturemanager")
    assert capture is not None
    shown: AbstractContextManager[None] = capture.global_and_fixture_disabled()
    return shown
