"""The facts about a broker on an instance, and the clients of its listeners."""

from __future__ import annotations

import pytest

from earshot.facts.cluster import ClusterFacts
from earshot.listeners.address import Address
from earshot.listeners.model import ClusterPlan, Listener, Node
from earshot.listeners.properties import NodeSettings
from earshot.listeners.terms import Protocol, Role, Scope, UnknownHost
from earshot.sources.instance import audience, instance_facts, is_computed, with_own_name
from earshot.sources.user_data import UserDataFile, broker_files

PRIVATE = "ip-10-0-0-1.eu-central-1.compute.internal"
PUBLIC = "ec2-198-51-100-1.eu-central-1.compute.amazonaws.com"


def facts(own_name: str | UnknownHost = "", **values: str) -> ClusterFacts:
    properties = {key.replace("_", "."): value for key, value in values.items()}
    return instance_facts(UserDataFile("f", NodeSettings(properties)), own_name)


def listeners(facts: ClusterFacts) -> list[str]:
    """The addresses of the only node, and the scopes."""
    assert facts.plan is not None
    (node,) = facts.plan.nodes
    return [f"{listener} {'+'.join(listener.scopes)}" for listener in node.listeners]


@pytest.mark.parametrize(
    ("name", "host", "scopes", "why"),
    [
        ("EXTERNAL", PRIVATE, "external", "its name holds EXTERNAL"),
        ("CLIENTS_PUBLIC", "10.0.0.1", "external", "its name holds PUBLIC"),
        ("OUTSIDE", PRIVATE, "external", "its name holds OUTSIDE"),
        ("INTERNET", PRIVATE, "external", "its name holds INTERNET"),
        ("INTERNAL", PUBLIC, "internal", "its name holds INTERNAL"),
        ("PRIVATE", PUBLIC, "internal", "its name holds PRIVATE"),
        ("INSIDE", PUBLIC, "internal", "its name holds INSIDE"),
        ("REPLICATION", PUBLIC, "internal", "its name holds REPLICATION"),
        ("VPC", "b1.example.com", "internal", "its name holds VPC"),
        ("vpc", "b1.example.com", "internal", "its name holds VPC"),
        ("VPC_PUBLIC", PRIVATE, "internal+external",
         "its name holds PUBLIC; its name holds VPC"),
        ("CLIENTS", PUBLIC, "external", f"{PUBLIC} is an EC2 public name"),
        ("CLIENTS", "198.51.100.1", "external", "198.51.100.1 is a public address"),
        ("CLIENTS", PRIVATE, "internal", f"{PRIVATE} is an EC2 private name"),
        ("CLIENTS", "i-0abc.ec2.internal", "internal",
         "i-0abc.ec2.internal is an EC2 resource-based name"),
        ("CLIENTS", "10.0.0.1", "internal", "10.0.0.1 is a private address"),
        ("CLIENTS", "100.64.0.1", "internal",
         "100.64.0.1 is an address behind carrier-grade NAT"),
        ("CLIENTS", "b1", "internal", "b1 is a name of one label"),
        ("CLIENTS", "b1.kafka.internal", "internal",
         "b1.kafka.internal is a name of a private network"),
        ("CLIENTS", "b1.example.com", "", ""),
        ("CLIENTS", "localhost", "", ""),
        ("PLAINTEXT", "b1.example.com", "internal", "the brokers talk through it"),
        ("PLAINTEXT", "localhost", "internal", "the brokers talk through it"),
        ("PLAINTEXT", PUBLIC, "internal+external",
         f"{PUBLIC} is an EC2 public name; the brokers talk through it"),
        ("PLAINTEXT", PRIVATE, "internal", f"{PRIVATE} is an EC2 private name"),
    ],
)  # fmt: skip
def test_a_name_or_a_host_tells_the_clients_of_a_listener(
    name: str, host: str, scopes: str, why: str
) -> None:
    clients = audience(name, Address(host, 9092), {})
    assert ("+".join(clients.scopes), clients.why) == (scopes, why)


INTERNAL = (Scope.INTERNAL,)
COMBINED = {"node.id": "1", "process.roles": "broker,controller"}
BROKER = {"node.id": "1", "process.roles": "broker"}


@pytest.mark.parametrize(
    ("host", "roles", "quorum", "scopes"),
    [
        ("localhost", COMBINED, "voters=1@localhost:9093", ()),
        ("b1.example.com", COMBINED, "voters=1@localhost:9093", INTERNAL),
        ("localhost", COMBINED, "bootstrap.servers=localhost:9093", ()),
        ("localhost", COMBINED, "bootstrap.servers=[::1]:9093", ()),
        ("localhost", BROKER, "bootstrap.servers=localhost:9093", INTERNAL),
        ("localhost", COMBINED, "bootstrap.servers=kafka1:9093", INTERNAL),
        ("localhost", COMBINED, "bootstrap.servers=localhost:9093,kafka2:9093", INTERNAL),
    ],
)
def test_the_listener_of_a_single_broker_is_not_internal(
    host: str, roles: dict[str, str], quorum: str, scopes: tuple[Scope, ...]
) -> None:
    key, _, value = quorum.partition("=")
    values = {**roles, f"controller.quorum.{key}": value}
    assert audience("PLAINTEXT", Address(host, 9092), values).scopes == scopes


