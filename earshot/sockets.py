"""Lists the TCP sockets of a machine, and decides which addresses can be bound.

`conflict` computes the kernel's decision for two sockets. `listening`, `ports_of`, `connected`,
`from_proc` and `connections` list existing sockets. `free` tries to bind on this machine.
`outgoing_ports` are the ports of outgoing connections.
"""

import contextlib
import errno
import ipaddress
import socket
from collections.abc import Collection, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import psutil

from earshot.names.kinds import ip_of

ANY_IPV4, ANY_IPV6 = "0.0.0.0", "::"

_ESTABLISHED, _LISTEN = "01", "0A"
_ENDED = (psutil.CONN_TIME_WAIT, psutil.CONN_FIN_WAIT1, psutil.CONN_FIN_WAIT2, psutil.CONN_LAST_ACK)
_IPV4 = Path("/proc/sys/net/ipv4")


@dataclass(frozen=True)
class Bound:
    """The address of a bound TCP socket, or of one to bind."""

    host: str
    """An IP address; `::ffff:127.0.0.1` is `127.0.0.1`, as for the kernel."""
    port: int
    ipv6_only: bool | None = None
    """For a socket on `::`: True if it excludes IPv4 (IPV6_V6ONLY); None if unknown."""


@dataclass(frozen=True)
class ListeningSocket:
    """A listening socket, and its process, if visible."""

    bound: Bound
    pid: int | None = None
    name: str = ""
    """The name of the process; empty if not visible."""

    def __str__(self) -> str:
        who = f"pid {self.pid} ({self.name})" if self.pid else "a process of another user"
        return f"port {self.bound.port} is in use by {who}"


@dataclass(frozen=True)
class ClientConnection:
    """A connection from a client to a port of this machine."""

    port: int
    host: str
    """The client's IP address."""
    pid: int | None = None
    """The client's process, if it runs on this machine and is visible."""
    name: str = ""
    """The name of that process."""

    @property
    def origin(self) -> str:
        return f"{self.host} (pid {self.pid}, {self.name})" if self.pid else self.host


def conflict(bound: Bound, listener: Bound) -> bool | None:
    """True if ``bound`` cannot be bound (EADDRINUSE) while ``listener`` listens; None if unknown.

    A wildcard uses every address of its family, and `::` also those of IPv4 unless it excludes it.
    """
    if bound.port != listener.port:
        return False
    bound_ip, listener_ip = _ip(bound.host), _ip(listener.host)
    if bound_ip.version == listener_ip.version:
        return bound_ip == listener_ip or bound_ip.is_unspecified or listener_ip.is_unspecified
    ip, ipv6_socket = (bound_ip, bound) if bound_ip.version == 6 else (listener_ip, listener)
    if not ip.is_unspecified:
        return False
    return None if ipv6_socket.ipv6_only is None else not ipv6_socket.ipv6_only


def clash(bound: Bound, listener: Bound) -> bool:
    """True if ``listener`` prevents binding ``bound`` here; tries it if `conflict` is None."""
    verdict = conflict(bound, listener)
    return not free(bound) if verdict is None else verdict


def of_java(host: str, port: int) -> Bound:
    """The address that a JVM binds for ``host``: a wildcard is one socket for IPv4 and IPv6.

    For a name it is its first address, IPv4 before IPv6. Raises OSError if it has none.
    """
    if ip_of(host) is None:
        rows = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)
        addresses = {row[0]: str(row[4][0]) for row in reversed(rows)}
        host = addresses.get(socket.AF_INET) or addresses[socket.AF_INET6]
    if _ip(host).is_unspecified:
        return Bound(ANY_IPV6, port, ipv6_only=False) if socket.has_ipv6 else Bound(ANY_IPV4, port)
    return Bound(host, port)


def listening() -> list[ListeningSocket]:
    """The listening TCP sockets of this machine, in the network namespace of this process.

    On macOS, which shows only a user's own processes, it is the sockets of those.
    """
    return [
        ListeningSocket(Bound(connection.laddr.ip, connection.laddr.port), pid, _name(pid))
        for connection, pid in _connections()
        if connection.status == psutil.CONN_LISTEN and connection.laddr
    ]


def ports_of(pid: int) -> frozenset[int] | None:
    """The ports at which the process ``pid`` listens; None if this user may not see them."""
    try:
        connections = psutil.Process(pid).net_connections("tcp")
    except psutil.NoSuchProcess:
        return frozenset()
    except psutil.Error:
        return None
    return frozenset(
        connection.laddr.port
        for connection in connections
        if connection.status == psutil.CONN_LISTEN
    )


@dataclass(frozen=True)
class Holder:
    """The reason why an address cannot be bound although no socket listens on it."""

    text: str
    passing: bool = False
    """True if it ends within about a minute."""

    def __str__(self) -> str:
        return self.text


