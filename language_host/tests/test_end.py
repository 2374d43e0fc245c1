"""Interrupted or orphaned, the host and all that it started are gone soon, without a word."""

import contextlib
import os
import signal
import subprocess
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import psutil
import pytest

from language_host.tests.workspace import Workspace

pytestmark = pytest.mark.e2e

PATIENCE_SECONDS = 30


def wait_for(condition: Callable[[], bool], what: str) -> None:
    deadline = time.monotonic() + PATIENCE_SECONDS
    while not condition():
        assert time.monotonic() < deadline, f"no {what} within {PATIENCE_SECONDS} s"
        time.sleep(0.1)


@contextlib.contextmanager
def update_in_progress(
    workspace: Workspace,
) -> Iterator[tuple[subprocess.Popen[str], Path]]:
    """An update in the middle of things: program, pack, and plugin are up."""
    workspace.add_plugin()
    project = workspace.stack("slow")
    pack = workspace.add("pack")
    arguments = ("up", "--yes", "--skip-preview", "--policy-pack", str(pack))
    with workspace.start(project, *arguments) as cli:
        try:
            marker = project / "program-begun"
            wait_for(lambda: marker.exists() or cli.poll() is not None, "update in progress")
            assert cli.poll() is None, cli.communicate()[0]
            yield cli, project
        finally:
            cli.kill()


def descendants(cli: subprocess.Popen[str]) -> dict[str, psutil.Process]:
    """The processes below the CLI, by what they are."""
    kinds = {
        "pulumi-language-python-exec": "program",
        "pulumi.policy": "pack",
        "resource-thing": "plugin",
        "pulumi_python_host": "host",
    }
    found = {}
    for process in psutil.Process(cli.pid).children(recursive=True):
        line = " ".join(process.cmdline())
        found[next((kind for word, kind in kinds.items() if word in line), line)] = process
    return found


def all_gone(processes: dict[str, psutil.Process]) -> Callable[[], bool]:
    return lambda: not any(process.is_running() for process in processes.values())


def test_interrupt_ends_everything_quietly(workspace: Workspace) -> None:
    with update_in_progress(workspace) as (cli, _):
        processes = descendants(cli)
        assert {"host", "program", "pack", "plugin"} <= processes.keys()

        os.killpg(cli.pid, signal.SIGINT)
        output, _errors = cli.communicate(timeout=PATIENCE_SECONDS)

        wait_for(all_gone(processes), "end of all")
        assert cli.returncode != 0
        for word in ("Traceback", "KeyboardInterrupt", "language_host", "grpc"):
            assert word not in output


def test_killed_engine_takes_everything_along(workspace: Workspace) -> None:
    with update_in_progress(workspace) as (cli, project):
        processes = descendants(cli)
        assert {"host", "program", "pack", "plugin"} <= processes.keys()

        cli.kill()
        cli.communicate(timeout=PATIENCE_SECONDS)

        wait_for(all_gone(processes), "end of all")
        assert workspace.run(project, "cancel", "--yes").returncode == 0
