"""The records of a stack for a name, inside and outside of a VPC."""

from __future__ import annotations

from typing import Any

import pytest

from earshot.names.aws import VpcDns
from earshot.sources.hosted_zones import RecordLookup, Zones
from earshot.sources.stack_resources import (
    RECORD,
    VPCS,
    ZONE,
    ZONE_ASSOCIATION,
    References,
    RegisteredResource,
    RegisteredStack,
)

HOST = "b1.kafka.example.com"
ON = VpcDns(support=True, hostnames=True)
VPC = RegisteredResource(VPCS[0], "urn::vpc", {"id": "vpc-1"})
HERE = References((VPC,))


def zone(id: str, *vpcs: str | None, name: str = "kafka.example.com") -> RegisteredResource:
    links = [{"vpcId": vpc} for vpc in vpcs]
    props = {"zoneId": id, "name": name} | ({"vpcs": links} if vpcs else {})
    return RegisteredResource(ZONE, f"urn::{id}", props)


def record(zone: str, name: str | None = HOST, **more: Any) -> RegisteredResource:
    props = {"zoneId": zone, "name": name, "type": "A", "records": ["10.0.0.1"], "fqdn": name}
    return RegisteredResource(RECORD, f"urn::{zone}-{name}", {**props, **more})


def both(
    *resources: RegisteredResource, vpc: References = HERE, dns: VpcDns | None = ON
) -> tuple[RecordLookup, RecordLookup]:
    """The lookups from inside the VPC and from outside."""
    zones = Zones(RegisteredStack([VPC, *resources]))
    return zones.declared_inside(HOST, vpc, dns), zones.declared_outside(HOST)


def why_outside(*resources: RegisteredResource) -> str:
    """The evidence for the record outside."""
    _, outside = both(*resources)
    assert outside.declaration is not None
    return outside.declaration.why


def test_a_public_zone_answers_everywhere() -> None:
    inside, outside = both(zone("Z1"), record("Z1"))
    assert inside == outside
    assert inside.declaration is not None
    assert inside.declaration.addresses == ("10.0.0.1",)


@pytest.mark.parametrize(("resources", "evidence"), [
    ([zone("Z1"), record("Z1")], "zone kafka.example.com"),
    ([record("Z9")], "zone Z9, which is not of this stack"),
    ([RegisteredResource(ZONE, "urn::Z1", {"zoneId": "Z1", "name": None}),
      record("Z1", HOST, fqdn=None)], "zone (not known yet)"),
])  # fmt: skip
def test_the_zone_is_the_evidence(resources: list[RegisteredResource], evidence: str) -> None:
    assert why_outside(*resources) == f"record {HOST} in {evidence}"


def test_a_private_zone_answers_in_its_vpcs_only() -> None:
    inside, outside = both(zone("Z1", "vpc-1"), record("Z1"))
    assert inside.declaration is not None
    assert outside == RecordLookup(
        why="its one record is in zone kafka.example.com, which is private"
    )
    foreign_zone = zone("Z1", "vpc-2")
    inside, _ = both(foreign_zone, record("Z1"))
    assert inside == RecordLookup(
        why="zone kafka.example.com is private, and not associated with VPC vpc"
    )
    link = RegisteredResource(ZONE_ASSOCIATION, "urn::l", {"zoneId": "Z1", "vpcId": "vpc-1"})
    inside, _ = both(foreign_zone, record("Z1"), link)
    assert inside.declaration is not None
    inside, _ = both(zone("Z1", "vpc-1"), record("Z1"), dns=VpcDns(True, False))
    assert inside.why == (
        "enableDnsHostnames of the VPC: off, and private zone kafka.example.com is not seen"
    )


def test_a_split_horizon() -> None:
    public = record("Z1", records=["198.51.100.1"])
    inside, outside = both(zone("Z1"), public, zone("Z2", "vpc-1"), record("Z2"))
    assert inside.declaration is not None and outside.declaration is not None
    assert inside.declaration.addresses == ("10.0.0.1",)
    assert outside.declaration.addresses == ("198.51.100.1",)


