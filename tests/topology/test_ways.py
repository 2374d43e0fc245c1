"""The broker that an address reaches, by the client's place."""

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
from earshot.topology.ways import Answer, Failure, HopKind, Outcome

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


def deployment_of(
    app: Container = APP, kafka: Container = KAFKA, *binds: str, **other_containers: Container
) -> Deployment:
    return Deployment(
        {"app": app, "kafka": kafka, **other_containers},
        (broker("kafka", kafka, *(binds or (":9092", "127.0.0.1:9999"))),),
    )


def way(model: Deployment, place: str, address: str) -> str:
    """`kafka L0`, or where it ends."""
    end: Outcome = model.way(place, Address(*parse_address(address)))
    if isinstance(end, ReachedListener):
        return f"{end.broker.service} {end.endpoint.name}"
    return "unknown" if isinstance(end, Unknown) else end.value


@pytest.mark.parametrize(
    ("published", "address", "end"),
    [
        ("127.0.0.1", "localhost:29092", "kafka L0"),
        ("127.0.0.1", "127.0.0.1:29092", "kafka L0"),
        ("127.0.0.1", "[::1]:29092", "nothing listens"),
        ("::1", "[::1]:29092", "kafka L0"),
        ("::1", "127.0.0.1:29092", "nothing listens"),
        ("::1", "localhost:29092", "unknown"),  # of some machines it is 127.0.0.1 alone
    ],
)
def test_a_port_on_one_loopback_is_not_on_the_other(published: str, address: str, end: str) -> None:
    kafka = replace(KAFKA, published=(PublishedPort(9092, 29092, published),))
    assert way(deployment_of(APP, kafka), HOST, address) == end


def app_with(**options: Any) -> Deployment:
    """A client on the broker's network, with these ``options``."""
    return deployment_of(replace(APP, **options))


OTHER_NETWORK = app_with(networks=(JoinedNetwork("front", ("app",)),))
ON_HOST = deployment_of(Container("app", network_mode="host"))
PROXY = Container("proxy", networks=APP.networks, published=(PublishedPort(9092, 8080),))
PROXIED = deployment_of(APP, KAFKA, proxy=PROXY)
UNKNOWN_LISTENERS = Deployment({"app": APP, "kafka": KAFKA}, (broker("kafka", KAFKA),))
LINKED = deployment_of(replace(APP, links={"linked": "kafka"}), other=APP)


@pytest.mark.parametrize(("model", "place", "address", "end"), [
    # a listener on one loopback is not on the other
    *((deployment_of(APP, KAFKA, bind), "kafka", address, end) for bind, address, end in (
        ("127.0.0.1:9092", "localhost:9092", "kafka L0"),
        ("127.0.0.1:9092", "[::1]:9092", "the client itself"),
        ("::1:9092", "localhost:9092", "kafka L0"),
        ("::1:9092", "127.0.0.1:9092", "the client itself"),
    )),
    (OTHER_NETWORK, "app", "kafka:9092", "no such name"),
    # an unknown name may be one that is not described
    (app_with(open_networks=True), "app", "other:9092", "unknown"),
    (app_with(unknown=("extends",)), "app", "other:9092", "unknown"),
    (app_with(), "app", "other:9092", "no such name"),
    # a container's own hosts file comes first
    *((app_with(extra_hosts={"kafka.test": to}), "app", "Kafka.test:29092", end) for to, end in (
        ("127.0.0.1", "the client itself"),
        ("host-gateway", "kafka L0"),
        ("172.30.0.2", "nothing listens"),
        ("192.0.2.7", "unknown"),
    )),
    # on the host's network a client is where the machine is
    (ON_HOST, "app", "localhost:29092", "kafka L0"),
    (ON_HOST, "app", "kafka:9092", "no such name"),
    (ON_HOST, "app", "machine:9092", "unknown"),
    # who is behind a container that is no broker is not known
    (PROXIED, "app", "proxy:9092", "unknown"),
    (PROXIED, HOST, "localhost:8080", "unknown"),
    # a broker whose listeners are not known may listen anywhere
    (UNKNOWN_LISTENERS, "app", "kafka:1", "unknown"),
    (UNKNOWN_LISTENERS, HOST, "localhost:29092", "unknown"),
    # a link is a name for one container
    (LINKED, "app", "linked:9092", "kafka L0"),
    (LINKED, "other", "linked:9092", "no such name"),
])  # fmt: skip
def test_where_an_address_leads(model: Deployment, place: str, address: str, end: str) -> None:
    assert way(model, place, address) == end


