"""Computes the routes of a gateway: from each advertised address to the port of its broker."""

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
    """The ports that the brokers bind for a listener."""

    ports: Mapping[int, int]
    """By broker id, the port at which the gateway reaches the broker."""
    idle_seconds: int = DEFAULT_IDLE_SECONDS
    """Seconds after which the gateway drops a connection without traffic."""


@dataclass(frozen=True)
class Backend:
    """A broker, and the address at which the gateway reaches it."""

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
    """One broker, or all of them for the bootstrap address."""
    is_bootstrap: bool
    idle_seconds: int

    @property
    def label(self) -> str:
        """The unique name of the route in the gateway."""
        return f"{self.listener}-{'bootstrap' if self.is_bootstrap else self.backends[0].broker}"


def routes(contract: Contract, bound: Mapping[str, BoundListener]) -> tuple[Route, ...]:
    """The routes of the listeners in ``bound``, which is by listener name.

    The gateway reaches a broker at the host that it advertises to other brokers. Raises
    EarshotError for brokers with the same address, and for a listener that ``contract`` lacks.
    """
    known_names = {contract_listener.name for contract_listener in contract.listeners}
    all_routes: list[Route] = []
    for name, listener in bound.items():
        if name not in known_names:
            raise EarshotError(
                f"listener {name}",
                observed=f"is not in the contract of {contract.cluster}",
                allowed=", ".join(sorted(known_names)),
                remedy="deploy it first, or use the present contract",
            )
        all_routes += _of_listener(contract, contract.listener(name), listener)
    _check_distinct(all_routes)
    return tuple(all_routes)


def _of_listener(
    contract: Contract, listener: ContractListener, bound: BoundListener
) -> Iterator[Route]:
    name = listener.name
    brokers = {id: address for owner, id, address in contract.places if owner.name == name}
    bootstraps = [address for owner, address in contract.bootstraps if owner.name == name]
    is_by_name = _is_by_name(listener, [*brokers.values(), *bootstraps])
    backends = {id: Backend(id, _upstream(contract, id, name, bound)) for id in brokers}
    _check_upstreams(name, backends.values())
    for address in bootstraps:
        server_name = address.host.lower() if is_by_name else ""
        all_backends = tuple(backends.values())
        yield Route(name, server_name, address.port, all_backends, True, bound.idle_seconds)
    for id, address in brokers.items():
        server_name = address.host.lower() if is_by_name else ""
        yield Route(name, server_name, address.port, (backends[id],), False, bound.idle_seconds)


def _is_by_name(listener: ContractListener, addresses: Sequence[Address]) -> bool:
    """True if names distinguish the brokers, False if ports do. Raises EarshotError."""
    ports = Counter(address.port for address in addresses)
    shared_ports = sorted(port for port, count in ports.items() if count > 1)
    if shared_ports and not listener.protocol.tls:
        raise EarshotError(
            f"listener {listener.name}",
            observed=f"several of its addresses have port {shared_ports[0]}, and "
            f"{listener.protocol} shows no name when a client connects",
            allowed="SSL or SASL_SSL, or a port per broker (strategy port)",
        )
    return bool(shared_ports)


def _upstream(contract: Contract, id: int, name: str, bound: BoundListener) -> Address:
    advertised = next(broker.advertised for broker in contract.brokers if broker.id == id)
    between = advertised.get(contract.inter_broker or "")
    if between is None or not isinstance(between.host, str):
        raise EarshotError(
            f"listener {name}, broker {id}",
            observed="the contract has no address at which other brokers reach it",
            remedy="use the contract of a stack or component after its update",
        )
    return Address(between.host, bound.ports[id])


def _check_upstreams(listener: str, backends: Iterable[Backend]) -> None:
    """Raises EarshotError for two brokers with one address: one would get the other's clients."""
    by_address: dict[Address, int] = {}
    for backend in backends:
        first_id = by_address.setdefault(backend.address, backend.broker)
        if first_id != backend.broker:
            raise EarshotError(
                f"listener {listener}",
                observed=f"the gateway would reach brokers {first_id} and {backend.broker} at "
                f"the same address {backend.address}",
                allowed="a different address for each broker",
                remedy="use --stack, which has the port of each broker: --bind names one port for "
                "all of them",
            )


def _check_distinct(all_routes: Collection[Route]) -> None:
    """Raises EarshotError for two routes with the same port and name."""
    by_port: dict[int, dict[str, Route]] = {}
    for route in all_routes:
        by_name = by_port.setdefault(route.port, {})
        # a route without a name takes every connection to its port
        other_route = by_name.get(route.name) or by_name.get("")
        if other_route is None and not route.name:
            other_route = next(iter(by_name.values()), None)
        if other_route is not None:
            raise EarshotError(
                f"port {route.port}",
                observed=f"is that of {other_route.label} and {route.label}, "
                "without different names",
                remedy="make a configuration for each gateway: --listener NAME",
            )
        by_name[route.name] = route
