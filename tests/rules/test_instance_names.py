"""Why the names that an instance advertises resolve, by its stack and by those who are asked."""

from __future__ import annotations

from typing import Any

from earshot.aws.registered import EIP, INSTANCE, RECORD, SUBNETS, VPCS, ZONE, Registered, Stack
from earshot.aws.surroundings import surroundings
from earshot.aws.zones import Zones
from earshot.listeners.model import Scope
from earshot.listeners.properties import Settings
from earshot.names.evidence import EvidenceKind
from earshot.names.policy import ResolverPolicy
from earshot.rules.instance_facts import instance_facts
from earshot.rules.instance_names import Named, is_never, names, never_but_asked
from earshot.user_data.written import Written
from tests.doubles.resolvers import Table, TableAsked

PRIVATE = "ip-10-0-0-1.eu-central-1.compute.internal"
PUBLIC = "ec2-198-51-100-1.eu-central-1.compute.amazonaws.com"
SERVER = "192.0.2.53"


def made(kind: str, name: str, /, **props: Any) -> Registered:
    return Registered(kind, f"urn::{name}", props)


def written(external: str) -> Written:
    values = {
        "listeners": "EXTERNAL://:9092",
        "advertised.listeners": f"EXTERNAL://{external}:9092",
    }
    return Written("f", Settings({**values, "inter.broker.listener.name": "INTERNAL"}))


def told(
    external: str,
    *others: Registered,
    hostnames: bool | None = True,
    table: Table | None = None,
) -> tuple[Named, TableAsked]:
    """Of one instance with an Elastic IP, what is known of its external name."""
    instance = made(
        INSTANCE, "b", id="i-1", subnetId="s-1", privateIp="10.0.0.1", region="eu-central-1"
    )
    stack = Stack(
        [
            made(VPCS[0], "vpc", id="vpc-1", enableDnsHostnames=hostnames),
            made(SUBNETS[0], "s", id="s-1", vpcId="vpc-1"),
            made(EIP, "e", instance="i-1", publicIp="198.51.100.1"),
            instance,
            *others,
        ]
    )
    asked = TableAsked({SERVER: table or {}}, (SERVER,))
    facts = instance_facts(written(external))
    around = {0: surroundings(stack, instance)}
    return names(facts, around, Zones(stack), ResolverPolicy(), asked), asked


def key(host: str) -> tuple[str, Scope, str]:
    return "EXTERNAL", Scope.EXTERNAL, host


def test_a_name_is_looked_up_where_its_clients_would() -> None:
    found, asked = told(PUBLIC, table={PUBLIC: ("198.51.100.1",)})
    assert found.evidence[key(PUBLIC)].kind is EvidenceKind.LIVE
    assert asked.resolvers[SERVER].asked == {PUBLIC: 1}


def test_what_aws_gives_no_vpc_without_the_attribute_is_not_believed() -> None:
    found, _ = told(PUBLIC, hostnames=False, table={PUBLIC: ("198.51.100.1",)})
    evidence = found.evidence[key(PUBLIC)]
    assert (evidence.kind, evidence.lookup) == (EvidenceKind.NONE, None)
    assert evidence.why == "enableDnsHostnames of the VPC: off, so that AWS gives no such name"


def test_an_attribute_that_is_not_known_leaves_it_undecided() -> None:
    found, _ = told(PUBLIC, hostnames=None)
    assert found.undecided == {key(PUBLIC): "the DNS attributes of its VPC are not known here"}
    found, _ = told(PUBLIC, hostnames=None, table={PUBLIC: ("198.51.100.1",)})
    assert found.undecided == {}, "who was asked knows it"


def test_a_record_that_is_still_to_be_made_is_not_asked_for_and_one_that_is_there_is() -> None:
    host = "b1.example.com"
    zone = made(ZONE, "z", zoneId="Z1", name="example.com")
    props = {"zoneId": "Z1", "name": host, "type": "A", "records": ["198.51.100.1"]}
    found, asked = told(host, zone, made(RECORD, "r", **props, fqdn=None))
    assert found.evidence[key(host)].kind is EvidenceKind.DECLARED
    assert "the record is still to be made" in found.evidence[key(host)].why
    assert not asked.resolvers[SERVER].asked
    found, asked = told(host, zone, made(RECORD, "r", **props, fqdn=host))
    assert found.evidence[key(host)].kind is EvidenceKind.NONE, "it should be there, and is not"
    assert asked.resolvers[SERVER].asked == {host: 1}


def test_why_nothing_declares_a_name_is_told_with_what_was_answered() -> None:
    host = "b1.example.com"
    zone = made(ZONE, "z", zoneId="Z1", name="example.com", vpcs=[{"vpcId": "vpc-1"}])
    record = made(RECORD, "r", zoneId="Z1", name=host, fqdn=host, type="A", records=["10.0.0.1"])
    found, _ = told(host, zone, record)
    assert found.evidence[key(host)].why == (
        f"{SERVER} does not resolve it; its one record is in zone example.com, which is private"
    )


def test_a_name_that_no_resource_can_declare_may_be_known_to_who_is_asked() -> None:
    facts = instance_facts(written(PRIVATE))
    behind_vpn = TableAsked({SERVER: {PRIVATE: ("10.0.0.1",)}}, (SERVER,))
    (evidence,) = never_but_asked(facts, ResolverPolicy(), behind_vpn).values()
    assert evidence.kind is EvidenceKind.LIVE
    (evidence,) = never_but_asked(facts, ResolverPolicy(), TableAsked({}, (SERVER,))).values()
    assert evidence.kind is EvidenceKind.NONE
    others = instance_facts(written(PUBLIC))
    assert never_but_asked(others, ResolverPolicy(), TableAsked({}, (SERVER,))) == {}


def test_names_that_never_resolve_for_a_scope() -> None:
    assert is_never(PRIVATE, Scope.EXTERNAL)
    assert not is_never(PRIVATE, Scope.INTERNAL)
    assert not is_never(PUBLIC, Scope.EXTERNAL)
