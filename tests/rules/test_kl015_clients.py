"""KL015: which clients fail where; whole files are in `examples/KL015`."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from earshot.facts.cluster import ClusterFacts
from earshot.listeners.address import Address
from earshot.rules.kl015_clients import RULE
from earshot.rules.rule import Finding
from earshot.topology.broker import Bootstrap, Broker, Endpoint
from earshot.topology.container import Container, JoinedNetwork
from earshot.topology.model import Deployment

ADDRESS = Address("kafka", 9092)


def findings(
    advertised: Address | None, *addresses: Address, is_controller: bool = False
) -> list[Finding]:
    net = (JoinedNetwork("net", ("kafka",)),)
    kafka = Container("kafka", networks=net)
    app = Container("app", networks=(JoinedNetwork("net", ("app",)),))
    endpoint = Endpoint("A", Address("", 9092), advertised, is_controller)
    deployment = Deployment(
        {"kafka": kafka, "app": app},
        (Broker("kafka", kafka, 1, (endpoint,)),),
        (Bootstrap("app", "BROKERS", addresses),),
    )
    return list(RULE.findings(ClusterFacts(plan=None, deployment=deployment)))


def checked(
    advertised: Address | None, *addresses: Address, is_controller: bool = False
) -> list[str]:
    found = findings(advertised, *addresses, is_controller=is_controller)
    return [finding.observed for finding in found]


def test_the_first_step_has_to_fail_for_every_address() -> None:
    dead, good, open_end = Address("gone", 1), ADDRESS, Address("kafka.example.com", 9092)
    assert checked(ADDRESS, dead, Address("kafka", 1), Address("localhost", 9092)) == [
        (
            "BROKERS leads to no broker (gone:1: nothing on network net is called gone; "
            "kafka:1: nothing listens at port 1 of kafka; "
            "localhost:9092: it is the client itself, and nothing listens at port 9092)"
        )
    ]
    assert checked(ADDRESS, dead, good) == checked(ADDRESS, dead, open_end) == []


@pytest.mark.parametrize(
    ("is_controller", "expected"), [(False, "one of kafka:9092"), (True, "a listener of a broker")]
)
def test_where_a_client_may_begin_instead(is_controller: bool, expected: str) -> None:
    (finding,) = findings(ADDRESS, Address("gone", 1), is_controller=is_controller)
    assert finding.expected == expected


def test_two_addresses_of_one_listener_are_one_cause() -> None:
    assert checked(Address("localhost", 9092), ADDRESS, ADDRESS) == [
        (
            "app bootstraps to A and is sent on to "
            "localhost:9092: it is the client itself, and nothing listens at port 9092"
        )
    ]


def test_what_is_not_known_and_what_controllers_say_is_no_finding() -> None:
    assert checked(None, ADDRESS) == []
    assert checked(Address("localhost", 9092), ADDRESS, is_controller=True) == []


def test_of_many_clients_the_first_are_named() -> None:
    net = JoinedNetwork("net", ())
    kafka = Container("kafka", networks=(net,))
    endpoint = Endpoint("A", Address("", 9092), Address("localhost", 9092))
    apps = [f"app{i}" for i in range(5)]
    deployment = Deployment(
        {"kafka": kafka, **{name: Container(name, networks=(net,)) for name in apps}},
        (Broker("kafka", kafka, 1, (endpoint,)),),
        tuple(Bootstrap(name, "BROKERS", (ADDRESS,)) for name in apps),
    )
    (finding,) = RULE.findings(ClusterFacts(plan=None, deployment=deployment))
    assert finding.observed == (
        "app0, app1, app2 and 2 more bootstrap to A and are sent on to "
        "localhost:9092: it is the client itself, and nothing listens at port 9092"
    )


hosts = st.sampled_from(["kafka", "app", "localhost", "gone", "kafka.example.com", "10.0.0.1", ""])
addresses = st.builds(Address, hosts, st.sampled_from([9092, 9093]))


@given(addresses, st.lists(addresses, min_size=1, max_size=3))
def test_a_listener_that_answers_with_a_name_of_its_own_has_no_finding(
    advertised: Address, begins: list[Address]
) -> None:
    found = checked(advertised, *begins)
    assert len(found) <= 1
    if advertised == ADDRESS and ADDRESS in begins:
        assert found == []
    if ADDRESS in begins and advertised.host in ("localhost", "app", "gone"):
        assert len(found) == 1


@pytest.mark.parametrize(
    ("port", "remedy"),
    [
        (9092, "write B://0.0.0.0:9092 into listeners, and keep what it advertises"),
        (9093, "add a listener that advertises an address of this network, and bootstrap to it"),
    ],
)
def test_the_remedy_names_the_listener_that_refuses_the_client(port: int, remedy: str) -> None:
    names = ("first", "second", "app")
    containers = {
        name: Container(name, networks=(JoinedNetwork("net", (name,)),)) for name in names
    }
    brokers = tuple(
        Broker(service, containers[service], 1, (Endpoint(name, Address("127.0.0.1", bind), None),))
        for service, name, bind in (("first", "A", 9093), ("second", "B", 9092))
    )
    client = Bootstrap("app", "BROKERS", (Address("second", port),))
    deployment = Deployment(containers, brokers, (client,))
    (finding,) = RULE.findings(ClusterFacts(plan=None, deployment=deployment))
    assert finding.remedy == remedy
