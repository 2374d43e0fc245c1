"""Services as a deployment of brokers with listeners, and clients."""

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace

from earshot.facts.settings import KafkaSettings, Unreadable
from earshot.listeners.address import Address, why_unusable
from earshot.listeners.images import Family, derived_listeners, repository_of
from earshot.listeners.placeholders import is_known
from earshot.sources.bootstraps import bootstraps, health_checks, ports_of
from earshot.sources.clusters import (
    cluster_id,
    cluster_of,
    protocols_of,
    quorum_address,
    quorum_protocol,
    servers_of,
    voters_of,
    with_joined_clusters,
)
from earshot.sources.image_settings import DERIVE
from earshot.sources.redpanda import redpanda_among, redpanda_broker
from earshot.sources.service import (
    Service,
    brokers_among,
    derives_no_more,
    leaves_unset_listeners_out,
)
from earshot.topology.broker import Broker, Endpoint
from earshot.topology.container import Container
from earshot.topology.model import Deployment
from earshot.topology.names import Names

_ADVERTISED = re.compile(r"://([^,:\s]+):([0-9]{1,5})(?![^,\s])", re.ASCII)
"""An address in a list of listeners; the host may be a variable."""
_HIDDEN_HOST = re.compile(
    r"(?<=://)(?=[A-Za-z0-9.-]*[$_])((?:[$_]\{\w+\}|[A-Za-z0-9.-])+)"
    r"(?=:[0-9]{1,5}(?:[,\s]|$))",
    re.ASCII,
)
"""A host with a variable, or with a value that the image computes, before a port."""
_STAND_IN = "host-{}.not-known"


def all_brokers(services: Sequence[Service]) -> tuple[Service, ...]:
    """The services that run a Kafka or Redpanda broker."""
    return (*brokers_among(services), *redpanda_among(services))


def deployment(services: Sequence[Service]) -> Deployment:
    """The brokers, clients and containers of ``services``."""
    kafka_brokers = (broker_of(service) for service in brokers_among(services))
    brokers = (
        *with_joined_clusters(tuple(kafka_brokers)),
        *(redpanda_broker(service, services) for service in redpanda_among(services)),
    )
    names = [broker.service for broker in brokers]
    containers = {service.name: service.container for service in services}
    return Deployment(
        own={name: at for service in services for name, at in service.names_of_machine.items()},
        containers=containers,
        brokers=tuple(_with_ports_of_networks(brokers, containers)),
        bootstraps=tuple(bootstraps(services, names, ports_of(brokers))),
        health_checks=tuple(health_checks(services, names)),
    )


def _with_ports_of_networks(
    brokers: Iterable[Broker], containers: Mapping[str, Container]
) -> Iterator[Broker]:
    """``brokers`` with the published ports of the container whose network each uses, as a pod's."""
    names = Names(containers)
    for broker in brokers:
        owner = names.owner(broker.service)
        published = containers[owner].published
        is_own = owner == broker.service
        container = broker.container if is_own else replace(broker.container, published=published)
        yield replace(broker, container=container)


def broker_of(service: Service) -> Broker:
    """The broker in ``service``, not yet joined with others of its cluster."""
    settings = service.settings
    view = settings.read()
    values = settings.values
    container = service.container
    # `${REGISTRY}/cp-kafka` may be any image
    is_named = container.family is not Family.UNKNOWN and is_known(repository_of(container.image))
    roles = values.get("process.roles", "")
    id = values.get("node.id", values.get("broker.id", ""))
    inter_broker = ""
    with suppress(Unreadable):
        inter_broker = KafkaSettings(values, view.version, complete=True).inter_broker
    return Broker(
        service=service.name,
        container=container,
        id=int(id.strip()) if re.fullmatch(r"\d{1,9}", id.strip()) else None,
        endpoints=tuple(_endpoints(service, view)) or None,
        inter_broker=inter_broker,
        cluster=cluster_of(service, values),
        is_broker=not roles or "broker" in roles,
        is_controller="controller" in roles,
        voters=voters_of(view),
        quorum_servers=servers_of(view),
        quorum_address=quorum_address(view),
        quorum_protocol=quorum_protocol(view),
        cluster_id=cluster_id(service) if roles else None,
        has_zookeeper=settings.is_zookeeper,
        is_image_known=is_named and not service.is_built,
        switched_off=tuple(_switched_off(service)),
    )


def _switched_off(service: Service) -> Iterator[tuple[str, Address]]:
    """Commented-out advertised addresses, each with its variable."""
    container = service.container
    for name, values in service.commented.items():
        key = container.property_of(name)
        for value in values:
            if key == "advertised.host.name" and value:
                yield name, Address(value, 9092)
            elif key == "advertised.listeners":
                for host, port in _ADVERTISED.findall(value):
                    yield name, Address(host, int(port))


def _endpoints(service: Service, view: KafkaSettings) -> Iterator[Endpoint]:
    """The listeners; none if some of them are unknown."""
    container = service.container
    values = dict(view.values)
    complete = view.complete or leaves_unset_listeners_out(service)
    hidden_hosts = _hide_hosts(values)
    if "listeners" not in values and "advertised.listeners" in values:
        if container.family not in DERIVE or derives_no_more(container):
            return
        values["listeners"] = derived_listeners(values["advertised.listeners"])
    if "listeners" not in values and not view.complete:
        return
    settings = KafkaSettings(values, view.version, complete=True)
    try:
        binds = settings.listeners
        controllers = {name.upper() for name in settings.controllers}
        advertised = settings.advertised
        # the image may set an absent advertised list
        guessed = "advertised.listeners" not in values and not complete
    except Unreadable:
        return
    if any(why_unusable(bind, lowest=0) for bind in binds.values()):
        return
    protocols = protocols_of(view)
    for name, bind in binds.items():
        address = advertised.get(name)
        if address is not None and not address.host:  # on the host's network its name counts
            own_host = container.hostname or container.name
            address = None if container.on_host_network else Address(own_host, address.port)
        is_controller = name in controllers
        if address is not None and why_unusable(address):
            address = None  # KL002 names it
        template = None
        if address is not None and address.host in hidden_hosts:
            template = Address(hidden_hosts[address.host], address.port)
            address = None
        unknown = is_controller or guessed or address is None
        protocol = protocols.get(name)
        known_address = None if unknown else address
        yield Endpoint(name, bind, known_address, is_controller, protocol, template)


def _hide_hosts(values: dict[str, str]) -> Mapping[str, str]:
    """Replaces unknown hosts in `advertised.listeners`; returns the originals by replacement."""
    originals: dict[str, str] = {}

    def replacement(match: re.Match[str]) -> str:
        name = _STAND_IN.format(len(originals))
        originals[name] = match[0]
        return name

    if advertised := values.get("advertised.listeners"):
        values["advertised.listeners"] = _HIDDEN_HOST.sub(replacement, advertised)
    return originals
