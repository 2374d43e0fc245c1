"""After an interrupt the next `make up` uses all that is left."""

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import psutil
import pytest
import yaml
from earshot_pulumi.local.process_record import running
from earshot_pulumi.validation import ValidationKind

from earshot.project import Project
from tests.e2e.engine import living_processes, local_cluster
from tests.rest import with_combinations
from toolchain.paths import ROOT, STATE

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(600)]

PATIENCE = 120.0
"""Maximum seconds of each wait, on a busy machine."""


@dataclass
class CheckoutStack:
    """A stack of this checkout, moved by the commands behind `make`."""

    name: str

    @property
    def project(self) -> Project:
        return Project(ROOT)

    @property
    def nodes(self) -> Path:
        return self.project.state_dir(self.name) / "kafka"

    @property
    def attributes(self) -> Path:
        """Files that the file backend writes in place, in addition to the stack's state."""
        return STATE / ".pulumi" / "stacks" / "earshot" / f"{self.name}.json.attrs"

    def start(self, command: str) -> subprocess.Popen[str]:
        """Runs a command as the leader of a process group, as a terminal does."""
        return subprocess.Popen(
            [sys.executable, "-m", "toolchain.stack", command, "--stack", self.name],
            cwd=ROOT,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            process_group=0,
            env={**os.environ, "PYTHONUNBUFFERED": "1"},
        )

    def run(self, command: str) -> str:
        child = self.start(command)
        output, _ = child.communicate(timeout=300)
        assert child.returncode == 0, output
        return output

    def pids(self) -> set[int]:
        records = (running(directory) for directory in self.nodes.glob("node-*"))
        return {record.pid for record in records if record is not None}


@pytest.fixture
def stack() -> Iterator[CheckoutStack]:
    new_stack = CheckoutStack(f"local-e2e-{os.getpid()}")
    file = new_stack.project.stack_file(new_stack.name)
    # one broker: cleaning up takes as long with one
    # and only Spark's part of the validation is long enough to be interrupted
    config = {"earshot:cluster": local_cluster(1, validation={"records": 0, "deadline": 120})}
    file.write_text(yaml.safe_dump({"config": config}))
    try:
        yield new_stack
    finally:
        new_stack.run("clean")
        file.unlink()
        assert new_stack.pids() == set()


@contextmanager
def cluster_of(stack: CheckoutStack) -> Iterator[dict[str, Any]]:
    """`earshot:cluster` of the stack file, which tests change."""
    file = stack.project.stack_file(stack.name)
    document = yaml.safe_load(file.read_text())
    yield document["config"]["earshot:cluster"]
    file.write_text(yaml.safe_dump(document))


def descendants(child: subprocess.Popen[str]) -> list[psutil.Process]:
    """Everything below ``child`` but the brokers, which are meant to stay."""
    try:
        child_processes = psutil.Process(child.pid).children(recursive=True)
    except psutil.Error:
        return []
    return [process for process in child_processes if "kafka.Kafka" not in _arguments(process)]


def _arguments(process: psutil.Process) -> list[str]:
    try:
        return process.cmdline()
    except psutil.Error:
        return []


def until(condition: Callable[[], object], description: str) -> None:
    end = time.monotonic() + PATIENCE
    while not condition():
        assert time.monotonic() < end, description
        time.sleep(0.05)


def validating(child: subprocess.Popen[str]) -> bool:
    return any("validate" in _arguments(process) for process in descendants(child))


VALIDATION = "the validation runs"

MOMENTS: dict[str, Callable[[CheckoutStack, subprocess.Popen[str]], object]] = {
    "the engine starts": lambda _stack, child: any(
        "up" in _arguments(process) for process in descendants(child)
    ),
    "a broker starts": lambda stack, _child: stack.pids(),
    VALIDATION: lambda _stack, child: validating(child),
}


def start_until(
    stack: CheckoutStack, moment: str
) -> tuple[subprocess.Popen[str], list[psutil.Process]]:
    """`make up` at a moment, and the processes below it."""
    if moment == VALIDATION:
        with cluster_of(stack) as cluster:
            cluster["validation"]["records"] = 60
    child = stack.start("up")
    until(lambda: MOMENTS[moment](stack, child) or child.poll() is not None, moment)
    assert child.poll() is None, child.communicate()[0]
    return child, descendants(child)


@pytest.mark.parametrize("moment", with_combinations("a broker starts", MOMENTS))
def test_ctrl_c_at_any_step_and_then_up_again(stack: CheckoutStack, moment: str) -> None:
    child, child_processes = start_until(stack, moment)
    os.killpg(child.pid, signal.SIGINT)
    output, _ = child.communicate(timeout=PATIENCE)
    assert child.returncode != 0, output
    assert "Traceback" not in output
    if moment == VALIDATION:
        assert ValidationKind.interrupted in output
    until(
        lambda: not living_processes(child_processes), "processes of the interrupted run are left"
    )
    old_pids = stack.pids()
    assert "PASS" in stack.run("up")
    assert old_pids <= stack.pids(), "a broker of the interrupted run was not picked up"


@pytest.mark.parametrize(
    "moment", with_combinations("a broker starts", ["a broker starts", VALIDATION])
)
def test_sigkill_of_the_cli_in_the_middle_of_an_update(stack: CheckoutStack, moment: str) -> None:
    child, child_processes = start_until(stack, moment)
    (engine,) = (process for process in child_processes if process.name() == "pulumi")
    engine.kill()
    output, _ = child.communicate(timeout=PATIENCE)
    assert child.returncode != 0, output
    until(lambda: not living_processes(child_processes), "processes of the killed engine are left")
    old_pids = stack.pids()
    stack.attributes.write_bytes(b"")  # as where the kill comes while they are written
    second_run = stack.run("up")
    assert "Removing the lock of pulumi process" in second_run and "has truncated" in second_run
    assert "PASS" in second_run
    assert old_pids <= stack.pids()


def test_up_twice_then_every_step_of_a_change_and_down(stack: CheckoutStack) -> None:
    assert "PASS" in stack.run("up")
    old_pids = stack.pids()
    assert len(old_pids) == 1
    second_run = stack.run("up")
    assert "validating what runs" in second_run and "PASS" in second_run
    assert stack.pids() == old_pids
    git_status_command = ["git", "status", "--porcelain", "--", "stacks"]
    assert (
        subprocess.run(git_status_command, cwd=ROOT, capture_output=True, check=True).stdout == b""
    )
    with cluster_of(stack) as cluster:
        internal = cluster["listeners"][0]
        internal |= {"name": "REPL", "port": internal["port"] + 1}
    output = stack.run("up")
    assert f"Updating stack {stack.name}, step 2 of 2: INTERNAL removed ..." in output
    assert "through REPL" in output and "PASS" in output
    new_pids = stack.pids()
    stack.run("down")
    assert len(new_pids) == 1 and stack.pids() == set()
    assert any(stack.nodes.glob("node-1/log/*")), "the data stays"
