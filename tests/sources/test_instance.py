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


def reported(found: ClusterFacts) -> list[str]:
    assert found.plan is not None
    return [f"{item} {'+'.join(item.scopes)}" for item in found.plan.nodes[0].listeners]


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
    found = audience(name, Address(host, 9092), {})
    assert ("+".join(found.scopes), found.why) == (scopes, why)


@pytest.mark.parametrize(("host", "scopes"), [("localhost", ()), ("b1.example.com", ("internal",))])
def test_a_broker_that_asks_itself_alone_has_nothing_between_brokers(
    host: str, scopes: tuple[str, ...]
) -> None:
    values = {
        "node.id": "1",
        "process.roles": "broker,controller",
        "controller.quorum.voters": "1@localhost:9093",
    }
    assert audience("PLAINTEXT", Address(host, 9092), values).scopes == scopes


@pytest.mark.parametrize(
    ("servers", "roles", "alone"),
    [
        ("localhost:9093", "broker,controller", True),
        ("[::1]:9093", "broker,controller", True),
        ("localhost:9093", "broker", False),
        ("kafka1:9093", "broker,controller", False),
        ("localhost:9093,kafka2:9093", "broker,controller", False),
    ],
)
def test_a_quorum_without_voters_may_be_on_the_brokers_own_machine(
    servers: str, roles: str, alone: bool
) -> None:
    values = {"process.roles": roles, "controller.quorum.bootstrap.servers": servers}
    found = audience("PLAINTEXT", Address("localhost", 9092), values)
    assert found.scopes == (() if alone else (Scope.INTERNAL,))


def test_the_whole_plan_is_what_the_properties_say() -> None:
    found = facts(
        node_id="4",
        process_roles="broker,controller",
        listeners="A://10.0.0.4:1,FIRST://:2,SECOND://b4:3",
        advertised_listeners=f"A://{PRIVATE}:11",
        listener_security_protocol_map="A:SSL",
        inter_broker_listener_name="A",
        controller_listener_names="FIRST,SECOND",
        controller_quorum_voters=f"4@{PRIVATE}:12",
    )
    controller = (Scope.CONTROLLER,)
    assert found.plan == ClusterPlan(
        kafka_version="",
        inter_broker="A",
        controller="FIRST",
        replication_factor=1,
        min_insync_replicas=1,
        nodes=(
            Node(
                id=4,
                roles=(Role.BROKER, Role.CONTROLLER),
                listeners=(
                    Listener(
                        name="A",
                        protocol=Protocol.SSL,
                        scopes=(Scope.INTERNAL,),
                        bind_host="10.0.0.4",
                        bind_port=1,
                        host=PRIVATE,
                        port=11,
                    ),
                    Listener(name="FIRST", scopes=controller, bind_port=2, host=PRIVATE, port=12),
                    Listener(
                        name="SECOND",
                        scopes=controller,
                        bind_host="b4",
                        bind_port=3,
                        host=PRIVATE,
                        port=12,
                    ),
                ),
            ),
        ),
    )


@pytest.mark.parametrize(
    ("names", "there"),
    [("C", True), ("C,lower", True), ("lower", False), ("lower,C", False), ("", True)],
)
def test_with_a_first_controller_name_that_kafka_refuses_there_is_no_plan(
    names: str, there: bool
) -> None:
    found = facts(listeners="A://b.example.com:1", controller_listener_names=names)
    assert (found.plan is not None) is there
    if found.plan is not None:
        assert found.plan.controller == (names.partition(",")[0] or "CONTROLLER")


def test_with_an_inter_broker_name_that_kafka_refuses_there_is_no_plan() -> None:
    given = {"listeners": "A://b.example.com:1"}
    assert facts(**given, inter_broker_listener_name="lower").plan is None
    assert facts(**given, inter_broker_listener_name="A").plan is not None


