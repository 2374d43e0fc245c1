"""Containers of one file that may meet, the brokers among them, and where addresses lead.

What containers of other files, DNS or the user's machine decide is not known.
"""

from collections.abc import Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property

from earshot.listeners.address import Address
from earshot.listeners.listed import by_key
from earshot.names.kinds import ip_of
from earshot.topology.broker import Bootstrap, Broker
from earshot.topology.container import Container, PublishedPort, is_loopback
from earshot.topology.msk import corrected_address, is_msk_broker
from earshot.topology.names import GATEWAYS, Names
from earshot.topology.ways import Hop, Outcome, Trace, Ways


@dataclass(frozen=True)
class Deployment:
    """All containers by service, the brokers among them, and what clients begin with."""

    containers: Mapping[str, Container]
    brokers: tuple[Broker, ...]
    bootstraps: tuple[Bootstrap, ...] = ()
    own: Mapping[str, str] = field(default_factory=dict)
    """Names and addresses that certainly are the machine's, each with the address it leads to."""
    health_checks: tuple[Bootstrap, ...] = ()
    """What the health checks of brokers connect to, each in the container of its broker."""

    def way(self, place: str, address: Address) -> Outcome:
        """Where ``address`` leads from ``place`` (a service, or `HOST`)."""
        return self.trace(place, address).end

    def trace(self, place: str, address: Address) -> Trace:
        """The same, hop by hop."""
        own = self.containers.get(place)
        is_own = own is not None and own.has_name(address.host)
        is_own = is_own or is_loopback(address.host) or address.host.lower() == place.lower()
        key = (place if is_own else self.position(place), address)
        if key not in self._traces:
            self._traces[key] = self._ways.trace(place, address)
        return self._traces[key]

    def shows_brokers(self, traces: Sequence[Trace]) -> bool:
        """Whether it is known which brokers a client with ``traces`` may mean."""
        return bool(self.brokers) or all(is_msk_broker(trace.address.host) for trace in traces)

    def is_certain(self, trace: Trace) -> bool:
        """Whether a no of ``trace`` rests on nothing that is assumed."""
        host = trace.address.host.lower()
        if host in GATEWAYS:
            return not trace.doubt
        # the machine may have a name that nothing in the file has
        is_shown = is_loopback(host) or ip_of(host) is not None or host in self.names.all
        return is_shown or not self._ways.is_published(trace.address.port)

    def alternative_addresses(self, traces: Sequence[Trace]) -> Sequence[str]:
        """The addresses to which the client of ``traces`` could bootstrap instead."""
        if hosted := [
            str(right) for trace in traces if (right := corrected_address(trace.address))
        ]:
            return hosted
        return [
            f"{broker.service}:{endpoint.bind.port}"
            for broker in self.brokers
            for endpoint in broker.for_clients
        ]

    def host_of(self, broker: Broker, port: int) -> str | None:
        """A host by which the other nodes reach ``broker`` at ``port``, None where it has none."""
        return broker.service

    def through(self, service: str, port: PublishedPort) -> tuple[Hop, ...]:
        """The hops from the machine through a published port of ``service``."""
        return self._ways.through(service, port)

    def members(self, broker: Broker) -> Iterator[Broker]:
        """Brokers of the same cluster, itself too."""
        may_part = self.names.has_profiles(broker.service)
        for other in self._clusters[broker.cluster]:
            parted = may_part and self.apart(broker.service, other.service)
            if other is broker or (other.is_broker and not parted):
                yield other

    def apart(self, one: str, other: str) -> bool:
        """Whether two services are alternatives: no profile runs both."""
        return self.names.apart(one, other)

    def position(self, place: str) -> Hashable:
        """What decides where an address leads from ``place``, if it is no name of its own.

        The same for services that are alike; that of a service with hosts of its own is its own.
        """
        return self._positions.get(place, place)

    @cached_property
    def by_service(self) -> Mapping[str, Broker]:
        """The brokers and controllers by their services."""
        return {broker.service: broker for broker in self.brokers}

    @cached_property
    def names(self) -> Names:
        """What hosts mean, place by place."""
        return Names(self.containers, frozenset(self._machine_hosts()), self.own)

    @cached_property
    def advertised_hosts(self) -> frozenset[str]:
        """Every host that a broker advertises, in lower case."""
        endpoints = (endpoint for broker in self.brokers for endpoint in broker.endpoints or ())
        return frozenset(
            endpoint.advertised.host.lower() for endpoint in endpoints if endpoint.advertised
        )

    def _machine_hosts(self) -> Iterator[str]:
        """Hosts that a broker advertises with a port that it publishes, and no container has."""
        for broker in self.brokers:
            for endpoint in broker.for_clients:
                if endpoint.advertised is None:
                    continue
                host = endpoint.advertised.host.lower()
                ports = broker.container.published_at(endpoint.bind.port)
                is_theirs = any(container.has_name(host) for container in self.containers.values())
                if is_loopback(host) or host in GATEWAYS or host in self.containers or is_theirs:
                    continue
                if any(port.host_port == endpoint.advertised.port for port in ports):
                    yield host

    @cached_property
    def _traces(self) -> dict[Hashable, Trace]:
        """Where addresses lead that were asked for, once for places that are alike."""
        return {}

    @cached_property
    def _ways(self) -> Ways:
        return Ways(self.containers, self.by_service, self.names)

    @cached_property
    def _clusters(self) -> Mapping[str, Sequence[Broker]]:
        return by_key((broker.cluster, broker) for broker in self.brokers)

    @cached_property
    def _positions(self) -> Mapping[str, Hashable]:
        found: dict[str, Hashable] = {}
        for name, own in self.containers.items():
            flags = (own.network_mode, own.open_networks, bool(own.unknown), own.profiles)
            alike = (tuple(network.name for network in own.networks), *flags)
            found[name] = name if own.extra_hosts or own.links else alike
        return found
