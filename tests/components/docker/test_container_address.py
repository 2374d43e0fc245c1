"""How a broker in a container is asked: in plain text, as a node of the stack, or not at all."""

from pathlib import Path
from typing import Any

import pytest
from earshot_pulumi.docker.container_address import ContainerAddress
from earshot_pulumi.docker.inner_listener import InnerListener, NodeKeys

from earshot.listeners.terms import Mechanism
from tests.components.docker.stacks import target_stack

ROOT = Path("/checkout/.earshot/stacks/s/kafka")


def address(id: int, root: Path | None, **settings: Any) -> ContainerAddress:
    of = target_stack(brokers=1, **settings)
    container = of.containers[id]
    return ContainerAddress.of(of.plan, of.plan.node(id), container, of.hosts[0], root)


def test_a_secured_broker_is_asked_as_itself_by_the_name_that_it_has_for_others() -> None:
    place = address(1, ROOT, security={})
    keys = NodeKeys(str(ROOT), "node-1", "kafka-1")
    assert place.endpoint == InnerListener("127.0.0.1", 19092, False, keys, "INTERNAL")
    (host, external) = place.clients
    assert (host.name, host.port, external.name) == ("HOST", 9092, "EXTERNAL")
    assert host.keys == NodeKeys(str(ROOT), "node-1", "localhost")
    assert host.mechanisms == (Mechanism.SCRAM_SHA_512,) and not host.answers
    assert place.can_be_asked
    assert ContainerAddress.from_props(place.to_props()) == place


@pytest.mark.parametrize(
    ("root", "settings", "can_be_asked"),
    [
        (None, {"security": {}}, False),
        (ROOT, {"listeners": [{"name": "A", "port": 1, "scopes": "internal"}]}, True),
        (
            ROOT,
            {"listeners": [{"name": "A", "port": 1, "scopes": "internal", "protocol": "SSL"}]},
            False,
        ),
    ],
)
def test_no_other_keys_are_used(
    root: Path | None, settings: dict[str, Any], can_be_asked: bool
) -> None:
    place = address(1, root, **settings)
    assert place.endpoint.keys is None and place.can_be_asked is can_be_asked
    assert ContainerAddress.from_props(place.to_props()) == place


def test_a_controller_alone_answers_no_broker_s_questions() -> None:
    quorum = {"mode": "separate", "count": 1}
    place = address(10001, ROOT, security={}, controllers=quorum)
    assert place.endpoint.keys is None and not place.can_be_asked
    assert place.endpoint.host == "controller-10001"
