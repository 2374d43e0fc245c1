"""Which broker an address reaches, by the client's place."""

from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from earshot.listeners.address import Address, parse_address
from earshot.topology.broker import Broker, Endpoint, ReachedListener
from earshot.topology.container import Container, JoinedNetwork, PublishedPort
from earshot.topology.model import Deployment
from earshot.topology.names import HOST, OUTSIDE, Names, Unknown
from earshot.topology.ways import Answer, Failure, Outcome, Stage

BACK = JoinedNetwork("back", ("kafka", "broker"), "172.30.0.2")
KAFKA = Container(
    "kafka-1", hostname="k1", networks=(BACK,), published=(PublishedPort(9092, 29092),)
)
APP = Container("app", networks=(JoinedNetwork("back", ("app",)),))


def broker(service: str, container: Container, *binds: str) -> Broker:
    """A broker that listens at ``binds``; one without any is not known."""
    endpoints = tuple(
        Endpoint(f"L{i}", Address(*parse_bind(text)), None) for i, text in enumerate(binds)
    )
    return Broker(service, container, 1, endpoints or None)


def parse_bind(text: str) -> tuple[str, int]:
    host, _, port = text.rpartition(":")
    return host, int(port)


def deployed(
    app: Container = APP, kafka: Container = KAFKA, *binds: str, **others: Container
) -> Deployment:
    return Deployment(
        {"app": app, "kafka": kafka, **others},
        (broker("kafka", kafka, *(binds or (":9092", "127.0.0.1:9999"))),),
    )


def way(found: Deployment, place: str, address: str) -> str:
    """`kafka L0`, or where it ends."""
    end: Outcome = found.way(place, Address(*parse_address(address)))
    if isinstance(end, ReachedListener):
        return f"{end.broker.service} {end.endpoint.name}"
    return "unknown" if isinstance(end, Unknown) else end.value


def published(host: str) -> Deployment:
    """The port of `kafka` is published at ``host`` of the machine."""
    return deployed(APP, replace(KAFKA, published=(PublishedPort(9092, 29092, host),)))


def with_app(**network: Any) -> Deployment:
    return deployed(Container("app", **{"networks": APP.networks, **network}))


@pytest.mark.parametrize(
    ("deployment", "place", "address", "end"),
    [
        *((deployed(), *row) for row in (
            ("app", "kafka:9092", "kafka L0"),  # the service, an alias
            ("app", "BROKER:9092", "kafka L0"),
            ("app", "kafka-1:9092", "kafka L0"),  # the container's name
            ("app", "k1:9092", "kafka L0"),  # its hostname
            ("app", "kafka-1.back:9092", "kafka L0"),
            ("app", "172.30.0.2:9092", "kafka L0"),
            ("app", "kafka:29092", "nothing listens"),  # the published port is the machine's
            ("app", "kafka:9999", "nothing listens"),  # bound to the broker's own loopback
            ("app", "kafak:9092", "no such name"),
            ("app", "172.30.0.3:9092", "unknown"),
            ("app", "kafka.example.com:9092", "unknown"),
            ("app", "localhost:9092", "the client itself"),
            ("app", "127.0.0.1:9092", "the client itself"),
            ("app", "0.0.0.0:9092", "the client itself"),
            ("app", "app:9092", "the client itself"),
            ("kafka", "localhost:9999", "kafka L1"),
            ("kafka", "kafka:9999", "the client itself"),  # its name is no loopback
            ("kafka", "localhost:1", "the client itself"),
            ("app", "host.docker.internal:29092", "kafka L0"),
            ("app", "host.docker.internal:9092", "unknown"),  # whatever runs on the machine
            (HOST, "localhost:29092", "kafka L0"),
            (HOST, "localhost:9092", "unknown"),
            (HOST, "kafka:9092", "no such name"),
            (HOST, "broker:29092", "no such name"),
            (HOST, "machine:29092", "unknown"),
            (HOST, "192.0.2.7:29092", "unknown"),
        )),
        # a port that is published on one loopback is not on the other
        (published("127.0.0.1"), HOST, "localhost:29092", "kafka L0"),
        (published("127.0.0.1"), HOST, "127.0.0.1:29092", "kafka L0"),
        (published("127.0.0.1"), HOST, "[::1]:29092", "nothing listens"),
        (published("::1"), HOST, "[::1]:29092", "kafka L0"),
        (published("::1"), HOST, "127.0.0.1:29092", "nothing listens"),
        (published("::1"), HOST, "localhost:29092", "unknown"),  # it may be 127.0.0.1 alone
        # a listener on one loopback is not on the other
        (deployed(APP, KAFKA, "127.0.0.1:9092"), "kafka", "localhost:9092", "kafka L0"),
        (deployed(APP, KAFKA, "127.0.0.1:9092"), "kafka", "[::1]:9092", "the client itself"),
        (deployed(APP, KAFKA, "::1:9092"), "kafka", "localhost:9092", "kafka L0"),
        (deployed(APP, KAFKA, "::1:9092"), "kafka", "127.0.0.1:9092", "the client itself"),
        # no network in common is no name
        (with_app(networks=(JoinedNetwork("front", ("app",)),)), "app", "kafka:9092",
         "no such name"),
        # an unknown name may be one that is not described
        (with_app(open_networks=True), "app", "other:9092", "unknown"),
        (with_app(unknown=("extends",)), "app", "other:9092", "unknown"),
        (deployed(APP), "app", "other:9092", "no such name"),
    ],
)  # fmt: skip
def test_a_way(deployment: Deployment, place: str, address: str, end: str) -> None:
    assert way(deployment, place, address) == end


