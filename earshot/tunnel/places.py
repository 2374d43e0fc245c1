"""The addresses of this machine that lead to brokers: ports of 127.0.0.1, or loopback addresses."""

from __future__ import annotations

import hashlib
import socket
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from earshot.errors import EarshotError
from earshot.listeners.address import MAX_PORT, Address
from earshot.names.kinds import ip_of
from earshot.tunnel.rewriting import RewriteError

LOOPBACK: Final = "127.0.0.1"
MOST_BROKERS: Final = 2000
"""Addresses of brokers, each with a socket of this machine."""
BACKLOG: Final = 128
HOSTS: Final = Path("/etc/hosts")

OpenConnection = Callable[[socket.socket, Address], None]
"""Is called with a socket that listens and the broker's address that it is for."""


@dataclass
class Ports:
    """A port of 127.0.0.1 for each address of a broker: ``first`` is the bootstrap's."""

    first: int
    opened: OpenConnection
    most: int = MOST_BROKERS
    """Addresses of brokers; fewer where this process may open few files."""
    given: dict[Address, Address] = field(default_factory=dict)

    def local(self, address: Address) -> Address:
        """The local address of a broker, made where it is new. Raises RewriteError."""
        if address not in self.given:
            if len(self.given) >= self.most:
                raise RewriteError(f"the cluster has more than {self.most:,} addresses")
            try:
                self.add(address)
            except EarshotError as fault:
                raise RewriteError(str(fault)) from None
        return self.given[address]

    def add(self, address: Address) -> None:
        """Listen for one more address. Raises EarshotError where its port is not free."""
        if address not in self.given:
            local_address = Address(LOOPBACK, self.first + 1 + len(self.given))
            self.opened(bound(local_address), address)
            self.given[address] = local_address


def loopback_addresses(addresses: Sequence[Address], seed: str) -> dict[str, str]:
    """By host of ``addresses``, an address of the loopback network of its own.

    The same for the same ``seed``, so that what clients remember stays right. Raises EarshotError
    for hosts that no file of hosts can give another address.
    """
    hosts = list(dict.fromkeys(address.host.lower() for address in addresses))
    for host in hosts:
        if ip_of(host) is not None or host == "localhost":
            raise EarshotError(
                f"broker at {host}",
                observed="brokers advertise it, and it cannot have another address here",
                remedy="a listener without TLS can be rewritten (--as ports); with TLS brokers "
                "need names",
            )
    digest = hashlib.sha256(seed.encode()).digest()
    net = f"127.{64 + digest[0] % 190}.{digest[1]}"
    if len(hosts) > 254:
        observed = f"the listener has {len(hosts)} names"
        raise EarshotError("--as addresses", observed=observed, allowed="at most 254")
    return {host: f"{net}.{number}" for number, host in enumerate(hosts, 1)}


def write_hosts(file: Path, names: Mapping[str, str]) -> None:
    """This machine's file of hosts, and ``names`` before it."""
    hosts_lines = "".join(f"{address}\t{host}\n" for host, address in names.items())
    file.write_text(hosts_lines + (HOSTS.read_text(errors="replace") if HOSTS.exists() else ""))


def bound(address: Address) -> socket.socket:
    """A socket that listens there. Raises EarshotError."""
    if address.port > MAX_PORT:
        raise EarshotError("--port", observed="there are more brokers than ports after it")
    listening_socket = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
    try:
        listening_socket.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listening_socket.bind(address)
        listening_socket.listen(BACKLOG)
    except OSError as fault:
        listening_socket.close()
        remedy = "end what listens there, or choose another --port"
        if isinstance(fault, PermissionError):
            remedy = "a port below 1024 needs root here"
        raise EarshotError(
            f"{address} of this machine",
            observed=f"cannot be listened at: {fault.strerror}",
            remedy=remedy,
        ) from None
    listening_socket.setblocking(False)
    return listening_socket
