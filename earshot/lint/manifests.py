"""A file of Kubernetes resources: its pods, and what Strimzi shall make of it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

from earshot.checks import kubernetes
from earshot.checks.security_advice import advice_on_services
from earshot.facts.cluster import ClusterFacts
from earshot.lint.model import Linted, Mistake, Said
from earshot.lint.places import at_paths, of_container, of_resource
from earshot.rules import kl018_strimzi
from earshot.sources.image_settings import hidden_variables
from earshot.sources.kubernetes import Manifest, read_manifest, resources
from earshot.sources.strimzi import read_strimzi


def is_manifest(documents: Sequence[object]) -> bool:
    """Whether one of the documents is a resource."""
    return any(resources(documents))


def check_manifest(text: str, shown: str, documents: Sequence[object], said: Said) -> Linted:
    """The pods of a file, and what Strimzi shall make of it."""
    manifest, kafkas = _of_release(read_manifest(documents), said), read_strimzi(documents)
    has_pods = bool(manifest.brokers) or kubernetes.asks_for_a_service(manifest)
    if not (has_pods or kafkas):
        return Linted(shown, "", unchecked=("no container of it is known to run a Kafka broker",))
    containers = {item.name: item for item in manifest.containers}
    found = [
        (item, of_container(containers[item.container], item))
        for item in kubernetes.mistakes(manifest)
    ]
    paths = {f"Kafka {item.kafka.name}": item.path for item in kafkas}
    facts = ClusterFacts(plan=None, strimzi=tuple(item.kafka for item in kafkas))
    found += [
        (item, of_resource(paths[item.resource], item)) for item in kl018_strimzi.RULE.check(facts)
    ]
    services = [item.service for item in manifest.brokers]
    found += [
        (item, of_container(containers[item.container], item))
        for item in advice_on_services(services, [item for item, _ in found])
        if item.container in containers
    ]
    placed = tuple(Mistake(item, place) for item, place in at_paths(text, shown, found))
    kind = "Kubernetes manifest" if has_pods else "Strimzi Kafka"
    unread = [f"Kafka {item.kafka.name}" for item in kafkas if not item.is_read]
    left_open = [f"{name}: spec.kafka.listeners is no list" for name in unread]
    return Linted(shown, kind, placed, (*_unknown_of(manifest), *left_open))


def _of_release(manifest: Manifest, said: Said) -> Manifest:
    containers = (
        replace(item, service=replace(item.service, release=said.release))
        for item in manifest.containers
    )
    return replace(manifest, containers=tuple(containers))


def _unknown_of(manifest: Manifest) -> Iterator[str]:
    """What the pods leave open, each once."""
    for broker in manifest.brokers:
        container = broker.service.container
        for what in container.unknown:
            yield f"container {broker.name}: {what} could not be read"
        if names := hidden_variables(container):
            yield f"container {broker.name}: the file alone does not say {', '.join(names)}"
