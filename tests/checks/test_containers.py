from dataclasses import replace

import pytest

from earshot.checks.containers import (
    ContainerRun,
    RegisteredContainer,
    declarations,
    evidence,
)
from earshot.facts.cluster import ClusterFacts
from earshot.listeners.terms import Scope, UnknownHost
from earshot.names.evidence import Declaration, EvidenceKind
from earshot.names.policy import ResolverPolicy, read_policy
from earshot.sources.docker_container import read_service
from tests.doubles.resolvers import TableAsked
from tests.rules.container_examples import container

SERVER = ("192.0.2.53",)
BEYOND = {
    "EARSHOT_SCOPES": "INTERNAL:internal,HOST:host",
    "KAFKA_ADVERTISED_LISTENERS": "INTERNAL://host-a.example.com:19092,HOST://localhost:9092,"
    "CONTROLLER://kafka1:9093",
}


def kinds(
    facts: ClusterFacts, asked: TableAsked, policy: ResolverPolicy
) -> dict[str, EvidenceKind]:
    return {key[2]: item.kind for key, item in evidence(facts, policy, asked).items()}


def world(*names: str) -> TableAsked:
    """DNS with ``names``; this machine knows localhost."""
    tables = {
        "system": {"localhost": ("127.0.0.1",)},
        SERVER[0]: dict.fromkeys(names, ("192.0.2.1",)),
    }
    return TableAsked(tables, SERVER)


def test_names_of_the_network_itself_are_not_looked_up() -> None:
    asked = world()
    found = kinds(container(), asked, ResolverPolicy())
    assert found == {"kafka1": EvidenceKind.DECLARED, "localhost": EvidenceKind.LIVE}


@pytest.mark.parametrize(
    ("names", "kind"), [((), EvidenceKind.NONE), (("host-a.example.com",), EvidenceKind.LIVE)]
)
def test_full_names_beyond_the_network_are_asked_as_docker_would(
    names: tuple[str, ...], kind: EvidenceKind
) -> None:
    facts = container({**BEYOND}, ports=[{"internal": 19092, "external": 19092}])
    assert kinds(facts, world(*names), ResolverPolicy())["host-a.example.com"] is kind


def test_an_unknown_name_of_one_label_does_not_resolve() -> None:
    envs = {key: text.replace("host-a.example.com", "kafka9") for key, text in BEYOND.items()}
    found = evidence(container({**envs}), ResolverPolicy(), world("kafka9"))
    assert found["INTERNAL", Scope.INTERNAL, "kafka9"].kind is EvidenceKind.NONE


def test_who_is_named_for_a_scope_is_asked() -> None:
    facts = container({**BEYOND})
    policy = ResolverPolicy(resolvers={Scope.INTERNAL: ("192.0.2.99",)})
    tables = {"192.0.2.99": {"kafka1": ("192.0.2.1",)}, SERVER[0]: {"host-a.example.com": ("::1",)}}
    asked = TableAsked({**tables, "system": {}}, SERVER)
    assert kinds(facts, asked, policy)["host-a.example.com"] is EvidenceKind.NONE


@pytest.mark.parametrize(
    ("hostname", "voters", "known"),
    [
        ("kafka1", "1@kafka1:9093", True),
        ("", "1@kafka1:9093", False),
        ("kafka1", "1@kafka1:9093,2@kafka2:9093", False),
    ],
)
def test_one_voter_alone_knows_its_own_hostname_on_any_network(
    hostname: str, voters: str, known: bool
) -> None:
    facts = container(
        {"KAFKA_CONTROLLER_QUORUM_VOTERS": voters}, networks=[{"name": "bridge"}], hostname=hostname
    )
    found = {key[:2] for key in declarations(facts)}
    assert found == ({("CONTROLLER", Scope.CONTROLLER)} if known else set())


def test_without_a_plan_there_is_nothing_to_ask() -> None:
    assert evidence(replace(container(), plan=None), ResolverPolicy(), world()) == {}


def test_the_container_without_networks_and_an_unknown_host_declare_nothing_of_others() -> None:
    facts = container({**BEYOND})
    assert facts.plan is not None
    (node,) = facts.plan.nodes
    first, *others = node.listeners
    unknown = first.model_copy(update={"host": UnknownHost(what="an address")})
    strange = node.model_copy(update={"id": 7})
    nodes = (strange, node.model_copy(update={"listeners": (unknown, *others)}))
    mixed = replace(facts, plan=facts.plan.model_copy(update={"nodes": nodes}))
    assert {key: item.why for key, item in declarations(mixed).items()} == {
        ("CONTROLLER", Scope.CONTROLLER, "kafka1"): (
            "container kafka1 has this name on network kafka"
        )
    }


