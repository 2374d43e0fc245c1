"""Kubernetes manifests and Strimzi's resources as the check takes them, with their places."""

import contextlib
import textwrap
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from earshot.errors import EarshotError
from earshot.lint.check import check
from earshot.lint.model import FileReport

MANIFEST = """\
# a broker, and what asks for it
apiVersion: v1
kind: ConfigMap
metadata:
  name: settings
data:
  KAFKA_INTER_BROKER_LISTENER_NAME: ABSENT
---
apiVersion: apps/v1
kind: StatefulSet
metadata:
  name: kafka
spec:
  template:
    spec:
      containers:
        - name: broker
          image: confluentinc/cp-kafka:7.5.0
          envFrom:
            - configMapRef:
                name: settings
          env:
            - name: POD
              valueFrom:
                fieldRef:
                  fieldPath: metadata.name
            - name: KAFKA_ZOOKEEPER_CONNECT
              value: zookeeper:2181
            - name: KAFKA_LISTENERS
              value: PLAINTEXT://:9092
            - name: KAFKA_ADVERTISED_LISTENERS
              value: PLAINTEXT://kafka:9092
---
---
apiVersion: v1
kind: Service
metadata:
  name: brokers
spec:
  ports:
    - port: 9092
---
apiVersion: v1
kind: List
items:
  - apiVersion: v1
    kind: Pod
    metadata:
      name: app
    spec:
      containers:
        - name: main
          image: registry.example.org/app:1
          env:
            - name: KAFKA_BOOTSTRAP_SERVERS
              value: brokers:9093
  - apiVersion: v1
    kind: Pod
    metadata:
      name: topics
    spec:
      containers:
        - name: main
          image: apache/kafka:4.1.1
          args: [kafka-topics.sh, --list, --bootstrap-server, "brokers:1234"]
"""
STRIMZI = """\
apiVersion: kafka.strimzi.io/v1beta2
kind: KafkaTopic
metadata:
  name: orders
---
apiVersion: kafka.strimzi.io/v1beta2
kind: Kafka
metadata:
  name: mine
spec:
  kafka:
    listeners:
      - name: plain
        port: 9092
        type: internal
        tls: false
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


def shown(linted: FileReport) -> list[str]:
    return [
        f"{item.place.line}:{item.place.column} {item.level} {item.finding.rule} "
        f"{item.finding.subject}"
        for item in linted.mistakes
    ]


def test_a_manifest(tmp_path: Path) -> None:
    found = checked(tmp_path, MANIFEST)
    assert found.kind == "Kubernetes manifest"
    assert found.unchecked == ()
    assert shown(found) == [
        "7:3 error KL002 container kafka/broker, listener ABSENT",
        "56:15 error KL015 container app/main",
        "65:11 error KL015 container topics/main",
    ]


def test_a_place_in_the_containers_own_variables(tmp_path: Path) -> None:
    text = MANIFEST.replace("value: PLAINTEXT://:9092", "value: PLAINTEXT://:9092,X://:9092")
    text = text.replace("ABSENT", "PLAINTEXT")
    assert shown(checked(tmp_path, text))[0].startswith("30:15 error KL002 container kafka/broker")


def test_what_a_manifest_leaves_open(tmp_path: Path) -> None:
    text = MANIFEST.replace("PLAINTEXT://kafka:9092", "PLAINTEXT://$(POD).kafka:9092")
    text = text.replace("name: settings", "name: elsewhere", 1).replace("brokers:", "x:")
    found = checked(tmp_path, text)
    assert found.mistakes == ()
    assert found.unchecked == (
        "container kafka/broker: envFrom could not be read",
        "container kafka/broker: the file does not contain KAFKA_ADVERTISED_LISTENERS",
    )


def test_a_resource_of_strimzi(tmp_path: Path) -> None:
    found = checked(tmp_path, STRIMZI)
    assert found.kind == "Strimzi Kafka"
    assert shown(found) == [
        "24:15 error KL018 Kafka mine, broker 0, listener outside",
        "26:9 error KL018 Kafka mine, listener last",
        "29:9 error KL018 Kafka mine, listener last",
    ]


def test_both_in_one_file(tmp_path: Path) -> None:
    found = checked(tmp_path, f"{STRIMZI}---\n{MANIFEST}")
    assert found.kind == "Kubernetes manifest"
    assert [item.finding.rule for item in found.mistakes] == [
        *("KL002", "KL015", "KL015"),
        *("KL018", "KL018", "KL018"),
    ]


def test_the_older_form_of_listeners_is_open(tmp_path: Path) -> None:
    found = checked(
        tmp_path,
        "{apiVersion: kafka.strimzi.io/v1beta1, kind: Kafka, metadata: {name: k}, "
        "spec: {kafka: {listeners: {plain: {}}}}}",
    )
    why = "spec.kafka.listeners is a map, the form before Strimzi 0.20, which is not read"
    assert (found.kind, found.open_listeners) == ("Strimzi Kafka", (f"Kafka k: {why}",))


STRIMZI_HEAD = "apiVersion: kafka.strimzi.io/v1, kind: Kafka, metadata: {name: k}"
POD_WITH_ENV_5 = (
    "{apiVersion: v1, kind: Pod, spec: {containers: [{name: b, image: apache/kafka, env: 5}]}}"
)


def test_a_value_that_kubernetes_refuses_is_bad_input(tmp_path: Path) -> None:
    with pytest.raises(EarshotError, match="Pod, container b: env is no list"):
        checked(tmp_path, POD_WITH_ENV_5)


def test_the_schema_of_strimzi_refuses_listeners_that_are_no_list(tmp_path: Path) -> None:
    report = checked(tmp_path, f"{{{STRIMZI_HEAD}, spec: {{kafka: {{listeners: 7}}}}}}")
    assert [mistake.finding.observed for mistake in report.mistakes] == [
        "spec.kafka.listeners is not a list; Kubernetes refuses the resource"
    ]


def test_a_variable_that_only_a_running_pod_can_say_is_no_gap_of_the_file(tmp_path: Path) -> None:
    head = "apiVersion: v1\nkind: Pod\nmetadata: {name: k}\nspec:\n  containers:\n"
    image = "  - {name: b, image: 'confluentinc/cp-kafka:7.6.0', env: ["
    address = "{name: KAFKA_ADVERTISED_LISTENERS, value: 'PLAINTEXT://$(IP):9092'}"
    field = "{name: IP, valueFrom: {fieldRef: {fieldPath: status.hostIP}}}"
    secret = "{name: IP, valueFrom: {secretKeyRef: {name: s, key: ip}}}"
    for source, expected in (
        (field, ()),
        (
            secret,
            ("container k/b: KAFKA_ADVERTISED_LISTENERS is not known: PLAINTEXT://$(IP):9092",),
        ),
    ):
        found = checked(tmp_path, f"{head}{image}{source}, {address}]}}\n")
        assert found.open_listeners == expected


NO_BROKER = "no container of it is known to run a Kafka broker"
TEMPLATE = "is a template: check what it renders (`helm template`, `docker compose config`)"


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("a: kafka\n---\nb: c\n", "contains several YAML documents: not a Compose file"),
        ("---\na: !Ref kafka\n---\nb: c\n", "contains several YAML documents: not a Compose file"),
        ("---\n---\n", "is not a Compose file"),
        ("---\na: kafka\n", "is not a Compose file"),
        ("{apiVersion: v1, kind: Service, metadata: {name: kafka}}\n", NO_BROKER),
        ("{apiVersion: platform.confluent.io/v1beta1, kind: Kafka}\n", NO_BROKER),
        ("{apiVersion: kafka.strimzi.io/v1, kind: KafkaTopic}\n---\na: b\n", NO_BROKER),
        ("apiVersion: v1\nkind: Pod\nname: {{ .Values.kafka }}-0\n", TEMPLATE),
        ("apiVersion: v1\n{{- if .Values.kafka }}\nkind: Pod\n{{- end }}\n", TEMPLATE),
    ],
)
def test_what_is_passed_over(tmp_path: Path, text: str, why: str) -> None:
    found = checked(tmp_path, text)
    assert (found.kind, found.mistakes, found.unchecked) == ("", (), (why,))


def test_what_is_no_yaml_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(EarshotError, match="is no YAML; line 5"):
        checked(tmp_path, "apiVersion: v1\nkind: Pod\n---\nmetadata: [kafka\n")


LINES = st.sampled_from(MANIFEST.splitlines() + STRIMZI.splitlines())


@settings(
    max_examples=150, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(st.lists(LINES, max_size=25), st.sampled_from(["", MANIFEST, STRIMZI]))
def test_no_text_ends_in_a_trace(tmp_path: Path, lines: list[str], after: str) -> None:
    with contextlib.suppress(EarshotError):
        checked(tmp_path, "\n".join(lines) + "\n" + after)


@settings(
    max_examples=150, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(st.data())
def test_no_manifest_without_some_of_its_lines_ends_in_a_trace(
    tmp_path: Path, data: st.DataObject
) -> None:
    lines = (MANIFEST + "---\n" + STRIMZI).splitlines()
    gone = data.draw(st.sets(st.integers(0, len(lines) - 1), max_size=6))
    with contextlib.suppress(EarshotError):
        checked(tmp_path, "\n".join(line for i, line in enumerate(lines) if i not in gone))


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
    text = (
        "apiVersion: kafka.strimzi.io/v1beta2\nkind: Kafka\nmetadata: {name: k}\n"
        f"spec: {{kafka: {{listeners: [{listener}]}}}}\n"
    )
    found = checked(tmp_path, text).unchecked
    assert len(found) == notes
    assert all(it.startswith("Kafka k: listener outer advertises the first") for it in found)


@pytest.mark.parametrize(
    ("env", "note"),
    [
        ("[{value: 'PLAINTEXT://0.0.0.0:9092'}]", "env[0] (no name)"),
        ("[null]", "env[0] (no name)"),
    ],
)
def test_variables_that_kubernetes_cannot_read_are_not_passed_in_silence(
    tmp_path: Path, env: str, note: str
) -> None:
    container = f"{{name: k, image: 'apache/kafka:4.1.1', env: {env}}}"
    text = (
        f"apiVersion: v1\nkind: Pod\nmetadata: {{name: k}}\nspec: {{containers: [{container}]}}\n"
    )
    assert checked(tmp_path, text).unchecked == (f"container k/k: {note} could not be read",)
