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
    found = address(1, ROOT, security={})
    keys = NodeKeys(str(ROOT), "node-1", "kafka-1")
    assert found.endpoint == InnerListener("127.0.0.1", 19092, False, keys, "INTERNAL")
    (host, external) = found.clients
    assert (host.name, host.port, external.name) == ("HOST", 9092, "EXTERNAL")
    assert host.keys == NodeKeys(str(ROOT), "node-1", "localhost")
    assert host.mechanisms == (Mechanism.SCRAM_SHA_512,) and not host.answers
    assert found.can_be_asked
    assert ContainerAddress.from_props(found.to_props()) == found


@pytest.mark.parametrize(
    ("root", "settings", "asked"),
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
def test_no_other_keys_are_used(root: Path | None, settings: dict[str, Any], asked: bool) -> None:
    found = address(1, root, **settings)
    assert found.endpoint.keys is None and found.can_be_asked is asked
    assert ContainerAddress.from_props(found.to_props()) == found


def test_a_controller_alone_answers_no_broker_s_questions() -> None:
    quorum = {"mode": "separate", "count": 1}
    found = address(10001, ROOT, security={}, controllers=quorum)
    assert found.endpoint.keys is None and not found.can_be_asked
    assert found.endpoint.host == "controller-10001"