def test_networks_that_hold_names_are_named_with_the_addresses_on_them() -> None:
    networks = [
        {"name": "bridge"},
        {"name": "one", "ipv4Address": "10.0.1.5"},
        {"name": "two", "ipv4Address": "10.0.0.5"},
    ]
    found = declarations(container(networks=networks))
    assert found["INTERNAL", Scope.INTERNAL, "kafka1"] == Declaration(
        "container kafka1 has this name on network one, two", ("10.0.0.5", "10.0.1.5")
    )


def test_of_the_one_voter_it_is_said_that_it_is() -> None:
    facts = container(networks=[{"name": "bridge"}], hostname="KAFKA1")
    assert declarations(facts) == {
        ("CONTROLLER", Scope.CONTROLLER, "kafka1"): Declaration(
            "it is the hostname of container kafka1, the one voter"
        )
    }
    assert declarations(replace(facts, settings={})) == {}


def test_a_waived_full_name_is_not_asked_for() -> None:
    policy = read_policy({"waived": {"host-a.example.com": "it comes tomorrow"}})
    asked = world("host-a.example.com")
    facts = container({**BEYOND}, ports=[{"internal": 19092, "external": 19092}])
    assert kinds(facts, asked, policy)["host-a.example.com"] is EvidenceKind.NONE
    assert not asked.resolvers[SERVER[0]].asked


def test_full_names_of_the_network_and_of_clients_beyond_are_asked_once() -> None:
    """Docker's resolver is queried for its own containers only."""
    texts = {
        "EARSHOT_SCOPES": "INTERNAL:internal,HOST:external",
        "KAFKA_ADVERTISED_LISTENERS": "INTERNAL://kafka1.kafka:19092,"
        "HOST://host-a.example.com:9092,CONTROLLER://kafka1:9093",
    }
    asked = world()
    assert kinds(container({**texts}), asked, ResolverPolicy()) == {
        "kafka1.kafka": EvidenceKind.DECLARED,
        "host-a.example.com": EvidenceKind.NONE,
        "kafka1": EvidenceKind.DECLARED,
    }
    assert asked.resolvers[SERVER[0]].asked == {"host-a.example.com": 1}


def test_a_full_name_that_the_resolver_of_its_scope_denies_is_not_asked_for_elsewhere() -> None:
    asked = TableAsked(
        {"192.0.2.99": {}, SERVER[0]: {"host-a.example.com": ("192.0.2.1",)}}, SERVER
    )
    policy = ResolverPolicy(resolvers={Scope.INTERNAL: ("192.0.2.99",)})
    found = evidence(container({**BEYOND}), policy, asked)
    key = ("INTERNAL", Scope.INTERNAL, "host-a.example.com")
    assert (found[key].kind, found[key].why) == (
        EvidenceKind.NONE,
        "192.0.2.99 does not resolve it",
    )
    assert SERVER[0] not in asked.resolvers or not asked.resolvers[SERVER[0]].asked


@pytest.mark.parametrize(
    ("addresses", "said"),
    [
        (None, {"unknown"}),  # left out
        ((), set()),  # said not to be known
        (("192.0.2.1",), set()),
        (("192.0.2.9",), {"violated"}),
    ],
)
def test_addresses_that_are_left_out_silence_nothing(
    addresses: tuple[str, ...] | None, said: set[str]
) -> None:
    listeners = BEYOND["KAFKA_ADVERTISED_LISTENERS"].replace("localhost", "kafka.example.com")
    env = {
        "KAFKA_NODE_ID": "1",
        "KAFKA_PROCESS_ROLES": "broker,controller",
        "KAFKA_LISTENERS": "INTERNAL://:19092,HOST://:9092,CONTROLLER://:9093",
        "KAFKA_ADVERTISED_LISTENERS": listeners.replace("host-a.example.com", "kafka1"),
        "KAFKA_LISTENER_SECURITY_PROTOCOL_MAP": "INTERNAL:PLAINTEXT,HOST:PLAINTEXT,"
        "CONTROLLER:PLAINTEXT",
        "KAFKA_CONTROLLER_LISTENER_NAMES": "CONTROLLER",
        "KAFKA_CONTROLLER_QUORUM_VOTERS": "1@kafka1:9093",
        "KAFKA_INTER_BROKER_LISTENER_NAME": "INTERNAL",
    }
    inputs = {
        "name": "kafka1",
        "image": "apache/kafka:4.1.1",
        "envs": [f"{key}={value}" for key, value in env.items()],
        "networksAdvanced": [{"name": "net"}],
        "ports": [{"internal": 9092.0, "external": 9092.0}],
    }
    item = RegisteredContainer("urn", read_service(inputs, "kafka1"), "engine")
    run = ContainerRun()
    run._asked = world("kafka.example.com")
    policy = ResolverPolicy(resolvers={Scope.EXTERNAL: SERVER})
    handed = {} if addresses is None else {"addresses": addresses}
    found = run.register(item, policy, **handed).findings
    assert {str(finding.state) for finding in found if finding.rule == "KL012"} == said
