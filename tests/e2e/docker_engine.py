"""A Docker engine for tests: a running one, or an own one that ends with the tests.

The own engine runs as root with its own directories and socket and is stopped by pid. Its changes
in the kernel (bridge, packet rules, forwarding, mounts) are undone. Two engines in one
network namespace erase each other's packet rules, so only one session of a machine starts one
there; more hosts come from `tests/e2e/docker_hosts.py`, each in a namespace of its own.
"""

from __future__ import annotations

import contextlib
import fcntl
import json
import os
import shutil
import signal
import subprocess
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import docker
import psutil
import pytest

from earshot.engine.connection import DEFAULT, VARIABLE, connect
from earshot.errors import EarshotError
from earshot.files import cache
from tests import shared_engine
from tests.e2e.packet_rules import restored_rules
from tests.skips import lacking

WANTED = "EARSHOT_TEST_DOCKER"
READY_SECONDS = 60.0
STOP_SECONDS = 90.0
"""Seconds to stop an engine. A container may need a minute, and would outlive a killed engine."""
CLIENT_SECONDS = 120
RECORD = Path("/run/lock/earshot-test-docker.json")
"""The file locked (flock) by the session with the engine in the machine's network namespace."""


def named_address(environment: Mapping[str, str] = os.environ) -> str:
    """The address that Docker's own tools use."""
    return environment.get(VARIABLE) or DEFAULT


def answers(address: str) -> bool:
    with (
        contextlib.suppress(EarshotError),
        connect(SimpleNamespace(engine=address, cert_path=None)),
    ):
        return True
    return False


@dataclass(frozen=True)
class Engine:
    """An engine that answers at ``address``."""

    address: str
    started: bool = False
    """True if the tests started the engine. Otherwise other users may have containers on it."""

    @property
    def environment(self) -> dict[str, str]:
        """The environment for Docker's tools and SDKs."""
        return {VARIABLE: self.address}

    def client(self) -> docker.DockerClient:
        """A client that the caller closes (`with contextlib.closing(engine.client())`)."""
        return docker.DockerClient(base_url=self.address, timeout=CLIENT_SECONDS)

    def run(self, *arguments: str) -> str:
        """Runs Docker's command line and returns its output. A failure has its error output."""
        command = ["docker", "--host", self.address, *arguments]
        completed = subprocess.run(
            command, stdin=subprocess.DEVNULL, capture_output=True, text=True
        )
        assert completed.returncode == 0, f"{' '.join(command)}: {completed.stderr.strip()}"
        return completed.stdout


@dataclass
class Daemon:
    """The directories of one dockerd, everything below two of them.

    ``run`` is short: the path of a socket has at most 107 bytes. ``data_folder`` is on a real disk:
    overlay2 does not work on every temporary file system.
    """

    run: Path
    data_folder: Path
    _child: subprocess.Popen[bytes] | None = field(default=None, repr=False, compare=False)

    @classmethod
    def start_fresh(cls) -> Daemon:
        parent = cache.root() / "docker"
        parent.mkdir(parents=True, exist_ok=True)
        return cls(
            Path(tempfile.mkdtemp(prefix="earshot-docker-", dir="/tmp")),
            Path(tempfile.mkdtemp(prefix="engine-", dir=parent)),
        )

    @property
    def socket(self) -> Path:
        return self.run / "docker.sock"

    @property
    def address(self) -> str:
        return f"unix://{self.socket}"

    @property
    def log(self) -> Path:
        return self.run / "dockerd.log"

    @property
    def pid_file(self) -> Path:
        return self.run / "docker.pid"

    def start(self, prefix: Sequence[str] = (), options: Sequence[str] = ()) -> None:
        """Starts it with the command ``prefix``, and waits until it answers."""
        command = [
            *prefix, "dockerd", "--host", self.address, "--data-root", str(self.data_folder),
            "--exec-root", str(self.run / "exec"), "--pidfile", str(self.pid_file),
            "--log-level", "warn", *options,
        ]  # fmt: skip
        with self.log.open("ab") as log:
            child = self._child = subprocess.Popen(
                command,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=subprocess.STDOUT,
                start_new_session=True,  # an interrupted session stops it in its own order
            )
        end = time.monotonic() + READY_SECONDS
        while not answers(self.address):
            may_answer = child.poll() is None and time.monotonic() < end
            assert may_answer, f"dockerd does not answer; its log ends:\n{self._last_words()}"
            time.sleep(0.1)

    def process(self) -> psutil.Process | None:
        """The running dockerd, recognised by its pid file and its command line."""
        try:
            process = psutil.Process(int(self.pid_file.read_text()))
            return process if str(self.pid_file) in process.cmdline() else None
        except (OSError, ValueError, psutil.Error):
            return None

    def halt(self) -> None:
        """Stop it as when its machine stops: containers end, data is kept."""
        process = self.process()
        if process is not None:
            process.send_signal(signal.SIGTERM)
            _, processes = psutil.wait_procs([process], STOP_SECONDS)
            for still in processes:
                still.kill()
                still.wait(STOP_SECONDS)
        if self._child is not None:
            self._child.wait(STOP_SECONDS)
            self._child = None

    def stop(self) -> None:
        """Stop it with its containers, and remove its data. Safe to call twice."""
        if self.process() is not None:
            with contextlib.suppress(docker.errors.DockerException, OSError):
                self._empty()
        self.halt()
        for folder in (self.run, self.data_folder):
            unmount_below(folder)
            shutil.rmtree(folder, ignore_errors=True)
        remaining_folders = [folder for folder in (self.run, self.data_folder) if folder.exists()]
        assert not remaining_folders, f"left of a Docker engine: {remaining_folders}"

    def _empty(self) -> None:
        """Removes containers first, then the bridges of networks, so that no removal waits."""
        with contextlib.closing(Engine(self.address).client()) as client:
            for container in client.containers.list(all=True, ignore_removed=True):
                with contextlib.suppress(docker.errors.APIError):
                    container.remove(force=True, v=True)
            client.networks.prune()

    def _last_words(self) -> str:
        return "\n".join(self.log.read_text(errors="replace").splitlines()[-15:])


