"""Clients that Strimzi makes: Connect, bridges and MirrorMaker 2, with their bootstrap addresses.

Sources: `KafkaConnectSpec`, `KafkaBridgeSpec` and `KafkaMirrorMaker2Spec` of
strimzi/strimzi-kafka-operator, and its connect script: TLS if `tls` is set, SASL by the type of
`authentication`.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from earshot.listeners.terms import Protocol
from earshot.sources.bootstraps import addresses_in
from earshot.sources.pod_variables import Keys
from earshot.sources.values import as_map, list_of, text_in
from earshot.sources.workloads import Resource, free_name, name_of, namespace_of, resources
from earshot.topology.broker import Bootstrap

TLS = ".tls"
"""The end of the setting that turns TLS on."""
_GROUP = "kafka.strimzi.io/"
_KINDS = ("KafkaConnect", "KafkaBridge", "KafkaMirrorMaker2")
_SASL = ("scram-sha-256", "scram-sha-512", "plain", "oauth")


@dataclass(frozen=True)
class StrimziClient:
    """One resource; ``path`` is its place in the file. ``name`` is its kind and name."""

    name: str
    namespace: str
    path: Keys
    bootstraps: tuple[Bootstrap, ...]


def read_clients(documents: Sequence[object]) -> Iterator[StrimziClient]:
    """The clients among a file's documents (`read_yaml_documents`) whose addresses are known."""
    used_names: set[str] = set()
    for path, resource in resources(documents):
        kind = text_in(resource, "kind")
        if kind not in _KINDS or not str(resource.get("apiVersion")).startswith(_GROUP):
            continue
        name = free_name(f"{kind} {name_of(resource)}", used_names)
        bootstraps = tuple(
            Bootstrap(name, f"{place}.bootstrapServers", addresses, _protocol(section), place + TLS)
            for place, section in _sections(resource)
            if (addresses := addresses_in(text_in(section, "bootstrapServers")))
        )
        if bootstraps:
            yield StrimziClient(name, namespace_of(resource), path, bootstraps)


def _sections(resource: Resource) -> Iterator[tuple[str, Mapping[str, object]]]:
    """The parts with a bootstrap address, each with its place."""
    spec = as_map(resource.get("spec"))
    yield "spec", spec
    for index, cluster in enumerate(list_of(spec.get("clusters"))):
        yield f"spec.clusters[{index}]", as_map(cluster)
    yield "spec.target", as_map(spec.get("target"))
    for index, mirror in enumerate(list_of(spec.get("mirrors"))):
        yield f"spec.mirrors[{index}].source", as_map(as_map(mirror).get("source"))


def _protocol(section: Mapping[str, object]) -> Protocol | None:
    """None if `tls` or `authentication` is a variable, or of a type other than Strimzi's own."""
    if isinstance(section.get("tls"), str) or isinstance(section.get("authentication"), str):
        return None
    type = text_in(as_map(section.get("authentication")), "type")
    if type not in ("", "tls", *_SASL):
        return None
    name = "SSL" if isinstance(section.get("tls"), Mapping) else "PLAINTEXT"
    return Protocol(f"SASL_{name}" if type in _SASL else name)
