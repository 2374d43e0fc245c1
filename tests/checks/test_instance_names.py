"""Why the names that an instance advertises resolve, by its stack and by those who are asked."""

from dataclasses import replace
from typing import Any

import pytest

from earshot.checks.instances import (
    NameEvidence,
    dns_only_evidence,
    name_evidence,
    resolves_nowhere,
)
from earshot.facts.cluster import ClusterFacts
from earshot.listeners.properties import NodeSettings
from earshot.listeners.terms import Scope, UnknownHost
from earshot.names.aws import VpcDns
from earshot.names.evidence import EvidenceKind
from earshot.names.policy import ResolverPolicy
from earshot.sources.hosted_zones import Zones
from earshot.sources.instance import instance_facts
from earshot.sources.instance_network import InstanceNetwork, instance_network
from earshot.sources.stack_resources import (
    EIP,
    INSTANCE,
    RECORD,
    SUBNETS,
    VPCS,
    ZONE,
    References,
    RegisteredResource,
    RegisteredStack,
)
from earshot.sources.user_data import UserDataFile
from tests.doubles.resolvers import Table, TableAsked

PRIVATE = "ip-10-0-0-1.eu-central-1.compute.internal"
PUBLIC = "ec2-198-51-100-1.eu-central-1.compute.amazonaws.com"
SERVER = "192.0.2.53"


def made(kind: str, name: str, /, **props: Any) -> RegisteredResource:
    return RegisteredResource(kind, f"urn::{name}", props)


def written(external: str) -> UserDataFile:
    values = {
        "listeners": "EXTERNAL://:9092",
        "advertised.listeners": f"EXTERNAL://{external}:9092",
    }
    return UserDataFile("f", NodeSettings({**values, "inter.broker.listener.name": "INTERNAL"}))


