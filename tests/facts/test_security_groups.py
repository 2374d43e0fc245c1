from ipaddress import ip_network

import pytest
from hypothesis import given
from hypothesis import strategies as st

from earshot.errors import EarshotError
from earshot.facts.security_groups import (
    BROKERS,
    CONTROLLERS,
    MAX_RULES,
    Clients,
    Members,
    groups_of,
    ingress_of,
    security_groups,
)
from earshot.listeners.model import Node
from earshot.listeners.terms import Role, Scope
from tests.aws.plans import ONE_LISTENER, TWO_LISTENERS, Wanted, node, plan

VPC = ip_network("10.0.0.0/16")
OFFICE = ip_network("203.0.113.0/24")
CLIENTS = Clients(internal=(VPC, Members("apps")), external=(OFFICE,))
BROKER, CONTROLLER = (Role.BROKER,), (Role.CONTROLLER,)


def listed(*nodes: Node, clients: Clients = CLIENTS) -> dict[str, list[str]]:
    groups = security_groups(plan(*nodes), clients)
    return {group.name: [str(rule) for rule in group.ingress] for group in groups}


def test_two_listeners_on_combined_nodes() -> None:
    assert listed(node(1), node(2), node(3)) == {
        "brokers": [
            "19092 from group brokers",
            "19092 from 10.0.0.0/16",
            "19092 from group apps",
            "9092 from 203.0.113.0/24",
        ],
        "controllers": ["29092 from group brokers"],
    }


def test_one_listener_for_both_scopes() -> None:
    assert listed(node(1, ONE_LISTENER))["brokers"] == [
        "9092 from group brokers",
        "9092 from 10.0.0.0/16",
        "9092 from group apps",
        "9092 from 203.0.113.0/24",
    ]


def test_separate_controllers_are_for_nodes_alone() -> None:
    broker, controller = node(1, roles=BROKER), node(10001, roles=CONTROLLER)
    groups = security_groups(plan(broker, controller), CLIENTS)
    assert [str(rule) for rule in ingress_of(controller, groups)] == [
        "29092 from group brokers",
        "29092 from group controllers",
    ]
    assert all(not rule.opens(29092) for rule in ingress_of(broker, groups))
    assert (groups_of(broker), groups_of(controller)) == ((BROKERS,), (CONTROLLERS,))
    assert groups_of(node(1)) == (BROKERS, CONTROLLERS)


def test_clients_may_be_groups_alone_and_brokers_still_reach_each_other() -> None:
    clients = Clients(internal=(Members("apps"),), external=(OFFICE,))
    assert listed(node(1), clients=clients)["brokers"][:2] == [
        "19092 from group brokers",
        "19092 from group apps",
    ]


def test_clients_on_the_machine_need_no_rule() -> None:
    listeners = (TWO_LISTENERS[0], ("HOST", 9092, (Scope.HOST,)))
    assert not any("9092 from" in rule[:9] for rule in listed(node(1, listeners))["brokers"])


@given(
    st.integers(1, 6),
    st.booleans(),
    st.sampled_from([ONE_LISTENER, TWO_LISTENERS]),
    st.lists(st.integers(0, 255), max_size=4, unique=True),
)
def test_nothing_else_comes_in(
    count: int, separate: bool, listeners: Wanted, offices: list[int]
) -> None:
    roles = BROKER if separate else (*BROKER, *CONTROLLER)
    nodes = [node(id, listeners, roles) for id in range(1, count + 1)]
    nodes += [node(10001, roles=CONTROLLER)] * separate
    ranges = tuple(ip_network(f"203.0.{office}.0/24") for office in offices)
    clients = Clients(internal=(VPC,), external=ranges or (OFFICE,))
    made = plan(*nodes)
    groups = security_groups(made, clients)
    for item in made.nodes:
        ports = {listener.bind_port for listener in item.listeners}
        for rule in ingress_of(item, groups):
            assert rule.first == rule.last and rule.first in ports
            if rule.first == 29092:
                assert isinstance(rule.source, Members)
            assert str(rule.source) not in ("0.0.0.0/0", "::/0")
        for group in groups:
            assert len(set(group.ingress)) == len(group.ingress)


@pytest.mark.parametrize(
    ("clients", "scope"),
    [(Clients(internal=(VPC,)), "external"), (Clients(external=(OFFICE,)), "internal")],
)
def test_clients_must_be_named(clients: Clients, scope: str) -> None:
    with pytest.raises(EarshotError, match=f"clients of scope {scope}: no client is named"):
        security_groups(plan(node(1)), clients)


def test_the_quota_of_rules_is_respected_for_each_family() -> None:
    four = tuple(ip_network(f"203.0.{index}.0/24") for index in range(MAX_RULES - 2))
    six = tuple(ip_network(f"2001:db8:{index}::/48") for index in range(MAX_RULES - 1))
    fits = Clients(internal=(VPC,), external=(*four, *six))
    assert len(security_groups(plan(node(1)), fits)[0].ingress) > MAX_RULES
    one_more = Clients(internal=(VPC,), external=(*four, OFFICE.supernet()))
    with pytest.raises(EarshotError, match="brokers: needs 61 rules for IPv4"):
        security_groups(plan(node(1)), one_more)
