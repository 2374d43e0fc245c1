"""Files of variables for a container, user data of an instance, Redpanda's own file, and Kubernetes
resources: their pods, and what Strimzi shall make of them."""

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence

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
from earshot.errors import EarshotError
from earshot.facts.cluster import ClusterFacts
from earshot.lint.model import FileOptions, FileReport, Mistake
from earshot.lint.places import at_paths, in_env_file, in_properties, of_container, of_resource
from earshot.rules import kl018_strimzi
from earshot.rules.kl002_kafka import redpanda_refusals
from earshot.rules.registry import Finding
from earshot.sources.image_settings import hidden_variables
from earshot.sources.kubernetes import Manifest, misshapen_pods, read_manifest, resources
from earshot.sources.open_listeners import open_listeners
from earshot.sources.pod_variables import Keys
from earshot.sources.redpanda import listeners_in
from earshot.sources.strimzi import misshapen_kafkas, read_strimzi
from earshot.sources.substitution import Variables, read_env_file
from earshot.sources.user_data import UserDataFile, broker_files, speaks_of_brokers
from earshot.sources.workloads import KIND_OF

ADVERTISED = "advertised_kafka_api"
"""Of Redpanda."""
_STATEMENT = re.compile(r"^\s*(?:\{%|\{\{[-#]? *(?:if|range|with|end)\b|<%(?!=))", re.MULTILINE)
"""Of a template, on a line where an assignment would be."""
_READ = "read are files in a cloud-config, here-documents in a script"


def variables(text: str, file_name: str, known: Mapping[str, str], release: Release) -> FileReport:
    """What is wrong in a file of variables; those ``known`` are of the environment.

    Raises EarshotError where it is none.
    """
    if _STATEMENT.search(text):
        return FileReport(file_name, "", unchecked=("is a template: check what it renders",))
    values = read_env_file(text, file_name, Variables(known, keep=True))
    if not are_of_broker(values):
        return FileReport(file_name, "", unchecked=("sets no variables of a broker",))
    mistakes = mistakes_in_variables(values, release) or advice_in_variables(values, release)
    placed = tuple(Mistake(mistake, in_env_file(text, file_name, mistake)) for mistake in mistakes)
    open_ends = tuple(open_in_variables(values))
    return FileReport(file_name, "environment file", placed, open_listeners=open_ends)


def user_data(text: str, file_name: str, release: Release) -> FileReport:
    """What is wrong in the properties of brokers that the user data of an instance write."""
    written = broker_files(text)
    if not written:
        why = "sets up no broker"
        if speaks_of_brokers(text):
            why = f"sets advertised.listeners in a way that is not read here ({_READ})"
        return FileReport(file_name, "", unchecked=(why,))
    findings = mistakes_in_user_data(written, release) or advice_in_user_data(written, release)
    placed = tuple(
        Mistake(finding, in_properties(text, file_name, finding)) for finding in findings
    )
    unknown = tuple(dict.fromkeys(it for file in written for it in _unknown(file)))
    open_ends = tuple(open_in_user_data(written))
    return FileReport(file_name, "user data", placed, unknown, open_listeners=open_ends)


def redpanda(text: str, file_name: str) -> FileReport:
    """What is wrong in a redpanda.yaml by itself: reachability takes more than that file."""
    listeners = listeners_in(text)
    if not listeners:
        why = f"advertises no address of its own ({ADVERTISED}): flags say it, or a Compose file"
        return FileReport(file_name, "", unchecked=(why,))
    placed = (
        Mistake(refusal, in_properties(text, file_name, refusal))
        for refusal in redpanda_refusals(listeners, ADVERTISED)
    )
    return FileReport(file_name, "Redpanda's settings", tuple(placed))


def _unknown(file: UserDataFile) -> Iterator[str]:
    path = file.path or "the properties"
    if not file.whole:
        yield f"{path}: its earlier content is not known"
    for key in file.computed:
        what = "the host" if key in file.places else key
        yield f"{path}: {what} is not known, the instance computes {file.shown(key)}"


def is_manifest(documents: Sequence[object]) -> bool:
    """Whether one of the documents is a resource."""
    return any(resources(documents))


def check_manifest(
    text: str, file_name: str, documents: Sequence[object], options: FileOptions
) -> FileReport:
    """The pods of a file, and what Strimzi shall make of it.

    Raises EarshotError for a list that Kubernetes refuses because it is none.
    """
    manifest = read_manifest(documents).with_release(options.release)
    kafkas = read_strimzi(documents)
    has_pods = bool(manifest.brokers) or kubernetes.uses_own_service(manifest)
    if not (has_pods or kafkas):
        return FileReport(
            file_name, "", unchecked=("no container of it is known to run a Kafka broker",)
        )
    for resource, observed, allowed in (*misshapen_pods(documents), *misshapen_kafkas(kafkas)):
        raise EarshotError(f"{file_name}: {resource}", observed=observed, allowed=allowed)
    containers = {container.name: container for container in manifest.containers}
    mistakes: list[tuple[Finding, Iterable[Keys]]] = [
        (mistake, of_container(containers[mistake.container], mistake))
        for mistake in kubernetes.mistakes(manifest)
    ]
    mistakes += kubernetes.refused_values(manifest, text, file_name)
    paths = {f"Kafka {item.kafka.name}": item.path for item in kafkas}
    facts = ClusterFacts(plan=None, strimzi=tuple(item.kafka for item in kafkas))
    mistakes += [
        (finding, of_resource(paths[finding.resource], finding))
        for finding in kl018_strimzi.RULE.findings(facts)
    ]
    services = [broker.service for broker in manifest.brokers]
    mistakes += [
        (finding, of_container(containers[finding.container], finding))
        for finding in advice_on_services(services, [finding for finding, _ in mistakes])
        if finding.container in containers
    ]
    placed = tuple(Mistake(item, place) for item, place in at_paths(text, file_name, mistakes))
    what = "Kubernetes manifest" if has_pods else "Strimzi Kafka"
    open_ends = [f"Kafka {item.kafka.name}: {item.open}" for item in kafkas if item.open]
    at_run_time = {item.name: item.at_run_time for item in manifest.brokers}
    open_ends += [f"container {name}: {why}" for name, why in open_listeners(services, at_run_time)]
    left_open = [
        f"Kafka {item.kafka.name}: {text}"
        for item in kafkas
        for listener in item.kafka.listeners
        if (text := listener.address_of_node)
    ]
    left_open += [
        f"kind {kind} is unknown to Kubernetes, and read as {right}"
        for _, item in resources(documents)
        if (right := KIND_OF.get((kind := str(item.get("kind"))).lower(), kind)) != kind
    ]
    unknown = (*_unknown_of(manifest), *left_open)
    return FileReport(file_name, what, placed, unknown, open_listeners=tuple(open_ends))


def _unknown_of(manifest: Manifest) -> Iterator[str]:
    """What the pods leave open, each once."""
    for broker in manifest.brokers:
        container = broker.service.container
        for what in container.unknown:
            yield f"container {broker.name}: {what} could not be read"
        if names := hidden_variables(container):
            yield f"container {broker.name}: the file alone does not say {', '.join(names)}"
