"""Brokers with their listeners, and clients with their bootstrap addresses."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from earshot.listeners.address import Address
from earshot.listeners.terms import Protocol
from earshot.topology.container import Container


@dataclass(frozen=True)
class Endpoint:
    """One listener of a broker in its container; None is an unknown value."""

    name: str
    bind: Address
    advertised: Address | None
    is_controller: bool = False
    protocol: Protocol | None = None
    """Its security protocol; None if the file does not show it."""
    template: Address | None = None
    """The advertised address as written, if only its host is unknown."""


@dataclass(frozen=True)
class Broker:
    """A broker or controller of the file.

    ``endpoints`` are its listeners, None if the file does not show them all. ``cluster`` is equal
    for members of one cluster; ``voters`` are those of its quorum.
    """

    service: str
    container: Container
    id: int | None
    endpoints: tuple[Endpoint, ...] | None
    inter_broker: str = ""
    cluster: str = ""
    is_broker: bool = True
    is_controller: bool = False
    voters: Mapping[int, Address] = field(default_factory=dict)
    quorum_servers: tuple[Address, ...] = ()
    """`controller.quorum.bootstrap.servers`."""
    quorum_address: Address | None = None
    """The address that a controller of a dynamic quorum advertises to other nodes."""
    quorum_protocol: Protocol | None = None
    """The security protocol of its connections to controllers."""
    cluster_id: str | None = None
    """The cluster id for which its image formats storage: "" is a random one, None unknown."""
    has_zookeeper: bool = False
    """Whether it uses ZooKeeper: as the controller, a broker then connects to itself as well."""
    is_kafka: bool = True
    """False if it only speaks Kafka's protocol and has no Kafka properties, as Redpanda."""
    is_image_known: bool = True
    """Whether the image's handling of settings is known."""
    switched_off: tuple[tuple[str, Address], ...] = ()
    """Advertised addresses in commented-out entries, each with its variable."""

    @property
    def for_clients(self) -> tuple[Endpoint, ...]:
        """Its known listeners without those of controllers."""
        return tuple(endpoint for endpoint in self.endpoints or () if not endpoint.is_controller)

    @property
    def for_controllers(self) -> Endpoint | None:
        """Its first known listener of controllers, or None."""
        return next((endpoint for endpoint in self.endpoints or () if endpoint.is_controller), None)

    @property
    def ports(self) -> frozenset[int]:
        """The ports that its known listeners bind."""
        return frozenset(endpoint.bind.port for endpoint in self.endpoints or ())

    def named(self, listener: str) -> Endpoint | None:
        """The listener called ``listener``, or None."""
        endpoints = self.endpoints or ()
        return next((endpoint for endpoint in endpoints if endpoint.name == listener), None)


@dataclass(frozen=True)
class Bootstrap:
    """The bootstrap addresses of one service, and the setting that contains them."""

    service: str
    setting: str
    addresses: tuple[Address, ...]
    protocol: Protocol | None = None
    """The client's security protocol; None if unknown."""
    protocol_setting: str = ""
    """The setting that only contains the protocol, of a client with the address of another."""
    mechanism: str = ""
    """Its SASL mechanism; empty if unknown."""
    mechanism_setting: str = ""
    is_client_only: bool = field(default=False, compare=False)
    """Its image is known to contain no broker."""


@dataclass(frozen=True)
class ReachedListener:
    """The broker and listener that an address leads to."""

    broker: Broker
    endpoint: Endpoint