@pytest.mark.parametrize("name", ["kafka.example.com", "example.com", "EXAMPLE.com."])
def test_a_private_zone_hides_the_public_one(name: str) -> None:
    inside, outside = both(zone("Z1"), record("Z1"), zone("Z2", "vpc-1", name=name))
    assert inside == RecordLookup(why=f"the private zone {name} of its VPC does not hold it")
    assert outside.declaration is not None
    inside, _ = both(zone("Z1"), record("Z1"), zone("Z2", "vpc-1", name="a.example.com"))
    assert inside.declaration is not None


@pytest.mark.parametrize(
    ("zones", "vpc"),
    [((zone("Z1", None),), HERE), ((zone("Z1", "vpc-1"),), References(unknown=True))],
)
def test_unknown_associations_are_undecided(
    zones: tuple[RegisteredResource, ...], vpc: References
) -> None:
    inside, _ = both(*zones, record("Z1"), vpc=vpc)
    assert inside == RecordLookup(undecided=True)


def test_a_record_of_an_unknown_name_is_undecided() -> None:
    unknown = RecordLookup(undecided=True)
    assert both(zone("Z1"), record("Z1", None)) == (unknown, unknown)
    other_record = record("Z1", "other.example.com")
    assert both(zone("Z1"), other_record) == (RecordLookup(), RecordLookup())


@pytest.mark.parametrize(("fqdn", "pending"), [(None, True), (HOST, False)])
def test_a_record_that_will_be_created_is_pending(fqdn: str | None, pending: bool) -> None:
    _, outside = both(zone("Z1"), record("Z1", "B1", fqdn=fqdn))
    assert outside.pending is pending
    assert outside.declaration is not None, "its zone completes its name"


@pytest.mark.parametrize(
    ("type", "values", "addresses"),
    [
        ("A", ["10.0.0.1", None], ("10.0.0.1",)),
        ("A", None, ()),
        ("AAAA", ["2001:db8::1"], ("2001:db8::1",)),
        ("CNAME", ["b1.example.org"], ()),
        ("TXT", ["x"], None),
    ],
)
def test_types_and_addresses_of_records(
    type: str, values: list[str | None] | None, addresses: tuple[str, ...] | None
) -> None:
    declaration = both(zone("Z1"), record("Z1", type=type, records=values))[1].declaration
    assert (declaration.addresses if declaration else None) == addresses


@pytest.mark.parametrize(
    ("resources", "is_found"),
    [
        ([zone("Z1"), record("Z1", f"{HOST}.", fqdn=None)], True),
        ([zone("Z1"), record("Z1", HOST.upper(), fqdn=None)], True),
        # the name of the provider is complete
        ([zone("Z1"), record("Z1", "b1", fqdn="b1")], False),
        # the name of the zone is not known
        ([record("Z9", "b1", fqdn=None)], False),
    ],
)
def test_only_a_zone_with_a_known_name_completes_a_short_name(
    resources: list[RegisteredResource], is_found: bool
) -> None:
    _, outside = both(*resources)
    assert (outside.declaration is not None) is is_found
    assert is_found or outside == RecordLookup()


def test_every_vpc_without_the_private_zone_is_named() -> None:
    pair = References((RegisteredResource(VPCS[0], "urn:a::b", {"id": "vpc-9"}), VPC))
    inside, _ = both(zone("Z1", "vpc-2"), record("Z1"), vpc=pair)
    assert inside.why == "zone kafka.example.com is private, and not associated with VPC b, vpc"
    nested = References((RegisteredResource(VPCS[0], "urn:x::y::net", {"id": "vpc-9"}),))
    inside, _ = both(zone("Z1", "vpc-2"), record("Z1"), vpc=nested)
    assert inside.why.endswith("VPC net")
