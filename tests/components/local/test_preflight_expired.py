"""Nodes with expired certificates run on, and no node that is restarted reaches them."""

from contextlib import ExitStack
from pathlib import Path

import pytest
from earshot_pulumi.local import cluster_memory, preflight

from tests.components.local.nodes import recorded_node
from tests.components.local.test_cluster_memory import planned
from tests.components.secured_inputs import key_store

SETTINGS = """\
inter.broker.listener.name=INTERNAL
controller.listener.names=CONTROLLER
listener.security.protocol.map=INTERNAL:{},EXTERNAL:SSL,CONTROLLER:PLAINTEXT
ssl.keystore.location={}
"""


@pytest.mark.parametrize(
    ("protocol", "days", "first", "refused"),
    [
        ("SSL", {1: 5, 2: 5, 3: 5}, [1, 2, 3], ""),
        ("SSL", {1: 5, 2: 5, 3: -1}, [3, 1, 2], ""),
        ("SASL_SSL", {1: 5, 2: -1, 3: -2}, [2, 3, 1], "certificates of nodes 2, 3 expired"),
        ("SSL", {2: 5, 3: -1}, [1, 3, 2], "certificates of node 3 expired"),
        ("PLAINTEXT", {1: -1, 2: -1, 3: -1}, [1, 2, 3], ""),
        ("SSL", {1: None, 2: None, 3: None}, [1, 2, 3], ""),
    ],
)
def test_no_node_is_restarted_that_could_not_connect_to_the_others(
    protocol: str, days: dict[int, int | None], first: list[int], refused: str, tmp_path: Path
) -> None:
    plan = planned()
    cluster_memory.settle(tmp_path, plan)
    with ExitStack() as running:
        for node in plan.nodes:
            directory = cluster_memory.node_directory(tmp_path, node.id)
            (directory / "log").mkdir(parents=True)
            (directory / "log" / "meta.properties").touch()
            store = directory / "node.pem"
            (directory / "server.properties").write_text(SETTINGS.format(protocol, store))
            if node.id in days:
                left = days[node.id]
                store.write_text("no PEM" if left is None else key_store(left))
                running.enter_context(recorded_node(directory))
        assert [node.id for node in preflight.in_order(tmp_path, plan.nodes)] == first
        problems = "".join(preflight.expired_problems(tmp_path))
    assert refused in problems and bool(refused) is bool(problems)
    assert (
        not refused
        or "Stop the cluster first (`pulumi destroy`; with `data: keep` it keeps the data)"
        in problems
    )
