"""What all processes that share the tests (`pytest -n`) have in common: above all a Docker engine.

Two engines of ours on one machine would erase each other's packet rules, and the process that
starts one would have to outlast all others: the first does.
"""

import contextlib
import os

import pytest

ADDRESS = "EARSHOT_TEST_ENGINE"
"""Where the processes that share the tests find it."""


@pytest.hookimpl(tryfirst=True)
def pytest_sessionstart(session: pytest.Session) -> None:
    """Start one where the tests may have one of their own; where not, each test says why.

    Before, record the archive that local brokers start with.
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
    kept = contextlib.ExitStack()
    session.config.add_cleanup(kept.close)  # when all processes have ended
    with contextlib.suppress(pytest.fail.Exception):  # another session has one
        os.environ[ADDRESS] = kept.enter_context(own_engine()).address
        kept.callback(os.environ.pop, ADDRESS)
