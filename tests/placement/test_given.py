"""Plans of brokers that other means provision."""

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from earshot.errors import EarshotError
from earshot.listeners.properties import read_properties
from earshot.listeners.render import server_properties
from earshot.listeners.terms import Role, UnknownHost
from earshot.placement.given import plan_given, read_given
from tests.raised import raised

INTERNAL = {"name": "INTERNAL", "port": 19092, "scopes": ["internal"]}
EXTERNAL = {"name": "EXTERNAL", "port": 9092, "scopes": ["external"]}


def described(**changes: Any) -> dict[str, Any]:
    return {
        "listeners": [INTERNAL, EXTERNAL],
        "nodes": {
            "101": {"internal": "kafka-a", "external": "a.example.com"},
            "102": {
                "internal": "kafka-b",
                "external": "b.example.com",
                "ports": {"EXTERNAL": 9192},
            },
        },
        **changes,
    }


def test_node_ids_are_the_callers() -> None:
    plan = plan_given(read_given(described(), "kafka"))
    assert [node.id for node in plan.brokers] == [101, 102]
    assert [node.id for node in plan.controllers] == [101]
    found = read_properties(server_properties(plan, plan.node(102))).values
    assert found["advertised.listeners"] == "INTERNAL://kafka-b:19092,EXTERNAL://b.example.com:9192"
    assert found["listeners"].startswith("INTERNAL://0.0.0.0:19092,EXTERNAL://0.0.0.0:9092")
    assert found["controller.quorum.voters"] == "101@kafka-a:29092"


def test_separate_controllers_need_an_internal_host_alone() -> None:
    nodes = described()["nodes"] | {
        str(id): {"internal": f"c-{id}", "roles": ["controller"]} for id in (1, 2, 3)
    }
    plan = plan_given(read_given(described(nodes=nodes), "kafka"))
    assert [node.id for node in plan.controllers] == [1, 2, 3]
    assert plan.node(1).roles == (Role.CONTROLLER,)
    assert plan.replication_factor == 2


def test_a_host_that_is_not_known_yet_keeps_the_plan() -> None:
    marker = UnknownHost("nodes.101.external")
    nodes = {"101": {"internal": "kafka-a", "external": marker}}
    plan = plan_given(read_given(described(nodes=nodes), "kafka"))
    (node,) = plan.nodes
    listener = node.listener("EXTERNAL")
    assert listener is not None and listener.host == marker


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        (
            {"nodes": {"1": {"internal": "a"}}},
            "nodes.1.external: is missing; listener EXTERNAL is for scope external",
        ),
        ({"nodes": {"1": {"external": "a.example.com"}}}, "nodes.1.internal: is missing"),
        ({"nodes": {}}, "nodes"),
        ({"nodes": {"x": {"internal": "a", "external": "b"}}}, "nodes: found the id 'x'"),
        (
            {"nodes": {"1": {"internal": "a", "external": "b", "ports": {"EXT": 1}}}},
            "nodes.1.ports: found 'EXT'; allowed: INTERNAL, EXTERNAL, CONTROLLER",
        ),
        (
            {
                "nodes": {
                    str(id): {
                        "internal": "a",
                        "external": f"b{id}",
                        "roles": ["broker", "controller"],
                    }
                    for id in (1, 2)
                }
            },
            "found the role controller on 2 nodes; allowed: an odd number",
        ),
        ({"brokers": 3}, "brokers: found beside `nodes`"),
        ({"nodes": {"1": {"internal": "a b", "external": "c"}}}, "nodes.1.internal"),
    ],
)
def test_each_problem_names_its_input(changes: dict[str, Any], message: str) -> None:
    error = raised(EarshotError, lambda: plan_given(read_given(described(**changes), "kafka")))
    assert str(error).startswith("kafka")
    assert message in str(error)


@settings(max_examples=60)
@given(
    st.sets(st.integers(0, 5000), min_size=1, max_size=7),
    st.integers(1, 60000),
)
def test_any_ids_give_a_plan_that_advertises_what_was_given(ids: set[int], port: int) -> None:
    nodes = {
        str(id): {
            "internal": f"n{id}",
            "external": f"n{id}.example.com",
            "ports": {"EXTERNAL": port},
        }
        for id in ids
    }
    plan = plan_given(read_given(described(nodes=nodes), "kafka"))
    assert sorted(ids) == [node.id for node in plan.nodes]
    for node in plan.nodes:
        listener = node.listener("EXTERNAL")
        assert listener is not None
        assert str(listener.advertised) == f"n{node.id}.example.com:{port}"
    assert len(plan.controllers) == (3 if len(ids) >= 3 else 1)
