"""Checks environment files, user data, redpanda.yaml, and Kubernetes manifests with pods or Strimzi
resources."""

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path

from earshot.checks import kubernetes
from earshot.checks.deployment import advice_on_services
from earshot.checks.lone_settings import (
    Release,
    advice_in_user_data,
    advice_in_variables,
    are_of_broker,
    mistakes_in_user_data,
    mistakes_in_variables,
    open_in_user_data,
    open_in_variables,
)
from earshot.checks.node_ports import repeated_node_ports
from earshot.errors import EarshotError
from earshot.facts.cluster import ClusterFacts
from earshot.lint.containers import unknown_images
from earshot.lint.model import FileOptions, FileReport, Mistake
from earshot.lint.places import (
    at_paths,
    in_env_file,
    in_properties,
    in_user_data,
    of_container,
    of_resource,
)
from earshot.rules import kl018_strimzi
from earshot.rules.kl002_kafka import redpanda_refusals
from earshot.rules.rule import Finding
from earshot.sources.image_settings import hidden_variables
from earshot.sources.kubernetes import (
    Manifest,
    SharedResources,
    misshapen_pods,
    read_manifest,
    resources_beside,
)
from earshot.sources.open_listeners import open_listeners
from earshot.sources.pod_variables import Keys
from earshot.sources.redpanda import listeners_in
from earshot.sources.strimzi import of_other_operators
from earshot.sources.substitution import Variables, read_env_file
from earshot.sources.user_data import READ_PLACES, UserDataFile, broker_files, speaks_of_brokers
from earshot.sources.workloads import KIND_OF, resources

ADVERTISED = "advertised_kafka_api"
"""Redpanda's setting for advertised addresses."""
_TEMPLATE_STATEMENT = re.compile(
    r"^[^\S\n]*(?:\{%|\{\{[-#]? *(?:if|range|with|end)\b|<%(?!=))", re.MULTILINE
)
"""A template statement at the beginning of a line."""


def variables(
    text: str, file_name: str, environment: Mapping[str, str], release: Release
) -> FileReport:
    """Checks an environment file. ``environment`` has the variables of the environment.

    Raises EarshotError if ``text`` is not an environment file.
    """
    if _TEMPLATE_STATEMENT.search(text):
        return FileReport(file_name, "", unchecked=("is a template: check what it renders",))
    values = read_env_file(text, file_name, Variables(environment, keep=True))
    if not are_of_broker(values):
        return FileReport(file_name, "", unchecked=("sets no variables of a broker",))
    mistakes = mistakes_in_variables(values, release) or advice_in_variables(values, release)
    placed_mistakes = tuple(
        Mistake(mistake, in_env_file(text, file_name, mistake)) for mistake in mistakes
    )
    open_ends = tuple(open_in_variables(values))
    return FileReport(file_name, "environment file", placed_mistakes, open_listeners=open_ends)


def user_data(text: str, file_name: str, release: Release) -> FileReport:
    """Checks the broker properties that the user data of an instance writes."""
    properties_files = broker_files(text)
    if not properties_files:
        reason = "sets up no broker"
        if speaks_of_brokers(text):
            reason = f"sets advertised.listeners in a way that is not read ({READ_PLACES})"
        return FileReport(file_name, "", unchecked=(reason,))
    findings = mistakes_in_user_data(properties_files, release) or advice_in_user_data(
        properties_files, release
    )
    placed_mistakes = tuple(
        Mistake(finding, in_user_data(text, file_name, finding)) for finding in findings
    )
    unchecked = tuple(
        dict.fromkeys(reason for file in properties_files for reason in _unknown_values(file))
    )
    open_ends = tuple(open_in_user_data(properties_files))
    return FileReport(file_name, "user data", placed_mistakes, unchecked, open_listeners=open_ends)


def redpanda(text: str, file_name: str) -> FileReport:
    """Checks the settings of a redpanda.yaml. Reachability needs more than this file."""
    listeners = listeners_in(text)
    if not listeners:
        reason = f"advertises no address ({ADVERTISED}): flags or a Compose file may"
        return FileReport(file_name, "", unchecked=(reason,))
    placed_mistakes = (
        Mistake(refusal, in_properties(text, file_name, refusal))
        for refusal in redpanda_refusals(listeners, ADVERTISED)
    )
    return FileReport(file_name, "Redpanda's settings", tuple(placed_mistakes))


def _unknown_values(file: UserDataFile) -> Iterator[str]:
    path = file.path or "the properties"
    if not file.whole:
        yield f"{path}: its earlier content is unknown"
    for key in file.computed:
        unknown_part = "the host" if key in file.places else key
        yield f"{path}: {unknown_part} is not known, the instance computes {file.shown(key)}"