def reported(
    external: str,
    *others: RegisteredResource,
    hostnames: bool | None = True,
    table: Table | None = None,
) -> tuple[NameEvidence, TableAsked]:
    """Of one instance with an Elastic IP, what is known of its external name."""
    instance = made(
        INSTANCE, "b", id="i-1", subnetId="s-1", privateIp="10.0.0.1", region="eu-central-1"
    )
    stack = RegisteredStack(
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
    around = {0: instance_network(stack, instance)}
    return name_evidence(facts, around, Zones(stack), ResolverPolicy(), asked), asked


def key(host: str) -> tuple[str, Scope, str]:
    return "EXTERNAL", Scope.EXTERNAL, host


def test_a_name_is_looked_up_where_its_clients_would() -> None:
    found, asked = reported(PUBLIC, table={PUBLIC: ("198.51.100.1",)})
    assert found.evidence[key(PUBLIC)].kind is EvidenceKind.LIVE
    assert asked.resolvers[SERVER].asked == {PUBLIC: 1}


def test_what_aws_gives_no_vpc_without_the_attribute_is_not_believed() -> None:
    found, _ = reported(PUBLIC, hostnames=False, table={PUBLIC: ("198.51.100.1",)})
    evidence = found.evidence[key(PUBLIC)]
    assert (evidence.kind, evidence.lookup) == (EvidenceKind.NONE, None)
    assert evidence.why == "enableDnsHostnames of the VPC: off, so that AWS gives no such name"


def test_an_attribute_that_is_not_known_leaves_it_undecided() -> None:
    found, _ = reported(PUBLIC, hostnames=None)
    assert found.undecided == {key(PUBLIC): "the DNS attributes of its VPC are not known here"}
    found, _ = reported(PUBLIC, hostnames=None, table={PUBLIC: ("198.51.100.1",)})
    assert found.undecided == {}, "who was asked knows it"


def test_a_record_that_is_still_to_be_made_is_not_asked_for_and_one_that_is_there_is() -> None:
    host = "b1.example.com"
    zone = made(ZONE, "z", zoneId="Z1", name="example.com")
    props = {"zoneId": "Z1", "name": host, "type": "A", "records": ["198.51.100.1"]}
    found, asked = reported(host, zone, made(RECORD, "r", **props, fqdn=None))
    assert found.evidence[key(host)].kind is EvidenceKind.DECLARED
    assert found.evidence[key(host)].why == (
        "record b1.example.com in zone example.com; not looked up: the record is still to be made"
    )
    assert not asked.resolvers[SERVER].asked
    found, asked = reported(host, zone, made(RECORD, "r", **props, fqdn=host))
    assert found.evidence[key(host)].kind is EvidenceKind.NONE, "it should be there, and is not"
    assert found.evidence[key(host)].why == f"{SERVER} does not resolve it"
    assert asked.resolvers[SERVER].asked == {host: 1}


def test_a_private_zone_declares_no_name_for_others_and_a_lookup_is_believed() -> None:
    host = "b1.example.com"
    zone = made(ZONE, "z", zoneId="Z1", name="example.com", vpcs=[{"vpcId": "vpc-1"}])
    record = made(RECORD, "r", zoneId="Z1", name=host, fqdn=host, type="A", records=["10.0.0.1"])
    found, _ = reported(host, zone, record)
    assert found.evidence[key(host)].why == (
        f"{SERVER} does not resolve it; its one record is in zone example.com, which is private"
    )
    found, _ = reported(host, zone, record, table={host: ("198.51.100.1",)})
    assert found.evidence[key(host)].kind is EvidenceKind.LIVE


def test_a_name_that_no_resource_can_declare_may_be_known_to_who_is_asked() -> None:
    facts = instance_facts(written(PRIVATE))
    behind_vpn = TableAsked({SERVER: {PRIVATE: ("10.0.0.1",)}}, (SERVER,))
    (evidence,) = dns_only_evidence(facts, ResolverPolicy(), behind_vpn).values()
    assert evidence.kind is EvidenceKind.LIVE
    (evidence,) = dns_only_evidence(facts, ResolverPolicy(), TableAsked({}, (SERVER,))).values()
    assert evidence.kind is EvidenceKind.NONE
    others = instance_facts(written(PUBLIC))
    assert dns_only_evidence(others, ResolverPolicy(), TableAsked({}, (SERVER,))) == {}


def test_names_that_never_resolve_for_a_scope() -> None:
    assert resolves_nowhere(PRIVATE, Scope.EXTERNAL)
    assert not resolves_nowhere(PRIVATE, Scope.INTERNAL)
    assert not resolves_nowhere(PUBLIC, Scope.EXTERNAL)


VPC = References()
AROUND = InstanceNetwork(
    region="eu-central-1", private="10.0.0.1", addresses=("10.0.0.1", "198.51.100.1"),
    elastic=("198.51.100.1",), ingress=(), vpc=VPC, dns=VpcDns(hostnames=True), own_name=PRIVATE,
)  # fmt: skip
NOT_KNOWN = "the addresses of its instance are not known yet"


def of_ec2(host: str, scope: str, table: Table | None = None, **changed: Any) -> NameEvidence:
    """The evidence for one of EC2's names, for clients of a scope without a resolver."""
    text = {"listeners": "CLIENTS://:9092", "advertised.listeners": f"CLIENTS://{host}:9092"}
    facts = instance_facts(UserDataFile("f", NodeSettings(text, {"scopes": f"CLIENTS:{scope}"})))
    asked = TableAsked({"system": table or {}}, ())
    around = {0: replace(AROUND, **changed)}
    return name_evidence(facts, around, Zones(RegisteredStack([])), ResolverPolicy(), asked)


@pytest.mark.parametrize(
    ("host", "changed", "kind", "why"),
    [
        (PUBLIC, {}, EvidenceKind.DECLARED, "Elastic IP 198.51.100.1"),
        (PUBLIC, {"elastic": ()}, EvidenceKind.DECLARED,
         "public address 198.51.100.1, until a stop"),
        (PUBLIC, {"elastic": (), "addresses": ("10.0.0.1",)}, EvidenceKind.NONE,
         f"{PUBLIC} is not a name of the interface 10.0.0.1"),
        (PUBLIC, {"addresses": ()}, EvidenceKind.DECLARED, "Elastic IP 198.51.100.1"),
        (PUBLIC, {"region": "eu-west-1"}, EvidenceKind.NONE,
         f"{PUBLIC} is not a name of the interface 10.0.0.1"),
        (PRIVATE, {"addresses": (), "elastic": (UnknownHost(what="an Elastic IP"),)},
         EvidenceKind.NONE, f"only the resolver of its VPC is sure to know {PRIVATE}"),
    ],
)  # fmt: skip
def test_what_the_interface_says_of_a_name_for_clients_beyond(
    host: str, changed: dict[str, Any], kind: EvidenceKind, why: str
) -> None:
    found = of_ec2(host, "external", **changed)
    evidence = found.evidence["CLIENTS", Scope.EXTERNAL, host]
    silence = "no resolver of scope external can be asked from here"
    reported = f"{why}; not looked up: {silence}"
    if kind is EvidenceKind.NONE:
        reported = f"{silence}, and nothing declares the name; {why}"
    assert (evidence.kind, evidence.why, found.undecided) == (kind, reported, {})


@pytest.mark.parametrize(
    ("host", "changed", "why"),
    [
        (PUBLIC, {"dns": None}, "the DNS attributes of its VPC are not known here"),
        (PUBLIC, {"region": None}, NOT_KNOWN),
        (PUBLIC, {"private": None}, NOT_KNOWN),
        (PUBLIC, {"elastic": ("198.51.100.1", UnknownHost(what="an Elastic IP"))}, NOT_KNOWN),
        (PRIVATE, {"region": None}, NOT_KNOWN),
        (PRIVATE, {"private": None}, NOT_KNOWN),
    ],
)
def test_what_is_not_known_of_the_instance_leaves_its_names_undecided(
    host: str, changed: dict[str, Any], why: str
) -> None:
    assert of_ec2(host, "external", **changed).undecided == {("CLIENTS", Scope.EXTERNAL, host): why}


def test_inside_the_vpc_both_names_lead_to_the_private_address() -> None:
    unknown = (UnknownHost(what="an Elastic IP"),)
    for found, host in (
        (of_ec2(PRIVATE, "internal", elastic=unknown), PRIVATE),
        (of_ec2(PUBLIC, "internal"), PUBLIC),
    ):
        evidence = found.evidence["CLIENTS", Scope.INTERNAL, host]
        assert (evidence.kind, evidence.declared) == (EvidenceKind.DECLARED, ("10.0.0.1",))


@pytest.mark.parametrize("host", [PRIVATE, PUBLIC])
def test_for_clients_on_the_instance_itself_nothing_is_declared(host: str) -> None:
    key = ("CLIENTS", Scope.HOST, host)
    found = of_ec2(host, "host", dns=None)
    assert (found.evidence[key].kind, found.undecided) == (EvidenceKind.NONE, {})
    found = of_ec2(host, "host", {host: ("10.0.0.1",)})
    assert found.evidence[key].kind is EvidenceKind.LIVE


@pytest.mark.parametrize("host", ["10.0.0.7", "[2001:db8::7]"])
def test_an_address_is_not_a_name(host: str) -> None:
    found = of_ec2(host, "external", dns=None)
    (evidence,) = found.evidence.values()
    assert (evidence.kind, evidence.why) == (EvidenceKind.LIVE, "an address needs no lookup")
    assert found.undecided == {}


def test_without_a_plan_there_are_no_names() -> None:
    facts = ClusterFacts(plan=None)
    assert name_evidence(facts, {}, Zones(RegisteredStack([])), ResolverPolicy()) == NameEvidence()
    assert dns_only_evidence(facts, ResolverPolicy()) == {}


def test_a_host_that_is_not_known_yet_has_no_evidence() -> None:
    facts = instance_facts(
        UserDataFile("f", NodeSettings({"listeners": "CLIENTS://:9092"})),
        UnknownHost(what="its name"),
    )
    asked = TableAsked({}, ())
    assert (
        name_evidence(facts, {0: AROUND}, Zones(RegisteredStack([])), ResolverPolicy(), asked)
        == NameEvidence()
    )
    assert dns_only_evidence(facts, ResolverPolicy(), asked) == {}


def test_a_name_of_several_nodes_is_declared_by_the_one_that_has_it() -> None:
    """Whether it is right that others advertise it too is for others to say."""
    first = instance_facts(written(PUBLIC))
    assert first.plan is not None
    (node,) = first.plan.nodes
    for own in (0, 1, 2):
        nodes = tuple(node.model_copy(update={"id": id}) for id in (0, 1, 2))
        facts = replace(first, plan=first.plan.model_copy(update={"nodes": nodes}))
        around = {
            id: AROUND if id == own else replace(AROUND, elastic=(), addresses=("10.0.0.1",))
            for id in (0, 1, 2)
        }
        found = name_evidence(
            facts, around, Zones(RegisteredStack([])), ResolverPolicy(), TableAsked({}, ())
        )
        assert found.evidence[key(PUBLIC)].kind is EvidenceKind.DECLARED


def test_a_record_that_is_not_known_yet_leaves_a_name_undecided() -> None:
    host = "b1.example.com"
    found, _ = reported(host, made(RECORD, "r", zoneId="Z1", name=None, type="A", records=[]))
    assert found.undecided == {
        key(host): "a record or a zone is not known yet, or its VPC is not known here"
    }
    found, _ = reported(host, made(RECORD, "r", zoneId="Z1", name=None, type="A", records=[]),
                    table={host: ("198.51.100.1",)})  # fmt: skip
    assert found.undecided == {}


def test_a_name_of_ec2s_that_is_not_believed_is_told_by_the_attribute_alone() -> None:
    found = of_ec2(PUBLIC, "external", dns=VpcDns(support=False, hostnames=False))
    assert found.evidence["CLIENTS", Scope.EXTERNAL, PUBLIC].why == (
        "enableDnsSupport and enableDnsHostnames of the VPC: off, so that AWS gives no such name"
    )


def test_what_waits_for_its_record_is_not_asked_for_while_others_are() -> None:
    host, other = "b1.example.com", "b2.example.com"
    text = {
        "listeners": "A://:1,B://:2",
        "advertised.listeners": f"A://{host}:1,B://{other}:2",
        "inter.broker.listener.name": "INTERNAL",
    }
    notes = {"scopes": "A:external+internal,B:external"}
    zone = made(ZONE, "z", zoneId="Z1", name="example.com")
    record = made(RECORD, "r", zoneId="Z1", name=host, fqdn=None, type="A", records=["192.0.2.1"])
    asked = TableAsked({SERVER: {other: ("192.0.2.2",)}}, (SERVER,))
    facts = instance_facts(UserDataFile("f", NodeSettings(text, notes)))
    found = name_evidence(
        facts, {0: AROUND}, Zones(RegisteredStack([zone, record])), ResolverPolicy(), asked
    )
    assert {name: item.kind for name, item in found.evidence.items()} == {
        ("A", Scope.EXTERNAL, host): EvidenceKind.DECLARED,
        ("A", Scope.INTERNAL, host): EvidenceKind.DECLARED,
        ("B", Scope.EXTERNAL, other): EvidenceKind.LIVE,
    }
    assert found.evidence["A", Scope.EXTERNAL, host].addresses == ("192.0.2.1",)
    assert asked.resolvers[SERVER].asked == {other: 1}


def test_a_private_zone_that_a_vpc_does_not_see_does_not_outweigh_a_lookup() -> None:
    host = "b1.example.com"
    vpc = made(VPCS[0], "vpc", id="vpc-1", enableDnsHostnames=False)
    zone = made(ZONE, "z", zoneId="Z1", name="example.com", vpcs=[{"vpcId": "vpc-1"}])
    record = made(RECORD, "r", zoneId="Z1", name=host, fqdn=host, type="A", records=["10.0.0.1"])
    subnet = made(SUBNETS[0], "s", id="s-1", vpcId="vpc-1")
    instance = made(INSTANCE, "b", id="i-1", subnetId="s-1", privateIp="10.0.0.1")
    stack = RegisteredStack([vpc, zone, record, subnet, instance])
    values = {"listeners": "A://:1", "advertised.listeners": f"A://{host}:1"}
    facts = instance_facts(UserDataFile("f", NodeSettings(values, {"scopes": "A:internal"})))
    around = {0: instance_network(stack, instance)}
    policy = ResolverPolicy(resolvers={Scope.INTERNAL: (SERVER,)})
    for table, kind in (({host: ("10.0.0.1",)}, EvidenceKind.LIVE), ({}, EvidenceKind.NONE)):
        asked = TableAsked({SERVER: table}, ())
        found = name_evidence(facts, around, Zones(stack), policy, asked)
        assert found.evidence["A", Scope.INTERNAL, host].kind is kind
    assert found.evidence["A", Scope.INTERNAL, host].why == (
        f"{SERVER} does not resolve it; enableDnsHostnames of the VPC: off, and private zone "
        "example.com is not seen"
    )
