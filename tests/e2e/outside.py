"""An address of this machine and a DNS server there, as containers and other hosts see them.

The address is the run's own (a /32 on loopback, from the block for measurements, RFC 2544), so
that containers reach this machine's published ports through it, and no other run is disturbed.
"""

import os
import random
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

from tests.doubles.dns_server import dns_server
from tests.skips import lacking


@dataclass(frozen=True)
class Outside:
    """An address and a table of names, for `dns` of a container and `resolvers` of the gate."""

    address: str
    """The address of this machine, and of the DNS server (port 53)."""
    table: dict[str, tuple[str, ...] | str] = field(default_factory=dict)
    """The addresses of each name, or a DNS error such as SERVFAIL. Tests change it."""

    def call(self, name: str) -> str:
        """Make ``name`` resolve to this machine. Returns the same name."""
        self.table[name] = (self.address,)
        return name


@contextmanager
def outside() -> Iterator[Outside]:
    """The address and its server, removed at the end. Skips if only root may create them."""
    if os.geteuid() != 0:
        lacking("only root can give this machine an address and serve port 53")
    address = _free_address()
    _ip("address", "add", f"{address}/32", "dev", "lo")
    try:
        new_outside = Outside(address)
        with dns_server(new_outside.table, address, 53):
            yield new_outside
    finally:
        _ip("address", "delete", f"{address}/32", "dev", "lo")


def _free_address() -> str:
    addresses = _ip("-4", "-o", "address")
    while True:
        chosen = f"198.19.{random.randrange(256)}.{random.randrange(1, 255)}"
        if f" {chosen}/" not in addresses:
            return chosen


def _ip(*arguments: str) -> str:
    completed = subprocess.run(["ip", *arguments], capture_output=True, text=True)
    assert completed.returncode == 0, f"ip {' '.join(arguments)}: {completed.stderr.strip()}"
    return completed.stdout