@pytest.mark.parametrize(
    ("place", "address", "end"),
    [
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
    ],
)
def test_a_way(place: str, address: str, end: str) -> None:
    assert way(deployment_of(), place, address) == end


def test_names_are_those_of_a_network_that_both_are_on() -> None:
    front = JoinedNetwork("front", ("kafka", "outer"), "172.31.0.2")
    model = deployment_of(kafka=Container("kafka", networks=(front, BACK)))
    for host in ("kafka", "broker", "172.30.0.2"):
        assert way(model, "app", f"{host}:9092") == "kafka L0"
    assert way(model, "app", "outer:9092") == "no such name"
    assert way(model, "app", "172.31.0.2:9092") == "no way there"
    assert way(model, "kafka", "outer:9092") == "kafka L0"


@pytest.mark.parametrize("mode", ["service:other", "service:app", "container:elsewhere"])
def test_the_network_of_a_container_elsewhere_is_not_known(mode: str) -> None:
    model = deployment_of(Container("app", network_mode=mode))
    for host in ("localhost", "kafka", "kafka.example.com"):
        assert way(model, "app", f"{host}:9092") == "unknown"


@pytest.mark.parametrize("mode", ["service:kafka", "container:kafka-1"])
def test_who_shares_a_network_is_where_its_owner_is(mode: str) -> None:
    model = deployment_of(Container("app", network_mode=mode))
    for host in ("localhost", "kafka"):
        assert way(model, "app", f"{host}:9092") == way(model, "kafka", f"{host}:9092")
    assert way(model, "app", "localhost:9092").startswith("kafka ")


@pytest.mark.parametrize(("place", "host"), [(HOST, "localhost"), ("app", "host-gateway")])
def test_a_broker_on_the_host_network_has_the_machines_ports(place: str, host: str) -> None:
    model = deployment_of(APP, Container("kafka", network_mode="host"))
    assert way(model, place, f"{host}:9092") == "kafka L0"
    loopback = "kafka L1" if place == HOST else "nothing listens"
    assert way(model, place, f"{host}:9999") == loopback
    assert way(model, place, f"{host}:1") == "unknown"


def test_a_published_port_leads_to_a_port_of_its_container() -> None:
    ports = (
        PublishedPort(9092, 1),
        PublishedPort(7, 2),
        PublishedPort(9092, 3, protocol="udp"),
        PublishedPort(9999, 4),
    )
    model = deployment_of(APP, Container("kafka", published=ports))
    ends = [way(model, HOST, f"localhost:{port}") for port in (1, 2, 3, 4)]
    assert ends == ["kafka L0", "nothing listens", "unknown", "nothing listens"]


def test_of_two_that_have_one_name_the_one_that_listens_counts() -> None:
    shared = {name: Container(name, networks=(JoinedNetwork("back", ("kafka",)),)) for name in "ab"}
    brokers = (broker("a", shared["a"], ":1"), broker("b", shared["b"], ":2"))
    model = Deployment({"app": APP, **shared}, brokers)
    assert way(model, "app", "kafka:2") == "b L0"
    assert way(model, "app", "kafka:3") == "nothing listens"
    model_with_one_broker = Deployment({"app": APP, **shared}, brokers[:1])
    assert way(model_with_one_broker, "app", "kafka:2") == "unknown"


def test_members_are_the_brokers_of_the_cluster_and_itself() -> None:
    members = [
        Broker("a", KAFKA, 1, None, cluster="x"),
        Broker("b", KAFKA, 2, None, cluster="x"),
        Broker("c", KAFKA, 3, None, cluster="x", is_broker=False, is_controller=True),
        Broker("d", KAFKA, 4, None, cluster="y"),
    ]
    model = Deployment({}, tuple(members))
    services = [[member.service for member in model.members(broker)] for broker in members]
    assert services == [["a", "b"], ["a", "b"], ["a", "b", "c"], ["d"]]


def test_a_listener_by_its_name() -> None:
    kafka = broker("kafka", KAFKA, ":1", ":2")
    assert kafka.named("L1") == Endpoint("L1", Address("", 2), None)
    assert kafka.named("L2") is None
    assert broker("kafka", KAFKA).named("L1") is None


hosts = st.sampled_from(
    ["", "kafka", "app", "localhost", "::1", "172.30.0.2", "x.y", "[", "é", "host.docker.internal"]
) | st.text(max_size=8)


