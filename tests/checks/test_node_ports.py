"""A node port belongs to one Service of the cluster."""

import pytest

from earshot.checks.node_ports import repeated_node_ports
from earshot.yaml_reading.document import read_yaml_documents


def service(name: str, *ports: str, type: str = "NodePort", namespace: str = "kafka") -> str:
    entries = ", ".join(f"{{{port}}}" for port in ports)
    return (
        f"apiVersion: v1\nkind: Service\nmetadata: {{name: {name}, namespace: {namespace}}}\n"
        f"spec: {{type: {type}, ports: [{entries}]}}\n"
    )


def kafka(
    configuration: str, type: str = "nodeport", replicas: str = "3", name: str = "events"
) -> str:
    return (
        f"apiVersion: kafka.strimzi.io/v1beta2\nkind: Kafka\nmetadata: {{name: {name}}}\n"
        f"spec: {{kafka: {{replicas: {replicas}, listeners: [{{name: ext, port: 9094, tls: false, "
        f"type: {type}, configuration: {configuration}}}]}}}}\n"
    )


def findings(*resources: str) -> list[tuple[str, str, str, str]]:
    """The rule, the severity, the resource and the input of each finding."""
    documents = read_yaml_documents("---\n".join(resources), "k.yaml", unique=False)
    return [
        (finding.rule, str(finding.severity), finding.resource, finding.inputs[0])
        for finding, _ in repeated_node_ports(documents)
    ]


PORT = "port: 9092, nodePort: 30001"
SECOND_SERVICE = ("KL014", "error", "Service b", "spec.ports[0].nodePort")
CONFIGURATION = "spec.kafka.listeners[0].configuration"
BROKER_1 = f"{CONFIGURATION}.brokers[1].nodePort"
BOTH = "{brokers: [{broker: 0, nodePort: 30001}, {broker: 1, nodePort: 30001}]}"
BOOTSTRAP = "{bootstrap: {nodePort: 30001}}"
WITH_BOOTSTRAP = "{bootstrap: {nodePort: 30001}, brokers: [{broker: 0, nodePort: 30001}]}"
ABSENT = "{brokers: [{broker: 0, nodePort: 30001}, {broker: 7, nodePort: 30001}]}"
NO_BOOTSTRAP = (
    "{createBootstrapService: false, bootstrap: {nodePort: 30001}, "
    "brokers: [{broker: 0, nodePort: 30001}]}"
)


@pytest.mark.parametrize(("resources", "expected"), [
    ([service("a", PORT), service("b", PORT)], [SECOND_SERVICE]),
    ([service("a", PORT), service("b", PORT, type="LoadBalancer")], [SECOND_SERVICE]),
    # the ports of all namespaces are one range
    ([service("a", PORT), service("b", PORT, namespace="other")], [SECOND_SERVICE]),
    ([service("a", PORT, "port: 9093, nodePort: 30001")],
     [("KL014", "error", "Service a", "spec.ports[1].nodePort")]),
    ([kafka(BOTH)], [("KL018", "error", "Kafka events", BROKER_1)]),
    ([kafka(BOTH, type="loadbalancer")], [("KL018", "error", "Kafka events", BROKER_1)]),
    # node pools decide which brokers exist
    ([kafka(BOTH, replicas="null")], [("KL018", "warning", "Kafka events", BROKER_1)]),
    ([kafka(WITH_BOOTSTRAP)],
     [("KL018", "error", "Kafka events", f"{CONFIGURATION}.brokers[0].nodePort")]),
    ([service("a", PORT), kafka(BOOTSTRAP, replicas="null")],
     [("KL018", "error", "Kafka events", f"{CONFIGURATION}.bootstrap.nodePort")]),
    ([kafka(BOOTSTRAP), kafka(BOOTSTRAP, name="audit")],
     [("KL018", "error", "Kafka audit", f"{CONFIGURATION}.bootstrap.nodePort")]),
    *((resources, []) for resources in (
        [service("a", PORT), service("b", "port: 9092, nodePort: 30002")],
        [service("a", PORT), service("b", "port: 9092")],
        [service("a", "port: 1, nodePort: 0"), service("b", "port: 1, nodePort: 0")],
        # only TCP is checked, although Kubernetes refuses this one, too
        [service("a", PORT), service("b", f"{PORT}, protocol: UDP")],
        [service("a", PORT), service("a", PORT)],  # the second replaces the first
        [service("a", PORT), service("b", PORT, type="ClusterIP")],  # refused for another reason
        [service("a", PORT), service("'${NAME}'", PORT)],
        [service("a", PORT), service("b", "port: 9092, nodePort: '${PORT}'")],
        [kafka(ABSENT)],
        [kafka(NO_BOOTSTRAP, type="loadbalancer")],
        [kafka(BOTH, type="internal")],
        [kafka("'${CONFIGURATION}'")],
    )),
])  # fmt: skip
def test_a_node_port_is_of_one_service(
    resources: list[str], expected: list[tuple[str, str, str, str]]
) -> None:
    assert findings(*resources) == expected
