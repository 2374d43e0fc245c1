"""The facts about a broker on an instance, and whom its listeners are for."""

from __future__ import annotations

import pytest

from earshot.listeners.address import Address
from earshot.listeners.model import Role, Scope, UnknownHost
from earshot.listeners.properties import Settings
from earshot.rules import Facts
from earshot.rules.instance_facts import audience, instance_facts, is_computed, with_own_name
from earshot.user_data.written import Written, broker_files

PRIVATE = "ip-10-0-0-1.eu-central-1.compute.internal"
PUBLIC = "ec2-198-51-100-1.eu-central-1.compute.amazonaws.com"


def facts(own_name: str | UnknownHost = "", **values: str) -> Facts:
    properties = {key.replace("_", "."): value for key, value in values.items()}
    return instance_facts(Written("f", Settings(properties)), own_name)


def told(found: Facts) -> list[str]:
    assert found.plan is not None
    return [f"{item} {'+'.join(item.scopes)}" for item in found.plan.nodes[0].listeners]


@pytest.mark.parametrize(
    ("name", "host", "scopes"),
    [
        ("EXTERNAL", PRIVATE, "external"),
        ("CLIENTS_PUBLIC", "10.0.0.1", "external"),
        ("INTERNAL", PUBLIC, "internal"),
        ("VPC", "b1.example.com", "internal"),
        ("CLIENTS", PUBLIC, "external"),
        ("CLIENTS", "198.51.100.1", "external"),
        ("CLIENTS", PRIVATE, "internal"),
        ("CLIENTS", "10.0.0.1", "internal"),
        ("CLIENTS", "b1.kafka.internal", "internal"),
        ("CLIENTS", "b1.example.com", ""),
        ("PLAINTEXT", "b1.example.com", "internal"),
        ("PLAINTEXT", PUBLIC, "internal+external"),
        ("CONTROLLER", PRIVATE, "controller"),
        ("NOTED", PRIVATE, "host+external"),
    ],
)
def test_a_name_or_a_host_tells_whom_a_listener_is_for(name: str, host: str, scopes: str) -> None:
    values = {"controller.listener.names": "CONTROLLER"}
    said = {"NOTED": (Scope.HOST, Scope.EXTERNAL)}
    found = audience(name, Address(host, 9092), values, said)
    assert "+".join(found.scopes) == scopes
    assert bool(found.why) == bool(scopes)


def test_where_nothing_tells_the_widest_is_assumed() -> None:
    found = facts(
        listeners="PLAINTEXT://:1,A://:2,B://:3",
        advertised_listeners=f"PLAINTEXT://{PRIVATE}:1,A://b.example.com:2,B://localhost:3",
    )
    assert told(found) == [
        f"PLAINTEXT://{PRIVATE}:1 internal",
        "A://b.example.com:2 external",
        "B://localhost:3 host",
    ]
    assert found.placement == "aws"


def test_a_note_in_the_file_says_it() -> None:
    text = "#earshot.scopes=A:internal+external\nnode.id=3\nlisteners=A://b.example.com:1\n"
    (written,) = broker_files(f"#!/bin/sh\ncat >f <<'X'\n{text}X\n")
    found = instance_facts(written)
    assert told(found) == ["A://b.example.com:1 internal+external"]
    assert found.plan is not None
    assert (found.plan.nodes[0].id, found.plan.nodes[0].roles) == (3, (Role.BROKER,))


def test_kafka_hands_out_the_machines_own_name_where_none_is_given() -> None:
    given = {"listeners": "PLAINTEXT://:9092", "node_id": "1"}
    assert facts(**given).plan is None, "without one nobody is told of the listener"
    assert told(facts(PRIVATE, **given)) == [f"PLAINTEXT://{PRIVATE}:9092 internal"]
    unknown = UnknownHost(what="the private name of instance b")
    (only,) = told(facts(unknown, **given))
    assert only == "PLAINTEXT://(the private name of instance b: not known yet):9092 internal"
    assert told(facts(PRIVATE, node_id="1")) == [f"PLAINTEXT://{PRIVATE}:9092 internal"]


def test_the_own_name_is_put_where_the_host_is_empty_and_nowhere_else() -> None:
    values = {
        "listeners": "A://:1,B://b.example.com:2,CONTROLLER://:3",
        "controller.listener.names": "CONTROLLER",
    }
    found = with_own_name(values, "own.example.com")
    assert found["advertised.listeners"] == "A://own.example.com:1,B://b.example.com:2"
    assert found["listeners"] == values["listeners"]
    bad = {"listeners": "A:/x"}
    assert with_own_name(bad, "own.example.com") == bad


def test_hosts_that_the_instance_computes_stay_markers_and_lists_leave_no_plan() -> None:
    text = "#!/bin/sh\ncat >f <<X\nnode.id=1\nlisteners=%s\nadvertised.listeners=%s\nX\n"
    (written,) = broker_files(text % ("A://:1,B://:2", "A://$(hostname):1,B://b.example.com:2"))
    plan = instance_facts(written).plan
    assert plan is not None
    first, second = plan.nodes[0].listeners
    assert is_computed(first.host)
    assert "$(hostname)" in str(first.host)
    assert not is_computed(second.host)
    assert not is_computed(UnknownHost(what="the Elastic IP x"))
    (written,) = broker_files(text % ("A://:1", "$ADVERTISED"))
    assert instance_facts(written).plan is None
