"""An interrupt or a killed engine ends the host and its processes, without output."""

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


def wait_for(condition: Callable[[], bool], description: str) -> None:
    deadline = time.monotonic() + PATIENCE_SECONDS
    while not condition():
        assert time.monotonic() < deadline, f"no {description} within {PATIENCE_SECONDS} s"
        time.sleep(0.1)


@contextlib.contextmanager
def update_in_progress(
    workspace: Workspace,
) -> Iterator[tuple[subprocess.Popen[str], Path]]:
    """A running update, with a program, a pack and a plugin."""
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


def descendants(cli: subprocess.Popen[str]) -> list[psutil.Process]:
    """The processes below the CLI: at least a program, a pack, a plugin and the host."""
    processes = psutil.Process(cli.pid).children(recursive=True)
    lines = [" ".join(process.cmdline()) for process in processes]
    for word in (
        "pulumi-language-python-exec",
        "pulumi.policy",
        "resource-thing",
        "pulumi_python_host",
    ):
        assert any(word in line for line in lines), word
    return processes


def wait_for_end(processes: list[psutil.Process]) -> None:
    wait_for(lambda: not any(process.is_running() for process in processes), "end of all")


def test_interrupt_ends_everything_quietly(workspace: Workspace) -> None:
    with update_in_progress(workspace) as (cli, _):
        processes = descendants(cli)
        os.killpg(cli.pid, signal.SIGINT)
        output, _errors = cli.communicate(timeout=PATIENCE_SECONDS)
        wait_for_end(processes)
        assert cli.returncode != 0
        for word in ("Traceback", "KeyboardInterrupt", "language_host", "grpc"):
            assert word not in output


def test_a_killed_engine_ends_its_children(workspace: Workspace) -> None:
    with update_in_progress(workspace) as (cli, project):
        processes = descendants(cli)
        cli.kill()
        cli.communicate(timeout=PATIENCE_SECONDS)
        wait_for_end(processes)
        assert workspace.run(project, "cancel", "--yes").returncode == 0