def test_the_plan_has_what_the_properties_set() -> None:
    controller = (Scope.CONTROLLER,)
    internal = Listener(
        name="A",
        protocol=Protocol.SSL,
        scopes=INTERNAL,
        bind_host="10.0.0.4",
        bind_port=1,
        host=PRIVATE,
        port=11,
    )
    first = Listener(name="FIRST", scopes=controller, bind_port=2, host=PRIVATE, port=12)
    second = first.model_copy(update={"name": "SECOND", "bind_host": "b4", "bind_port": 3})
    roles = (Role.BROKER, Role.CONTROLLER)
    assert facts(
        node_id="4",
        process_roles="broker,controller",
        listeners="A://10.0.0.4:1,FIRST://:2,SECOND://b4:3",
        advertised_listeners=f"A://{PRIVATE}:11",
        listener_security_protocol_map="A:SSL",
        inter_broker_listener_name="A",
        controller_listener_names="FIRST,SECOND",
        controller_quorum_voters=f"4@{PRIVATE}:12",
    ).plan == ClusterPlan(
        kafka_version="",
        inter_broker="A",
        controller="FIRST",
        replication_factor=1,
        min_insync_replicas=1,
        nodes=(Node(id=4, roles=roles, listeners=(internal, first, second)),),
    )


@pytest.mark.parametrize(
    ("values", "controller"),
    [
        ({"controller_listener_names": "C"}, "C"),
        ({"controller_listener_names": "C,lower"}, "C"),
        ({"controller_listener_names": ""}, "CONTROLLER"),
        ({"controller_listener_names": "lower"}, None),
        ({"controller_listener_names": "lower,C"}, None),
        ({"inter_broker_listener_name": "A"}, "CONTROLLER"),
        ({"inter_broker_listener_name": "lower"}, None),
    ],
)
def test_with_a_name_that_kafka_refuses_there_is_no_plan(
    values: dict[str, str], controller: str | None
) -> None:
    plan = facts(listeners="A://b.example.com:1", **values).plan
    assert (plan.controller if plan else None) == controller


@pytest.mark.parametrize("key", ["listeners", "advertised.listeners", "process.roles"])
def test_a_list_that_the_instance_computes_leaves_no_plan(key: str) -> None:
    settings = NodeSettings({"listeners": "A://b.example.com:1"})
    for name, is_planned in ((key, False), ("broker.rack", True)):
        computed = UserDataFile("f", settings, computed={name: "$X"})
        assert (instance_facts(computed).plan is not None) is is_planned


def test_notes_of_a_file_have_version_and_scopes() -> None:
    notes = {"kafka_version": "4.1.1", "scopes": "A:host+nobody,,B :external,C:nobody"}
    values = {"listeners": "A://b.example.com:1,B://b.example.com:2,C://b.example.com:3"}
    noted = instance_facts(UserDataFile("f", NodeSettings(values, notes)))
    assert noted.kafka_version == "4.1.1"
    assert [text.split()[-1] for text in listeners(noted)] == ["host", "external", "external"]
    text = "#earshot.scopes=A:internal+external\nnode.id=3\nlisteners=A://b.example.com:1\n"
    (file,) = broker_files(f"#!/bin/sh\ncat >f <<'X'\n{text}X\n")
    noted = instance_facts(file)
    assert listeners(noted) == ["A://b.example.com:1 internal+external"]
    assert noted.plan is not None
    assert (noted.plan.nodes[0].id, noted.plan.nodes[0].roles) == (3, (Role.BROKER,))


def test_without_evidence_the_widest_scope_is_assumed() -> None:
    guessed = facts(
        listeners="PLAINTEXT://:1,A://:2,B://:3",
        advertised_listeners=f"PLAINTEXT://{PRIVATE}:1,A://b.example.com:2,B://localhost:3",
    )
    assert guessed.placement == "aws"
    assert listeners(guessed) == [
        f"PLAINTEXT://{PRIVATE}:1 internal",
        "A://b.example.com:2 external",
        "B://localhost:3 host",
    ]


def test_without_a_host_kafka_advertises_the_name_of_the_machine() -> None:
    values = {"listeners": "PLAINTEXT://:9092", "node_id": "1"}
    assert facts(**values).plan is None, "without a name there is no address"
    assert listeners(facts(PRIVATE, **values)) == [f"PLAINTEXT://{PRIVATE}:9092 internal"]
    unknown = UnknownHost(what="the private name of instance b")
    (listener,) = listeners(facts(unknown, **values))
    address = "(the private name of instance b: not known yet):9092"
    assert listener == f"PLAINTEXT://{address} internal"
    assert listeners(facts(PRIVATE, node_id="1")) == [f"PLAINTEXT://{PRIVATE}:9092 internal"]


def test_the_name_of_the_machine_replaces_empty_hosts_only() -> None:
    controller = {"controller.listener.names": "CONTROLLER"}
    values = {"listeners": "A://:1,B://b.example.com:2,CONTROLLER://:3", **controller}
    changed = with_own_name(values, "own.example.com")
    assert changed["advertised.listeners"] == "A://own.example.com:1,B://b.example.com:2"
    assert changed["listeners"] == values["listeners"]
    # a controller advertises nothing
    for values in ({"listeners": "CONTROLLER://:3", **controller}, {"listeners": "A:/x"}):
        assert with_own_name(values, "own.example.com") == values


def test_hosts_that_the_instance_computes_are_unknown() -> None:
    text = "#!/bin/sh\ncat >f <<X\nnode.id=1\nlisteners=%s\nadvertised.listeners=%s\nX\n"
    (file,) = broker_files(text % ("A://:1,B://:2", "A://$(hostname):1,B://b.example.com:2"))
    plan = instance_facts(file).plan
    assert plan is not None
    first, second = plan.nodes[0].listeners
    assert is_computed(first.host)
    assert str(first.host) == "(what the instance itself computes, $(hostname): not known yet)"
    assert not is_computed(second.host)
    assert not is_computed(UnknownHost(what="the Elastic IP x"))
    (file,) = broker_files(text % ("A://:1", "$ADVERTISED"))
    assert instance_facts(file).plan is None
