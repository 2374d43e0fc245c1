"""This machine: its own addresses, and its own name where that leads back to it."""

from __future__ import annotations

import socket
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import psutil

from earshot.errors import AddressError
from earshot.listeners.address import check_host
from earshot.names.kinds import NameKind, ip_of, kind_of
from earshot.names.lookup import Lookup, Resolver, look_up
from earshot.names.resolvers import SystemResolver


@dataclass(frozen=True)
class Machine:
    """What the local placement must know of the machine it runs on."""

    addresses: tuple[str, ...]
    """All of them, loopback included, IPv4 before IPv6, without zones."""
    name: str | None = None
    """Its own name, where a client here resolves it to this machine; else None."""
    name_address: str = ""
    """The address that the name leads to and a broker can bind; empty without a name."""
    why_unnamed: str = ""
    """Why there is no usable name."""


def this_machine(
    hostname: Callable[[], str] = socket.gethostname,
    resolver: Resolver | None = None,
    addresses: Callable[[], tuple[str, ...]] | None = None,
) -> Machine:
    """This machine as it is now; the three sources can be replaced."""
    machine_addresses = (addresses or own_addresses)()
    name = hostname()
    try:
        check_host(name)
    except AddressError as error:
        return Machine(machine_addresses, why_unnamed=error.line)
    lookup = look_up([(name, resolver or SystemResolver())], seconds=5.0)
    (answer,) = lookup.values()
    address, why = _own_address(name, answer, machine_addresses)
    return Machine(machine_addresses, name if address else None, address, why)


def own_addresses() -> tuple[str, ...]:
    """Every address of every interface that psutil lists, and loopback."""
    addresses = dict.fromkeys(("127.0.0.1", "::1"))
    rows = (row for rows in psutil.net_if_addrs().values() for row in rows)
    listed = (row.address for row in rows if row.family in (socket.AF_INET, socket.AF_INET6))
    addresses |= dict.fromkeys(str(ip) for text in listed if (ip := ip_of(text)) is not None)
    return tuple(sorted(addresses, key=lambda text: (":" in text, text)))


def _own_address(name: str, answer: Lookup, own: Sequence[str]) -> tuple[str, str]:
    """The address to bind for ``name``, or an empty text and the reason why there is none."""
    if not answer.ok:
        return "", f"its own name {name} does not resolve here: {answer.diagnosis}"
    # link-local is left out, for it cannot be bound without its zone
    mine = [
        text
        for text in answer.addresses
        if text in own or kind_of(text) is NameKind.LOOPBACK_ADDRESS
        if kind_of(text) is not NameKind.LINK_LOCAL_ADDRESS
    ]
    if not mine:
        resolved = f"its own name {name} resolves to {', '.join(answer.addresses)}"
        return "", f"{resolved}, which is none of its addresses that can be bound"
    # loopback first, which opens nothing to the network; then IPv4, as `localhost` has
    mine.sort(key=lambda text: (kind_of(text) is not NameKind.LOOPBACK_ADDRESS, ":" in text))
    return mine[0], ""
