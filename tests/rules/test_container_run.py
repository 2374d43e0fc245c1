"""Containers of plain programs, one after the other: each of the mistakes is found and named."""

from __future__ import annotations

from typing import Any

import pytest

from earshot.rules import Finding, Severity, State
from earshot.rules.container_run import ContainerRun
from tests.rules.container_examples import KRAFT, container

LISTENERS = "INTERNAL://0.0.0.0:19092,HOST://0.0.0.0:9092,CONTROLLER://0.0.0.0:9093"


def stopped(found: tuple[Finding, ...]) -> list[tuple[str, str]]:
    return [
        (item.rule, item.listener or "")
        for item in found
        if item.severity is Severity.ERROR and item.state is State.VIOLATED
    ]


def advertised(internal: str, host: str) -> dict[str, str | None]:
    text = f"INTERNAL://{internal},HOST://{host},CONTROLLER://kafka1:9093"
    return {"KAFKA_ADVERTISED_LISTENERS": text}


MISTAKES: dict[str, tuple[dict[str, str | None], dict[str, Any], tuple[str, str]]] = {
    "bound to localhost inside the container": (
        {"KAFKA_LISTENERS": LISTENERS.replace("HOST://0.0.0.0", "HOST://localhost")},
        {},
        ("KL006", "HOST"),
    ),
    "an internal port on the advertised external name": (
        advertised("kafka1:19092", "kafka.example.com:9092"),
        {"ports": [{"internal": 9092, "external": 39092}]},
        ("KL006", "HOST"),
    ),
    "a container name in an external listener": (
        advertised("kafka1:19092", "kafka1:9092"),
        {},
        ("KL006", "HOST"),
    ),
    "localhost in an internal listener": (
        advertised("localhost:19092", "localhost:9092"),
        {},
        ("KL003", "INTERNAL"),
    ),
    "published and advertised port that disagree": (
        advertised("kafka1:19092", "localhost:9999"),
        {},
        ("KL006", "HOST"),
    ),
    "a missing inter-broker listener": (
        {"KAFKA_INTER_BROKER_LISTENER_NAME": ""},
        {},
        ("KL008", "PLAINTEXT"),
    ),
}


def test_a_container_that_is_well_passes() -> None:
    assert ContainerRun().judge("kafka1", container()) == ()


@pytest.mark.parametrize("name", MISTAKES)
def test_a_mistake_is_stopped_with_rule_container_and_remedy(name: str) -> None:
    envs, inputs, expected = MISTAKES[name]
    found = ContainerRun().judge("kafka1", container(envs, **inputs))
    assert expected in stopped(found)
    for item in found:
        assert item.container == "kafka1" and item.subject.startswith("container kafka1, ")
        assert item.remedy and item.rule in item.line


def second(**inputs: Any) -> Any:
    changed: dict[str, str | None] = {
        key: value.replace("kafka1", "kafka2") for key, value in KRAFT.items()
    }
    given = {"networks": [{"name": "kafka", "aliases": ["kafka2"]}], "name": "kafka2", **inputs}
    return container({**changed, "KAFKA_NODE_ID": "2", **inputs.pop("envs", {})}, **given)


def test_a_second_broker_on_taken_addresses_is_stopped() -> None:
    run = ContainerRun()
    assert run.judge("urn:pulumi:s::p::docker:Container::kafka1", container()) == ()
    rest = second(ports=[{"internal": 9092, "external": 9092}])
    found = tuple(run.claim("urn:pulumi:s::p::docker:Container::kafka2", rest))
    assert stopped(found) == [("KL004", "HOST"), ("KL006", "")]
    address, port = found
    assert address.subject == "container kafka2, broker 2, listener HOST"
    assert address.observed == "advertises localhost:9092, which container kafka1 has taken"
    assert port.observed == (
        "publishes 9092->9092, and container kafka1 has taken port 9092 of this host"
    )


def test_the_same_container_may_come_again() -> None:
    run = ContainerRun()
    assert run.judge("a", container()) == ()
    assert run.judge("a", container()) == ()


def test_each_docker_host_has_its_own_ports_and_localhost() -> None:
    run = ContainerRun()
    assert tuple(run.claim("a", container(), "ssh://one")) == ()
    assert tuple(run.claim("b", second(), "ssh://two")) == ()


def test_names_of_different_networks_do_not_meet() -> None:
    run = ContainerRun()
    assert tuple(run.claim("a", container(ports=[]))) == ()
    other = container(networks=[{"name": "other", "aliases": ["kafka1"]}], ports=[])
    taken = [(item.rule, item.listener) for item in run.claim("b", other)]
    assert taken == [("KL004", "HOST")], "localhost is one, the networks are two"


@pytest.mark.parametrize(
    ("one", "other", "clash"),
    [("", "127.0.0.1", True), ("127.0.0.1", "127.0.0.1", True), ("192.0.2.1", "192.0.2.2", False)],
)
def test_a_port_is_taken_per_address_of_the_host(one: str, other: str, clash: bool) -> None:
    run = ContainerRun()
    first, later = (
        container(ports=[{"internal": 9092, "external": 9092, "ip": ip}]) for ip in (one, other)
    )
    assert list(run.claim_ports("a", 1, first.containers[1])) == []
    assert bool(list(run.claim_ports("b", 1, later.containers[1]))) is clash


def test_ports_that_docker_chooses_or_that_are_udp_are_free() -> None:
    run = ContainerRun()
    for holder in ("a", "b"):
        facts = container(
            ports=[{"internal": 9092}, {"internal": 1, "external": 1, "protocol": "udp"}]
        )
        assert list(run.claim_ports(holder, 1, facts.containers[1])) == []
