"""The manifests of one file: what its images and Kafka refuse, and clients that ask for nothing.

Who reaches whom in a cluster is not followed, for other files, policies and the cluster itself
decide it. Sources: `configure` in `kafka/include/etc/confluent/docker` and
`server/include/etc/confluent/docker` of confluentinc/kafka-images; the Kubernetes documentation on
Services (environment variables, headless Services).
"""

import re
from collections.abc import Collection, Iterator, Sequence
from dataclasses import replace

from earshot.checks.deployment import kafka_refusals, refusals, unusable
from earshot.listeners.address import Address
from earshot.listeners.images import repository_of
from earshot.listeners.placeholders import is_known
from earshot.names.kinds import ip_of
from earshot.rules import kl014_image, kl015_clients
from earshot.rules.registry import Finding, Severity
from earshot.sources.bootstraps import bootstraps
from earshot.sources.deployment import deployment, settings_of
from earshot.sources.kubernetes import ClusterService, Manifest, PodContainer
from earshot.topology.broker import Bootstrap, Endpoint
from earshot.topology.container import MOUNTED, is_loopback

OLDEST = (3, 9)
"""Of an image that does not show its Kafka, what this release refuses too."""
_LINKED = "kafka"
"""The Service whose variables are called as Kafka's settings are: KAFKA_PORT."""
_REFUSES_PORT = re.compile(r"(?:.*/)?cp-(?:(?:enterprise-)?kafka|server)")
_START = "/etc/confluent/docker/run"


def mistakes(manifest: Manifest) -> tuple[Finding, ...]:
    """What is certainly wrong; `Finding.container` is WORKLOAD/CONTAINER."""
    found: list[Finding] = []
    for broker in manifest.brokers:
        found += [*_refusals(broker)] or [*_linked(broker, manifest)]
    return (*found, *_clients(manifest), *_sent_on(manifest, {item.container for item in found}))


def asks_for_a_service(manifest: Manifest) -> bool:
    """Whether a client in it begins with a Service of the same file."""
    return any(any(meant) for _, meant in _bootstraps(manifest))


def _refusals(broker: PodContainer) -> Iterator[Finding]:
    settings = settings_of(broker.service)
    found = list(refusals(broker.service, settings))
    if settings.release is None:
        earlier = kafka_refusals(replace(settings, release=OLDEST))
        known = {item.observed for item in earlier}
        found = [item for item in found if item.observed in known]
    yield from found or unusable(broker.service, settings)


def _linked(broker: PodContainer, manifest: Manifest) -> Iterator[Finding]:
    """A Service called kafka comes in as KAFKA_PORT, and Confluent's script takes it for one."""
    container = broker.service.container
    if not broker.has_service_links or not _REFUSES_PORT.fullmatch(repository_of(container.image)):
        return
    if "KAFKA_PORT" in container.env or {"envFrom", MOUNTED} & set(container.unknown):
        return  # set to an empty text it takes the place of the Service's
    if broker.service.command and _START not in " ".join(broker.service.command):
        return
    for service in manifest.called(_LINKED, broker.namespace):
        if service.has_address and service.ports:
            yield kl014_image.RULE.finding(
                f"the Service {_LINKED} gives it KAFKA_PORT=tcp://ADDRESS:{service.ports[0]}, and "
                f"{container.image} refuses to start",
                f"no KAFKA_PORT: `enableServiceLinks: false`, or a Service that is not called "
                f"{_LINKED}",
                container=broker.name,
                remedy="set enableServiceLinks to false in the pod's spec",
                inputs=("enableServiceLinks",),
            )
            return


def _clients(manifest: Manifest) -> Iterator[Finding]:
    """Those that have no address but ports that a Service of the file does not have."""
    for item, meant in _bootstraps(manifest):
        if all(map(_has_not, meant, item.addresses)):
            ways = "; ".join(map(_way, meant, item.addresses))
            services = (service for listed in meant for service in listed)
            offers = [f"{it.name}:{port}" for it in services for port in it.ports or ()]
            offers = list(dict.fromkeys(offers))
            yield kl015_clients.RULE.finding(
                f"{item.setting}: {ways}",
                f"one of {', '.join(offers)}" if len(offers) > 1 else offers[0],
                container=item.service,
                remedy="bootstrap to a port of the Service, or give the Service this port",
                inputs=(item.setting,),
            )


