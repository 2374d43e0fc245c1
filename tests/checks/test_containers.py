"""Containers of plain programs, one after the other: each of the mistakes is found and named."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from earshot.checks.container_names import evidence
from earshot.checks.containers import ContainerRun, skipped_rules
from earshot.facts.cluster import ClusterFacts
from earshot.listeners.model import Scope
from earshot.names.policy import ResolverPolicy
from earshot.rules.finding import Finding, FindingState, Severity
from tests.doubles.resolvers import TableAsked
from tests.rules.container_examples import KRAFT, container
from tests.sources.containers import container_facts

LISTENERS = "INTERNAL://0.0.0.0:19092,HOST://0.0.0.0:9092,CONTROLLER://0.0.0.0:9093"


def stopped(found: tuple[Finding, ...]) -> list[tuple[str, str]]:
    return [
        (item.rule, item.listener or "")
        for item in found
        if item.severity is Severity.ERROR and item.state is FindingState.VIOLATED
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
    assert ContainerRun().evaluate("kafka1", container()) == ()


@pytest.mark.parametrize("networks", [[], [{"name": "net"}]])
def test_the_image_s_own_defaults_on_the_port_that_they_advertise_pass(
    networks: list[dict[str, str]],
) -> None:
    for host_port, rules in ((9092, []), (39092, [("KL006", "PLAINTEXT")])):
        ports = [{"internal": 9092, "external": host_port}]
        facts = container_facts({}, ports, networks, "kafka", "apache/kafka:4.1.1")
        assert stopped(ContainerRun().evaluate("kafka", facts)) == rules


@pytest.mark.parametrize("name", MISTAKES)
def test_a_mistake_is_stopped_with_rule_container_and_remedy(name: str) -> None:
    envs, inputs, expected = MISTAKES[name]
    found = ContainerRun().evaluate("kafka1", container(envs, **inputs))
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
    assert run.evaluate("urn:pulumi:s::p::docker:Container::kafka1", container()) == ()
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
    assert run.evaluate("a", container()) == ()
    assert run.evaluate("a", container()) == ()


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


@pytest.mark.parametrize(
    ("one", "other", "clash"),
    [
        ("localhost", "127.0.0.1", True),
        ("[::1]", "localhost", True),
        ("Docker-Host.example.com", "docker-host.EXAMPLE.com", True),
        ("[2001:db8::1]", "[2001:DB8:0::1]", True),
        ("docker-host.example.com", "docker-hosts.example.com", False),
    ],
)
def test_one_address_in_two_ways_of_writing_is_taken_once(
    one: str, other: str, clash: bool
) -> None:
    run = ContainerRun()
    for holder, host, found in (("a", one, []), ("b", other, ["HOST"] * clash)):
        facts = container(advertised(f"kafka-{holder}:19092", f"{host}:9092"), ports=[])
        assert facts.plan is not None
        told = [item.listener for item in run.claim(holder, facts) if item.listener == "HOST"]
        assert told == found


@pytest.mark.parametrize(
    ("scopes", "clash"),
    [("internal", []), ("internal+controller", []), ("internal+host", ["INTERNAL"])],
)
def test_loopback_inside_a_container_is_its_own(scopes: str, clash: list[str]) -> None:
    run = ContainerRun()
    found = []
    for holder in ("a", "b"):
        facts = container(
            {
                **advertised("localhost:19092", f"{holder}.example.com:9092"),
                "EARSHOT_SCOPES": f"INTERNAL:{scopes}",
            },
            ports=[],
            name=holder,
        )
        found += [item.listener for item in run.claim(holder, facts) if item.rule == "KL004"]
    assert [item for item in found if item == "INTERNAL"] == clash


def test_a_port_is_taken_by_each_that_had_it_first() -> None:
    run = ContainerRun()

    def claimed(holder: str, ip: str) -> list[str]:
        facts = container(ports=[{"internal": 9092, "external": 9092, "ip": ip}])
        return [item.observed for item in run.claim_ports(holder, 1, facts.containers[1])]

    assert claimed("urn::a", "192.0.2.1") == []
    assert claimed("urn::b", "192.0.2.2") == []
    for ip, holder in (("192.0.2.2", "b"), ("0.0.0.0", "a"), ("::", "a")):
        shown = f"[{ip}]" if ":" in ip else ip
        assert claimed("urn::c", ip) == [
            f"publishes {shown}:9092->9092, and container {holder} has taken port 9092 of this host"
        ]


def test_a_taken_port_is_said_with_all_that_a_finding_needs() -> None:
    run = ContainerRun()
    assert list(run.claim_ports("a", 1, container().containers[1])) == []
    (found,) = run.claim_ports("b", 7, container().containers[1])
    assert (found.node, found.container, found.listener) == (7, "kafka1", None)
    assert found.line == (
        "container kafka1, broker 7: publishes 9092->9092, and container a has taken port 9092 of "
        "this host - expected a port of the host for each container - publish another port of the "
        "host, and advertise that one [KL006] "
        "https://docs.docker.com/engine/network/port-publishing/"
    )


def test_rules_that_take_more_than_one_container_say_so() -> None:
    assert skipped_rules(container()) == {
        "KL005": "takes the whole cluster",
        "KL013": "takes the whole cluster",
        "KL011": "no name was looked up",
        "KL012": "no name was looked up",
    }
    unknown = skipped_rules(container({"KAFKA_NODE_ID": None}))
    assert {id: unknown[id] for id in ("KL002", "KL008")} == dict.fromkeys(
        ("KL002", "KL008"), "not all of its inputs are known yet"
    )
    facts = container()
    looked_up = replace(facts, evidence=evidence(facts, ResolverPolicy(), TableAsked({})))
    assert skipped_rules(looked_up) == {
        "KL005": "takes the whole cluster",
        "KL013": "takes the whole cluster",
        "KL012": "the addresses of its Docker host are not known",
    }
    assert "KL012" not in skipped_rules(replace(looked_up, addresses={1: ("10.0.0.1",)}))


def test_ports_that_docker_chooses_or_that_are_udp_are_free() -> None:
    run = ContainerRun()
    for holder in ("a", "b"):
        facts = container(
            ports=[{"internal": 9092}, {"internal": 1, "external": 1, "protocol": "udp"}]
        )
        assert list(run.claim_ports(holder, 1, facts.containers[1])) == []


def test_on_the_hosts_own_network_what_is_bound_is_taken() -> None:
    run = ContainerRun()
    hosted: dict[str, Any] = {"network_mode": "host", "networks": [], "ports": []}
    texts = {
        key: value.replace("kafka1", "localhost")
        for key, value in KRAFT.items()
        if "LISTENERS" in key
    }
    assert tuple(run.claim("a", container({**texts}, **hosted))) == ()
    found = tuple(run.claim("b", container({**texts, "KAFKA_NODE_ID": "2"}, **hosted)))
    assert {item.rule for item in found} == {"KL004", "KL006"}
    ports = [item.observed for item in found if item.rule == "KL006"]
    assert (
        "listens on the host's port 0.0.0.0:9092->9092, and container a has taken port 9092 of "
        "this host"
    ) in ports


def silent(facts: ClusterFacts, rule: str) -> str:
    return skipped_rules(facts).get(rule, "")


@pytest.mark.parametrize(
    ("image", "envs", "reason"),
    [
        ("apache/kafka:4.1.1", {}, ""),
        ("apache/kafka:3.7.0", {}, "older than Kafka 3.9"),
        ("confluentinc/cp-kafka:7.5.0", {}, "older than Kafka 3.9"),
        ("confluentinc/cp-kafka:7.9.0", {}, ""),
        ("sha256:" + 64 * "a", {"KAFKA_PROCESS_ROLES": "", "KAFKA_ZOOKEEPER_CONNECT": "z:1"},
         "set up for ZooKeeper"),
        ("apache/kafka:4.1.1", {"KAFKA_PROCESS_ROLES": "", "KAFKA_ZOOKEEPER_CONNECT": "z:1"}, ""),
        ("sha256:" + 64 * "a", {"KAFKA_ZOOKEEPER_CONNECT": "z:1"}, ""),
        ("sha256:" + 64 * "a", {"KAFKA_PROCESS_ROLES": "", "KAFKA_ZOOKEEPER_CONNECT": "z:1",
                                "EARSHOT_KAFKA_VERSION": "4.1.1"}, ""),
        ("confluentinc/cp-kafka:7.9.0",
         {"KAFKA_PROCESS_ROLES": "", "KAFKA_ZOOKEEPER_CONNECT": "z:1"}, "set up for ZooKeeper"),
        ("sha256:" + 64 * "a", {"KAFKA_PROCESS_ROLES": ""}, ""),
        ("confluentinc/cp-kafka:8.0.0",
         {"KAFKA_PROCESS_ROLES": "", "KAFKA_ZOOKEEPER_CONNECT": "z:1"}, ""),
        ("apache/kafka:4.1.1", {"KAFKA_NODE_ID": None}, "not all of its inputs are known yet"),
    ],
)  # fmt: skip
def test_kafkas_own_rules_are_asked_where_they_hold(
    image: str, envs: dict[str, str | None], reason: str
) -> None:
    found = silent(container(envs, image=image), "KL002")
    assert reason in found and bool(reason) == bool(found)


def test_what_a_mounted_file_may_say_is_not_judged() -> None:
    facts = container({"KAFKA_INTER_BROKER_LISTENER_NAME": ""}, mounts=["/mnt/shared/config"])
    assert stopped(ContainerRun().evaluate("a", facts)) == []
    assert silent(facts, "KL008") == ("its image may read a mounted properties file")


@pytest.mark.parametrize(
    ("changed", "rules"),
    [
        ({"KAFKA_CONTROLLER_LISTENER_NAMES": "", "KAFKA_NODE_ID": ""}, ["KL002"]),
        ({"KAFKA_PORT": "1", "CLUSTER_ID": "", "KAFKA_LISTENERS": ""}, []),
    ],
)
def test_an_image_that_nobody_names_stops_for_what_any_kafka_refuses(
    changed: dict[str, str | None], rules: list[str]
) -> None:
    found = ContainerRun().evaluate("a", container(changed, image="sha256:" + 64 * "b"))
    assert {rule for rule, _ in stopped(found)} == {*rules}
    hints = [item for item in found if item.rule == "KL014"]
    assert hints and all(item.severity is Severity.WARNING for item in hints)
    assert all("EARSHOT_IMAGE=NAME" in item.remedy for item in hints)


@pytest.mark.parametrize(
    ("addresses", "found"),
    [((), []), (("192.0.2.7",), []), (("192.0.2.8",), [Severity.WARNING])],
)
def test_a_name_that_leads_elsewhere_is_advice_for_a_router_may_stand_there(
    addresses: tuple[str, ...], found: list[Severity]
) -> None:
    texts = advertised("kafka1:19092", "host.example.com:9092")
    facts = container(texts)
    asked = TableAsked({"192.0.2.53": {"host.example.com": ("192.0.2.7",)}})
    policy = ResolverPolicy(resolvers={Scope.EXTERNAL: ("192.0.2.53",)})
    facts = replace(
        facts,
        evidence=evidence(facts, policy, asked),
        addresses={1: addresses} if addresses else {},
    )
    judged = ContainerRun().evaluate("a", facts)
    assert [item.severity for item in judged if item.rule == "KL012"] == found
