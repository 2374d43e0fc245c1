"""The manifests of one file: refusals of images and Kafka, and failing walks.

Sources: `configure` of confluentinc/kafka-images (kafka, server), schema-registry-images and
kafka-rest-images, and `start-kafka.sh` of wurstmeister/kafka-docker; the Kubernetes documentation
on Services (environment variables, headless Services).
"""

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace

from earshot.checks.deployment import refusals, unusable
from earshot.checks.pod_readiness import never_ready
from earshot.facts.cluster import ClusterFacts
from earshot.listeners.images import Family, repository_of
from earshot.listeners.listed import by_key, shortened
from earshot.rules import kl002_kafka, kl014_image, kl015_clients, kl016_nodes
from earshot.rules.evaluate import evaluate, rules_at
from earshot.rules.rule import AppliedAt, Finding
from earshot.sources.kubernetes import Manifest
from earshot.sources.pod_scripts import has_control_flow
from earshot.sources.pod_values import values_not_text
from earshot.sources.pod_variables import Keys
from earshot.sources.strimzi_clients import TLS
from earshot.sources.workloads import PodContainer
from earshot.topology.container import MOUNTED
from earshot.topology.pods import PodDeployment

OLDEST = (3, 9)
"""For an image of unknown release, this release must refuse the settings as well."""
_HOSTNAME = "$(HOSTNAME)"
_UNREADABLE_WITH_REFERENCE = ("listeners", "advertised.listeners", "node.id", "broker.id")
"""Properties that Kafka cannot read if they contain `$(NAME)`."""
_ENV_VAR = (
    "https://kubernetes.io/docs/reference/kubernetes-api/workload-resources/pod-v1/"
    "#environment-variables"
)
_CONFLUENT = "/etc/confluent/docker/run"


@dataclass(frozen=True)
class _ServiceLink:
    """A Service whose variable `NAME_PORT` an image reads as a setting, and refuses."""

    image: str
    """The pattern of the image, in any registry."""
    service: str
    variable: str
    start: str
    """The image's start script in a command."""
    unless: tuple[str, ...] = ()
    """Variables with which the image ignores `NAME_PORT`."""


_SERVICE_LINKS = (
    _ServiceLink("cp-(?:(?:enterprise-)?kafka|server)", "kafka", "KAFKA_PORT", _CONFLUENT),
    _ServiceLink(
        "wurstmeister/kafka",
        "kafka",
        "KAFKA_PORT",
        "start-kafka.sh",
        ("KAFKA_PROTOCOL_NAME", "KAFKA_ADVERTISED_PROTOCOL_NAME"),
    ),
    _ServiceLink("cp-schema-registry", "schema-registry", "SCHEMA_REGISTRY_PORT", _CONFLUENT),
    _ServiceLink(
        "cp-kafka-rest", "kafka-rest", "KAFKA_REST_PORT", _CONFLUENT, ("KAFKA_REST_LISTENERS",)
    ),
)


def mistakes(manifest: Manifest) -> tuple[Finding, ...]:
    """The certain mistakes; `Finding.container` is WORKLOAD/CONTAINER. For a client that Strimzi
    makes, `Finding.resource` is its kind and name."""
    findings: list[Finding] = []
    brokers = {broker.name for broker in manifest.brokers}
    deployment = manifest.deployment()
    linked = {
        container.name: [*_service_link_findings(container, deployment)]
        for container in manifest.containers
    }
    for broker in manifest.brokers:
        findings += [*_refusals(broker)] or linked[broker.name]
    broken = {finding.container for finding in findings}
    for name, link_findings in linked.items():
        findings += link_findings if name not in brokers else []
    started = manifest.deployment(broken) if broken else deployment
    findings += evaluate(ClusterFacts(plan=None, deployment=started), rules_at(AppliedAt.PODS))
    all_findings = (*findings, *_between_nodes(manifest, broken, findings))
    made_by_strimzi = {client.name for client in manifest.strimzi_clients}
    return tuple(
        _of_strimzi_client(finding) if finding.container in made_by_strimzi else finding
        for finding in all_findings
    )


