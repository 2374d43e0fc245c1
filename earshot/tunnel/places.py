"""The local addresses of a tunnel: ports of 127.0.0.1, or loopback addresses."""

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
MAX_BROKERS: Final = 2000
"""The maximum number of brokers' addresses, each of which needs a listening socket."""
BACKLOG: Final = 128
HOSTS: Final = Path("/etc/hosts")

OnListening = Callable[[socket.socket, Address], None]
"""Called with a listening socket, and the address of the broker behind it."""


@dataclass
class Ports:
    """Assigns a port of 127.0.0.1 to each broker's address. Port ``first`` is for bootstrap."""

    first: int
    on_listening: OnListening
    most: int = MAX_BROKERS
    """The maximum number of addresses, lower if this process may open few files."""
    local_addresses: dict[Address, Address] = field(default_factory=dict)

    def local(self, address: Address) -> Address:
        """The local address for a broker's ``address``, added if it is new. Raises RewriteError."""
        if address not in self.local_addresses:
            if len(self.local_addresses) >= self.most:
                raise RewriteError(f"the cluster has more than {self.most:,} addresses")
            try:
                self.add(address)
            except EarshotError as fault:
                raise RewriteError(str(fault)) from None
        return self.local_addresses[address]

    def add(self, address: Address) -> None:
        """Listens for a broker's ``address``, if it is new. Raises EarshotError like `bound`."""
        if address not in self.local_addresses:
            local_address = Address(LOOPBACK, self.first + 1 + len(self.local_addresses))
            self.on_listening(bound(local_address), address)
            self.local_addresses[address] = local_address


def loopback_addresses(addresses: Sequence[Address], seed: str) -> dict[str, str]:
    """Assigns a loopback address to each host in ``addresses``. Returns them by host.

    The same ``seed`` gives the same addresses, so that those cached by clients stay valid. Raises
    EarshotError for hosts that a hosts file cannot map: IP addresses and `localhost`.
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
    """Writes ``names`` (IP address by host) and this machine's hosts file to ``file``."""
    hosts_lines = "".join(f"{address}\t{host}\n" for host, address in names.items())
    file.write_text(hosts_lines + (HOSTS.read_text(errors="replace") if HOSTS.exists() else ""))


def bound(address: Address) -> socket.socket:
    """A socket that listens at ``address``. Raises EarshotError."""
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
            observed=f"cannot be bound: {fault.strerror}",
            remedy=remedy,
        ) from None
    listening_socket.setblocking(False)
    return listening_socket
