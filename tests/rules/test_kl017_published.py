"""KL017: localhost and ports, in every combination; whole files are in `examples/KL017`."""

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from earshot.facts.cluster import ClusterFacts
from earshot.listeners.address import Address
from earshot.rules.kl017_published import RULE
from earshot.rules.rule import Finding, Severity
from earshot.topology.broker import Bootstrap, Broker, Endpoint
from earshot.topology.container import Container, JoinedNetwork, NodePort, PublishedPort
from earshot.topology.model import Deployment

ON_ITS_NODE = NodePort(9092, 1)
NET = (JoinedNetwork("net", ("kafka",)),)
OF_PROJECT = JoinedNetwork("net", ("kafka",), is_named=False)


def checked(
    advertised: Address,
    *published: PublishedPort,
    listens: int = 9092,
    bind: str = "",
    is_image_known: bool = True,
    clients: int = 0,
    networks: tuple[JoinedNetwork, ...] = NET,
) -> list[Finding]:
    kafka = Container("kafka", networks=networks, published=published)
    apps = {f"app{i}": Container(f"app{i}", networks=NET) for i in range(clients)}
    endpoint = Endpoint("A", Address(bind, listens), advertised)
    deployment = Deployment(
        {"kafka": kafka, **apps},
        (Broker("kafka", kafka, 1, (endpoint,), is_image_known=is_image_known),),
        tuple(Bootstrap(name, "BROKERS", (Address("kafka", listens),)) for name in apps),
    )
    return list(RULE.findings(ClusterFacts(plan=None, deployment=deployment)))


@pytest.mark.parametrize(
    ("host", "ports", "severity"),
    [
        ("localhost", ("udp",), Severity.ERROR),
        ("localhost", ("sctp",), Severity.ERROR),
        ("kafka", ("udp",), None),  # for clients in other containers
        ("kafka.example.com", ("udp",), Severity.WARNING),
        ("localhost", ("udp", "tcp"), None),
        ("localhost", ("tcp",), None),
    ],
)
def test_a_port_published_without_tcp(
    host: str, ports: tuple[str, ...], severity: Severity | None
) -> None:
    published = (PublishedPort(9092, 9092, protocol=protocol) for protocol in ports)
    findings = checked(Address(host, 9092), *published)
    assert [finding.severity for finding in findings] == ([severity] if severity else [])
    for finding in findings:
        assert finding.observed == (
            f"publishes 9092->9092 as {ports[0].upper()} alone, and A listens with TCP: no client "
            "connects there"
        )
        assert finding.remedy == f"publish 9092:9092, without /{ports[0]}"


@pytest.mark.parametrize(
    ("network", "severity"),
    [
        (OF_PROJECT, Severity.ERROR),
        # a proxy of another file may join the network, or connect to the fixed address
        (replace(OF_PROJECT, is_named=True), Severity.WARNING),
        (replace(OF_PROJECT, address="172.30.0.9"), Severity.WARNING),
    ],
)
def test_an_unpublished_address_by_network(network: JoinedNetwork, severity: Severity) -> None:
    (finding,) = checked(Address("203.0.113.5", 9092), networks=(network,))
    assert finding.observed == "advertises 203.0.113.5:9092, and no port of the machine leads to it"
    assert finding.severity is severity


def test_another_port_published_without_tcp_is_another_program_s() -> None:
    statsd = PublishedPort(8125, 9092, protocol="udp")
    assert not checked(Address("localhost", 9092), statsd)


@pytest.mark.parametrize("host", ["localhost", "kafka.example.com", "kafka"])
def test_a_published_port_of_a_listener_on_loopback_is_closed(host: str) -> None:
    port = PublishedPort(9092, 9093)
    (finding,) = checked(Address(host, 9093), port, bind="127.0.0.1")
    assert finding.observed == (
        "publishes 9093->9092, and A listens on 127.0.0.1:9092, which is the container alone: "
        "no client connects there"
    )
    assert finding.remedy == "write A://0.0.0.0:9092 into listeners, and keep what it advertises"
    assert not checked(Address(host, 9092), bind="127.0.0.1")


@pytest.mark.parametrize(
    ("host", "severity"),
    [
        ("kafka.example.com", Severity.WARNING),
        ("192.0.2.7", Severity.WARNING),
        ("host.docker.internal", Severity.ERROR),
    ],
)
def test_a_name_of_the_machine_with_a_port_that_is_not_published(
    host: str, severity: Severity
) -> None:
    (finding,) = checked(Address(host, 1), PublishedPort(9092, 2))
    assert finding.severity is severity
    assert finding.observed == f"advertises {host}:1, and the published port is 2->9092"
    assert finding.remedy == (
        f"publish 1:9092, or advertise A://{host}:2, unless a proxy or router translates the port"
    )
    assert not checked(Address(host, 2), PublishedPort(9092, 2))
    assert not checked(Address(host, 1), PublishedPort(9092, 2), PublishedPort(9092, 1))
    assert not checked(Address(host, 1), PublishedPort(9092, 2), PublishedPort(9091, 1))


@pytest.mark.parametrize(
    ("host", "ips", "said"),
    [
        ("localhost", ("192.0.2.7",), True),
        ("localhost", ("192.0.2.7", "127.0.0.1"), False),
        ("localhost", ("127.0.0.1",), False),
        ("localhost", ("0.0.0.0",), False),
        ("192.0.2.7", ("192.0.2.7",), False),
        ("kafka.example.com", ("127.0.0.1",), False),  # what stands before it may pass it on
    ],
)
def test_localhost_leads_to_no_other_address_of_the_machine(
    host: str, ips: tuple[str, ...], said: bool
) -> None:
    findings = checked(Address(host, 9092), *(PublishedPort(9092, 9092, ip) for ip in ips))
    text = (
        "advertises localhost:9092, and the port is published on 192.0.2.7 alone "
        "(192.0.2.7:9092->9092), where localhost does not lead"
    )
    assert [finding.observed for finding in findings] == [text] * said