def _of_strimzi_client(finding: Finding) -> Finding:
    """``finding`` about a client whose settings Strimzi writes."""
    remedy = finding.remedy
    if any(setting.endswith(TLS) for setting in finding.inputs):
        remedy = "set tls and authentication as the listener has them, or take another port"
    return replace(finding, container="", resource=finding.container, remedy=remedy)


def refused_values(
    manifest: Manifest, text: str, file_name: str
) -> Iterator[tuple[Finding, tuple[Keys, ...]]]:
    """A finding for each container whose variables Kubernetes refuses, with the values' places.

    Only workloads with a broker or a client of Kafka count. ``text`` is the file's content.
    """
    refused = values_not_text(
        text, file_name, [container_of_pod.path for container_of_pod in manifest.containers]
    )
    if not refused:
        return
    clients = {client.service for client in manifest.deployment().bootstraps}
    names = clients | {broker.name for broker in manifest.brokers}
    # a resource is refused as a whole
    pods = {
        container_of_pod.path[:-2]
        for container_of_pod in manifest.containers
        if container_of_pod.name in names
    }
    for container in manifest.containers:
        values = refused.get(container.path, ())
        if not values or container.path[:-2] not in pods:
            continue
        kinds = by_key((value.kind, value.variable) for value in values)
        value_kinds = "; ".join(
            f"{shortened(variables)}: a {kind}" for kind, variables in kinds.items()
        )
        finding = kl014_image.RULE.finding(
            f"values in env are not text ({value_kinds}), and Kubernetes refuses the resource",
            'text, as in value: "1"',
            container=container.name,
            remedy=f"write the value of {shortened([value.variable for value in values])} in "
            "quotes",
            inputs=("env",),
            source=_ENV_VAR,
        )
        yield finding, tuple(value.path for value in values)


def _between_nodes(
    manifest: Manifest, broken: set[str], earlier_findings: Iterable[Finding]
) -> Iterator[Finding]:
    """Findings about replicas, and about connections to them; one for each cause.

    Replicas differ only by name and ordinal. Only with these are their addresses known, so clients
    are followed once more. ``earlier_findings`` are those without replicas.
    """
    replicas = manifest.by_replica()
    templates = {
        container.name: container.template or container.name for container in replicas.containers
    }
    refused = [
        finding
        for broker in replicas.brokers
        if templates[broker.name] not in broken
        for finding in _refusals(broker)
    ]
    deployment = replicas.deployment(broken | {refusal.container for refusal in refused})
    between = [
        *_random_ids(manifest),
        *evaluate(ClusterFacts(plan=None, deployment=deployment), rules_at(AppliedAt.REPLICAS)),
        *never_ready(replicas, deployment),
        *_lost_at_replicas(deployment),
    ]
    reported: set[tuple[object, ...]] = {
        (finding.container, finding.listener, finding.inputs) for finding in earlier_findings
    }
    for finding in (*refused, *between):
        of_template = replace(
            finding, container=templates.get(finding.container, finding.container)
        )
        cause = (of_template.container, finding.listener, finding.inputs)
        if cause not in reported:
            reported.add(cause)
            yield of_template


def _lost_at_replicas(deployment: PodDeployment) -> Iterator[Finding]:
    """Findings for advertised addresses of replicas that clients of the manifest do not reach."""
    facts = ClusterFacts(plan=None, deployment=deployment)
    for finding in kl015_clients.RULE.findings(facts):
        if finding.inputs == ("advertised.listeners",):
            yield finding


