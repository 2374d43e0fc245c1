"""Which ports of a Docker host are taken by processes outside containers, by its kernel's list.

An engine lists its containers only. This machine's list is read directly; that of another host, or
of an engine in another network namespace, in a short-lived container on the host's network.
"""

from __future__ import annotations

import socket
import struct
from collections.abc import Iterable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Final
from urllib.parse import unquote, urlsplit

import docker

from earshot import sockets
from earshot.engine import HasEngine, address_of, is_here
from earshot.sockets import ANY_IPV4, ANY_IPV6, Bound
from earshot.topology.container import PublishedPort
from earshot_pulumi.docker import throwaway

_ANSWERS: Final = "### IPv4 "
# no table says whether a socket on :: takes IPv4: only a connection shows it
_SCRIPT: Final = f"""\
cat /proc/net/tcp /proc/net/tcp6 2>/dev/null
for port in "$@"; do
    (exec 3<>"/dev/tcp/127.0.0.1/$port") 2>/dev/null && echo "{_ANSWERS}$port"
done
true"""


def holders(
    client: docker.DockerClient,
    where: HasEngine,
    image: str | None,
    wanted: Sequence[PublishedPort],
    published: Iterable[PublishedPort],
) -> dict[PublishedPort, str]:
    """By port of ``wanted`` that cannot be published on the host of ``where``, the process with it.

    ``published`` are the ports of all containers that run there: Docker itself holds those.
    ``image`` is one that the engine has, with bash in it. Raises NotAsked where that is not known.
    """
    if is_here(address_of(where)) and shares_network(address_of(where)):
        found = [(it.bound, _named(it)) for it in sockets.listening()]
    elif image is None:
        raise throwaway.NotAsked("its ports", observed="it has no image yet to ask them in")
    else:
        ports = sorted({bound.port for bound in map(_bound, wanted)})
        command = ["bash", "-c", _SCRIPT, "ports", *map(str, ports)]
        output = throwaway.ask(client, image, command, network="host")
        answering = {int(it.removeprefix(_ANSWERS)) for it in output.splitlines() if _ANSWERS in it}
        found = [
            (_settled(it, answering), f"a process there (`ss -ltnp sport = :{it.port}` names it)")
            for it in sockets.from_proc(output)
        ]
    return {port: it for port in wanted if (it := _taker(port, found, published))}


def _taker(
    wanted: PublishedPort,
    found: Iterable[tuple[Bound, str]],
    published: Iterable[PublishedPort],
) -> str | None:
    by_docker = [_bound(it) for it in published if it.protocol == "tcp"]
    bound = _bound(wanted)
    for held, who in found:
        if sockets.clash(bound, held) and not any(_same(it, held) for it in by_docker):
            return who
    return None


def _bound(port: PublishedPort) -> Bound:
    """What the engine binds for a published port: IPv4 only, unless the port names an address."""
    return Bound(port.host_ip or ANY_IPV4, port.host_port or 0, ipv6_only=True)


def _same(one: Bound, other: Bound) -> bool:
    wildcards = {ANY_IPV4, ANY_IPV6}
    return one.port == other.port and (
        one.host == other.host or {one.host, other.host} <= wildcards
    )


def _settled(found: Bound, answering: set[int]) -> Bound:
    is_open = found.host == ANY_IPV6
    return replace(found, ipv6_only=found.port not in answering) if is_open else found


def _named(found: sockets.Listening) -> str:
    return f"pid {found.pid} ({found.name})" if found.pid else "a process of another user"


def shares_network(address: str) -> bool:
    """Whether the server of the socket at ``address`` is in this process's network namespace.

    True where it belongs to another user, whose namespace cannot be read: the system's engine.
    """
    try:
        with socket.socket(socket.AF_UNIX) as end:
            end.connect(unquote(urlsplit(address).path))
            peer = end.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, struct.calcsize("3i"))
        pid, _, _ = struct.unpack("3i", peer)
        return Path(f"/proc/{pid}/ns/net").samefile("/proc/self/ns/net")
    except PermissionError:
        return True
    except (OSError, AttributeError):  # no such process here, or not supported by this system
        return False