def _sent_on(manifest: Manifest, broken: Collection[str]) -> Iterator[Finding]:
    """Where the one broker of a file sends its clients: those of the file, and those at a node.

    Another file may have the Service of a name: then it is no more than a warning.
    """
    if len(manifest.brokers) != 1 or manifest.brokers[0].name in broken:
        return
    broker = manifest.brokers[0]
    (facts,) = deployment([broker.service]).brokers or (None,)
    for endpoint in facts.for_clients if facts is not None else ():
        if endpoint.advertised is None:
            continue
        host, clients = endpoint.advertised.host, _through(manifest, endpoint.bind.port)
        clients = [name for name in clients if name != broker.name]
        if clients and is_loopback(host):
            yield _lost(broker, endpoint, f"{clients[0]} is sent to {host}, its own pod", None)
        elif clients and manifest.services and _is_of_nothing(manifest, broker, host):
            why = f"{clients[0]} is sent to {host}, and no Service of the file is called so"
            yield _lost(broker, endpoint, why, Severity.WARNING)
        node_ports = [
            it.node_ports[endpoint.bind.port]
            for it in manifest.services
            if endpoint.bind.port in it.node_ports
        ]
        is_outside = ip_of(host) is not None and not is_loopback(host)
        if any(item.is_balanced for item in manifest.services) or not is_outside:
            continue
        if node_ports and endpoint.advertised.port not in node_ports:
            ports = ", ".join(map(str, node_ports))
            why = f"the port of the nodes is {ports}"
            yield _lost(broker, endpoint, why, Severity.WARNING)


def _is_of_nothing(manifest: Manifest, broker: PodContainer, host: str) -> bool:
    """Whether ``host`` is one word that no Service of the file has for a name."""
    is_word = "." not in host and ip_of(host) is None and is_known(host)
    return is_word and not manifest.called(host, broker.namespace)


def _through(manifest: Manifest, port: int) -> list[str]:
    """The clients that come in by a Service that leads to this port of the pods."""
    return [
        item.service
        for item, meant in _bootstraps(manifest)
        for address, services in zip(item.addresses, meant, strict=True)
        if any(service.targets.get(address.port) == port for service in services)
    ]


def _lost(broker: PodContainer, endpoint: Endpoint, why: str, severity: Severity | None) -> Finding:
    return kl015_clients.RULE.finding(
        f"{endpoint.name} advertises {endpoint.advertised}, and {why}",
        "an address that leads clients of this listener to the broker",
        listener=endpoint.name,
        container=broker.name,
        severity=severity,
        remedy=f"advertise {endpoint.name} under the name and port by which its clients come in",
        inputs=("advertised.listeners",),
    )


def _bootstraps(
    manifest: Manifest,
) -> Iterator[tuple[Bootstrap, list[Sequence[ClusterService]]]]:
    """What each client begins with, and for each of its addresses the Services that it means."""
    places = {item.name: item for item in manifest.containers}
    brokers = [item.name for item in manifest.brokers]
    for item in bootstraps((place.service for place in places.values()), brokers):
        yield item, [_meant(manifest, places[item.service], it) for it in item.addresses]


def _meant(manifest: Manifest, client: PodContainer, address: Address) -> Sequence[ClusterService]:
    if not client.asks_cluster or address.host.lower() in client.service.container.extra_hosts:
        return ()
    return manifest.called(address.host, client.namespace)


def _has_not(meant: Sequence[ClusterService], address: Address) -> bool:
    """Whether all that ``address`` can mean is certain, and has not its port."""
    return bool(meant) and all(
        item.has_address and item.ports and address.port not in item.ports for item in meant
    )


def _way(meant: Sequence[ClusterService], address: Address) -> str:
    ports = sorted({port for item in meant for port in item.ports or ()})
    listed = ", ".join(map(str, ports))
    return f"{address} is the Service {meant[0].name}, which has no port but {listed}"
