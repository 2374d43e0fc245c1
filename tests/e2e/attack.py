"""Another user of this machine during an update, who connects to each open port and reads files."""

import contextlib
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path

import psutil

from tests.doubles.watching import watching
from tests.e2e.open_sockets import OpenSocket, open_sockets
from tests.e2e.stranger import Stranger

SECONDS = 0.5
"""Seconds between two checks of the ports and files of an update."""


@dataclass
class Attack:
    """The answers and files that the other user got."""

    sockets: dict[int, OpenSocket] = field(default_factory=dict)
    """Each socket to which the other user connected, by port."""
    answers: list[bytes] = field(default_factory=list)
    readable: set[str] = field(default_factory=set)
    """Files below the folder that the other user could read at any moment."""
    holders: set[str] = field(default_factory=set)
    """The readable files with a secret."""

    def look(
        self,
        stranger: Stranger,
        folder: Path,
        secrets: Mapping[str, str],
        nodes: Iterable[psutil.Process],
        network: int = 0,
    ) -> None:
        sockets = open_sockets(psutil.Process(), *nodes, network=network)
        current_sockets = {socket.port: socket for socket in sockets}
        new_ports = current_sockets.keys() - self.sockets.keys()
        self.sockets |= current_sockets
        self.answers += [answer for _, _, answer in stranger.answers(sorted(new_ports)) if answer]
        readable, holders = stranger.readable(folder, secrets.values())
        self.readable.update(readable)
        self.holders.update(holders)

    def exposed(self, secrets: Mapping[str, str]) -> list[str]:
        """The names of the ``secrets`` that an answer contains."""
        return [
            name
            for name, secret in secrets.items()
            if any(secret.encode() in answer for answer in self.answers)
        ]


@contextlib.contextmanager
def attack_within(
    folder: Path,
    secrets: Callable[[], Mapping[str, str]],
    nodes: Callable[[], Iterable[int]],
    network: int = 0,
) -> Iterator[Attack]:
    """Within, another user attacks the descendants of this process and the ``nodes`` (pids).

    With ``network``, the attacked processes are those in that process's network namespace.
    """
    attack = Attack()
    with Stranger(network) as stranger:

        def look() -> None:
            attack.look(stranger, folder, secrets(), processes(nodes()), network)

        with watching(look, SECONDS):
            yield attack


def processes(pids: Iterable[int]) -> list[psutil.Process]:
    """The processes with these pids that still run."""
    running_processes = []
    for pid in pids:
        with contextlib.suppress(psutil.Error):
            running_processes.append(psutil.Process(pid))
    return running_processes
