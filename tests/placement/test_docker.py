"""From a docker spec to containers: what each of them is given."""

from __future__ import annotations

import inspect
import re
from typing import Any

import pulumi_docker as docker
import pytest

from earshot.config.docker import DockerSpec
from earshot.config.document import read_spec
from earshot.errors import EarshotError
from earshot.facts.cluster import ClusterFacts
from earshot.placement import DockerPlan, plan_docker
from earshot.rules.evaluate import evaluate
from tests.sources.containers import container_facts

OWN_ID = "5L6g3nShT-eMCtK-X86swQ"


def planned(**rest: Any) -> DockerPlan:
    spec = read_spec({"placement": "docker", **rest}, "test")
    assert isinstance(spec, DockerSpec)
    return plan_docker(spec, "mine")


def test_a_property_that_an_image_would_change_is_refused() -> None:
    with pytest.raises(EarshotError, match=r"^broker property a\.b: .* changed through"):
        planned(extra={"a.b": "x\\y"})


def test_the_third_broker_of_a_host() -> None:
    made = planned(hosts=[{"external": "kafka.example.com"}])
    assert [str(item) for item in made.plan.node(3).listeners] == [
        "INTERNAL://kafka-3:19092",
        "HOST://localhost:9094",
        "EXTERNAL://kafka.example.com:39094",
        "CONTROLLER://kafka-3:29092",
    ]
    container = made.containers[3]
    assert (container.name, container.network) == ("kafka-3", "earshot-mine")
    assert container.volume == "earshot-mine-kafka-3"
    assert [str(port) for port in container.ports] == ["127.0.0.1:9094->9092", "39094->39092"]
    assert container.variables(OWN_ID) == {**container.environment, "CLUSTER_ID": OWN_ID}
    assert container.environment["KAFKA_LISTENERS"].startswith("INTERNAL://0.0.0.0:19092,")


def test_inputs_are_those_of_the_provider() -> None:
    inputs = planned().containers[1].inputs(OWN_ID)
    names = inspect.signature(docker.ContainerArgs.__init__).parameters
    assert {re.sub("[A-Z]", lambda m: f"_{m[0].lower()}", key) for key in inputs} <= names.keys()
    assert inputs["ports"][0] == {
        "internal": 9092,
        "external": 9092,
        "ip": "127.0.0.1",
        "protocol": "tcp",
    }


@pytest.mark.parametrize(("heap", "small"), [("256m", True), ("512m", False), ("1g", False)])
def test_a_small_heap_gets_a_small_log_cleaner(heap: str, small: bool) -> None:
    environment = planned(heap=heap).containers[1].environment
    assert ("KAFKA_LOG_CLEANER_DEDUPE_BUFFER_SIZE" in environment) is small
    assert environment["KAFKA_HEAP_OPTS"] == f"-Xms{heap} -Xmx{heap}"


@pytest.mark.parametrize(
    "settings",
    [
        {},
        {"brokers": 1},
        {"hosts": [{"external": "kafka.example.com"}]},
        {"broker_ids": [0, 1, 2], "names": {0: "kafka0"}},
    ],
)
def test_what_is_computed_passes_the_rules_for_containers(settings: dict[str, Any]) -> None:
    made = planned(**settings)
    found = []
    for container in made.containers.values():
        inputs = container.inputs(OWN_ID)
        facts: ClusterFacts = container_facts(
            inputs["envs"],
            inputs["ports"],
            inputs["networksAdvanced"],
            inputs["name"],
            inputs["image"],
            hostname=inputs["hostname"],
        )
        found += [item for item in evaluate(facts) if item.rule in ("KL006", "KL014")]
    assert found == []