def test_names_are_those_of_a_network_that_both_are_on() -> None:
    front = JoinedNetwork("front", ("kafka", "outer"), "172.31.0.2")
    found = deployed(kafka=Container("kafka", networks=(front, BACK)))
    for host in ("kafka", "broker", "172.30.0.2"):
        assert way(found, "app", f"{host}:9092") == "kafka L0"
    assert way(found, "app", "outer:9092") == "no such name"
    assert way(found, "app", "172.31.0.2:9092") == "no way there"
    assert way(found, "kafka", "outer:9092") == "kafka L0"


@pytest.mark.parametrize("mode", ["service:other", "service:app", "container:elsewhere"])
def test_the_network_of_a_container_elsewhere_is_not_known(mode: str) -> None:
    found = deployed(Container("app", network_mode=mode))
    for host in ("localhost", "kafka", "kafka.example.com"):
        assert way(found, "app", f"{host}:9092") == "unknown"


@pytest.mark.parametrize("mode", ["service:kafka", "container:kafka-1"])
def test_who_shares_a_network_is_where_its_owner_is(mode: str) -> None:
    found = deployed(Container("app", network_mode=mode))
    for host in ("localhost", "kafka"):
        assert way(found, "app", f"{host}:9092") == way(found, "kafka", f"{host}:9092")
    assert way(found, "app", "localhost:9092").startswith("kafka ")


def test_on_the_host_network_a_client_is_where_the_machine_is() -> None:
    found = deployed(Container("app", network_mode="host"))
    assert way(found, "app", "localhost:29092") == "kafka L0"
    assert way(found, "app", "kafka:9092") == "no such name"
    assert way(found, "app", "machine:9092") == "unknown"


@pytest.mark.parametrize(("place", "host"), [(HOST, "localhost"), ("app", "host-gateway")])
def test_a_broker_on_the_host_network_has_the_machines_ports(place: str, host: str) -> None:
    found = deployed(APP, Container("kafka", network_mode="host"))
    assert way(found, place, f"{host}:9092") == "kafka L0"
    loopback = "kafka L1" if place == HOST else "nothing listens"
    assert way(found, place, f"{host}:9999") == loopback
    assert way(found, place, f"{host}:1") == "unknown"


