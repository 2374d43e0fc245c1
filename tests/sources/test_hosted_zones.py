"""What the zones of a stack say about a name: inside a VPC, and beyond."""

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
    listed = [{"vpcId": vpc} for vpc in vpcs]
    props = {"zoneId": id, "name": name} | ({"vpcs": listed} if vpcs else {})
    return RegisteredResource(ZONE, f"urn::{id}", props)


def record(zone: str, name: str | None = HOST, **more: Any) -> RegisteredResource:
    props = {"zoneId": zone, "name": name, "type": "A", "records": ["10.0.0.1"], "fqdn": name}
    return RegisteredResource(RECORD, f"urn::{zone}-{name}", {**props, **more})


def both(
    *resources: RegisteredResource, vpc: References = HERE, dns: VpcDns | None = ON
) -> tuple[RecordLookup, RecordLookup]:
    zones = Zones(RegisteredStack([VPC, *resources]))
    return zones.declared_inside(HOST, vpc, dns), zones.declared_outside(HOST)


def test_a_public_zone_is_seen_from_everywhere() -> None:
    inside, beyond = both(zone("Z1"), record("Z1"))
    assert inside == beyond
    assert inside.declaration is not None
    assert inside.declaration.why == f"record {HOST} in zone kafka.example.com"
    assert inside.declaration.addresses == ("10.0.0.1",)


def test_a_zone_that_is_not_of_the_stack_is_named() -> None:
    _, beyond = both(record("Z9"))
    assert beyond.declaration is not None
    assert beyond.declaration.why == f"record {HOST} in zone Z9, which is not of this stack"


def test_a_private_zone_is_seen_by_its_vpcs_alone() -> None:
    inside, beyond = both(zone("Z1", "vpc-1"), record("Z1"))
    assert inside.declaration is not None
    assert beyond == RecordLookup(
        why="its one record is in zone kafka.example.com, which is private"
    )
    inside, _ = both(zone("Z1", "vpc-2"), record("Z1"))
    assert inside == RecordLookup(
        why="zone kafka.example.com is private, and not associated with VPC vpc"
    )


def test_an_association_of_its_own_counts() -> None:
    link = RegisteredResource(ZONE_ASSOCIATION, "urn::l", {"zoneId": "Z1", "vpcId": "vpc-1"})
    inside, _ = both(zone("Z1", "vpc-2"), record("Z1"), link)
    assert inside.declaration is not None


def test_a_split_horizon() -> None:
    inside, beyond = both(
        zone("Z1"), record("Z1", records=["198.51.100.1"]), zone("Z2", "vpc-1"), record("Z2")
    )
    assert inside.declaration is not None
    assert beyond.declaration is not None
    assert inside.declaration.addresses == ("10.0.0.1",)
    assert beyond.declaration.addresses == ("198.51.100.1",)


@pytest.mark.parametrize("name", ["kafka.example.com", "example.com", "EXAMPLE.com."])
def test_a_private_zone_hides_the_public_one(name: str) -> None:
    inside, beyond = both(zone("Z1"), record("Z1"), zone("Z2", "vpc-1", name=name))
    assert inside == RecordLookup(why=f"the private zone {name} of its VPC does not hold it")
    assert beyond.declaration is not None
    inside, _ = both(zone("Z1"), record("Z1"), zone("Z2", "vpc-1", name="a.example.com"))
    assert inside.declaration is not None


def test_a_private_zone_takes_both_attributes_of_the_vpc() -> None:
    inside, _ = both(zone("Z1", "vpc-1"), record("Z1"), dns=VpcDns(True, False))
    assert inside.why == (
        "enableDnsHostnames of the VPC: off, and private zone kafka.example.com is not seen"
    )


@pytest.mark.parametrize(
    ("zones", "vpc"),
    [((zone("Z1", None),), HERE), ((zone("Z1", "vpc-1"),), References(unknown=True))],
)
def test_what_is_not_known_is_not_decided(
    zones: tuple[RegisteredResource, ...], vpc: References
) -> None:
    inside, _ = both(*zones, record("Z1"), vpc=vpc)
    assert inside == RecordLookup(undecided=True)


def test_a_record_whose_name_is_not_known_may_be_the_one() -> None:
    assert both(zone("Z1"), record("Z1", None)) == (
        RecordLookup(undecided=True),
        RecordLookup(undecided=True),
    )
    assert both(zone("Z1"), record("Z1", "other.example.com")) == (RecordLookup(), RecordLookup())


def test_a_record_that_is_yet_to_be_made_is_not_asked_for() -> None:
    short = record("Z1", "B1", fqdn=None)
    _, beyond = both(zone("Z1"), short)
    assert beyond.pending
    assert beyond.declaration is not None, "its name is completed by its zone's"
    _, beyond = both(zone("Z1"), record("Z1"))
    assert not beyond.pending


@pytest.mark.parametrize(("type", "counts"), [("CNAME", True), ("AAAA", True), ("TXT", False)])
def test_types_of_records(type: str, counts: bool) -> None:
    _, beyond = both(zone("Z1"), record("Z1", type=type, records=["x"]))
    assert (beyond.declaration is not None) is counts


@pytest.mark.parametrize(
    ("type", "listed", "addresses"),
    [
        ("A", ["10.0.0.1", None], ("10.0.0.1",)),
        ("AAAA", ["2001:db8::1"], ("2001:db8::1",)),
        ("CNAME", ["b1.example.org"], ()),
        ("A", None, ()),
    ],
)
def test_addresses_are_those_of_the_records_that_hold_some(
    type: str, listed: list[str | None] | None, addresses: tuple[str, ...]
) -> None:
    _, beyond = both(zone("Z1"), record("Z1", type=type, records=listed))
    assert beyond.declaration is not None and beyond.declaration.addresses == addresses


def test_a_short_name_is_completed_by_a_zone_that_is_known_alone() -> None:
    whole = record("Z1", f"{HOST}.", fqdn=None)
    for made in (whole, record("Z1", HOST.upper(), fqdn=None)):
        _, beyond = both(zone("Z1"), made)
        assert beyond.declaration is not None
    unnamed = RegisteredResource(ZONE, "urn::Z1", {"zoneId": "Z1", "name": None})
    _, beyond = both(unnamed, record("Z1", HOST, fqdn=None))
    assert beyond.declaration is not None
    assert beyond.declaration.why == f"record {HOST} in zone (not known yet)"
    _, beyond = both(zone("Z1"), record("Z1", "b1", fqdn="b1"))
    assert beyond == RecordLookup(), "what the provider says is whole"
    _, beyond = both(record("Z9", "b1", fqdn=None))
    assert beyond == RecordLookup(), "nobody knows the zone's name"


def test_every_vpc_that_a_private_zone_is_not_seen_from_is_named() -> None:
    pair = References((RegisteredResource(VPCS[0], "urn:a::b", {"id": "vpc-9"}), VPC))
    inside, _ = both(zone("Z1", "vpc-2"), record("Z1"), vpc=pair)
    assert inside.why == "zone kafka.example.com is private, and not associated with VPC b, vpc"
    nested = References((RegisteredResource(VPCS[0], "urn:x::y::net", {"id": "vpc-9"}),))
    inside, _ = both(zone("Z1", "vpc-2"), record("Z1"), vpc=nested)
    assert inside.why.endswith("VPC net")