def kept(bound: Bound) -> Holder | None:
    """Why ``bound`` cannot be bound although no socket listens on it; None if it can.

    An outgoing connection uses a port, also for some time after its end, and a socket may be bound
    without listening.
    """
    if free(bound):
        return None
    ended = False
    for connection, pid in _connections():
        local = connection.laddr
        if connection.status == psutil.CONN_LISTEN or not local or local.port != bound.port:
            continue
        if pid:
            text = f"port {bound.port} is in use by a connection of pid {pid} ({_name(pid)})"
            return Holder(text)
        ended |= connection.status in _ENDED
    if ended:
        text = f"port {bound.port} is held by a connection from this machine that has just ended"
        return Holder(text, passing=True)
    return Holder(f"port {bound.port} is in use by a socket that does not listen")


def connected(holder: int, ports: Collection[int]) -> list[ClientConnection]:
    """The connections to ``ports`` that the process ``holder`` of this machine has accepted."""
    ends = {}
    accepted = []
    for connection, pid in _connections():
        if connection.status != psutil.CONN_ESTABLISHED or not connection.raddr:
            continue
        own, peer = ((str(_ip(it.ip)), it.port) for it in (connection.laddr, connection.raddr))
        ends[own, peer] = pid
        if pid == holder and own[1] in ports:
            accepted.append((own, peer))
    return [
        ClientConnection(own[1], peer[0], pid := ends.get((peer, own)), _name(pid))
        for own, peer in accepted
    ]


def _connections() -> Iterator[tuple[Any, int | None]]:
    try:
        for connection in psutil.net_connections("tcp"):
            yield connection, connection.pid
    except psutil.AccessDenied:
        for process in psutil.process_iter():
            with contextlib.suppress(psutil.Error):
                for own in process.net_connections("tcp"):
                    yield own, process.pid


def from_proc(text: str) -> Iterator[Bound]:
    """The listening sockets in the text of `/proc/net/tcp`, `/proc/net/tcp6`, or both.

    The text shows neither processes nor IPV6_V6ONLY. Other lines are skipped.
    """
    for own, _ in _rows(text, _LISTEN):
        with contextlib.suppress(ValueError):
            yield _end(own)


def connections(text: str) -> Iterator[tuple[Bound, Bound]]:
    """The connections in such a text: the local and the remote address of each."""
    for own, peer in _rows(text, _ESTABLISHED):
        with contextlib.suppress(ValueError):
            yield _end(own), _end(peer)


def _rows(text: str, state: str) -> Iterator[tuple[str, str]]:
    for line in text.splitlines():
        fields = line.split()
        if len(fields) >= 4 and fields[3] == state:
            yield fields[1], fields[2]


def _end(written: str) -> Bound:
    """The address in a text such as `0100007F:1F90`. Raises ValueError for others."""
    host, _, port = written.partition(":")
    words = [bytes.fromhex(host[at : at + 8])[::-1] for at in range(0, len(host), 8)]
    return Bound(str(_ip(str(ipaddress.ip_address(b"".join(words))))), int(port, 16))


def free(bound: Bound) -> bool:
    """True if ``bound`` can be bound on this machine now.

    Only "address already in use" counts as False, as other errors have other causes.
    """
    ip = _ip(bound.host)
    family = socket.AF_INET if ip.version == 4 else socket.AF_INET6
    try:
        with socket.socket(family, socket.SOCK_STREAM) as trial:
            trial.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)  # like the JVM
            if ip.version == 6:
                dual = ip.is_unspecified and bound.ipv6_only is False
                trial.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, int(not dual))
            trial.bind((str(ip), bound.port))
    except OSError as error:
        return error.errno != errno.EADDRINUSE
    return True


@dataclass(frozen=True)
class OutgoingPorts:
    """The ports of this machine for outgoing connections."""

    first: int
    last: int
    reserved: tuple[range, ...] = ()
    """Excluded ranges, which outgoing connections do not use."""

    def __contains__(self, port: int) -> bool:
        return self.first <= port <= self.last and not any(port in it for it in self.reserved)

    def __str__(self) -> str:
        return f"{self.first}-{self.last}"


def outgoing_ports(settings: Path = _IPV4) -> OutgoingPorts | None:
    """The ports of outgoing connections in the kernel's ``settings``; None if unknown."""
    try:
        first, last = map(int, (settings / "ip_local_port_range").read_text().split())
        reserved_text = (settings / "ip_local_reserved_ports").read_text().strip()
        ends = [entry.partition("-") for entry in reserved_text.split(",") if entry]
        reserved = tuple(range(int(low), int(high or low) + 1) for low, _, high in ends)
    except (OSError, ValueError):
        return None
    return OutgoingPorts(first, last, reserved)


def _ip(host: str) -> ipaddress.IPv4Address | ipaddress.IPv6Address:
    ip = ipaddress.ip_address(host.strip("[]").partition("%")[0])
    return getattr(ip, "ipv4_mapped", None) or ip


def _name(pid: int | None) -> str:
    try:
        return psutil.Process(pid).name() if pid else ""
    except psutil.Error:
        return "gone by now"