@pytest.mark.parametrize(
    ("to", "end"),
    [
        ("127.0.0.1", "the client itself"),
        ("host-gateway", "kafka L0"),
        ("172.30.0.2", "nothing listens"),
        ("192.0.2.7", "unknown"),
    ],
)
def test_a_container_s_own_hosts_file_comes_first(to: str, end: str) -> None:
    app = Container("app", networks=APP.networks, extra_hosts={"kafka.test": to})
    assert way(deployed(app), "app", "Kafka.test:29092") == end


def test_a_published_port_leads_to_a_port_of_its_container() -> None:
    ports = (
        PublishedPort(9092, 1),
        PublishedPort(7, 2),
        PublishedPort(9092, 3, protocol="udp"),
        PublishedPort(9999, 4),
    )
    found = deployed(APP, Container("kafka", published=ports))
    ends = [way(found, HOST, f"localhost:{port}") for port in (1, 2, 3, 4)]
    assert ends == ["kafka L0", "nothing listens", "unknown", "nothing listens"]


def test_who_is_behind_a_container_that_is_no_broker_is_not_known() -> None:
    proxy = Container("proxy", networks=APP.networks, published=(PublishedPort(9092, 8080),))
    found = deployed(APP, KAFKA, proxy=proxy)
    assert way(found, "app", "proxy:9092") == "unknown"
    assert way(found, HOST, "localhost:8080") == "unknown"


def test_a_broker_whose_listeners_are_not_known_may_listen_anywhere() -> None:
    found = Deployment({"app": APP, "kafka": KAFKA}, (broker("kafka", KAFKA),))
    assert way(found, "app", "kafka:1") == "unknown"
    assert way(found, HOST, "localhost:29092") == "unknown"


def test_of_two_that_have_one_name_the_one_that_listens_counts() -> None:
    shared = {name: Container(name, networks=(JoinedNetwork("back", ("kafka",)),)) for name in "ab"}
    brokers = (broker("a", shared["a"], ":1"), broker("b", shared["b"], ":2"))
    found = Deployment({"app": APP, **shared}, brokers)
    assert way(found, "app", "kafka:2") == "b L0"
    assert way(found, "app", "kafka:3") == "nothing listens"
    known = Deployment({"app": APP, **shared}, brokers[:1])
    assert way(known, "app", "kafka:2") == "unknown"


def test_members_are_the_brokers_of_the_cluster_and_itself() -> None:
    found = [
        Broker("a", KAFKA, 1, None, cluster="x"),
        Broker("b", KAFKA, 2, None, cluster="x"),
        Broker("c", KAFKA, 3, None, cluster="x", is_broker=False, is_controller=True),
        Broker("d", KAFKA, 4, None, cluster="y"),
    ]
    whole = Deployment({}, tuple(found))
    assert [[it.service for it in whole.members(one)] for one in found] == [
        ["a", "b"], ["a", "b"], ["a", "b", "c"], ["d"]
    ]  # fmt: skip


def test_a_listener_by_its_name() -> None:
    one = broker("kafka", KAFKA, ":1", ":2")
    assert one.named("L1") == Endpoint("L1", Address("", 2), None)
    assert one.named("L2") is None
    assert broker("kafka", KAFKA).named("L1") is None


hosts = st.sampled_from(
    ["", "kafka", "app", "localhost", "::1", "172.30.0.2", "x.y", "[", "é", "host.docker.internal"]
) | st.text(max_size=8)


@given(hosts, st.integers(-1, 70_000), st.sampled_from(["app", "kafka", HOST, "nobody"]))
def test_every_way_has_an_end(host: str, port: int, place: str) -> None:
    end = deployed().way(place, Address(host, port))
    assert isinstance(end, (ReachedListener, Failure, Unknown))