def unmount_below(folder: Path) -> None:
    """Undo every mount under ``folder``, the deepest first."""
    lines = Path("/proc/mounts").read_text().splitlines()
    targets = [line.split()[1].replace("\\040", " ") for line in lines]
    for target in sorted(
        (path for path in targets if Path(path).is_relative_to(folder)), reverse=True
    ):
        subprocess.run(["umount", "--lazy", target], check=True)


def refusal(environment: Mapping[str, str] = os.environ) -> str | None:
    """Why no own engine can be started here, or None."""
    in_ci = environment.get("CI", "").lower() in ("1", "true")
    if not in_ci and environment.get(WANTED) != "1":
        return (
            f"no Docker engine answers at {named_address(environment)}; start one, or as root let"
            f" the tests have one of their own: {WANTED}=1 make test"
        )
    if os.geteuid() != 0:
        return (
            f"no Docker engine answers at {named_address(environment)}, and only root can start one"
        )
    missing_tools = [tool for tool in ("dockerd", "ip", "iptables") if shutil.which(tool) is None]
    if missing_tools:
        names = ", ".join(missing_tools)
        return f"not on this machine: {names}; to have it: apt-get install docker.io"
    return None


@contextlib.contextmanager
def own_engine() -> Iterator[Engine]:
    """An engine in the machine's own network namespace. It is removed completely at the end."""
    with _only_one() as record:
        daemon = Daemon.start_fresh()
        record(daemon)
        with restored_rules():
            try:
                daemon.start()
                yield Engine(daemon.address, started=True)
            finally:
                daemon.stop()


@contextlib.contextmanager
def _only_one() -> Iterator[Any]:
    """Lock the machine-wide record. The engine of a killed session is stopped first."""
    RECORD.parent.mkdir(parents=True, exist_ok=True)
    with RECORD.open("a+") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            file.seek(0)
            other_daemon = _recorded_daemon(file.read())
            advice = f"{VARIABLE}={other_daemon.address}" if other_daemon else VARIABLE
            pytest.fail(
                "another test session runs a Docker engine on this machine, and two would erase"
                f" each other's packet rules; wait for it, or share it: {advice}",
                pytrace=False,
            )
        file.seek(0)
        if (old_daemon := _recorded_daemon(file.read())) is not None:
            old_daemon.stop()

        def record(daemon: Daemon) -> None:
            file.seek(0)
            file.truncate()
            json.dump({"run": str(daemon.run), "data": str(daemon.data_folder)}, file)
            file.flush()

        yield record
        file.seek(0)
        file.truncate()


def _recorded_daemon(text: str) -> Daemon | None:
    try:
        paths = json.loads(text)
        return Daemon(Path(paths["run"]), Path(paths["data"]))
    except (ValueError, KeyError, TypeError):
        return None


@contextlib.contextmanager
def engine_for_tests() -> Iterator[Engine]:
    """A running engine, or an own one. Otherwise the test is skipped, in CI failed."""
    if (shared_address := os.environ.get(shared_engine.ADDRESS)) is not None:
        yield Engine(shared_address, started=True)
        return
    address = named_address()
    if answers(address):
        yield Engine(address)
        return
    if (reason := refusal()) is not None:
        lacking(reason)
    with own_engine() as engine:
        yield engine