@pytest.mark.parametrize(
    ("first", "second", "profiles", "said"),
    [
        (PublishedPort(9092, 1), PublishedPort(9093, 1), ("", ""), True),
        (PublishedPort(9092, 1, "127.0.0.1"), PublishedPort(9092, 1), ("", ""), True),
        (PublishedPort(9092, 1, "::1"), PublishedPort(9092, 1, "127.0.0.1"), ("", ""), False),
        (PublishedPort(9092, 1), PublishedPort(9092, 2), ("", ""), False),
        (PublishedPort(9092, None), PublishedPort(9092, None), ("", ""), False),
        (PublishedPort(9092, 1, protocol="udp"), PublishedPort(9092, 1), ("", ""), False),
        (ON_ITS_NODE, ON_ITS_NODE, ("", ""), False),
        (ON_ITS_NODE, PublishedPort(9092, 1), ("", ""), True),
        (PublishedPort(9092, 1), PublishedPort(9092, 1), ("one", "two"), False),
        (PublishedPort(9092, 1), PublishedPort(9092, 1), ("one", "one"), True),
    ],
)
@pytest.mark.parametrize("brokers", [("a",), ("b",), ("a", "b"), ()])
def test_one_port_of_the_machine_for_two_containers(
    first: PublishedPort,
    second: PublishedPort,
    profiles: tuple[str, str],
    brokers: tuple[str, ...],
    said: bool,
) -> None:
    found = [
        Container(name, networks=NET, published=(port,), profiles=(profile,) if profile else ())
        for name, port, profile in zip("ab", (first, second), profiles, strict=True)
    ]
    containers = {item.name: item for item in found}
    nodes = tuple(Broker(name, containers[name], None, None) for name in brokers)
    facts = ClusterFacts(plan=None, deployment=Deployment(containers, nodes))
    findings = list(RULE.findings(facts))
    assert [item.container for item in findings] == list(brokers[-1:]) * said
    for item in findings:
        ports = {"a": first, "b": second}
        other = "ab".replace(item.container, "")
        assert item.observed == (
            f"publishes {ports[item.container]}, and {other} publishes {ports[other]}: "
            "Docker starts only one of them"
        )


@pytest.mark.parametrize(
    ("is_image_known", "clients", "severity"),
    [
        (True, 0, Severity.ERROR),
        (True, 1, Severity.ERROR),
        (False, 0, Severity.ERROR),
        (False, 1, Severity.WARNING),
    ],
)
def test_of_an_image_that_is_not_known_its_clients_may_be_all(
    is_image_known: bool, clients: int, severity: Severity
) -> None:
    port = PublishedPort(9092, 9092)
    (finding,) = checked(
        Address("kafka", 9092), port, is_image_known=is_image_known, clients=clients
    )
    assert (finding.severity, finding.inputs) == (severity, ("advertised.listeners", "ports"))


ports = st.integers(1, 4)


@given(
    st.sampled_from(["localhost", "127.0.0.1", "kafka", "machine", "kafka.example.com"]),
    ports,
    ports,
    st.lists(st.builds(PublishedPort, ports, ports | st.none()), max_size=3),
)
def test_who_comes_in_and_is_sent_back_to_the_same_listener_has_no_finding(
    host: str, port: int, listens: int, published: list[PublishedPort]
) -> None:
    findings = checked(Address(host, port), *published, listens=listens)
    behind = [item.container_port for item in published if item.host_port == port]
    is_open = [item for item in published if item.container_port == listens]
    to_nobody = bool(behind) and not is_open
    if not published:
        assert findings == []
    elif host in ("machine", "kafka.example.com"):
        sure = any(item.host_port for item in is_open)
        said = to_nobody or (sure and not behind)
        assert [item.severity for item in findings] == [Severity.WARNING] * said
    elif host == "kafka":
        sure = to_nobody or any(item.host_port for item in is_open)
        expected = [Severity.ERROR] if sure else [Severity.WARNING] * bool(is_open)
        assert [item.severity for item in findings] == expected
    elif behind and behind[0] == listens:
        assert findings == []


@pytest.mark.parametrize(("advertised", "observed"), [
    (Address("localhost", 2), []),
    (Address("localhost", 9092),
     ["advertises localhost:9092 and listens on 9092, and the published port is 2->9092"]),
    (Address("kafka", 9092),
     [("publishes 2->9092, and clients that come in there are sent to kafka, a "
       "name that only the containers know")]),
])  # fmt: skip
def test_beside_a_port_that_docker_chooses_a_fixed_one_counts(
    advertised: Address, observed: list[str]
) -> None:
    findings = checked(advertised, PublishedPort(9092, None), PublishedPort(9092, 2))
    assert [finding.observed for finding in findings] == observed


@pytest.mark.parametrize(("host", "misled"), [("localhost", []), ("kafka", ["OUTSIDE"])])
def test_listeners_that_advertise_each_other(host: str, misled: list[str]) -> None:
    ports = (PublishedPort(9092, 9092), PublishedPort(9093, 9093))
    kafka = Container("kafka", networks=NET, published=ports)
    crossed = (
        Endpoint("INSIDE", Address("", 9092), Address("localhost", 9093)),
        Endpoint("OUTSIDE", Address("", 9093), Address(host, 9092)),
    )
    deployment = Deployment({"kafka": kafka}, (Broker("kafka", kafka, 1, crossed),))
    findings = RULE.findings(ClusterFacts(plan=None, deployment=deployment))
    assert [finding.listener for finding in findings] == misled