@pytest.mark.parametrize("key", ["listeners", "advertised.listeners", "process.roles"])
def test_a_list_that_the_instance_computes_leaves_no_plan(key: str) -> None:
    settings = NodeSettings({"listeners": "A://b.example.com:1"})
    assert instance_facts(UserDataFile("f", settings, computed={key: "$X"})).plan is None
    assert (
        instance_facts(UserDataFile("f", settings, computed={"broker.rack": "$X"})).plan is not None
    )


def test_the_notes_of_a_file_say_version_and_scopes() -> None:
    notes = {"kafka_version": "4.1.1", "scopes": "A:host+nobody,,B :external,C:nobody"}
    values = {"listeners": "A://b.example.com:1,B://b.example.com:2,C://b.example.com:3"}
    found = instance_facts(UserDataFile("f", NodeSettings(values, notes)))
    assert found.kafka_version == "4.1.1"
    assert [text.rpartition(" ")[2] for text in reported(found)] == ["host", "external", "external"]


def test_where_nothing_tells_the_widest_is_assumed() -> None:
    found = facts(
        listeners="PLAINTEXT://:1,A://:2,B://:3",
        advertised_listeners=f"PLAINTEXT://{PRIVATE}:1,A://b.example.com:2,B://localhost:3",
    )
    assert reported(found) == [
        f"PLAINTEXT://{PRIVATE}:1 internal",
        "A://b.example.com:2 external",
        "B://localhost:3 host",
    ]
    assert found.placement == "aws"


def test_a_note_in_the_file_says_it() -> None:
    text = "#earshot.scopes=A:internal+external\nnode.id=3\nlisteners=A://b.example.com:1\n"
    (written,) = broker_files(f"#!/bin/sh\ncat >f <<'X'\n{text}X\n")
    found = instance_facts(written)
    assert reported(found) == ["A://b.example.com:1 internal+external"]
    assert found.plan is not None
    assert (found.plan.nodes[0].id, found.plan.nodes[0].roles) == (3, (Role.BROKER,))


def test_kafka_hands_out_the_machines_own_name_where_none_is_given() -> None:
    given = {"listeners": "PLAINTEXT://:9092", "node_id": "1"}
    assert facts(**given).plan is None, "without one nobody is told of the listener"
    assert reported(facts(PRIVATE, **given)) == [f"PLAINTEXT://{PRIVATE}:9092 internal"]
    unknown = UnknownHost(what="the private name of instance b")
    (only,) = reported(facts(unknown, **given))
    assert only == "PLAINTEXT://(the private name of instance b: not known yet):9092 internal"
    assert reported(facts(PRIVATE, node_id="1")) == [f"PLAINTEXT://{PRIVATE}:9092 internal"]


def test_the_own_name_is_put_where_the_host_is_empty_and_nowhere_else() -> None:
    values = {
        "listeners": "A://:1,B://b.example.com:2,CONTROLLER://:3",
        "controller.listener.names": "CONTROLLER",
    }
    found = with_own_name(values, "own.example.com")
    assert found["advertised.listeners"] == "A://own.example.com:1,B://b.example.com:2"
    assert found["listeners"] == values["listeners"]
    alone = {"listeners": "CONTROLLER://:3", "controller.listener.names": "CONTROLLER"}
    assert with_own_name(alone, "own.example.com") == alone, "a controller advertises nothing"
    bad = {"listeners": "A:/x"}
    assert with_own_name(bad, "own.example.com") == bad


def test_hosts_that_the_instance_computes_stay_markers_and_lists_leave_no_plan() -> None:
    text = "#!/bin/sh\ncat >f <<X\nnode.id=1\nlisteners=%s\nadvertised.listeners=%s\nX\n"
    (written,) = broker_files(text % ("A://:1,B://:2", "A://$(hostname):1,B://b.example.com:2"))
    plan = instance_facts(written).plan
    assert plan is not None
    first, second = plan.nodes[0].listeners
    assert is_computed(first.host)
    assert str(first.host) == ("(what the instance itself computes, $(hostname): not known yet)")
    assert not is_computed(second.host)
    assert not is_computed(UnknownHost(what="the Elastic IP x"))
    (written,) = broker_files(text % ("A://:1", "$ADVERTISED"))
    assert instance_facts(written).plan is None
