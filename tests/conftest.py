"""The common part of all tests: required tools, and the check that no process is left running.

How several processes share tests (`-n`) is in `tests/shares.py`, their common engine in
`tests/shared_engine.py`, and their common end in `tests/interrupts.py`.
"""

from __future__ import annotations

import gc
import itertools
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
from tests.e2e.ports import MAX_WORKERS
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
    """One process for each core, and at least two, because tests also wait.

    Each may have three brokers and a Spark session at a time: about 2 GB. One more process than
    cores was not faster on two cores, except for unit tests, which wait for a third of their time.
    """
    cores = os.cpu_count() or 2
    alone: bool = config.getoption("markexpr") == "not e2e"
    return max(2, min(cores + alone, MAX_WORKERS))


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> Shares:
    return Shares(config, log)


def pytest_collection_finish() -> None:
    """Excludes imported and collected objects from garbage collection, and makes it rarer.

    Memory is not scarce, and garbage collection took a sixth of the time of all unit tests.
    """
    gc.collect()
    gc.freeze()
    gc.set_threshold(20_000, 20, 20)


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Prints the measured values of tests, and the slowest tests."""
    for report in terminalreporter.getreports("passed"):
        for key, value in report.user_properties:
            if key == MEASURED:
                terminalreporter.write_line(str(value))
    reports = itertools.chain.from_iterable(terminalreporter.stats.values())
    spent = [
        (report.nodeid, report.duration)
        for report in reports
        if isinstance(report, pytest.TestReport)
    ]
    if len({nodeid for nodeid, _ in spent}) > durations.MAX_SHOWN:
        for line in durations.slowest(spent):
            terminalreporter.write_line(line)


def pytest_runtest_setup(item: pytest.Item) -> None:
    """``@pytest.mark.requires("kcat", ...)``: skip where a tool is missing, but fail in CI.

    A CI machine has all of them, so that no test is skipped there.
    """
    tools_by_command = {tool.command: tool for tool in TOOLS}
    names = [name for mark in item.iter_markers("requires") for name in mark.args]
    required_tools = [tools_by_command[name] for name in names]
    missing_tools = [tool for tool in required_tools if not tool.is_installed()]
    if not missing_tools:
        return
    commands = ", ".join(tool.command for tool in missing_tools)
    reason = f"not on this machine: {commands}; to have it: {install_command(missing_tools)}"
    lacking(f"{reason} (make test does it in CI as root)" if in_ci() else reason)


@pytest.fixture
def root_only() -> None:
    if os.geteuid() != 0:
        lacking("needs root: sudo make test")


@pytest.fixture(autouse=True)
def signal_handlers_end_with_their_test() -> Iterator[None]:
    """Restores the signal handlers, which a command in this process replaces."""
    numbers = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
    old_handlers = {number: signal.getsignal(number) for number in numbers}
    if old_handlers[signal.SIGHUP] is signal.SIG_IGN:
        # nohup ignores it, and the processes that a test starts would ignore it, too
        signal.signal(signal.SIGHUP, signal.SIG_DFL)
    yield
    for number, handler in old_handlers.items():
        signal.signal(number, handler)


@pytest.fixture(scope="session", autouse=True)
def nothing_left_running() -> Iterator[None]:
    """Fail if a process that was started in the session still runs, detached ones included."""
    mark = str(uuid.uuid4())
    os.environ[SESSION_VARIABLE] = mark
    yield
    deadline = time.monotonic() + GONE_SECONDS
    while (processes := marked(SESSION_VARIABLE, mark)) and time.monotonic() < deadline:
        time.sleep(0.2)
    described = [f"{process.pid} {' '.join(process.cmdline())[:200]}" for process in processes]
    for process in processes:
        process.kill()
    del os.environ[SESSION_VARIABLE]
    assert not described, "left running by tests:\n" + "\n".join(described)


@pytest.fixture(scope="session")
def docker_engine() -> Iterator[Engine]:
    """A Docker engine: a running one, or an own one until the session ends. Else the test is
    skipped.

    Other tests may run on it at the same time. Tests get an engine only here: two own engines on
    one machine would erase each other's packet rules.
    """
    from tests.e2e.docker_engine import engine_for_tests

    with engine_for_tests() as engine:
        yield engine


@pytest.fixture(scope="session")
def kafka_image(docker_engine: Engine, pytestconfig: pytest.Config) -> str:
    """The double of ``apache/kafka`` in `docker_engine`."""
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
    """Shows the output of the long build of images on the terminal."""
    from tests.e2e.images.base import hindrance

    if (reason := hindrance()) is not None:
        lacking(reason)
    capture = config.pluginmanager.get_plugin("capturemanager")
    assert capture is not None
    uncaptured: AbstractContextManager[None] = capture.global_and_fixture_disabled()
    return uncaptured
