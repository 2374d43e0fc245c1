"""KL017: localhost and ports, in every combination; whole files are in `examples/KL017`."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from earshot.facts.cluster import ClusterFacts
from earshot.facts.container import Container, JoinedNetwork, PublishedPort
from earshot.facts.deployment import Bootstrap, Broker, Deployment, Endpoint
from earshot.listeners.address import Address
from earshot.rules.finding import Finding, Severity
from earshot.rules.kl017_published import RULE

NET = (JoinedNetwork("net", ("kafka",)),)


def judged(
    advertised: Address,
    *published: PublishedPort,
    listens: int = 9092,
    is_told: bool = True,
    clients: int = 0,
) -> list[Finding]:
    kafka = Container("kafka", networks=NET, published=published)
    apps = {f"app{i}": Container(f"app{i}", networks=NET) for i in range(clients)}
    endpoint = Endpoint("A", Address("", listens), advertised)
    deployment = Deployment(
        {"kafka": kafka, **apps},
        (Broker("kafka", kafka, 1, (endpoint,), is_told=is_told),),
        tuple(Bootstrap(name, "BROKERS", (Address("kafka", listens),)) for name in apps),
    )
    return list(RULE.check(ClusterFacts(plan=None, deployment=deployment)))


@pytest.mark.parametrize(
    ("advertised", "published", "observed", "remedy"),
    [
        (
            1,
            PublishedPort(9092, 2),
            "advertises localhost:1 and listens on 9092, and the published port is 2->9092",
            "publish 1:9092, or advertise A://localhost:2",
        ),
        (
            1,
            PublishedPort(1, 1),
            (
                "advertises localhost:1 and listens on 9092, and its published port 1->1 leads to "
                "no listener of the container"
            ),
            "publish 1:9092",
        ),
    ],
)
def test_localhost_with_a_port_that_leads_elsewhere(
    advertised: int, published: PublishedPort, observed: str, remedy: str
) -> None:
    (found,) = judged(Address("localhost", advertised), published)
    assert (found.observed, found.remedy) == (observed, remedy)
    assert found.expected == "a published port that leads to 9092, advertised as it is"


@pytest.mark.parametrize(
    ("is_told", "clients", "severity"),
    [
        (True, 0, Severity.ERROR),
        (True, 1, Severity.ERROR),
        (False, 0, Severity.ERROR),
        (False, 1, Severity.WARNING),
    ],
)
def test_of_an_image_that_is_not_known_its_clients_may_be_all(
    is_told: bool, clients: int, severity: Severity
) -> None:
    port = PublishedPort(9092, 9092)
    (found,) = judged(Address("kafka", 9092), port, is_told=is_told, clients=clients)
    assert found.severity is severity


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
    found = judged(Address(host, port), *published, listens=listens)
    behind = [item.container_port for item in published if item.host_port == port]
    is_open = [item for item in published if item.container_port == listens]
    if host in ("machine", "kafka.example.com") or not published:
        assert found == []
    elif host == "kafka":
        assert bool(found) == bool(is_open and all(item.host_port for item in is_open))
    elif behind and behind[0] == listens:
        assert found == []
