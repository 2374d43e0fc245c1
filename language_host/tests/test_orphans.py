"""Plugins that outlive their CLI, as processes of this machine."""

import os
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

import psutil
import pytest
from pulumi_python_host.orphans import end_orphans

READY_SECONDS = 60.0
IDLE = "exec 3<>{pipe}\nread -r line <&3\n"
"""Waits without a child: while a shell forks, two processes have its command line."""


class Machine:
    """A PULUMI_HOME with one plugin, and a CLI that starts it."""

    def __init__(self, folder: Path) -> None:
        self.environment = {"PULUMI_HOME": str(folder), "PATH": str(folder / "bin")}
        self.plugin = folder / "plugins" / "resource-x-v1.0.0" / "pulumi-resource-x"
        self.cli = folder / "bin" / "pulumi"
        self.reported: list[str] = []
        self.idle = IDLE.format(pipe=folder / "pipe")
        os.mkfifo(folder / "pipe")
        self._write(self.plugin, f"#!/bin/sh\n{self.idle}")
        self._write(self.cli, f"#!/bin/sh\n{self.plugin} &\nwait\n")
        self.started: list[subprocess.Popen[bytes]] = []

    def _write(self, path: Path, text: str) -> None:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
        path.chmod(0o755)

    def start(self, program: Path) -> subprocess.Popen[bytes]:
        child = subprocess.Popen([program])
        self.started.append(child)
        end = time.monotonic() + READY_SECONDS
        while not self.plugins():
            assert time.monotonic() < end
            time.sleep(0.05)
        return child

    def plugins(self) -> list[psutil.Process]:
        """The running plugins of this machine."""
        processes = []
        for process in psutil.process_iter():
            try:
                if str(self.plugin) in process.cmdline():
                    processes.append(process)
            except psutil.Error:
                continue
        return processes

    def end(self) -> None:
        end_orphans(self.environment, self.reported.append)


@pytest.fixture
def machine(tmp_path: Path) -> Iterator[Machine]:
    machine = Machine(tmp_path)
    yield machine
    for child in machine.started:
        child.kill()
        child.wait()
    for process in machine.plugins():
        process.kill()


def test_a_plugin_outlives_a_killed_cli_and_is_ended(machine: Machine) -> None:
    cli = machine.start(machine.cli)
    machine.end()
    assert len(machine.plugins()) == 1, "its CLI still runs"
    cli.kill()
    cli.wait()
    (plugin,) = machine.plugins()
    machine.end()
    assert machine.plugins() == []
    assert machine.reported == [f"Ending plugin process {plugin.pid}, whose pulumi is gone ..."]


def test_a_plugin_that_ignores_sigterm_is_killed(machine: Machine) -> None:
    machine.plugin.write_text(f"#!/bin/sh\ntrap '' TERM\nwhile :; do\n{machine.idle}done\n")
    child = machine.start(machine.plugin)
    machine.end()
    assert child.poll() is not None or child.wait(60) is not None
    assert machine.plugins() == []


def test_plugins_of_another_home_are_not_ended(machine: Machine, tmp_path: Path) -> None:
    machine.start(machine.plugin)
    end_orphans({"PULUMI_HOME": str(tmp_path / "another"), "PATH": ""}, machine.reported.append)
    assert machine.reported == [] and len(machine.plugins()) == 1


def test_a_plugin_that_is_a_link_to_another_folder_is_ended(
    machine: Machine, tmp_path: Path
) -> None:
    kept = tmp_path / "kept" / machine.plugin.name
    kept.parent.mkdir()
    machine.plugin.rename(kept)
    machine.plugin.symlink_to(kept)
    machine.start(machine.plugin)
    machine.end()
    assert machine.plugins() == []
