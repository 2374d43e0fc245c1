"""Listeners behind ports of the nodes advertise those ports."""

from __future__ import annotations

import pytest

from earshot.checks.kubernetes import mistakes
from earshot.rules.registry import Finding, Severity
from earshot.sources.kubernetes import read_manifest
from earshot.yaml_document import read_yaml_documents

TEXT = """\
apiVersion: v1
kind: Service
metadata: {name: outside}
spec:
  type: TYPE
  selector: {app: broker}
  ports: [{port: 9094, targetPort: TARGET, nodePort: 30092}]
---
apiVersion: apps/v1
kind: StatefulSet
metadata: {name: broker}
spec:
  template:
    metadata: {labels: {app: LABEL}}
    spec:
      containers:
        - name: kafka
          image: apache/kafka:3.9.0
          ports: [{containerPort: 9094, name: outer}]
          env:
            - {name: KAFKA_NODE_ID, value: "1"}
            - {name: KAFKA_PROCESS_ROLES, value: "broker,controller"}
            - {name: KAFKA_CONTROLLER_LISTENER_NAMES, value: CONTROLLER}
            - {name: KAFKA_CONTROLLER_QUORUM_VOTERS, value: "1@localhost:9093"}
            - {name: KAFKA_LISTENERS, value: "IN://:9092,OUT://:9094,CONTROLLER://:9093"}
            - {name: KAFKA_ADVERTISED_LISTENERS, value: "IN://broker:9092,OUT://ADDRESS"}
            - name: KAFKA_LISTENER_SECURITY_PROTOCOL_MAP
              value: "IN:PLAINTEXT,OUT:PLAINTEXT,CONTROLLER:PLAINTEXT"
            - {name: KAFKA_INTER_BROKER_LISTENER_NAME, value: IN}
"""


def found(
    address: str, *, target: str = "9094", label: str = "broker", kind: str = "NodePort"
) -> tuple[Finding, ...]:
    text = TEXT.replace("ADDRESS", address).replace("TARGET", target)
    text = text.replace("LABEL", label).replace("TYPE", kind)
    return mistakes(read_manifest(read_yaml_documents(text, "m.yaml", unique=False)))


@pytest.mark.parametrize("target", ["9094", "outer"])
@pytest.mark.parametrize(
    ("address", "severity"),
    [
        ("10.0.0.7:30093", Severity.ERROR),
        ("node.example.com:30093", Severity.ERROR),
        ("10.0.0.7:9094", Severity.WARNING),
    ],
)
def test_another_port_than_the_nodes_have(address: str, severity: Severity, target: str) -> None:
    (finding,) = found(address, target=target)
    assert (finding.rule, finding.listener, finding.severity) == ("KL017", "OUT", severity)
    assert ("nodePort 30093" in finding.remedy) is (severity is Severity.ERROR)


@pytest.mark.parametrize(
    ("address", "changes"),
    [
        ("10.0.0.7:30092", {}),
        ("broker-0.outside.default.svc.cluster.local:9094", {}),
        ("outside:9094", {}),
        ("localhost:9094", {}),
        ("$(NODE_IP):30093", {}),
        ("10.0.0.7:30093", {"label": "another"}),
        ("10.0.0.7:30093", {"target": "9095"}),
        ("10.0.0.7:9094", {"kind": "LoadBalancer"}),
    ],
)
def test_what_may_be_right(address: str, changes: dict[str, str]) -> None:
    assert found(address, **changes) == ()
