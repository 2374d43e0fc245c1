"""Ports of a Docker host on which processes outside containers listen, from its kernel's tables.

An engine lists only the ports of its containers. The tables of this machine are read directly,
those of another host or network namespace in a short-lived container on the host's network.
"""

import socket
import struct
from collections.abc import Iterable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Final
from urllib.parse import unquote, urlsplit

import docker

from earshot import sockets
from earshot.engine.connection import HasEngine, address_of, is_here
from earshot.sockets import ANY_IPV4, ANY_IPV6, Bound
from earshot.topology.container import PublishedPort
from earshot_pulumi.docker import throwaway

_ANSWERS: Final = "### IPv4 "
# the tables do not say whether a socket on :: accepts IPv4, so each port is tried
_SCRIPT: Final = f"""\
cat /proc/net/tcp /proc/net/tcp6 2>/dev/null
for port in "$@"; do
    (exec 3<>"/dev/tcp/127.0.0.1/$port") 2>/dev/null && echo "{_ANSWERS}$port"
done
true"""


def holders(
    client: docker.DockerClient,
    host: HasEngine,
    image: str | None,
    requested: Sequence[PublishedPort],
    published: Iterable[PublishedPort],
) -> dict[PublishedPort, str]:
    """The process that holds each of the ``requested`` ports that cannot be published.

    ``published`` are the ports of all containers that run on the host, which Docker itself holds.
    ``image`` is one with bash that the engine has. Raises CommandFailed if the ports cannot be
    listed.
    """
    if is_here(address_of(host)) and shares_network(address_of(host)):
        listening = [(listener.bound, _process_text(listener)) for listener in sockets.listening()]
    elif image is None:
        raise throwaway.CommandFailed(
            "its ports", observed="the engine has no image yet in which they could be listed"
        )
    else:
        ports = sorted({bound.port for bound in map(_bound, requested)})
        command = ["bash", "-c", _SCRIPT, "ports", *map(str, ports)]
        output = throwaway.ask(client, image, command, network="host")
        answering_ports = {
            int(line.removeprefix(_ANSWERS)) for line in output.splitlines() if _ANSWERS in line
        }
        listening = [
            (
                _with_ipv4(bound, answering_ports),
                f"a process there (`ss -ltnp sport = :{bound.port}` names it)",
            )
            for bound in sockets.from_proc(output)
        ]
    return {port: holder for port in requested if (holder := _holder(port, listening, published))}


def _holder(
    port: PublishedPort,
    listening: Iterable[tuple[Bound, str]],
    published: Iterable[PublishedPort],
) -> str | None:
    docker_addresses = [
        _bound(published_port) for published_port in published if published_port.protocol == "tcp"
    ]
    address = _bound(port)
    for taken_address, process_text in listening:
        if sockets.clash(address, taken_address) and not any(
            _is_same_address(docker_address, taken_address) for docker_address in docker_addresses
        ):
            return process_text
    return None


def _bound(port: PublishedPort) -> Bound:
    """The address that the engine binds for ``port``: by default, IPv4 only."""
    return Bound(port.host_ip or ANY_IPV4, port.host_port or 0, ipv6_only=True)


def _is_same_address(address: Bound, other: Bound) -> bool:
    wildcards = {ANY_IPV4, ANY_IPV6}
    return address.port == other.port and (
        address.host == other.host or {address.host, other.host} <= wildcards
    )


def _with_ipv4(bound: Bound, answering_ports: set[int]) -> Bound:
    """``bound``, also for IPv4 if its port answers there. Only a wildcard IPv6 socket may."""
    if bound.host != ANY_IPV6:
        return bound
    return replace(bound, ipv6_only=bound.port not in answering_ports)


def _process_text(listener: sockets.ListeningSocket) -> str:
    return f"pid {listener.pid} ({listener.name})" if listener.pid else "a process of another user"


def shares_network(address: str) -> bool:
    """True if the server of the socket at ``address`` is in this process's network namespace.

    If the namespace cannot be read, because the process belongs to another user, the result is
    True: such a server is the system's engine.
    """
    try:
        with socket.socket(socket.AF_UNIX) as client:
            client.connect(unquote(urlsplit(address).path))
            peer = client.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, struct.calcsize("3i"))
        pid, _, _ = struct.unpack("3i", peer)
        return Path(f"/proc/{pid}/ns/net").samefile("/proc/self/ns/net")
    except PermissionError:
        return True
    except (OSError, AttributeError):  # the process is not visible, or the system has no namespaces
        return False
