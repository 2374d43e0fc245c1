"""Task definitions of ECS: what Kafka refuses, at its line."""

import json
from pathlib import Path
from typing import Any

import pytest

from earshot.lint.check import check
from earshot.lint.model import FileReport

ADVERTISED = "KAFKA_ADVERTISED_LISTENERS"
GOOD = {
    "KAFKA_NODE_ID": "1",
    "KAFKA_PROCESS_ROLES": "broker,controller",
    "KAFKA_LISTENERS": "PLAINTEXT://:9092,CONTROLLER://:9093",
    ADVERTISED: "PLAINTEXT://kafka.example.com:9092",
    "KAFKA_CONTROLLER_LISTENER_NAMES": "CONTROLLER",
    "KAFKA_CONTROLLER_QUORUM_VOTERS": "1@localhost:9093",
    "KAFKA_LISTENER_SECURITY_PROTOCOL_MAP": "CONTROLLER:PLAINTEXT,PLAINTEXT:PLAINTEXT",
}


def task(**variables: str) -> dict[str, Any]:
    environment = [{"name": name, "value": value} for name, value in (GOOD | variables).items()]
    container = {"name": "kafka", "image": "apache/kafka:3.9.0", "environment": environment}
    return {"family": "kafka", "containerDefinitions": [container]}


def report(folder: Path, document: object, name: str = "taskdef.json") -> FileReport:
    file = folder / name
    file.write_text(json.dumps(document, indent=1))
    return check(file, {})


@pytest.mark.parametrize("wrap", [lambda document: document, lambda it: {"taskDefinition": it}])
def test_an_address_that_kafka_refuses_is_reported_at_its_line(wrap: Any, tmp_path: Path) -> None:
    result = report(tmp_path, wrap(task(**{ADVERTISED: "PLAINTEXT://0.0.0.0:9092"})))
    (mistake,) = result.mistakes
    assert (mistake.finding.rule, mistake.finding.container) == ("KL002", "kafka")
    line = Path(mistake.place.file).read_text().splitlines()[mistake.place.line - 1]
    assert "PLAINTEXT://0.0.0.0:9092" in line
    assert result.kind == "ECS task definition"


def test_a_right_broker_has_at_most_advice_and_other_tasks_are_not_judged(tmp_path: Path) -> None:
    assert report(tmp_path, task()).mistakes == ()
    in_clear = report(tmp_path, task(**{ADVERTISED: "PLAINTEXT://8.8.8.8:9092"}))
    assert [mistake.finding.rule for mistake in in_clear.mistakes] == ["KL019"]
    for definitions in (5, [{"name": "web", "image": "nginx:1"}]):
        assert report(tmp_path, {"containerDefinitions": definitions}).kind == ""


def test_an_address_from_a_secret_leaves_the_listeners_open(tmp_path: Path) -> None:
    document = task()
    (container,) = document["containerDefinitions"]
    container["environment"] = [it for it in container["environment"] if it["name"] != ADVERTISED]
    container["secrets"] = [{"name": ADVERTISED, "valueFrom": "arn:aws:ssm:a"}]
    (reason,) = report(tmp_path, document).open_listeners
    assert reason.startswith(f"container kafka: {ADVERTISED} is not known")
