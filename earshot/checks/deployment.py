"""All containers of a file that others wrote: what is certainly wrong with them, each cause once.

What Kafka or an image refuses stands alone: of the listeners of a broker that does not start,
nothing more is said.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import replace

from earshot.facts.cluster import ClusterFacts
from earshot.facts.deployment import Deployment
from earshot.facts.settings import ForeignSettings, Unreadable, is_known
from earshot.listeners.grammar import Bad
from earshot.listeners.images import Family, tag_of
from earshot.rules import (
    kl002_kafka,
    kl014_image,
    kl015_clients,
    kl016_nodes,
    kl017_published,
)
from earshot.rules.finding import Finding
from earshot.sources.compose import Service
from earshot.sources.deployment import Settings, brokers_among, deployment, settings_of

KRAFT_ONLY = (4, 0)
OLDEST = (3, 3)
"""Of what an unknown image may hold, as far as the rules know Kafka."""
_CONFLUENT_REFUSES = ("KAFKA_ADVERTISED_PORT", "KAFKA_ADVERTISED_HOST", "KAFKA_HOST", "KAFKA_PORT")
_WURSTMEISTER = re.compile(r"(?:latest)?|\d+\.\d+-2\..*")
_ADVERTISED = {"KAFKA_ADVERTISED_LISTENERS": False}
_BETWEEN = (kl015_clients.RULE, kl016_nodes.RULE, kl017_published.RULE)


def mistakes(services: Sequence[Service]) -> tuple[Finding, ...]:
    """What is wrong with ``services``; `Finding.container` is the service."""
    broken: dict[str, tuple[Finding, ...]] = {}
    for service in brokers_among(services):
        if found := tuple(refusals(service, settings_of(service))):
            broken[service.name] = found
    facts = ClusterFacts(plan=None, deployment=_without(deployment(services), set(broken)))
    between = (item for rule in _BETWEEN for item in rule.check(facts))
    return (*(item for found in broken.values() for item in found), *between)


def refusals(service: Service, settings: Settings) -> Iterator[Finding]:
    """Why the image, or Kafka in it, does not start; the first of both that says so."""
    found = [*_image(service, settings)] or [*kafka_refusals(settings)]
    for item in found[:1]:
        yield replace(item, container=service.name)


def _without(whole: Deployment, broken: set[str]) -> Deployment:
    """What is said about a broker that does not start is said already."""
    brokers = tuple(
        replace(item, endpoints=None) if item.service in broken else item for item in whole.brokers
    )
    return replace(whole, brokers=brokers)


def _image(service: Service, settings: Settings) -> Iterator[Finding]:
    """What the start script of the image refuses, or what its Kafka does not have any more."""
    release, image = settings.release, service.container.image
    family = service.container.family
    if family is Family.WURSTMEISTER:
        yield from _wurstmeister(service)
    if release is None or family in (Family.UNKNOWN, Family.WURSTMEISTER):
        return
    if release >= KRAFT_ONLY and settings.is_zookeeper:
        yield kl014_image.RULE.finding(
            f"{image} is Kafka {release[0]}, which has no ZooKeeper, and zookeeper.connect is set",
            "process.roles, node.id and a KRaft quorum, or an image of Kafka 3",
            remedy="`earshot adopt` writes the settings for KRaft",
            inputs=("zookeeper.connect", "image"),
        )
        return
    if family is Family.CONFLUENT:
        yield from _confluent(service, settings, release)
    roles = settings.values.get("process.roles", "").replace(" ", "")
    if (
        family in (Family.APACHE, Family.CONFLUENT)
        and roles == "controller"
        and "KAFKA_ADVERTISED_LISTENERS" in service.container.env
    ):
        yield kl014_image.RULE.finding(
            "is a controller only and sets KAFKA_ADVERTISED_LISTENERS: the image exits",
            "no such variable on a controller",
            remedy="take KAFKA_ADVERTISED_LISTENERS away",
            inputs=("advertised.listeners",),
        )


def _wurstmeister(service: Service) -> Iterator[Finding]:
    """Source: `start-kafka.sh` of wurstmeister/kafka-docker, with Kafka 2 and later."""
    container = service.container
    told = ("KAFKA_LISTENERS", "KAFKA_ADVERTISED_HOST_NAME")
    if service.command or service.is_built or container.unknown:
        return
    if not _WURSTMEISTER.fullmatch(tag_of(container.image)):
        return
    if any(container.env.get(name) for name in told):
        return
    advertised = container.env.get("KAFKA_ADVERTISED_LISTENERS")
    if advertised or not container.env.get("HOSTNAME_COMMAND"):
        what = "KAFKA_ADVERTISED_LISTENERS alone" if advertised else "no listeners"
        yield kl014_image.RULE.finding(
            f"sets {what}, and {container.image} refuses to start",
            "KAFKA_LISTENERS too",
            remedy="set KAFKA_LISTENERS",
            inputs=("listeners", "advertised.listeners", "image"),
        )


def _confluent(service: Service, settings: Settings, release: tuple[int, int]) -> Iterator[Finding]:
    """Source: `configure` in `kafka/include/etc/confluent/docker` of confluentinc/kafka-images."""
    env, image = service.container.env, service.container.image
    for name in _CONFLUENT_REFUSES:
        if env.get(name) and is_known(env[name]):
            yield kl014_image.RULE.finding(
                f"sets {name}, and {image} refuses to start",
                "KAFKA_LISTENERS and KAFKA_ADVERTISED_LISTENERS, which replace it",
                remedy=f"take {name} away",
                inputs=(name,),
            )
    if not settings.complete:
        return
    values = settings.values
    needed = {} if values.get("process.roles") == "controller" else _ADVERTISED
    if values.get("process.roles"):
        needed = {**needed, "CLUSTER_ID": "CLUSTER_ID" in env}
    elif release >= KRAFT_ONLY:
        needed = {"KAFKA_PROCESS_ROLES": False}
    else:
        needed = {**needed, "KAFKA_ZOOKEEPER_CONNECT": "zookeeper.connect" in values}
    missing = [name for name, there in needed.items() if not (there or env.get(name))]
    if missing:
        yield kl014_image.RULE.finding(
            f"does not set {', '.join(missing)}, and {image} refuses to start",
            ", ".join(missing),
            remedy=f"set {', '.join(missing)}",
            inputs=("image",),
        )


def kafka_refusals(settings: Settings) -> tuple[Finding, ...]:
    """Why Kafka does not start with ``settings``, as far as they are known."""
    found = tuple(_kafka(settings.read()))
    if settings.release is None:  # what an older Kafka takes is not certain
        older = {item.observed for item in _kafka(settings.read(OLDEST))}
        found = tuple(item for item in found if item.observed in older)
    return found


def _kafka(view: ForeignSettings) -> Iterator[Finding]:
    for key, item in _unread(view):
        yield kl002_kafka.RULE.finding(
            f"{key}: {item.error.object} {item.error.observed}",
            item.error.allowed,
            listener=item.name or None,
            remedy=item.error.remedy,
            inputs=(key,),
        )
    for objection in kl002_kafka.refusals(view):
        yield kl002_kafka.RULE.finding(
            f"{objection.key}: {objection.observed}; Kafka does not start",
            objection.expected,
            listener=objection.listener,
            remedy=objection.remedy,
            inputs=(objection.key,),
        )


def _unread(view: ForeignSettings) -> Iterator[tuple[str, Bad]]:
    readers = {
        "listeners": view.grammar.read_listeners,
        "advertised.listeners": view.grammar.read_listeners,
        "listener.security.protocol.map": view.grammar.read_protocols,
        "controller.quorum.voters": view.grammar.read_voters,
    }
    for key, read in readers.items():
        if key not in view.values:
            continue
        try:
            text = view.text(key)
        except Unreadable:
            continue
        for item in read(text):
            if isinstance(item, Bad):
                yield key, item
