"""Probes of a pod's container, and booleans of a manifest."""

from __future__ import annotations

from typing import Any

import pytest

from earshot.sources.workloads import is_off, readiness_checks
from earshot.topology.cluster import ReadinessCheck

PORTS = [{"containerPort": "9092"}, {"name": "inner", "containerPort": "9094"}]
TOOL = "kafka-topics.sh --list --bootstrap-server localhost:9092"


def command(text: str) -> dict[str, Any]:
    return {"exec": {"command": ["sh", "-c", text]}}


@pytest.mark.parametrize(("probe", "expected"), [
    (None, []),
    ({"httpGet": {"port": "9092"}}, []),
    ({"tcpSocket": {}}, []),
    ({"tcpSocket": {"port": "9092"}}, [ReadinessCheck(9092, is_kafka=False)]),
    ({"tcpSocket": {"port": "inner"}}, [ReadinessCheck(9094, is_kafka=False)]),
    ({"tcpSocket": {"port": "other"}}, []),
    (command("nc -z localhost 9092"), [ReadinessCheck(9092, is_kafka=False)]),
    (command("nc -w 1 -z 127.0.0.1 9094"), [ReadinessCheck(9094, is_kafka=False)]),
    (command("</dev/tcp/127.0.0.1/9092"), [ReadinessCheck(9092, is_kafka=False)]),
    (command(TOOL), [ReadinessCheck(9092, is_kafka=True)]),
    (command("/opt/kafka/bin/kafka-broker-api-versions.sh --bootstrap-server=kafka:9094"),
     [ReadinessCheck(9094, is_kafka=True)]),
    (command("ps aux | grep kafka"), []),
])  # fmt: skip
@pytest.mark.parametrize("key", ["readinessProbe", "startupProbe"])
def test_a_probe(key: str, probe: Any, expected: list[ReadinessCheck]) -> None:
    assert list(readiness_checks({"ports": PORTS, key: probe})) == expected


def test_liveness_keeps_no_pod_from_being_ready() -> None:
    assert list(readiness_checks({"ports": PORTS, "livenessProbe": command(TOOL)})) == []


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        *((value, True) for value in (False, "false", "No", "off", "n")),
        *((value, False) for value in (True, None, "", "yes", 0)),
    ],
)
def test_a_boolean_is_off_in_every_spelling_of_yaml(value: object, expected: bool) -> None:
    assert is_off(value) is expected
