"""This machine's own addresses, and its host name if that resolves to one of them."""

from __future__ import annotations

import socket
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import psutil

from earshot.errors import AddressError
from earshot.listeners.address import check_host
from earshot.listeners.listed import briefly
from earshot.names.kinds import NameKind, ip_of, kind_of
from earshot.names.lookup import Lookup, Resolver, look_up
from earshot.names.resolvers import SystemResolver


@dataclass(frozen=True)
class Machine:
    """The machine that the local placement runs on."""

    addresses: tuple[str, ...]
    """All addresses including loopback, IPv4 before IPv6, without zones."""
    name: str | None = None
    """The host name if clients on this machine resolve it to this machine, else None."""
    name_address: str = ""
    """An address of the name that a broker can bind; empty without a name."""
    why_unnamed: str = ""
    """Why there is no usable name."""


def this_machine(
    hostname: Callable[[], str] = socket.gethostname,
    resolver: Resolver | None = None,
    addresses: Callable[[], tuple[str, ...]] | None = None,
) -> Machine:
    """This machine's current state; the arguments replace its sources."""
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
    """The addresses of all interfaces that psutil lists, and loopback."""
    addresses = dict.fromkeys(("127.0.0.1", "::1"))
    rows = (row for rows in psutil.net_if_addrs().values() for row in rows)
    texts = (row.address for row in rows if row.family in (socket.AF_INET, socket.AF_INET6))
    addresses |= dict.fromkeys(str(ip) for text in texts if (ip := ip_of(text)) is not None)
    return tuple(sorted(addresses, key=lambda text: (":" in text, text)))


def _own_address(name: str, answer: Lookup, own_addresses: Sequence[str]) -> tuple[str, str]:
    """The address to bind for ``name``, and an empty reason; or an empty address and the reason."""
    if not answer.ok:
        return "", f"its own name {name} does not resolve here: {answer.diagnosis}"
    # without link-local addresses, which cannot be bound without their zone
    bindable_addresses = [
        text
        for text in answer.addresses
        if text in own_addresses or kind_of(text) is NameKind.LOOPBACK_ADDRESS
        if kind_of(text) is not NameKind.LINK_LOCAL_ADDRESS
    ]
    if not bindable_addresses:
        resolved = f"its own name {name} resolves to {briefly(answer.addresses)}"
        return "", f"{resolved}, which is not one of its addresses that can be bound"
    # loopback first, which is not reachable from the network; then IPv4, like `localhost`
    bindable_addresses.sort(
        key=lambda text: (kind_of(text) is not NameKind.LOOPBACK_ADDRESS, ":" in text)
    )
    return bindable_addresses[0], ""