@given(hosts, st.integers(-1, 70_000), st.sampled_from(["app", "kafka", HOST, "nobody"]))
def test_every_way_has_an_end(host: str, port: int, place: str) -> None:
    end = deployment_of().way(place, Address(host, port))
    assert isinstance(end, (ReachedListener, Failure, Unknown))


def test_a_network_that_is_shared_by_way_of_another_has_one_owner() -> None:
    containers = {
        "vpn": Container("vpn"),
        "kafka": Container("kafka", network_mode="service:vpn"),
        "app": Container("app", network_mode="service:kafka"),
        "ring": Container("ring", network_mode="service:back"),
        "back": Container("back", network_mode="service:ring"),
    }
    names = Names(containers)
    owners = {name: names.owner(name) for name in containers}
    assert owners == {
        "vpn": "vpn",
        "kafka": "vpn",
        "app": "vpn",
        "ring": "back",
        "back": "ring",
    }
    assert names.sharing("vpn") == ["vpn", "kafka", "app"]


@pytest.mark.parametrize(
    ("other_container", "alike"),
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
def test_services_that_are_alike_have_one_outlook(other_container: Container, alike: bool) -> None:
    model = deployment_of(other=other_container)
    assert (model.position("app") == model.position("other")) is alike
    assert model.position(HOST) == HOST


def test_services_with_hosts_of_their_own_are_never_alike() -> None:
    app = replace(APP, extra_hosts={"a": "192.0.2.1"})
    model = deployment_of(app, other=app)
    assert (model.position("app"), model.position("other")) == ("app", "other")


def test_a_hosts_file_has_the_own_hostname_with_every_address() -> None:
    networks = (JoinedNetwork("back"), JoinedNetwork("front"))
    model = deployment_of(kafka=Container("kafka", hostname="k1", networks=networks))
    trace = model.trace("kafka", Address("k1", 9092))
    assert [isinstance(end, ReachedListener) for end in trace.ends] == [True, True]
    assert len(model.trace("kafka", Address("kafka", 9092)).ends) == 1


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
    model = deployment_of(APP, KAFKA, bind)
    assert way(model, "kafka", "kafka:9092") == by_name
    assert way(model, "kafka", "localhost:9092") == by_loopback


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
    model = deployment_of(app, kafka)
    assert way(model, HOST, "localhost:29092") == machine
    assert way(model, "app", "machine:29092") == container


def test_internal_networks_are_left_by_no_published_port() -> None:
    inner = JoinedNetwork("back", ("kafka",), internal=True)
    kafka = Container("kafka", networks=(inner,), published=(PublishedPort(9092, 29092),))
    app = replace(APP, networks=(inner,), extra_hosts={"machine": "host-gateway"})
    model = deployment_of(app, kafka)
    assert way(model, "app", "kafka:9092") == "kafka L0"
    assert way(model, HOST, "localhost:29092") == "no way there"


def test_a_name_of_docker_desktop_is_in_doubt() -> None:
    model = deployment_of()
    doubtful = model.trace("app", Address("host.docker.internal", 29092))
    assert isinstance(doubtful.end, ReachedListener) and "extra_hosts" in doubtful.doubt
    app_with_entry = replace(APP, extra_hosts={"host.docker.internal": "host-gateway"})
    assert (
        not deployment_of(app_with_entry).trace("app", Address("host.docker.internal", 29092)).doubt
    )


@pytest.mark.parametrize(
    ("networks", "binds", "hops"),
    [
        ((BACK,), ":9092", [(HopKind.WAY, Answer.YES), (HopKind.SOCKET, Answer.YES)]),
        ((BACK,), "127.0.0.1:9092", [(HopKind.WAY, Answer.YES), (HopKind.SOCKET, Answer.NO)]),
        ((replace(BACK, internal=True),), ":9092", [(HopKind.WAY, Answer.NO)]),
    ],
)
def test_through_a_port_that_docker_chooses(
    networks: tuple[JoinedNetwork, ...], binds: str, hops: list[tuple[HopKind, Answer]]
) -> None:
    port = PublishedPort(9092, None)
    kafka = replace(KAFKA, networks=networks, published=(port,))
    walked_hops = deployment_of(APP, kafka, binds).through("kafka", port)
    assert [(hop.kind, hop.answer) for hop in walked_hops] == hops


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
    model = deployment_of(APP, replace(KAFKA, published=(published,)))
    assert way(model, OUTSIDE, address) == end
