"""The place of a client in a box: a container on one side, and programs of this machine in it."""

from __future__ import annotations

import contextlib
import subprocess
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from tests.e2e.clients import KCAT, Client
from tests.e2e.docker_engine import Engine

_RESOLVING = 'mount --bind "$1" /etc/resolv.conf && shift && exec "$@"'


@dataclass(frozen=True)
class Place:
    """An idle container with the network and the name server of its side."""

    engine: Engine
    container: str
    address: str
    pid: int
    resolver: Path

    def run(self, *command: str, input_text: str = "", seconds: float = 120) -> str:
        """The output of ``command`` in the container, which must succeed."""
        completed = self.attempt(*command, input_text=input_text, seconds=seconds)
        assert completed.returncode == 0, (
            f"{' '.join(command)}: {completed.stdout}{completed.stderr}"
        )
        return completed.stdout

    def attempt(
        self, *command: str, input_text: str = "", seconds: float = 120
    ) -> subprocess.CompletedProcess[str]:
        """The finished process of ``command``, with any exit status."""
        docker = ["docker", "--host", self.engine.address, "exec", "-i", self.container]
        return subprocess.run(
            [*docker, *command], input=input_text, capture_output=True, text=True, timeout=seconds
        )

    @property
    def client(self) -> Client:
        """kcat in the container, and the doctor of this machine's earshot in its network."""
        kcat = ("docker", "--host", self.engine.address, "exec", "-i", self.container, *KCAT)
        return Client(kcat, tuple(self.command(sys.executable, "-m", "earshot")))

    def opens(self, host: str, port: int) -> bool:
        """True if `nc -vz` can connect."""
        completed = self.attempt("nc", "-vz", "-w", "3", host, str(port))
        assert (completed.returncode == 0) == ("succeeded!" in completed.stderr), completed.stderr
        return completed.returncode == 0

    def lookup(self, name: str) -> list[str]:
        """The addresses of ``name``; empty if it does not exist."""
        return self.run("dig", "+short", name, "A").split()

    def command(self, *command: str) -> Sequence[str]:
        """``command`` as a program of this machine, with the network and DNS of this place."""
        in_namespace = ("nsenter", "--net", f"--target={self.pid}")
        return (*in_namespace, *with_resolver(self.resolver, command))


def with_resolver(resolver: Path, command: Sequence[str]) -> Sequence[str]:
    """``command`` as a program of this machine that has ``resolver`` as its /etc/resolv.conf."""
    return ("unshare", "--mount", "sh", "-c", _RESOLVING, "sh", str(resolver), *command)


@contextlib.contextmanager
def place(
    engine: Engine, image: str, folder: Path, network: str, resolver: str, name: str, address: str
) -> Iterator[Place]:
    """A container called ``name``, gone at the end; ``address`` may be empty."""
    file = folder / f"{name}.resolv.conf"
    file.write_text(f"nameserver {resolver}\n")
    options = [f"--name={name}", f"--network={network}", f"--volume={file}:/etc/resolv.conf:ro"]
    options += [f"--ip={address}"] if address else []
    engine.run("run", "--detach", *options, image)
    try:
        state_format = (
            f'{{{{.State.Pid}}}} {{{{(index .NetworkSettings.Networks "{network}").IPAddress}}}}'
        )
        pid, own_address = engine.run("inspect", f"--format={state_format}", name).split()
        yield Place(engine, name, own_address, int(pid), file)
    finally:
        engine.run("rm", "--force", "--volumes", name)
