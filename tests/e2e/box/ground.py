"""The two networks of a box: the VPC's range, and the outside with the Elastic IPs."""

from __future__ import annotations

import contextlib
import secrets
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from ipaddress import IPv4Network

from tests.e2e.docker_engine import Engine

TRIES = 20


@dataclass(frozen=True)
class Wire:
    """A network of the engine."""

    name: str
    range: IPv4Network
    clients: IPv4Network
    """The addresses of containers without an own one."""

    @property
    def gateway(self) -> str:
        """This machine's address on it."""
        return str(self.range[1])


@dataclass(frozen=True)
class Ground:
    vpc: Wire
    """A stack's subnets are in the first three quarters of a VPC."""
    outside: Wire

    @property
    def office(self) -> IPv4Network:
        """The range of outside clients in the stack's settings, with this machine."""
        return IPv4Network((self.outside.range[0], 26))

    @property
    def strangers(self) -> IPv4Network:
        """Outside clients that are not in the stack's settings."""
        return IPv4Network((self.outside.range[64], 26))

    @property
    def elastic(self) -> IPv4Network:
        """The pool of Elastic IPs."""
        return IPv4Network((self.outside.range[128], 25))


@contextlib.contextmanager
def ground(engine: Engine, mark: str) -> Iterator[Ground]:
    """Two networks with own ranges on the engine. They are removed at the end."""
    with contextlib.ExitStack() as cleanup:
        vpc = _network(engine, f"earshot-box-{mark}-vpc", _vpc)
        cleanup.callback(engine.run, "network", "rm", vpc.name)
        outside = _network(engine, f"earshot-box-{mark}-outside", _outside)
        cleanup.callback(engine.run, "network", "rm", outside.name)
        yield Ground(vpc, outside)


def _vpc(name: str) -> Wire:
    addresses = IPv4Network((f"10.{128 + secrets.randbelow(112)}.0.0", 16))
    return Wire(name, addresses, IPv4Network((addresses[255 * 256], 24)))


def _outside(name: str) -> Wire:
    """From the range for measurements (RFC 2544), which is not routed and counts as public.

    It uses one half of 198.18; the other half is that of `tests/e2e/docker_hosts.py`.
    """
    addresses = IPv4Network((f"198.18.{secrets.randbelow(128)}.0", 24))
    return Wire(name, addresses, IPv4Network((addresses[32], 27)))


def network(engine: Engine, name: str) -> Wire:
    """A network with the range of another VPC, which the caller removes."""
    return _network(engine, name, _vpc)


def _network(engine: Engine, name: str, chosen: Callable[[str], Wire]) -> Wire:
    for remaining_tries in reversed(range(TRIES)):
        wire = chosen(name)
        ranges = (f"--subnet={wire.range}", f"--ip-range={wire.clients}")
        try:
            engine.run("network", "create", *ranges, f"--gateway={wire.gateway}", name)
        except AssertionError:  # another box has that range
            if not remaining_tries:
                raise
        else:
            return wire
    raise AssertionError("unreachable")
