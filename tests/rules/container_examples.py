"""Examples on disk of rules about containers: the inputs of each, and what one rule finds."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import yaml

from earshot.facts.cluster import ClusterFacts
from tests.sources.containers import container_facts

KRAFT = {
    "CLUSTER_ID": "MkU3OEVBNTcwNTJENDM2Qk",
    "KAFKA_NODE_ID": "1",
    "KAFKA_PROCESS_ROLES": "broker,controller",
    "KAFKA_LISTENERS": "INTERNAL://0.0.0.0:19092,HOST://0.0.0.0:9092,CONTROLLER://0.0.0.0:9093",
    "KAFKA_ADVERTISED_LISTENERS": (
        "INTERNAL://kafka1:19092,HOST://localhost:9092,CONTROLLER://kafka1:9093"
    ),
    "KAFKA_LISTENER_SECURITY_PROTOCOL_MAP": (
        "INTERNAL:PLAINTEXT,HOST:PLAINTEXT,CONTROLLER:PLAINTEXT"
    ),
    "KAFKA_INTER_BROKER_LISTENER_NAME": "INTERNAL",
    "KAFKA_CONTROLLER_LISTENER_NAMES": "CONTROLLER",
    "KAFKA_CONTROLLER_QUORUM_VOTERS": "1@kafka1:9093",
}
"""A combined node that is well, as `docker.Container` takes it."""
NAMED: dict[str, Any] = {
    "name": "kafka1",
    "image": "apache/kafka:4.1.1",
    "networks": [{"name": "kafka", "aliases": ["kafka1"]}],
    "ports": [{"internal": 9092.0, "external": 9092.0}],
}


def container(envs: dict[str, str | None] | None = None, **inputs: Any) -> ClusterFacts:
    """The facts about KRAFT with some variables changed; an empty text takes one away."""
    changed = {**KRAFT, **(envs or {})}
    given = {**NAMED, **inputs}
    return container_facts({k: v for k, v in changed.items() if v != ""}, **given)


def load(path: Path) -> tuple[ClusterFacts, list[dict[str, str]]]:
    """The facts of all containers of an example, and what its rule is expected to find."""
    document = yaml.safe_load(path.read_text())
    facts = [_read(item) for item in document["containers"]]
    plans = [item.plan for item in facts if item.plan is not None]
    nodes = tuple(node for plan in plans for node in plan.nodes)
    joined = replace(
        facts[0],
        plan=plans[0].model_copy(update={"nodes": nodes}) if plans else None,
        settings={id: item for one in facts for id, item in one.settings.items()},
        containers={id: item for one in facts for id, item in one.containers.items()},
    )
    return joined, document["findings"]


def _read(item: dict[str, Any]) -> ClusterFacts:
    inputs = dict(item)
    if "envs" in inputs:
        return container_facts(**{"name": "kafka1", "image": "apache/kafka:4.1.1", **inputs})
    return container(inputs.pop("changed", {}), **inputs)
