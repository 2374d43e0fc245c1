"""KL016: a cause is told once, and of many nodes the first; whole files are in `examples/KL016`."""

from collections.abc import Iterator
from dataclasses import replace

import pytest

from earshot.facts.cluster import ClusterFacts
from earshot.listeners.address import Address
from earshot.rules.kl016_nodes import RULE
from earshot.rules.rule import Finding
from earshot.topology.broker import Broker, Endpoint
from earshot.topology.container import Container, JoinedNetwork
from earshot.topology.model import Deployment


def node(
    service: str,
    id: int | None,
    advertised: Address | None,
    *,
    listens: int = 9092,
    voters: dict[int, Address] | None = None,
    has_controller: bool = True,
) -> Broker:
    container = Container(service, networks=(JoinedNetwork("net", (service,)),))
    controller = Endpoint("C", Address("", 9093), None, is_controller=True)
    return Broker(
        service,
        container,
        id,
        (
            Endpoint("A", Address("", listens), advertised),
            *([controller] if has_controller else []),
        ),
        inter_broker="A",
        cluster="one",
        is_controller=has_controller,
        voters=voters or {},
    )


def checked(*nodes: Broker) -> Iterator[Finding]:
    containers = {item.service: item.container for item in nodes}
    return iter(RULE.findings(ClusterFacts(plan=None, deployment=Deployment(containers, nodes))))


def test_of_brokers_that_all_advertise_localhost_each_is_told_once() -> None:
    findings = list(checked(*(node(f"k{i}", i, Address("localhost", 9092)) for i in range(6))))
    assert [item.container for item in findings] == [f"k{i}" for i in range(6)]
    assert findings[0].observed == (
        "advertises localhost:9092 to other brokers, and for k1, k2, k3 and 2 more: "
        "it is the client itself and not k0"
    )
    assert findings[0].remedy == "advertise A://k0:9092"


@pytest.mark.parametrize("id", [None, -1])
def test_ids_that_are_not_known_are_not_compared(id: int | None) -> None:
    nodes = [node(name, id, Address(name, 9092)) for name in ("k1", "k2")]
    assert list(checked(*nodes)) == []


def test_a_voter_that_all_nodes_list_wrongly_is_told_once() -> None:
    voters = {1: Address("k1", 9093), 2: Address("k2", 9099)}
    nodes = [node(f"k{i}", i, Address(f"k{i}", 9092), voters=voters) for i in (1, 2)]
    (finding,) = checked(*nodes)
    assert (finding.container, finding.observed, finding.remedy) == (
        "k1",
        "controller.quorum.voters places voter 2 at k2:9099: nothing listens at port 9099 of k2",
        "write 2@k2:9093, on every node",
    )


def test_a_voter_whose_controller_listener_is_not_known() -> None:
    voters = {1: Address("k1", 9092)}
    assert (
        list(checked(node("k1", 1, Address("k1", 9092), voters=voters, has_controller=False))) == []
    )
    voters = {1: Address("k1", 1)}
    (finding,) = checked(node("k1", 1, Address("k1", 9092), voters=voters, has_controller=False))
    assert finding.remedy == "write 1@k1:PORT, on every node"


def test_a_voter_at_the_container_of_another() -> None:
    voters = {2: Address("localhost", 1)}
    nodes = [node(f"k{i}", i, Address(f"k{i}", 9092), voters=voters) for i in (1, 2)]
    assert [finding.observed for finding in checked(*nodes)] == [
        (
            "controller.quorum.voters places voter 2 at localhost:1: it is the client "
            "itself, and nothing listens at port 1"
        )
    ]


def test_an_unadvertised_listener_is_no_way_between_brokers() -> None:
    nodes = [node(name, id, None) for id, name in enumerate(("k1", "k2"))]
    assert list(checked(*nodes)) == []


def test_a_controller_alone_is_no_broker_for_others_to_get_to() -> None:
    first, second = node("k1", 1, Address("localhost", 9092)), node("k2", 2, Address("k2", 9092))
    assert [item.container for item in checked(first, second)] == ["k1"]
    assert list(checked(replace(first, is_broker=False), second)) == []


def test_without_the_listener_between_brokers_no_way_between_them_is_known() -> None:
    first, second = node("k1", 1, Address("localhost", 9092)), node("k2", 2, Address("k2", 9092))
    others = (replace(it, inter_broker="OTHER") for it in (first, second))
    assert list(checked(*others)) == []


def test_what_brokers_advertise_alike_fails_for_each_of_the_others() -> None:
    local, other = Address("localhost", 9092), Address("localhost", 9099)
    nodes = [node(f"k{i}", i, it) for i, it in enumerate((local, local, other, local), 1)]
    assert [
        (finding.container, finding.observed.partition("for ")[2]) for finding in checked(*nodes)
    ] == [
        ("k1", "k2, k3, k4: it is the client itself and not k1"),
        ("k2", "k1, k3, k4: it is the client itself and not k2"),
        ("k3", "k1, k2, k4: it is the client itself, and nothing listens at port 9099"),
        ("k4", "k1, k2, k3: it is the client itself and not k4"),
    ]


def test_brokers_that_share_a_network_reach_each_other_at_localhost() -> None:
    first = node("k1", 1, Address("localhost", 9092))
    other = node("k2", 2, Address("localhost", 9094), listens=9094, has_controller=False)
    shared = Container("k2", network_mode="service:k1")
    assert list(checked(first, replace(other, container=shared))) == []
    assert [item.container for item in checked(first, other)] == ["k1", "k2"]