def is_manifest(documents: Sequence[object]) -> bool:
    """True if one of the documents is a Kubernetes resource."""
    return any(resources(documents))


def check_manifest(
    text: str, file_name: str, documents: Sequence[object], options: FileOptions
) -> FileReport:
    """Checks the pods and the Strimzi resources of a manifest.

    Raises EarshotError if a value that must be a list is not a list.
    """
    may_have_broker = "kafka" in text.lower()
    beside = resources_beside(Path(file_name)) if may_have_broker else SharedResources()
    manifest = read_manifest(documents, beside).with_release(options.release)
    kafkas = manifest.kafkas
    has_pods = bool(manifest.brokers) or kubernetes.uses_own_service(manifest)
    candidates = [it.service for it in manifest.containers if it.can_run_broker]
    images = [reason for _, reason in unknown_images(candidates, "container")]
    not_read = of_other_operators(documents)
    if not (has_pods or kafkas):
        no_broker = ("no container of it is known to run a Kafka broker",)
        return FileReport(file_name, "", unchecked=(*images, *(not_read or no_broker)))
    for resource, observed, allowed in misshapen_pods(documents):
        raise EarshotError(f"{file_name}: {resource}", observed=observed, allowed=allowed)
    containers = {container.name: container for container in manifest.containers}
    resource_paths = {client.name: client.path for client in manifest.strimzi_clients}
    mistakes: list[tuple[Finding, Iterable[Keys]]] = [
        (
            mistake,
            of_resource(resource_paths[mistake.resource], mistake)
            if mistake.resource in resource_paths
            else of_container(containers[mistake.container], mistake),
        )
        for mistake in kubernetes.mistakes(manifest)
    ]
    mistakes += kubernetes.refused_values(manifest, text, file_name)
    paths = {f"Kafka {kafka.name}": kafka.path for kafka in kafkas}
    facts = ClusterFacts(plan=None, strimzi=kafkas)
    mistakes += [
        (finding, of_resource(paths[finding.resource], finding))
        for finding in kl018_strimzi.RULE.findings(facts)
    ]
    mistakes += [
        (finding, of_resource(path, finding)) for finding, path in repeated_node_ports(documents)
    ]
    services = [broker.service for broker in manifest.brokers]
    mistakes += [
        (finding, of_container(containers[finding.container], finding))
        for finding in advice_on_services(services, [finding for finding, _ in mistakes])
        if finding.container in containers
    ]
    placed_mistakes = tuple(
        Mistake(finding, place) for finding, place in at_paths(text, file_name, mistakes)
    )
    kind_of_file = "Kubernetes manifest" if has_pods else "Strimzi Kafka"
    open_ends = [f"Kafka {kafka.name}: {kafka.open}" for kafka in kafkas if kafka.open]
    at_run_time = {broker.name: broker.at_run_time for broker in manifest.brokers}
    open_ends += [
        f"container {name}: {reason}" for name, reason in open_listeners(services, at_run_time)
    ]
    notes = [
        f"Kafka {kafka.name}: {unknown_address}"
        for kafka in kafkas
        for listener in kafka.listeners
        if (unknown_address := listener.address_of_node)
    ]
    notes += [
        f"kind {kind} is unknown to Kubernetes, and read as {known_kind}"
        for _, resource in resources(documents)
        if (known_kind := KIND_OF.get((kind := str(resource.get("kind"))).lower(), kind)) != kind
    ]
    unchecked = (*not_read, *_unknown_in_pods(manifest), *notes)
    return FileReport(
        file_name, kind_of_file, placed_mistakes, unchecked, open_listeners=tuple(open_ends)
    )


def _unknown_in_pods(manifest: Manifest) -> Iterator[str]:
    """A reason for each unknown value of the pods."""
    hidden_in_replicas: dict[str, set[str]] = {}
    for replica in manifest.by_replica().brokers:
        names = hidden_in_replicas.setdefault(replica.template or replica.name, set())
        names.update(hidden_variables(replica.service.container))
    for broker in manifest.brokers:
        container = broker.service.container
        for setting in container.unknown:
            yield f"container {broker.name}: {setting} could not be read"
        missing = [
            name
            for name in hidden_variables(container)
            if name in hidden_in_replicas.get(broker.name, {name})
            and name not in broker.early_references
        ]
        if missing:
            yield f"container {broker.name}: the file does not contain the value of " + ", ".join(
                missing
            )
