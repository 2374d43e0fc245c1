"""Values of `env` that are not text, for which Kubernetes refuses a manifest."""

from pathlib import Path

import pytest

from earshot.lint.check import check
from earshot.lint.model import Mistake

MANIFEST = """\
apiVersion: apps/v1
kind: Deployment
metadata: {name: events}
spec:
  template:
    metadata: {labels: {app: events}}
    spec:
      initContainers:
        - {name: wait, image: busybox, env: [{name: SECONDS, value: INIT}]}
      containers:
        - name: kafka
          image: apache/kafka:4.0.0
          env:
            - {name: KAFKA_NODE_ID, value: "1"}
            - {name: KAFKA_PROCESS_ROLES, value: "broker,controller"}
            - {name: KAFKA_CONTROLLER_QUORUM_VOTERS, value: "1@localhost:9093"}
            - {name: KAFKA_CONTROLLER_LISTENER_NAMES, value: CONTROLLER}
            - {name: KAFKA_LISTENERS, value: "PLAINTEXT://:9092,CONTROLLER://:9093"}
            - {name: KAFKA_ADVERTISED_LISTENERS, value: "PLAINTEXT://events:9092"}
            - {name: KAFKA_OFFSETS_TOPIC_REPLICATION_FACTOR, value: "1"}
            - name: KAFKA_BROKER_RACK
              value: BROKER
---
{apiVersion: v1, kind: Service, metadata: {name: events},
 spec: {selector: {app: events}, ports: [{port: 9092}]}}
---
apiVersion: v1
kind: Pod
metadata: {name: app}
spec:
  containers:
    - name: main
      image: registry.example.org/app:1
      env:
        - {name: KAFKA_BOOTSTRAP_SERVERS, value: "events:9092"}
        - value: CLIENT
          name: RETRIES
---
apiVersion: v1
kind: Pod
metadata: {name: web}
spec: {containers: [{name: main, image: nginx, env: [{name: WORKERS, value: OTHER}]}]}
"""


def check_values(folder: Path, text: str = MANIFEST, **values: str) -> tuple[Mistake, ...]:
    """The mistakes of the manifest with these values; others are text."""
    for place in ("INIT", "BROKER", "CLIENT", "OTHER"):
        value = values.get(place.lower(), "'1'")
        text = text.replace(f": {place}", f": {value}")
    (folder / "events.yaml").write_text(text)
    mistakes = check(folder / "events.yaml", {}).mistakes
    assert {mistake.finding.rule for mistake in mistakes} <= {"KL014"}
    return mistakes


@pytest.mark.parametrize(
    ("values", "line", "observed"),
    [
        ({"broker": "1"}, 22, "KAFKA_BROKER_RACK: a number"),
        ({"broker": "yes"}, 22, "KAFKA_BROKER_RACK: a bool"),
        ({"client": "on"}, 36, "RETRIES: a bool"),
        ({"client": "-1.5e3"}, 36, "RETRIES: a number"),
        ({"init": "0x10"}, 9, "SECONDS: a number"),
        ({"broker": "[to be filled in]"}, 22, "KAFKA_BROKER_RACK: a list"),
        ({"broker": "{partitions: 1}"}, 22, "KAFKA_BROKER_RACK: a map"),
        ({"broker": "&count 3"}, 22, "KAFKA_BROKER_RACK: a number"),
        ({"broker": "n"}, 22, "KAFKA_BROKER_RACK: a bool"),
    ],
)
def test_kubernetes_refuses_a_value_that_is_not_text(
    values: dict[str, str], line: int, observed: str, tmp_path: Path
) -> None:
    (mistake,) = check_values(tmp_path, **values)
    assert mistake.place.line == line and observed in mistake.finding.observed


@pytest.mark.parametrize("values", [
    *({"broker": value} for value in (*('"1"', "'true'", "!!str 1", "22:22", "2001-01-01", "1.2.3",
                                        "tRue", "", "null"),
                                      *("|-\n                1", "${PARTITIONS}",
                                        "[[ .partitions ]]"), *("{partitions}", "!number 1"))),
    {"other": "1"},  # a pod without Kafka
    {"broker": "1", "other": '"{{ .workers }}"'},  # a template may add quotes
])  # fmt: skip
def test_text_null_and_placeholders_are_accepted(values: dict[str, str], tmp_path: Path) -> None:
    assert check_values(tmp_path, **values) == ()


def test_several_values_of_a_container_are_one_finding(tmp_path: Path) -> None:
    text = MANIFEST.replace('value: "1"', "value: 1")
    values = dict.fromkeys(("init", "broker", "client", "other"), "true")
    mistakes = check_values(tmp_path, text, **values)
    assert [(item.finding.container, item.place.line) for item in mistakes] == [
        ("events/wait", 9),
        ("events/kafka", 14),
        ("app/main", 36),
    ]
    expected = "KAFKA_NODE_ID, KAFKA_OFFSETS_TOPIC_REPLICATION_FACTOR: a number; "
    assert f"{expected}KAFKA_BROKER_RACK: a bool" in mistakes[1].finding.observed


def test_a_patch_without_image_is_not_checked(tmp_path: Path) -> None:
    patch = MANIFEST.replace("      image: registry.example.org/app:1\n", "")
    assert check_values(tmp_path, patch, client="1") == ()
