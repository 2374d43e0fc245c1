from __future__ import annotations

import pytest

from earshot.facts.settings import ForeignSettings
from earshot.listeners.address import Address
from earshot.sources.clusters import quorum_address

CONTROLLER = {
    "process.roles": "controller",
    "node.id": "1",
    "controller.listener.names": "CONTROLLER",
    "listeners": "CONTROLLER://:9093",
    "advertised.listeners": "CONTROLLER://c1:9093",
}


def test_a_controller_of_a_dynamic_quorum_advertises_its_own_entry() -> None:
    view = ForeignSettings(CONTROLLER, (4, 1, 1), complete=True)
    assert quorum_address(view) == Address("c1", 9093)


@pytest.mark.parametrize(
    "change", [{"controller.quorum.voters": "1@c1:9093"}, {"process.roles": "broker"}]
)
def test_a_static_quorum_and_a_broker_have_no_such_address(change: dict[str, str]) -> None:
    assert quorum_address(ForeignSettings(CONTROLLER | change, (4, 1, 1), complete=True)) is None
