"""KL014: images of clients that do not start without the brokers' addresses.

Sources: `configure` of confluentinc/schema-registry-images (without ZooKeeper since 8.0),
kafka-images (Connect), ksql-images and control-center-images, and `docker-entrypoint.sh` in
`connect` of debezium/container-images, which connects to 0.0.0.0:9092 by default.
"""

import re
from collections.abc import Iterator
from typing import NamedTuple

from earshot.listeners.image_demands import ignored_by_registry
from earshot.listeners.images import repository_of, tag_of
from earshot.listeners.listed import shortened
from earshot.listeners.terms import Protocol
from earshot.rules.kl014_image import RULE as KL014
from earshot.rules.rule import Finding
from earshot.topology.container import START_SCRIPTS, Container


class ClientDemand(NamedTuple):
    """Variables of which an image needs one, from release ``since`` until ``before``."""

    image: re.Pattern[str]
    needs: tuple[str, ...]
    otherwise: str
    source: str
    since: int = 0
    before: int = 99
    reads_links: bool = False
    """It looks for a broker among the variables that Docker sets for links (`KAFKA_PORT_...`)."""


_REGISTRY = re.compile(r"(?:.*/)?cp-schema-registry")
_STORE = "SCHEMA_REGISTRY_KAFKASTORE_"
_BROKERS = f"{_STORE}BOOTSTRAP_SERVERS"
_ADDRESSES = (
    "https://docs.confluent.io/platform/current/schema-registry/installation/config.html"
    "#kafkastore-bootstrap-servers"
)
_OF_REGISTRY = (
    "https://github.com/confluentinc/schema-registry-images/blob/master/schema-registry/include/"
    "etc/confluent/docker/configure"
)
_EXITS = "refuses to start"
_DEMANDS = (
    ClientDemand(_REGISTRY, (_BROKERS,), _EXITS, _OF_REGISTRY, since=8),
    ClientDemand(
        _REGISTRY,
        (_BROKERS, "SCHEMA_REGISTRY_KAFKASTORE_CONNECTION_URL"),
        _EXITS,
        _OF_REGISTRY,
        before=8,
    ),
    ClientDemand(
        re.compile(r"(?:.*/)?cp-(?:kafka|server)-connect(?:-base)?"),
        ("CONNECT_BOOTSTRAP_SERVERS",),
        _EXITS,
        "https://github.com/confluentinc/kafka-images/blob/master/kafka-connect-base/include/etc/"
        "confluent/docker/configure",
    ),
    ClientDemand(
        re.compile(r"(?:.*/)?cp-enterprise-control-center"),
        ("CONTROL_CENTER_BOOTSTRAP_SERVERS",),
        _EXITS,
        "https://docs.confluent.io/platform/current/installation/docker/config-reference.html",
    ),
    ClientDemand(
        re.compile(r"(?:.*/)?debezium/connect(?:-base)?"),
        ("BOOTSTRAP_SERVERS",),
        "asks 0.0.0.0:9092, its own container",
        "https://github.com/debezium/container-images/blob/main/connect/3.0/docker-entrypoint.sh",
        reads_links=True,
    ),
)


def refusals(service: str, container: Container) -> Iterator[Finding]:
    """Findings for missing variables of a client's image that runs its own start script."""
    image_paths = (*START_SCRIPTS, "/kafka/config", "/etc/schema-registry", "/etc/kafka-connect")
    if container.unknown or any(path.startswith(image_paths) for path in container.mounts):
        return
    image = repository_of(container.image)
    yield from _ignored_addresses(service, container, image)
    for demand in _DEMANDS:
        if not demand.image.fullmatch(image) or not _holds(demand, tag_of(container.image)):
            continue
        if any(container.env.get(need) or f"{need}_FILE" in container.env for need in demand.needs):
            continue
        if demand.reads_links and container.has_link_variables:
            continue
        yield KL014.finding(
            f"does not set {' or '.join(demand.needs)}, and {container.image} {demand.otherwise}",
            demand.needs[0],
            remedy=f"set {demand.needs[0]} to a listener of a broker",
            container=service,
            inputs=("image",),
            source=demand.source,
        )


def _ignored_addresses(service: str, container: Container, image: str) -> Iterator[Finding]:
    """A finding if Schema Registry ignores all its addresses for their scheme."""
    protocol = container.env.get(f"{_STORE}SECURITY_PROTOCOL", Protocol.PLAINTEXT)
    if not _REGISTRY.fullmatch(image):
        return
    if entries := ignored_by_registry(container.env.get(_BROKERS, ""), protocol):
        yield KL014.finding(
            f"{_BROKERS} is {shortened(entries)}; {container.image} ignores addresses that begin "
            f"with another protocol than {protocol}, and {_EXITS} without an address",
            f"{protocol}://HOST:PORT, or HOST:PORT",
            remedy=f"write the addresses without the part before ://, and set {_STORE}"
            "SECURITY_PROTOCOL to the protocol of the listener",
            container=service,
            inputs=(_BROKERS,),
            source=_ADDRESSES,
        )


def _holds(demand: ClientDemand, tag: str) -> bool:
    major = re.match(r"[0-9]{1,3}", tag, re.ASCII)
    if major is None:  # without a tag it is the newest
        return tag in ("", "latest") and demand.before == 99
    return demand.since <= int(major[0]) < demand.before
