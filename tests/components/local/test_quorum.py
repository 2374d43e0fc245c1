"""What a plan may do over the data that is there."""

from __future__ import annotations

import json
import re
import socket
from pathlib import Path
from typing import Any

import pytest

from components.local import quorum
from components.local.quorum import Memory
from earshot.listeners.model import ClusterPlan, Scope
from earshot.placement.plan import NodeNames, plan
from earshot.spec.document import read_spec

HIGH = {"INTERNAL": 41092, "EXTERNAL": 42092, "CONTROLLER": 43092}


def planned(**settings: Any) -> ClusterPlan:
    document = {
        "placement": "local",
        "listeners": [
            {"name": "INTERNAL", "port": HIGH["INTERNAL"], "scopes": "internal"},
            {"name": "EXTERNAL", "port": HIGH["EXTERNAL"], "scopes": "host"},
        ],
        "controllers": {"port": HIGH["CONTROLLER"]} | settings.pop("controllers", {}),
        **settings,
    }
    spec = read_spec(document, "test")
    hosts = dict.fromkeys((Scope.INTERNAL, Scope.HOST, Scope.CONTROLLER), "localhost")
    return plan(
        spec,
        {
            id: NodeNames(hosts=hosts, machine="m", port_offset=index)
            for index, id in enumerate(spec.node_ids)
        },
    )


def test_a_first_start_has_no_problems_and_gets_an_id(tmp_path: Path) -> None:
    assert list(quorum.problems(tmp_path, planned())) == []
    memory = quorum.settle(tmp_path, planned())
    assert re.fullmatch(r"[A-Za-z0-9_][A-Za-z0-9_-]{21}", memory.cluster_id)
    assert quorum.recall(tmp_path) == memory


def test_the_cluster_id_and_the_word_that_it_serves_survive_a_change(tmp_path: Path) -> None:
    first = quorum.settle(tmp_path, planned())
    quorum.mark_serving(tmp_path, True)
    second = quorum.settle(tmp_path, planned(brokers=4))
    assert second.cluster_id == first.cluster_id
    assert second.brokers == (1, 2, 3, 4)
    assert second.serving is True


def test_scaling_from_three_to_four_keeps_the_voters(tmp_path: Path) -> None:
    quorum.settle(tmp_path, planned())
    assert list(quorum.problems(tmp_path, planned(brokers=4))) == []


def test_other_voters_are_refused(tmp_path: Path) -> None:
    quorum.settle(tmp_path, planned(brokers=1))
    (problem,) = quorum.problems(tmp_path, planned(brokers=3))
    assert "has the voters 1 and would get 1, 2, 3" in problem
    assert "controllers.count: 1" in problem
    assert list(quorum.problems(tmp_path, planned(brokers=3, controllers={"count": 1}))) == []


def test_an_older_kafka_is_refused(tmp_path: Path) -> None:
    quorum.settle(tmp_path, planned(kafka_version="4.1.1"))
    (problem,) = quorum.problems(tmp_path, planned(kafka_version="3.9.1"))
    assert "Kafka 3.9.1 is older than 4.1.1" in problem
    assert list(quorum.problems(tmp_path, planned(kafka_version="4.1.0"))) == []


def test_a_broker_that_holds_replicas_is_not_removed(tmp_path: Path) -> None:
    quorum.settle(tmp_path, planned(brokers=4))
    log = quorum.node_directory(tmp_path, 4) / "log"
    for name in ("orders-0", "orders-12", "__cluster_metadata-0", "gone-0.1f-delete"):
        (log / name).mkdir(parents=True)
    (problem,) = quorum.problems(tmp_path, planned(brokers=3))
    assert "broker 4" in problem and "2 replica(s): orders-0, orders-12" in problem


def test_a_broker_without_replicas_is_removed(tmp_path: Path) -> None:
    quorum.settle(tmp_path, planned(brokers=4))
    (quorum.node_directory(tmp_path, 4) / "log" / "__cluster_metadata-0").mkdir(parents=True)
    assert list(quorum.problems(tmp_path, planned(brokers=3))) == []


def test_a_port_in_use_is_named_with_listener_and_holder(tmp_path: Path) -> None:
    with socket.socket() as listening:
        listening.bind(("127.0.0.1", HIGH["EXTERNAL"] + 1))
        listening.listen()
        (problem,) = quorum.problems(tmp_path, planned())
    assert problem.startswith(f"listener EXTERNAL of node 2: port {HIGH['EXTERNAL'] + 1} is in use")
    assert "pid " in problem


def test_without_memory_no_majority_runs(tmp_path: Path) -> None:
    assert quorum.majority_runs(tmp_path) is False
    quorum.settle(tmp_path, planned())
    assert quorum.majority_runs(tmp_path) is False


@pytest.mark.parametrize("text", ["", "{", "[]", "null", '{"cluster_id": "x"}'])
def test_an_unreadable_memory_is_none(tmp_path: Path, text: str) -> None:
    (tmp_path / "cluster.json").write_text(text)
    assert quorum.recall(tmp_path) is None


def test_a_memory_survives_the_disk(tmp_path: Path) -> None:
    memory = Memory("id", {"1": "localhost:1"}, "4.1.1", (1,), serving=True)
    quorum.remember(tmp_path, memory)
    assert quorum.recall(tmp_path) == memory
    assert json.loads((tmp_path / "cluster.json").read_text())["brokers"] == [1]
