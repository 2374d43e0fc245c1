"""Kubernetes manifests and Strimzi's resources as the check takes them, with their places."""

import contextlib
import re
import textwrap
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from earshot.errors import EarshotError
from earshot.lint.check import check
from earshot.lint.model import FileReport

MANIFEST = """\
# a broker and its clients
apiVersion: v1
kind: ConfigMap
metadata: {name: settings}
data:
  KAFKA_INTER_BROKER_LISTENER_NAME: ABSENT
---
apiVersion: apps/v1
kind: StatefulSet
metadata: {name: kafka}
spec:
  template:
    spec:
      containers:
        - name: broker
          image: confluentinc/cp-kafka:7.5.0
          envFrom: [{configMapRef: {name: settings}}]
          env:
            - {name: POD, valueFrom: {fieldRef: {fieldPath: metadata.name}}}
            - {name: KAFKA_ZOOKEEPER_CONNECT, value: "zookeeper:2181"}
            - name: KAFKA_LISTENERS
              value: PLAINTEXT://:9092
            - {name: KAFKA_ADVERTISED_LISTENERS, value: "PLAINTEXT://kafka:9092"}
---
---
{apiVersion: v1, kind: Service, metadata: {name: brokers}, spec: {ports: [{port: 9092}]}}
---
apiVersion: v1
kind: List
items:
  - apiVersion: v1
    kind: Pod
    metadata: {name: app}
    spec:
      containers:
        - name: main
          image: registry.example.org/app:1
          env:
            - name: KAFKA_BOOTSTRAP_SERVERS
              value: brokers:9093
  - apiVersion: v1
    kind: Pod
    metadata: {name: topics}
    spec:
      containers:
        - name: main
          image: apache/kafka:4.1.1
          args: [kafka-topics.sh, --list, --bootstrap-server, "brokers:1234"]
"""
STRIMZI = """\
{apiVersion: kafka.strimzi.io/v1beta2, kind: KafkaTopic, metadata: {name: orders}}
---
apiVersion: kafka.strimzi.io/v1beta2
kind: Kafka
metadata: {name: mine}
spec:
  kafka:
    listeners:
      - {name: plain, port: 9092, type: internal, tls: false}
      - name: outside
        port: 9094
        type: nodeport
        tls: false
        configuration:
          brokers:
            - broker: 0
              advertisedHost: 0.0.0.0
      - name: last
        port: 9404
        type: ingress
        configuration: {bootstrap: {host: kafka.example.org}, hostTemplate: "b{nodeId}.example.org"}
        tls: false
"""


def checked(folder: Path, text: str) -> FileReport:
    file = folder / "m.yaml"
    file.write_text(textwrap.dedent(text), encoding="utf-8")
    return check(file, {})


def shown(report: FileReport) -> list[str]:
    """Place, level, rule and subject of each mistake."""
    return [
        f"{mistake.place.line}:{mistake.place.column} {mistake.level} {mistake.finding.rule} "
        f"{mistake.finding.subject}"
        for mistake in report.mistakes
    ]


def test_a_manifest(tmp_path: Path) -> None:
    report = checked(tmp_path, MANIFEST)
    assert (report.kind, report.unchecked) == ("Kubernetes manifest", ())
    assert shown(report) == [
        "6:3 error KL002 container kafka/broker, listener ABSENT",
        "40:15 error KL015 container app/main",
        "48:11 error KL015 container topics/main",
    ]
    text = MANIFEST.replace("value: PLAINTEXT://:9092", "value: PLAINTEXT://:9092,X://:9092")
    (first, *_) = shown(checked(tmp_path, text.replace("ABSENT", "PLAINTEXT")))
    assert first.startswith("22:15 error KL002 container kafka/broker")


