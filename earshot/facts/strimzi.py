"""The listeners of a Strimzi `Kafka` resource; None is an unknown value."""

from dataclasses import dataclass

BEYOND = ("route", "loadbalancer", "nodeport", "ingress", "tlsroute")
"""Types of listeners for clients outside the cluster."""
TYPES = ("internal", "cluster-ip", *BEYOND)


@dataclass(frozen=True)
class StrimziBroker:
    """One entry of `configuration.brokers`; ``place`` is its path, as in `brokers[0]`."""

    id: int | None
    place: str
    has_host: bool = False
    advertised_host: str | None = ""
    advertised_port: int | None = None


@dataclass(frozen=True)
class StrimziListener:
    """One of `spec.kafka.listeners`; unset values are empty strings.

    ``place`` is its path, as in `spec.kafka.listeners[0]`; ``brokers`` is None if unknown.
    """

    place: str
    name: str | None
    port: int | None
    type: str | None
    tls: bool | None
    authentication: str | None = ""
    has_bootstrap_host: bool = False
    has_host_template: bool = False
    brokers: tuple[StrimziBroker, ...] | None = ()
    node_address: str | None = ""
    """`preferredNodePortAddressType`."""
    missing: tuple[str, ...] = ()
    """The required fields that are not set."""

    @property
    def address_of_node(self) -> str:
        """The unknown fact about a node port's advertised address, or an empty string."""
        if self.type != "nodeport" or self.node_address or self.brokers is None:
            return ""
        if self.brokers and all(broker.advertised_host for broker in self.brokers):
            return ""
        return (
            f"listener {self.name} advertises the first address that a node has of ExternalDNS, "
            "ExternalIP, Hostname, InternalDNS and InternalIP"
        )


@dataclass(frozen=True)
class StrimziKafka:
    """The resource; ``brokers`` is their number, or None if node pools define it.

    ``path`` is its place in the file, and ``open`` the reason for unknown listeners, or empty.
    """

    name: str
    listeners: tuple[StrimziListener, ...]
    brokers: int | None = None
    refusal: tuple[str, str] | None = None
    """The place and the problem if the schema refuses the form of `spec.kafka.listeners`."""
    path: tuple[int | str, ...] = ()
    open: str = ""
    namespace: str = ""
