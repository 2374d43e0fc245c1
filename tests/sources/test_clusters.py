from __future__ import annotations

import pytest

from earshot.facts.settings import KafkaSettings
from earshot.listeners.address import Address
from earshot.sources.clusters import quorum_address

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
