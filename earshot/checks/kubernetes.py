"""The manifests of one file: what its images and Kafka refuse, and where clients' walks fail.

Sources: `configure` in `kafka/include/etc/confluent/docker` and
`server/include/etc/confluent/docker` of confluentinc/kafka-images; the Kubernetes documentation on
Services (environment variables, headless Services).
"""

import re
from collections.abc import Iterator
from dataclasses import replace

from earshot.checks.deployment import refusals, unusable
from earshot.facts.cluster import ClusterFacts
from earshot.listeners.images import repository_of
from earshot.rules import kl002_kafka, kl014_image
from earshot.rules.evaluate import at, evaluate
from earshot.rules.registry import Door, Finding
from earshot.sources.deployment import settings_of
from earshot.sources.kubernetes import Manifest, PodContainer
from earshot.topology.container import MOUNTED

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
    whole = manifest.deployment({item.container for item in found})
    return (*found, *evaluate(ClusterFacts(plan=None, deployment=whole), at(Door.PODS)))


def asks_for_a_service(manifest: Manifest) -> bool:
    """Whether a client in it begins with a Service of the same file."""
    whole = manifest.deployment()
    clients = (item for item in whole.bootstraps if item.service in whole.pods)
    return any(
        whole.called(address.host, whole.pods[item.service].namespace)
        for item in clients
        for address in item.addresses
    )


def _refusals(broker: PodContainer) -> Iterator[Finding]:
    settings = settings_of(broker.service)
    found = list(refusals(broker.service, settings))
    if settings.release is None:
        earlier = kl002_kafka.startup_refusals(replace(settings, release=OLDEST))
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
    for service in manifest.deployment().called(_LINKED, broker.namespace):
        if service.has_address and service.ports:
            port = service.ports[0].port
            yield kl014_image.RULE.finding(
                f"the Service {_LINKED} gives it KAFKA_PORT=tcp://ADDRESS:{port}, and "
                f"{container.image} refuses to start",
                f"no KAFKA_PORT: `enableServiceLinks: false`, or a Service that is not called "
                f"{_LINKED}",
                container=broker.name,
                remedy="set enableServiceLinks to false in the pod's spec",
                inputs=("enableServiceLinks",),
            )
            return