def test_unknown_values_of_a_manifest_are_named(tmp_path: Path) -> None:
    text = MANIFEST.replace("PLAINTEXT://kafka:9092", "PLAINTEXT://$(POD).kafka:9092")
    text = text.replace("name: settings", "name: elsewhere", 1).replace("brokers:", "x:")
    report = checked(tmp_path, text.replace("metadata.name", "status.podIP"))
    assert report.mistakes == ()
    assert report.unchecked == (
        "container kafka/broker: envFrom could not be read",
        (
            "container kafka/broker: the file does not contain the value of "
            "KAFKA_ADVERTISED_LISTENERS"
        ),
    )


def test_an_address_with_the_name_of_the_pod_is_known_for_each_replica(tmp_path: Path) -> None:
    text = MANIFEST.replace("PLAINTEXT://kafka:9092", "PLAINTEXT://$(POD).kafka:9092")
    assert checked(tmp_path, text).unchecked == ()


def test_a_resource_of_strimzi(tmp_path: Path) -> None:
    report = checked(tmp_path, STRIMZI)
    assert report.kind == "Strimzi Kafka"
    assert shown(report) == [
        "17:15 error KL018 Kafka mine, broker 0, listener outside",
        "19:9 error KL018 Kafka mine, listener last",
        "22:9 error KL018 Kafka mine, listener last",
    ]
    report = checked(tmp_path, f"{STRIMZI}---\n{MANIFEST}")
    assert report.kind == "Kubernetes manifest"
    rules = [mistake.finding.rule for mistake in report.mistakes]
    assert rules == ["KL002", "KL015", "KL015", "KL018", "KL018", "KL018"]


def test_a_node_port_of_a_service_and_of_a_listener(tmp_path: Path) -> None:
    service = """\
apiVersion: v1
kind: Service
metadata: {name: first}
spec: {type: NodePort, ports: [{port: 9092, nodePort: 30001}]}
---
"""
    bootstrap = "tls: false\n        configuration:\n          bootstrap: {nodePort: 30001}\n"
    text = STRIMZI.replace("tls: false\n        configuration:\n", bootstrap, 1)
    assert "20:23 error KL018 Kafka mine, listener outside" in shown(
        checked(tmp_path, service + text)
    )


def strimzi(listeners: str, version: str = "v1") -> str:
    head = f"apiVersion: kafka.strimzi.io/{version}, kind: Kafka, metadata: {{name: k}}"
    return f"{{{head}, spec: {{kafka: {{listeners: {listeners}}}}}}}"


def pod(env: str) -> str:
    container = f"{{name: b, image: 'confluentinc/cp-kafka:7.6.0', env: {env}}}"
    return (
        f"apiVersion: v1\nkind: Pod\nmetadata: {{name: k}}\nspec: {{containers: [{container}]}}\n"
    )


def test_the_older_form_of_listeners_is_unknown(tmp_path: Path) -> None:
    report = checked(tmp_path, strimzi("{plain: {}}", "v1beta1"))
    why = "spec.kafka.listeners is a map, the form before Strimzi 0.20, which is not read"
    assert (report.kind, report.open_listeners) == ("Strimzi Kafka", (f"Kafka k: {why}",))


def test_the_schema_of_strimzi_refuses_listeners_that_are_no_list(tmp_path: Path) -> None:
    report = checked(tmp_path, strimzi("7"))
    assert [mistake.finding.observed for mistake in report.mistakes] == [
        "spec.kafka.listeners is not a list; Kubernetes refuses the resource"
    ]


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        (pod("5"), "m.yaml: k, container b: env is no list"),
        (pod("5").replace("metadata: {name: k}\n", ""), "m.yaml: Pod, container b: env is no list"),
        ("apiVersion: v1\nkind: Pod\n---\nmetadata: [kafka\n", "is no YAML; line 5"),
    ],
)
def test_a_value_that_kubernetes_refuses_is_bad_input(
    tmp_path: Path, text: str, problem: str
) -> None:
    with pytest.raises(EarshotError, match=re.escape(problem)):
        checked(tmp_path, text)


