"""Which instances are checked together, as the brokers of one cluster."""

from types import SimpleNamespace
from typing import Any

import pytest

from earshot.checks.instance_stack import _clusters


def broker(
    holder: str,
    id: int,
    inter_broker: str = "INTERNAL",
    controller: str = "CONTROLLER",
    **quorum: str,
) -> Any:
    """An instance and what was read from it, of which only what tells clusters apart is there."""
    values = {key.replace("_", "."): value for key, value in quorum.items()}
    written = SimpleNamespace(settings=SimpleNamespace(values=values))
    plan = SimpleNamespace(inter_broker=inter_broker, controller=controller)
    return SimpleNamespace(
        broker=SimpleNamespace(holder=holder, written=written), plan=plan, settings={id: object()}
    )


def together(*read: Any) -> list[list[str]]:
    return [[item.broker.holder for item in members] for members in _clusters(list(read))]


@pytest.mark.parametrize(
    "key", ["controller_quorum_voters", "controller_quorum_bootstrap_servers", "zookeeper_connect"]
)
def test_who_shares_a_quorum_is_one_cluster(key: str) -> None:
    brokers = [broker("a", 1, **{key: "q"}), broker("b", 2, **{key: "q"})]
    assert together(*brokers, broker("c", 3, **{key: "other"})) == [["a", "b"], ["c"]]


def test_who_names_no_quorum_stands_alone() -> None:
    assert together(broker("a", 1), broker("b", 2)) == [["a"], ["b"]]


def test_who_calls_its_listeners_otherwise_is_of_another_cluster() -> None:
    alike = {"controller_quorum_voters": "q"}
    others = [
        broker("c", 3, inter_broker="OTHER", **alike),
        broker("d", 4, controller="OTHER", **alike),
    ]
    brokers = [broker("a", 1, **alike), broker("b", 2, **alike)]
    assert together(*brokers, *others) == [["a", "b"], ["c"], ["d"]]


def test_an_id_that_is_taken_is_of_another_cluster() -> None:
    """Two stacks that are alike to the last name."""
    alike = {"controller_quorum_voters": "q"}
    brokers = [broker(holder, id, **alike) for holder, id in (("a", 1), ("b", 2), ("c", 1))]
    assert together(*brokers, broker("d", 1, **alike)) == [["a", "b"], ["c"], ["d"]]
