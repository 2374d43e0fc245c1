"""Plans of brokers that other means provision."""

from pathlib import Path
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from earshot.errors import EarshotError
from earshot.listeners.properties import read_properties
from earshot.listeners.render import server_properties
from earshot.listeners.terms import Role, UnknownHost
from earshot.placement.given import plan_given, read_given
from tests.goldens import refusals_are_golden
from tests.raised import raised

MISTAKES = Path(__file__).parent / "mistakes"
"""The texts of refusals, which `EARSHOT_WRITE_GOLDENS=1` writes."""

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


def refusal_of(changes: dict[str, Any]) -> str:
    return str(raised(EarshotError, lambda: plan_given(read_given(described(**changes), "kafka"))))


def test_each_problem_names_its_input() -> None:
    mistakes: list[Any] = [
        {"nodes": {"1": {"internal": "a"}}},
        {"nodes": {"1": {"external": "a.example.com"}}},
        {"nodes": {}},
        {"nodes": {"x": {"internal": "a", "external": "b"}}},
        {"nodes": {"1": {"internal": "a", "external": "b", "ports": {"EXT": 1}}}},
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
        {"brokers": 3},
        {"nodes": {"1": {"internal": "a b", "external": "c"}}},
    ]
    refusals_are_golden(mistakes, refusal_of, MISTAKES / "given.txt")


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