def _random_ids(manifest: Manifest) -> Iterator[Finding]:
    """Findings for replicas that each format their storage with a random cluster id."""
    for broker in manifest.brokers:
        command = "\n".join(broker.service.command)
        voters = broker.service.settings.values.get("controller.quorum.voters", "")
        if "random-uuid" not in command or has_control_flow(command) or "," not in voters:
            continue
        if sum(replica.template == broker.name for replica in manifest.replicas) > 1:
            yield kl016_nodes.RULE.finding(
                "makes a random cluster id in every replica: Kafka refuses to form a quorum of "
                "them (INCONSISTENT_CLUSTER_ID)",
                "one cluster id on all nodes",
                container=broker.name,
                remedy="run kafka-storage random-uuid once, and write what it prints into a "
                "variable of all replicas",
                inputs=("command",),
            )


def uses_own_service(manifest: Manifest) -> bool:
    """Whether a client in the manifest bootstraps to a Service of the manifest."""
    deployment = manifest.deployment()
    clients = (
        bootstrap for bootstrap in deployment.bootstraps if bootstrap.service in deployment.pods
    )
    return any(
        deployment.services_named(address.host, deployment.pods[client.service].namespace)
        for client in clients
        for address in client.addresses
    )


def _refusals(broker: PodContainer) -> Iterator[Finding]:
    settings = broker.service.settings
    refused = [*refusals(broker.service, settings)]
    if not refused and (unexpanded := [*_unexpanded_references(broker)]):
        yield from unexpanded
        return
    if settings.release is None:
        earlier = kl002_kafka.startup_refusals(replace(settings, release=OLDEST))
        earlier_texts = {refusal.observed for refusal in earlier}
        refused = [refusal for refusal in refused if refusal.observed in earlier_texts]
    yield from refused or unusable(broker.service, settings)


def _unexpanded_references(broker: PodContainer) -> Iterator[Finding]:
    """A finding for a reference in a broker's addresses or id that Kubernetes does not replace: to
    HOSTNAME, unless `env` sets it, or to a variable that `env` sets later."""
    container = broker.service.container
    if broker.service.command or container.family is Family.UNKNOWN:
        return
    if {"envFrom", MOUNTED} & set(container.unknown):
        return
    for name, value in container.env.items():
        key = container.property_of(name)
        reference = broker.early_references.get(name, "")
        why, remedy = f"env sets {reference} after it", f"move {reference} before {name} in env"
        if not reference and _HOSTNAME in value and "HOSTNAME" not in container.env:
            reference, why = "HOSTNAME", "env has no HOSTNAME"
            remedy = "add HOSTNAME to env with valueFrom: {fieldRef: {fieldPath: metadata.name}}"
        if reference and key in _UNREADABLE_WITH_REFERENCE:
            yield kl002_kafka.RULE.finding(
                f"{key}: Kafka gets $({reference}) unchanged, for {why}; Kafka does not start",
                f"the variable {reference} in env before {name}",
                container=broker.name,
                remedy=remedy,
                inputs=(key,),
            )
            return


def _service_link_findings(broker: PodContainer, deployment: PodDeployment) -> Iterator[Finding]:
    """A finding if the variable of a Service (`KAFKA_PORT`) is a setting of the image."""
    container = broker.service.container
    if not broker.has_service_links or {"envFrom", MOUNTED} & set(container.unknown):
        return
    command = " ".join(broker.service.command)
    for link in _SERVICE_LINKS:
        if not re.fullmatch(f"(?:.*/)?{link.image}", repository_of(container.image)):
            continue
        # an empty variable replaces the one of the Service
        is_ignored = any(container.env.get(variable) for variable in link.unless)
        if link.variable in container.env or is_ignored or (command and link.start not in command):
            continue
        for service in deployment.services_named(link.service, broker.namespace):
            if service.has_address and service.ports:
                port = service.ports[0].port
                yield kl014_image.RULE.finding(
                    f"the Service {link.service} gives it {link.variable}=tcp://ADDRESS:{port}, "
                    f"and {container.image} refuses to start",
                    f"no {link.variable}: `enableServiceLinks: false`, or a Service that is not "
                    f"called {link.service}",
                    container=broker.name,
                    remedy="set enableServiceLinks to false in the pod's spec",
                    inputs=("enableServiceLinks",),
                )
                return
