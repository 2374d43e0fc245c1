"""Evaluates the Kubernetes workloads and Services of a program, at the end."""

from collections.abc import Iterator, Mapping
from typing import Any

from earshot.checks import kubernetes
from earshot.checks.instance_stack import StackEvaluation
from earshot.checks.names_not_looked_up import names_not_looked_up
from earshot.json_object import Document
from earshot.listeners.images import spellings
from earshot.rules.rule import Finding
from earshot.sources.kubernetes import KINDS, Manifest, read_manifest
from earshot.sources.open_listeners import open_listeners
from earshot.sources.pod_variables import Keys
from earshot.sources.workloads import PodContainer

_PREFIX = "kubernetes:"
HIDDEN = "${not known yet}"
"""Placeholder for a value that a preview does not know."""


def is_workload(type: str) -> bool:
    """True for a type of resource that is read: a workload, a Service or a ConfigMap."""
    return type.startswith(_PREFIX) and type.rpartition(":")[2] in KINDS


class Workloads:
    """The resources of one run, by provider: each provider is a Kubernetes cluster."""

    def __init__(self) -> None:
        self._clusters: dict[str, dict[str, Document]] = {}
        self._places: dict[tuple[str, Finding], str] = {}

    def register(self, urn: str, inputs: Document, provider: str) -> None:
        """Store a resource; ``inputs`` have `HIDDEN` in place of values that are not known yet."""
        self._clusters.setdefault(provider, {})[urn] = _texts(inputs)

    def evaluate_stack(self) -> StackEvaluation:
        """The findings in each cluster's resources, checked like one file of manifests."""
        findings: list[tuple[str, Finding]] = []
        remarks: list[tuple[str, str]] = []
        for resources in self._clusters.values():
            urns = sorted(resources)
            manifest = read_manifest([resources[urn] for urn in urns])
            containers = {container.name: container for container in manifest.containers}
            for finding in kubernetes.mistakes(manifest):
                container = containers[finding.container]
                urn = urns[int(container.path[0])]
                findings.append((urn, finding))
                self._places[urn, finding] = _path(_keys(container, finding))
            for name, reason in _open_listeners(manifest):
                urn = urns[int(containers[name].path[0])]
                remarks.append((urn, f"container {name}: {reason}; not checked"))
            own_names = {_name(resource) for resource in resources.values()}
            for broker in manifest.brokers:
                values = broker.service.settings.values
                if remark := names_not_looked_up(values, own_names):
                    urn = urns[int(containers[broker.name].path[0])]
                    remarks.append((urn, f"container {broker.name}: {remark}"))
        return StackEvaluation(tuple(findings), tuple(remarks))

    def place(self, urn: str, finding: Finding) -> str:
        """The path of the property that a finding of `evaluate_stack` reports."""
        return self._places.get((urn, finding), "")


def _open_listeners(manifest: Manifest) -> Iterator[tuple[str, str]]:
    """(container, reason) for each broker with unknown listeners."""
    brokers = manifest.brokers
    at_run_time = {broker.name: broker.at_run_time for broker in brokers}
    return open_listeners([broker.service for broker in brokers], at_run_time)


def _name(resource: Document) -> str:
    metadata = resource.get("metadata")
    return str(metadata.get("name", "")) if isinstance(metadata, Mapping) else ""


def _texts(value: Any) -> Any:
    """``value`` with every scalar as a text, as files are read: 9092.0 is `9092`."""
    if isinstance(value, Mapping):
        return {key: _texts(entry) for key, entry in value.items()}
    if isinstance(value, list):
        return [_texts(element) for element in value]
    if isinstance(value, bool):
        return str(value).lower()
    return str(value).removesuffix(".0") if isinstance(value, float) else str(value)


def _keys(container: PodContainer, finding: Finding) -> Keys:
    """The keys of the first variable in the finding that this resource sets; else of the
    container."""
    variables = {variable for name in finding.inputs for variable in spellings(name)}
    for variable in sorted(variables & set(container.variables)):
        path = container.variables[variable]
        if path[0] == container.path[0]:
            return path
    return container.path


def _path(keys: Keys) -> str:
    text = "".join(f"[{key}]" if isinstance(key, int) else f".{key}" for key in keys[1:])
    return text.removeprefix(".")