def test_a_network_that_is_shared_by_way_of_another_has_one_owner() -> None:
    containers = {
        "vpn": Container("vpn"),
        "kafka": Container("kafka", network_mode="service:vpn"),
        "app": Container("app", network_mode="service:kafka"),
        "ring": Container("ring", network_mode="service:back"),
        "back": Container("back", network_mode="service:ring"),
    }
    found = Names(containers)
    owners = {name: found.owner(name) for name in containers}
    assert owners == {
        "vpn": "vpn",
        "kafka": "vpn",
        "app": "vpn",
        "ring": "back",
        "back": "ring",
    }
    assert found.sharing("vpn") == ["vpn", "kafka", "app"]


@pytest.mark.parametrize(
    ("other", "alike"),
    [
        (Container("other", networks=(JoinedNetwork("back", ("other",)),)), True),
        (replace(APP, networks=(JoinedNetwork("front"),)), False),
        (replace(APP, network_mode="host"), False),
        (replace(APP, open_networks=True), False),
        (replace(APP, unknown=("extends",)), False),
        (replace(APP, profiles=("test",)), False),
        (replace(APP, extra_hosts={"a": "192.0.2.1"}), False),
    ],
)
def test_services_that_are_alike_have_one_outlook(other: Container, alike: bool) -> None:
    found = deployed(other=other)
    assert (found.position("app") == found.position("other")) is alike
    assert found.position(HOST) == HOST


def test_services_with_hosts_of_their_own_are_never_alike() -> None:
    app = replace(APP, extra_hosts={"a": "192.0.2.1"})
    found = deployed(app, other=app)
    assert (found.position("app"), found.position("other")) == ("app", "other")


def test_a_hosts_file_has_the_own_hostname_with_every_address() -> None:
    both = (JoinedNetwork("back"), JoinedNetwork("front"))
    found = deployed(kafka=Container("kafka", hostname="k1", networks=both))
    trace = found.trace("kafka", Address("k1", 9092))
    assert [isinstance(it, ReachedListener) for it in trace.ends] == [True, True]
    assert len(found.trace("kafka", Address("kafka", 9092)).ends) == 1


def test_of_several_networks_the_outer_one_is_asked_first_and_then_by_name() -> None:
    def one(name: str, network: str, *, internal: bool = False) -> Container:
        return Container(name, networks=(JoinedNetwork(network, ("kafka",), internal=internal),))

    app = Container("app", networks=(JoinedNetwork("b"), JoinedNetwork("a", internal=True)))
    containers = {"app": app, "x": one("x", "b"), "y": one("y", "a", internal=True)}
    brokers = tuple(broker(name, containers[name], ":9092") for name in "xy")
    assert way(Deployment(containers, brokers), "app", "kafka:9092") == "x L0"
    plain = Container("app", networks=(JoinedNetwork("b"), JoinedNetwork("a")))
    containers |= {"app": plain, "y": one("y", "a")}
    brokers = tuple(broker(name, containers[name], ":9092") for name in "xy")
    assert way(Deployment(containers, brokers), "app", "kafka:9092") == "y L0"
    mixed = Container("app", networks=(JoinedNetwork("b", is_named=False), JoinedNetwork("a")))
    containers |= {"app": mixed}
    assert way(Deployment(containers, brokers), "app", "kafka:9092") == "unknown"


def test_a_link_is_a_name_for_one_container() -> None:
    linked = replace(APP, links={"linked": "kafka"})
    found = deployed(linked, other=APP)
    assert way(found, "app", "linked:9092") == "kafka L0"
    assert way(found, "other", "linked:9092") == "no such name"


@pytest.mark.parametrize(
    ("bind", "by_name", "by_loopback"),
    [
        (":9092", "kafka L0", "kafka L0"),
        ("127.0.0.1:9092", "the client itself", "kafka L0"),
        ("kafka:9092", "kafka L0", "the client itself"),
        ("172.30.0.2:9092", "kafka L0", "the client itself"),
    ],
)
def test_a_bind_address_decides_who_is_let_in(bind: str, by_name: str, by_loopback: str) -> None:
    found = deployed(APP, KAFKA, bind)
    assert way(found, "kafka", "kafka:9092") == by_name
    assert way(found, "kafka", "localhost:9092") == by_loopback


