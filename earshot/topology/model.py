"""The containers of one file, its brokers, and where addresses lead.

Containers of other files, DNS and the user's machine are unknown.
"""

from collections.abc import Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property

from earshot.listeners.address import Address
from earshot.listeners.listed import by_key
from earshot.names.kinds import ip_of
from earshot.topology.broker import Bootstrap, Broker, Endpoint, ReachedListener
from earshot.topology.container import Container, PublishedPort, is_loopback
from earshot.topology.msk import corrected_address, is_msk_broker
from earshot.topology.names import Names, is_gateway
from earshot.topology.ways import Failure, Hop, Outcome, Trace, Ways


@dataclass(frozen=True)
class Deployment:
    """All containers by service, the brokers among them, and the clients' bootstraps."""

    containers: Mapping[str, Container]
    brokers: tuple[Broker, ...]
    bootstraps: tuple[Bootstrap, ...] = ()
    own: Mapping[str, str] = field(default_factory=dict)
    """Certain names and addresses of the machine, each with the address it resolves to."""
    health_checks: tuple[Bootstrap, ...] = ()
    """The addresses that health checks of brokers connect to, in the broker's container."""

    def way(self, place: str, address: Address) -> Outcome:
        """Where ``address`` leads from ``place`` (a service, or `HOST`)."""
        return self.trace(place, address).end

    def reached(self, place: str, address: Address) -> ReachedListener | None:
        """The listener that ``address`` leads to from ``place``, or None."""
        return self.trace(place, address).reached

    def trace(self, place: str, address: Address) -> Trace:
        """Like `way`, hop by hop."""
        client = self.containers.get(place)
        is_own = client is not None and client.has_name(address.host)
        is_own = is_own or is_loopback(address.host) or address.host.lower() == place.lower()
        key = (place if is_own else self.position(place), address)
        if key not in self._traces:
            self._traces[key] = self._ways.trace(place, address)
        return self._traces[key]

    def shows_brokers(self, client: Bootstrap, traces: Sequence[Trace]) -> bool:
        """Whether the brokers are known that ``client`` with ``traces`` may connect to.

        A client that contains no broker and shares its network with none reaches none by loopback.
        """
        if self.brokers or all(is_msk_broker(trace.address.host) for trace in traces):
            return True
        is_alone = (
            client.is_client_only and len(self.names.sharing(self.names.owner(client.service))) < 2
        )
        return is_alone and all(trace.end is Failure.SELF for trace in traces)

    def is_certain(self, trace: Trace, broker: Broker | None = None) -> bool:
        """Whether a failure of ``trace``, or of it as one to ``broker``, depends on no
        assumption."""
        host = trace.address.host.lower()
        if is_gateway(host):
            return not trace.doubt
        # the machine may have names that the file does not contain
        is_shown = is_loopback(host) or ip_of(host) is not None or host in self.names.all
        return is_shown or not self._ways.is_published(trace.address.port)

    def alternative_addresses(
        self, client: Bootstrap, traces: Sequence[Trace]
    ) -> Sequence[Address]:
        """Addresses that ``client``, which has the ``traces``, could bootstrap to instead."""
        hosted = [right for trace in traces if (right := corrected_address(trace.address))]
        return hosted or [
            Address(broker.service, endpoint.bind.port)
            for broker in self.brokers
            for endpoint in broker.for_clients
        ]

    def host_of(self, broker: Broker, port: int) -> str | None:
        """A name at which other nodes reach ``broker`` at ``port``, or None."""
        return broker.service

    def closed_ports(self) -> Iterator[tuple[str, ReachedListener]]:
        """The ports for clients that lead to a listener on the loopback of its broker, each with
        its name; without those of the file's clients, and published ports (KL017)."""
        return iter(())

    def loopback_listener(self, place: str, address: Address) -> Endpoint | None:
        """The listener on its broker's loopback that refuses clients of ``address``, or None."""
        for broker in self.brokers:
            for endpoint in broker.for_clients if broker.container.has_name(address.host) else ():
                if endpoint.bind.port == address.port and is_loopback(endpoint.bind.host):
                    return endpoint
        return None

    def through(self, service: str, port: PublishedPort) -> tuple[Hop, ...]:
        """The hops from the machine through a published port of ``service``."""
        return self._ways.through(service, port)

    def members(self, broker: Broker) -> Iterator[Broker]:
        """The brokers of the cluster of ``broker``, with ``broker`` itself."""
        may_part = self.names.has_profiles(broker.service)
        for member in self._clusters[broker.cluster]:
            parted = may_part and self.apart(broker.service, member.service)
            if member is broker or (member.is_broker and not parted):
                yield member

    def apart(self, service: str, alternative: str) -> bool:
        """Whether two services are alternatives: no profile runs both."""
        return self.names.apart(service, alternative)

    def position(self, place: str) -> Hashable:
        """A key that is equal for places from which addresses lead to the same targets.

        It does not hold for a place's own names. A service with hosts or links has its own key.
        """
        return self._positions.get(place, place)

    @cached_property
    def by_service(self) -> Mapping[str, Broker]:
        return {broker.service: broker for broker in self.brokers}

    @cached_property
    def names(self) -> Names:
        """The resolver of hosts, by place."""
        return Names(self.containers, frozenset(self._machine_hosts()), self.own)

    @cached_property
    def advertised_hosts(self) -> frozenset[str]:
        """All advertised hosts in lower case."""
        endpoints = (endpoint for broker in self.brokers for endpoint in broker.endpoints or ())
        return frozenset(
            endpoint.advertised.host.lower() for endpoint in endpoints if endpoint.advertised
        )

    def _machine_hosts(self) -> Iterator[str]:
        """Hosts that a broker advertises with a published port, and that no container has."""
        for broker in self.brokers:
            for endpoint in broker.for_clients:
                if endpoint.advertised is None:
                    continue
                host = endpoint.advertised.host.lower()
                ports = broker.container.published_at(endpoint.bind.port)
                is_theirs = any(container.has_name(host) for container in self.containers.values())
                if is_loopback(host) or is_gateway(host) or host in self.containers or is_theirs:
                    continue
                if any(port.host_port == endpoint.advertised.port for port in ports):
                    yield host

    @cached_property
    def _traces(self) -> dict[Hashable, Trace]:
        """Cached traces by `position` and address."""
        return {}

    @cached_property
    def _ways(self) -> Ways:
        return Ways(self.containers, self.by_service, self.names)

    @cached_property
    def _clusters(self) -> Mapping[str, Sequence[Broker]]:
        return by_key((broker.cluster, broker) for broker in self.brokers)

    @cached_property
    def _positions(self) -> Mapping[str, Hashable]:
        positions: dict[str, Hashable] = {}
        for name, container in self.containers.items():
            flags = (
                container.network_mode,
                container.open_networks,
                bool(container.unknown),
                container.profiles,
            )
            shared_key = (tuple(network.name for network in container.networks), *flags)
            positions[name] = name if container.extra_hosts or container.links else shared_key
        return positions
