"""A gateway of a box: HAProxy of this machine in the network of a container on both sides."""

from __future__ import annotations

import contextlib
import subprocess
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from tests.e2e.box.cloud_box import CloudBox
from tests.e2e.box.place import Place

START_SECONDS = 20.0


@dataclass
class Gateway:
    """A container in the VPC, where it reaches brokers, and in the outside network of clients."""

    inside: Place
    outside: str
    """The gateway's address outside."""
    file: Path
    _process: subprocess.Popen[bytes] | None = None

    def start(self, configuration: str, port: int) -> None:
        """Starts HAProxy with ``configuration`` in place of a running one. Waits until it listens
        at ``port``."""
        self.stop()
        self.file.write_text(configuration)
        log = self.file.with_suffix(".log")
        with log.open("ab") as output:
            command = self.inside.command("haproxy", "-db", "-f", str(self.file))
            self._process = subprocess.Popen(command, stdout=output, stderr=output)
        end = time.monotonic() + START_SECONDS
        while not self.inside.opens("127.0.0.1", port):
            assert self._process.poll() is None and time.monotonic() < end, log.read_text()
            time.sleep(0.2)

    def stop(self) -> None:
        if self._process is not None:
            self._process.terminate()
            self._process.wait(10)
            self._process = None


@contextlib.contextmanager
def on_both_sides(box: CloudBox, address: str = "") -> Iterator[tuple[Place, str]]:
    """A place in the VPC, at an ``address`` of it, and its address outside."""
    with box.place("inside", address) as place:
        outside = box.ground.outside.name
        box.engine.run("network", "connect", outside, place.container)
        address_format = f'{{{{(index .NetworkSettings.Networks "{outside}").IPAddress}}}}'
        yield (
            place,
            box.engine.run("inspect", f"--format={address_format}", place.container).strip(),
        )


@contextlib.contextmanager
def gateway(box: CloudBox, folder: Path) -> Iterator[Gateway]:
    """A stopped gateway, which is removed at the end."""
    with on_both_sides(box, gateway_address(box)) as (place, outside):
        new_gateway = Gateway(place, outside, folder / "haproxy.cfg")
        try:
            yield new_gateway
        finally:
            new_gateway.stop()


def gateway_address(box: CloudBox) -> str:
    """The gateway's address in the VPC. Security groups admit it to brokers."""
    return str(box.ground.vpc.clients[240])
