"""What a gateway forwards where: each advertised address to the port that its broker binds."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from earshot.errors import EarshotError
from earshot.listeners.address import Address
from earshot.validation.contract import Contract, ContractListener

DEFAULT_IDLE_SECONDS = 660
"""Longer than the default of the brokers' `connections.max.idle.ms`."""


@dataclass(frozen=True)
class BoundListener:
    """A listener as its brokers bind it."""

    ports: Mapping[int, int]
    """By broker id, the port that leads to the broker."""
    idle_seconds: int = DEFAULT_IDLE_SECONDS
    """Seconds after which the gateway drops a connection without traffic."""


@dataclass(frozen=True)
class Backend:
    """A broker as the gateway reaches it."""

    broker: int
    address: Address


@dataclass(frozen=True)
class Route:
    """An address that clients connect to, and the brokers behind it."""

    listener: str
    name: str
    """The server name that clients show in TLS; empty if the port alone decides."""
    port: int
    backends: tuple[Backend, ...]
    """One broker, or for the bootstrap all of them."""
    is_bootstrap: bool
    idle_seconds: int

    @property
    def label(self) -> str:
        """A name that no other route of the gateway has."""
        return f"{self.listener}-{'bootstrap' if self.is_bootstrap else self.backends[0].broker}"


def routes(contract: Contract, bound: Mapping[str, BoundListener]) -> tuple[Route, ...]:
    """The routes of the listeners in ``bound``, by name; each is one of ``contract``.

    The gateway reaches a broker at the host that it advertises to other brokers. Raises
    EarshotError for brokers that it could not tell apart, and for a listener that ``contract`` does
    not have.
    """
    known = {item.name for item in contract.listeners}
    all_routes: list[Route] = []
    for name, listener in bound.items():
        if name not in known:
            raise EarshotError(
                f"listener {name}",
                observed=f"is not in the contract of {contract.cluster}",
                allowed=", ".join(sorted(known)),
                remedy="deploy it first, or use the present contract",
            )
        all_routes += _of_listener(contract, contract.listener(name), listener)
    _check_distinct(all_routes)
    return tuple(all_routes)


def _of_listener(
    contract: Contract, listener: ContractListener, bound: BoundListener
) -> Iterator[Route]:
    name = listener.name
    brokers = {id: address for item, id, address in contract.places if item.name == name}
    front = [address for item, address in contract.bootstraps if item.name == name]
    is_by_name = _is_by_name(listener, [*brokers.values(), *front])
    backends = {id: Backend(id, _upstream(contract, id, name, bound)) for id in brokers}
    _check_upstreams(name, backends.values())
    for address in front:
        shown = address.host.lower() if is_by_name else ""
        every = tuple(backends.values())
        yield Route(name, shown, address.port, every, True, bound.idle_seconds)
    for id, address in brokers.items():
        shown = address.host.lower() if is_by_name else ""
        yield Route(name, shown, address.port, (backends[id],), False, bound.idle_seconds)


def _is_by_name(listener: ContractListener, addresses: Sequence[Address]) -> bool:
    """Whether names tell the brokers apart, rather than ports."""
    ports = Counter(address.port for address in addresses)
    shared = sorted(port for port, count in ports.items() if count > 1)
    if shared and not listener.protocol.tls:
        raise EarshotError(
            f"listener {listener.name}",
            observed=f"several of its addresses have port {shared[0]}, and {listener.protocol} "
            "shows no name when a client connects",
            allowed="SSL or SASL_SSL, or a port per broker (strategy port)",
        )
    return bool(shared)


def _upstream(contract: Contract, id: int, name: str, bound: BoundListener) -> Address:
    advertised = next(it.advertised for it in contract.brokers if it.id == id)
    between = advertised.get(contract.inter_broker or "")
    if between is None or not isinstance(between.host, str):
        raise EarshotError(
            f"listener {name}, broker {id}",
            observed="the contract does not say where other brokers reach it",
            remedy="use the contract of a stack or component after its update",
        )
    return Address(between.host, bound.ports[id])


def _check_upstreams(listener: str, backends: Iterable[Backend]) -> None:
    """Raises EarshotError for two brokers at one address: one would get the other's clients."""
    by_address: dict[Address, int] = {}
    for backend in backends:
        first = by_address.setdefault(backend.address, backend.broker)
        if first != backend.broker:
            raise EarshotError(
                f"listener {listener}",
                observed=f"the gateway would reach brokers {first} and {backend.broker} at "
                f"{backend.address} alike",
                allowed="an address of its own for each broker",
                remedy="use --stack, which has the port of each broker: --bind names one port for "
                "all of them",
            )


def _check_distinct(all_routes: Collection[Route]) -> None:
    """Raises EarshotError for two routes that a gateway could not tell apart."""
    by_port: dict[int, dict[str, Route]] = {}
    for route in all_routes:
        by_name = by_port.setdefault(route.port, {})
        # a route without a name takes every connection to its port
        other = by_name.get(route.name) or by_name.get("")
        if other is None and not route.name:
            other = next(iter(by_name.values()), None)
        if other is not None:
            raise EarshotError(
                f"port {route.port}",
                observed=f"is that of {other.label} and {route.label}, which no name tells apart",
                remedy="make a configuration for each gateway: --listener NAME",
            )
        by_name[route.name] = route
