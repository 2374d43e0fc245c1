from __future__ import annotations

import pytest

from earshot.facts.settings import KafkaSettings
from earshot.listeners.address import Address
from earshot.sources.clusters import cluster_id, quorum_address
from earshot.sources.service import Service
from earshot.topology.container import Container

CONTROLLER = {
    "process.roles": "controller",
    "node.id": "1",
    "controller.listener.names": "CONTROLLER",
    "listeners": "CONTROLLER://:9093",
    "advertised.listeners": "CONTROLLER://c1:9093",
}


@pytest.mark.parametrize(
    ("change", "address"),
    [
        ({}, Address("c1", 9093)),
        # a static quorum
        ({"controller.quorum.voters": "1@c1:9093"}, None),
        ({"process.roles": "broker"}, None),
    ],
)
def test_a_controller_of_a_dynamic_quorum_advertises_its_address(
    change: dict[str, str], address: Address | None
) -> None:
    view = KafkaSettings(CONTROLLER | change, (4, 1, 1), complete=True)
    assert quorum_address(view) == address


@pytest.mark.parametrize(
    ("variable", "expected"),
    [
        ("KAFKA_KRAFT_CLUSTER_ID", "x"),
        ("KAFKA_CFG_NODE_ID", ""),  # a random one
        ("KAFKA_KRAFT_CLUSTER_ID_FILE", None),
        ("KAFKA_SKIP_KRAFT_STORAGE_INIT", None),
    ],
)
def test_a_cluster_id_from_a_file_is_unknown(variable: str, expected: str | None) -> None:
    container = Container("kafka", "bitnami/kafka:3.7", env={variable: "x"})
    assert cluster_id(Service("kafka", container)) == expected
