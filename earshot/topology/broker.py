"""Brokers with their listeners, and clients with the addresses that they begin with."""

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
    """Its security protocol, where the file shows it."""


@dataclass(frozen=True)
class Broker:
    """A broker or controller of the file.

    ``endpoints`` are its listeners, None where the file does not show them all. ``cluster`` keeps
    clusters apart; ``voters`` are those of its quorum.
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
    """What a controller of a dynamic quorum advertises to the other nodes."""
    quorum_protocol: Protocol | None = None
    """The security protocol over which it talks to controllers."""
    cluster_id: str | None = None
    """Under which its image formats the storage: "" for a random one, None where not known."""
    is_kafka: bool = True
    """It has Kafka's properties: else it only speaks Kafka's protocol, as Redpanda."""
    is_image_known: bool = True
    """What its image makes of its settings is known."""
    switched_off: tuple[tuple[str, Address], ...] = ()
    """What it would advertise by entries in comments, each with its variable."""

    @property
    def for_clients(self) -> tuple[Endpoint, ...]:
        """Its listeners, as far as they are known, without those of controllers."""
        return tuple(endpoint for endpoint in self.endpoints or () if not endpoint.is_controller)

    def named(self, listener: str) -> Endpoint | None:
        """Its listener of that name."""
        return next(
            (endpoint for endpoint in self.endpoints or () if endpoint.name == listener), None
        )


@dataclass(frozen=True)
class Bootstrap:
    """The addresses with which one service begins, and the setting that holds them."""

    service: str
    setting: str
    addresses: tuple[Address, ...]
    protocol: Protocol | None = None
    """The security protocol that it speaks, None where it is not known."""


@dataclass(frozen=True)
class ReachedListener:
    """A listener of a broker."""

    broker: Broker
    endpoint: Endpoint