@pytest.mark.parametrize(
    ("source", "is_open"),
    [("fieldRef: {fieldPath: status.hostIP}", False), ("secretKeyRef: {name: s, key: ip}", True)],
)
def test_a_field_of_the_running_pod_is_no_gap_of_the_file(
    tmp_path: Path, source: str, is_open: bool
) -> None:
    address = "{name: KAFKA_ADVERTISED_LISTENERS, value: 'PLAINTEXT://$(IP):9092'}"
    report = checked(tmp_path, pod(f"[{{name: IP, valueFrom: {{{source}}}}}, {address}]"))
    gap = "container k/b: KAFKA_ADVERTISED_LISTENERS is not known: PLAINTEXT://$(IP):9092"
    assert report.open_listeners == ((gap,) if is_open else ())


NO_BROKER = "no container of it is known to run a Kafka broker"
TEMPLATE = "is a template: check what it renders (`helm template`, `docker compose config`)"


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("a: kafka\n---\nb: c\n", "contains several YAML documents: not a Compose file"),
        ("services: {}\n---\na: {b: c}\n", "is not a Compose file"),
        ("---\na: !Ref kafka\n---\nb: c\n", "contains several YAML documents: not a Compose file"),
        ("---\n---\n", "is not a Compose file"),
        ("---\na: kafka\n", "is not a Compose file"),
        ("{apiVersion: v1, kind: Service, metadata: {name: kafka}}\n", NO_BROKER),
        (
            "{apiVersion: platform.confluent.io/v1beta1, kind: Kafka, metadata: {name: k}}\n",
            "Kafka k of platform.confluent.io is not read",
        ),
        (
            "{apiVersion: kafka.services.k8s.aws/v1alpha1, kind: Cluster, metadata: {name: k}}\n",
            "Cluster k of kafka.services.k8s.aws is not read",
        ),
        (
            "{apiVersion: postgresql.cnpg.io/v1, kind: Cluster, metadata: {name: kafka}}\n",
            NO_BROKER,
        ),
        ("{apiVersion: platform.confluent.io/v1beta1, kind: KafkaTopic}\n", NO_BROKER),
        ("{apiVersion: kafka.strimzi.io/v1, kind: KafkaTopic}\n---\na: b\n", NO_BROKER),
        ("apiVersion: v1\nkind: Pod\nname: {{ .Values.kafka }}-0\n", TEMPLATE),
        ("apiVersion: v1\n{{- if .Values.kafka }}\nkind: Pod\n{{- end }}\n", TEMPLATE),
    ],
)
def test_what_is_passed_over(tmp_path: Path, text: str, why: str) -> None:
    report = checked(tmp_path, text)
    assert (report.kind, report.mistakes, report.unchecked) == ("", (), (why,))


def test_a_cluster_of_another_operator_beside_a_broker_is_not_passed_in_silence(
    tmp_path: Path,
) -> None:
    other = "---\n{apiVersion: kafka.banzaicloud.io/v1beta1, kind: KafkaCluster}\n"
    for text in (MANIFEST, STRIMZI):
        (reason,) = set(checked(tmp_path, text + other).unchecked) - set(
            checked(tmp_path, text).unchecked
        )
        assert reason.endswith("of kafka.banzaicloud.io is not read")


LINES = st.sampled_from(MANIFEST.splitlines() + STRIMZI.splitlines())
in_one_folder = settings(
    max_examples=150, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)


@in_one_folder
@given(st.lists(LINES, max_size=25), st.sampled_from(["", MANIFEST, STRIMZI]))
def test_no_text_ends_in_a_trace(tmp_path: Path, lines: list[str], rest: str) -> None:
    with contextlib.suppress(EarshotError):
        checked(tmp_path, "\n".join(lines) + "\n" + rest)