@pytest.mark.parametrize(
    ("ip", "machine", "container"),
    [
        ("", "kafka L0", "kafka L0"),
        ("0.0.0.0", "kafka L0", "kafka L0"),
        ("127.0.0.1", "kafka L0", "nothing listens"),
        ("192.0.2.7", "nothing listens", "unknown"),
        ("${IP}", "unknown", "unknown"),
    ],
)
def test_a_port_is_published_on_some_addresses(ip: str, machine: str, container: str) -> None:
    kafka = replace(KAFKA, published=(PublishedPort(9092, 29092, ip),))
    app = replace(APP, extra_hosts={"machine": "host-gateway"})
    found = deployed(app, kafka)
    assert way(found, HOST, "localhost:29092") == machine
    assert way(found, "app", "machine:29092") == container


def test_internal_networks_are_left_by_no_published_port() -> None:
    inner = JoinedNetwork("back", ("kafka",), internal=True)
    kafka = Container("kafka", networks=(inner,), published=(PublishedPort(9092, 29092),))
    app = replace(APP, networks=(inner,), extra_hosts={"machine": "host-gateway"})
    found = deployed(app, kafka)
    assert way(found, "app", "kafka:9092") == "kafka L0"
    assert way(found, HOST, "localhost:29092") == "no way there"


def test_a_name_of_docker_desktop_is_in_doubt() -> None:
    found = deployed()
    doubtful = found.trace("app", Address("host.docker.internal", 29092))
    assert isinstance(doubtful.end, ReachedListener) and "extra_hosts" in doubtful.doubt
    given = replace(APP, extra_hosts={"host.docker.internal": "host-gateway"})
    assert not deployed(given).trace("app", Address("host.docker.internal", 29092)).doubt


@pytest.mark.parametrize(
    ("networks", "binds", "hops"),
    [
        ((BACK,), ":9092", [(Stage.WAY, Answer.YES), (Stage.SOCKET, Answer.YES)]),
        ((BACK,), "127.0.0.1:9092", [(Stage.WAY, Answer.YES), (Stage.SOCKET, Answer.NO)]),
        ((replace(BACK, internal=True),), ":9092", [(Stage.WAY, Answer.NO)]),
    ],
)
def test_through_a_port_that_docker_chooses(
    networks: tuple[JoinedNetwork, ...], binds: str, hops: list[tuple[Stage, Answer]]
) -> None:
    port = PublishedPort(9092, None)
    kafka = replace(KAFKA, networks=networks, published=(port,))
    found = deployed(APP, kafka, binds).through("kafka", port)
    assert [(it.stage, it.answer) for it in found] == hops


@pytest.mark.parametrize(
    ("address", "published", "end"),
    [
        ("docker-host.example.com:29092", PublishedPort(9092, 29092), "kafka L0"),
        ("docker-host:29092", PublishedPort(9092, 29092), "kafka L0"),
        ("198.51.100.7:29092", PublishedPort(9092, 29092, "198.51.100.7"), "kafka L0"),
        # a router may translate it
        ("198.51.100.7:29092", PublishedPort(9092, 29092, "10.0.0.7"), "unknown"),
        ("198.51.100.7:29092", PublishedPort(9092, 29092, "127.0.0.1"), "nothing listens"),
        ("docker-host:9092", PublishedPort(9092, 29092), "unknown"),
        ("localhost:29092", PublishedPort(9092, 29092), "the client itself"),
        ("kafka:9092", PublishedPort(9092, 29092), "no such name"),
        ("kafka-1.back:9092", PublishedPort(9092, 29092), "no such name"),
        ("172.30.0.2:9092", PublishedPort(9092, 29092), "no such name"),
        ("host.docker.internal:29092", PublishedPort(9092, 29092), "no such name"),
    ],
)
def test_from_another_machine(address: str, published: PublishedPort, end: str) -> None:
    found = deployed(APP, replace(KAFKA, published=(published,)))
    assert way(found, OUTSIDE, address) == end
