"""Runs of pytest in processes that have everything but the product loaded already."""

import contextlib
import importlib
import os
import signal
import sys
import time
import warnings
from collections.abc import Sequence
from pathlib import Path

import psutil
import pytest

from toolchain.paths import ROOT

OPTIONS = (
    *("-q", "-p", "no:cacheprovider", "--hypothesis-seed=0", "-m", "not e2e"),
    "--tb=native",  # any other parses sources, in which Python 3.11 fails beside other threads
    *("-W", "ignore::pytest.PytestAssertRewriteWarning"),  # loaded already, by `load`
)
MARK = "EARSHOT_MUTANTS_RUN"
GRACE_SECONDS, PATIENCE = 20.0, 3
NOT_FORKED = ("grpc", "google", "pulumi", "pulumi_aws", "pulumi_docker", "pulumi_policy")
"""gRPC has threads from the start, and a process that is forked then waits for them for ever."""
PRODUCT = ("earshot", "earshot_pulumi", "earshot_policies", "toolchain", "tests", "bench")


class Chosen:
    """A pytest plugin: these tests only, in this order."""

    def __init__(self, tests: Sequence[str]) -> None:
        self._place = {test: index for index, test in enumerate(tests)}

    @pytest.hookimpl(trylast=True)
    def pytest_collection_modifyitems(self, items: list[pytest.Item]) -> None:
        items[:] = sorted(
            (item for item in items if item.nodeid in self._place),
            key=lambda item: self._place[item.nodeid],
        )


def load(modules: Sequence[str]) -> None:
    """Import what tests import of others' packages, once for all runs."""
    warnings.simplefilter("ignore")
    for name in modules:
        if name.partition(".")[0] not in (*PRODUCT, *NOT_FORKED):
            with contextlib.suppress(Exception):
                importlib.import_module(name)


def run(
    root: Path,
    arguments: Sequence[str],
    log: Path,
    seconds: float,
    plugins: Sequence[object] = (),
    environment: dict[str, str] | None = None,
) -> int | None:
    """The exit code of pytest in another process; None if it took longer than ``seconds``.

    Whatever it has started is ended with it.
    """
    mark = f"{os.getpid()}-{time.monotonic_ns()}"
    sys.stdout.flush()
    child = os.fork()
    if child == 0:
        code = 70
        try:
            os.setsid()
            with log.open("wb") as file:
                os.dup2(file.fileno(), 1)
                os.dup2(file.fileno(), 2)
            os.chdir(root)
            os.environ.update({MARK: mark, "PYTHONPATH": str(root), **(environment or {})})
            _forget_checkout(root)
            code = int(pytest.main([*OPTIONS, *arguments], plugins=list(plugins)))
            sys.stdout.flush()
        finally:
            os._exit(code)
    deadline = time.monotonic() + seconds
    status = None
    while status is None and time.monotonic() < deadline:
        ended, waited = os.waitpid(child, os.WNOHANG)
        if ended:
            status = os.waitstatus_to_exitcode(waited)
        else:
            time.sleep(0.01)
    with contextlib.suppress(ProcessLookupError):
        os.killpg(child, signal.SIGKILL)
    if status is None:
        os.waitpid(child, 0)
    if status != 0:
        _end_marked(mark)
    return status


def run_tests(root: Path, tests: Sequence[str], log: Path, seconds: float) -> bool:
    """True if these tests pass. Without the mistake they took ``seconds``. A hanging test fails."""
    files = dict.fromkeys(test.partition("::")[0] for test in tests)
    sys.dont_write_bytecode = True
    no_code = {"PYTHONDONTWRITEBYTECODE": "1"}
    limit = GRACE_SECONDS + PATIENCE * seconds
    return run(root, ["-x", *files], log, limit, [Chosen(tests)], no_code) == 0


def compile_all(root: Path) -> None:
    """Compiles all modules once.

    Runs write no bytecode: two changes in one second would look equal."""
    run(root, ["tests", "--collect-only"], root / "run.log", 600)


def write(file: Path, text: str) -> None:
    """Changes a source, and removes the code that was compiled from it."""
    for compiled in (file.parent / "__pycache__").glob(f"{file.stem}.*.pyc"):
        compiled.unlink()
    file.write_text(text)


def _forget_checkout(root: Path) -> None:
    """Let imports find the copy at ``root``, in place of the checkout that has loaded this."""
    for name in list(sys.modules):
        if name.partition(".")[0] in PRODUCT:
            del sys.modules[name]
    sys.path[:] = [str(root), *(path for path in sys.path if path not in ("", str(ROOT)))]


def _end_marked(mark: str) -> None:
    for process in psutil.process_iter():
        with contextlib.suppress(psutil.Error):
            if process.environ().get(MARK) == mark:
                process.kill()
