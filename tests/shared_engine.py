"""The Docker engine of all processes of a test run (`pytest -n`), started by the first process.

Two engines of tests on one machine would erase each other's packet rules, and the engine must
outlive all processes.
"""

import contextlib
import os

import pytest

ADDRESS = "EARSHOT_TEST_ENGINE"
"""The variable with the address of the engine."""


@pytest.hookimpl(tryfirst=True)
def pytest_sessionstart(session: pytest.Session) -> None:
    """Starts the engine if that is allowed; if not, each test that needs it gives the reason.

    First, it records the class-data archive of local brokers.
    """
    if not session.config.getoption("numprocesses", default=None) or ADDRESS in os.environ:
        return
    if session.config.getoption("markexpr") == "not e2e":
        return
    from tests.e2e import broker_archive

    broker_archive.ensure()
    from tests.e2e.docker_engine import answers, named_address, own_engine, refusal

    if answers(named_address()) or refusal() is not None:
        return
    cleanup = contextlib.ExitStack()
    session.config.add_cleanup(cleanup.close)  # when all processes have ended
    with contextlib.suppress(pytest.fail.Exception):  # another session has one
        os.environ[ADDRESS] = cleanup.enter_context(own_engine()).address
        cleanup.callback(os.environ.pop, ADDRESS)