@in_one_folder
@given(st.data())
def test_no_manifest_without_some_of_its_lines_ends_in_a_trace(
    tmp_path: Path, data: st.DataObject
) -> None:
    lines = (MANIFEST + "---\n" + STRIMZI).splitlines()
    removed = data.draw(st.sets(st.integers(0, len(lines) - 1), max_size=6))
    with contextlib.suppress(EarshotError):
        checked(tmp_path, "\n".join(line for i, line in enumerate(lines) if i not in removed))


@pytest.mark.parametrize(
    ("configuration", "notes"),
    [
        ("{}", 1),
        ("{preferredNodePortAddressType: InternalIP}", 0),
        ("{brokers: [{broker: 0, advertisedHost: node.example.com}]}", 0),
        ("{brokers: [{broker: 0, nodePort: 32000}]}", 1),
    ],
)
def test_which_address_of_a_node_strimzi_advertises(
    tmp_path: Path, configuration: str, notes: int
) -> None:
    listener = f"{{name: outer, port: 9094, type: nodeport, configuration: {configuration}}}"
    unchecked = checked(tmp_path, strimzi(f"[{listener}]", "v1beta2")).unchecked
    assert len(unchecked) == notes
    start = "Kafka k: listener outer advertises the first"
    assert all(note.startswith(start) for note in unchecked)


@pytest.mark.parametrize("env", ["[{value: 'PLAINTEXT://0.0.0.0:9092'}]", "[null]"])
def test_variables_that_kubernetes_cannot_read_are_named(tmp_path: Path, env: str) -> None:
    unchecked = checked(tmp_path, pod(env)).unchecked
    assert unchecked == ("container k/b: env[0] (no name) could not be read",)


SERVICE = """\
{apiVersion: v1, kind: Service, metadata: {name: kafka},
 spec: {selector: {app: kafka}, ports: [{port: 9092}]}}
"""
BROKER = """\
apiVersion: apps/v1
kind: Deployment
metadata: {name: broker}
spec:
  template:
    metadata: {labels: {app: kafka}}
    spec:
      containers:
        - name: kafka
          image: confluentinc/cp-kafka:7.5.0
          env:
            - {name: KAFKA_ZOOKEEPER_CONNECT, value: "zookeeper:2181"}
            - {name: KAFKA_ADVERTISED_LISTENERS, value: "PLAINTEXT://kafka:9092"}
"""


CONFIG = """\
{apiVersion: v1, kind: ConfigMap, metadata: {name: settings},
 data: {KAFKA_INTER_BROKER_LISTENER_NAME: ABSENT}}
"""


@pytest.mark.parametrize(
    ("beside", "rules"),
    [
        ({"service.yaml": SERVICE}, ["KL014"]),
        ({"service.yaml": SERVICE.replace("app: kafka", "app: other")}, []),
        ({"service.yaml": f"{SERVICE}---\n{BROKER}"}, []),  # the Service of another broker
        ({"service.yaml": SERVICE, "other.yml": SERVICE.replace("9092", "9093")}, []),
        ({"service.yaml": "kind: Service: {"}, []),
        ({"service.txt": SERVICE}, []),
    ],
)
def test_a_service_in_a_file_beside(
    tmp_path: Path, beside: dict[str, str], rules: list[str]
) -> None:
    for name, text in beside.items():
        (tmp_path / name).write_text(text)
    report = checked(tmp_path, BROKER)
    assert [mistake.finding.rule for mistake in report.mistakes] == rules


def test_a_config_map_in_a_file_beside(tmp_path: Path) -> None:
    settings = "envFrom: [{configMapRef: {name: settings}}]"
    text = BROKER.replace("env:", f"{settings}\n          env:")
    (tmp_path / "a.yaml").write_text(CONFIG)
    assert shown(checked(tmp_path, text)) == [
        "11:21 error KL002 container broker/kafka, listener ABSENT"
    ]
    (tmp_path / "b.yaml").write_text(CONFIG)  # which of the two is applied is unknown
    assert shown(checked(tmp_path, text)) == []
