import re
from collections import Counter
from ipaddress import IPv4Network

import pytest
from hypothesis import given
from hypothesis import strategies as st

from earshot.aws.subnets import (
    RESERVED,
    SMALLEST_SUBNET,
    Subnet,
    check_room,
    check_vpc,
    check_zones,
    lay_out,
    spread,
)
from earshot.errors import EarshotError
from tests.raised import raised

vpcs = st.builds(
    lambda number, prefix: str(IPv4Network(((10 << 24) | (number << 8), prefix), strict=False)),
    st.integers(0, 2**16 - 1), st.integers(16, 24),
)  # fmt: skip
zones = st.lists(st.sampled_from("abcdefgh"), min_size=2, max_size=3, unique=True).map(
    lambda letters: [f"eu-central-1{letter}" for letter in letters]
)


def test_the_layout_of_the_default_range() -> None:
    subnets = lay_out("10.0.0.0/16", ["us-east-1a", "us-east-1c"])
    assert [(subnet.name, str(subnet.cidr), subnet.room) for subnet in subnets] == [
        ("public-a", "10.0.0.0/20", 4091),
        ("private-a", "10.0.16.0/20", 4091),
        ("public-c", "10.0.64.0/20", 4091),
        ("private-c", "10.0.80.0/20", 4091),
    ]


@given(vpcs, zones)
def test_subnets_lie_apart_inside_the_vpc_and_within_awss_limits(
    vpc: str, zones: list[str]
) -> None:
    cidrs = [subnet.cidr for subnet in lay_out(vpc, zones)]
    assert len(cidrs) == 2 * len(zones)
    for index, cidr in enumerate(cidrs):
        assert cidr.subnet_of(IPv4Network(vpc)) and cidr.prefixlen <= SMALLEST_SUBNET
        assert not any(map(cidr.overlaps, cidrs[:index]))


@given(vpcs, zones, st.data())
def test_a_zone_that_is_added_moves_no_subnet(
    vpc: str, zones: list[str], data: st.DataObject
) -> None:
    first_zones = zones[:2]
    shuffled = data.draw(st.permutations(zones))
    assert set(lay_out(vpc, first_zones)) <= set(lay_out(vpc, shuffled))


def test_five_addresses_of_each_subnet_are_awss_own() -> None:
    subnet = Subnet("us-east-1a", True, IPv4Network("10.0.0.0/28"))
    free = [str(address) for address in subnet.cidr if subnet.has(str(address))]
    assert len(free) == subnet.room == 16 - RESERVED
    assert (free[0], free[-1]) == ("10.0.0.4", "10.0.0.14")
    assert not subnet.has("10.0.1.4")


PRIVATE = "10.0.0.0/8, 172.16.0.0/12, 192.168.0.0/16 or 100.64.0.0/10"
PUBLIC = f"is not a range for private networks\n  allowed: a range of {PRIVATE}"


@pytest.mark.parametrize(
    ("vpc", "problem"),
    [
        ("10.0.0.0/15", "has 131072 addresses"),
        ("10.0.0.0/25", "has 128 addresses"),
        ("10.0.0.1/16", "write 10.0.0.0/16"),
        ("10.0.0.0", "write 10.0.0.0/32"),
        ("10.0.0.0/255.255.0.0", "write 10.0.0.0/16"),
        ("2001:db8::/56", "is invalid"),
        ("ten", "is invalid"),
        ("192.0.0.0/16", PUBLIC),  # private in part
        *((f"{address}/24", PUBLIC) for address in ("9.255.255.0", "11.0.0.0", "172.32.0.0",
                                                    "8.8.8.0", "203.0.113.0")),
        ("169.254.0.0/16", PUBLIC),
    ],
)  # fmt: skip
def test_other_ranges_are_refused(vpc: str, problem: str) -> None:
    error = raised(EarshotError, check_vpc, vpc)
    assert f"VPC range {vpc!r}: " in str(error) and problem in str(error) and error.allowed


@pytest.mark.parametrize("vpc", ["172.16.0.0/16", "192.168.4.0/22", "100.64.0.0/16"])
def test_all_private_ranges_are_allowed(vpc: str) -> None:
    assert str(check_vpc(vpc)) == vpc


@pytest.mark.parametrize(
    ("zones", "problem"),
    [
        ([], "found 0"),
        (["us-east-1a"], "found 1"),
        (["us-east-1a", "us-east-1b", "us-east-1c", "us-east-1d"], "found 4"),
        (["us-east-1a", "us-east-1a"], "twice"),
        (["us-east-1a", "us-west-2b"], "us-east-1 and us-west-2"),
        (["us-east-1a", "us-east-1"], "'us-east-1': is not the name of a zone"),
        (["us-east-1a", "us-east-1-bos-1a"], "is not the name of a zone"),
        (["us-east-1a", "us-east-1z"], "is not the name of a zone"),
    ],
)
def test_other_zones_are_refused(zones: list[str], problem: str) -> None:
    with pytest.raises(EarshotError, match=re.escape(problem)):
        check_zones(zones)


def test_zones_tell_their_region() -> None:
    assert check_zones(["us-gov-west-1a", "us-gov-west-1b"]) == "us-gov-west-1"


@given(st.integers(0, 60), zones)
def test_nodes_are_spread_evenly(count: int, zones: list[str]) -> None:
    zone_of = spread(range(1, count + 1), zones)
    load = Counter(zone_of.values())
    assert list(zone_of) == list(range(1, count + 1))
    counts = [load[zone] for zone in zones]
    assert max(counts) - min(counts) <= 1


@given(st.integers(0, 30), st.integers(0, 30), zones)
def test_a_node_that_is_added_moves_no_other(
    count: int, added_count: int, zones: list[str]
) -> None:
    old_zones, zone_of = (spread(range(number), zones) for number in (count, count + added_count))
    assert zone_of.items() >= old_zones.items()


@given(st.integers(1, 30), st.integers(0, 30))
def test_pinned_nodes_stay_when_a_zone_is_added(count: int, added_count: int) -> None:
    zones = [f"us-west-2{letter}" for letter in "abc"]
    old_zones = spread(range(count), zones[:2])
    zone_of = spread(range(count + added_count), zones, pinned=old_zones)
    assert zone_of.items() >= old_zones.items()
    if added_count >= count:
        load = Counter(zone_of.values())
        assert max(load.values()) - min(load[zone] for zone in zones) <= 1


def test_three_hundred_brokers_need_a_range_that_is_named() -> None:
    zones = ["us-west-2a", "us-west-2b", "us-west-2c"]
    nodes = spread(range(1, 301), zones)
    error = raised(EarshotError, check_room, lay_out("10.0.0.0/22", zones), nodes, public=True)
    assert str(error) == (
        "subnet public-a (10.0.0.0/26): would have 100 nodes and 2 other interfaces\n"
        "  allowed: 59 (64 addresses, of which AWS reserves 5)\n"
        "  fix: give the VPC a /21, or spread the nodes over more zones"
    )
    check_room(lay_out("10.0.0.0/21", zones), nodes, public=True)


@given(st.integers(1, 5000), st.integers(16, 24), st.booleans())
def test_the_range_named_is_the_smallest_that_will_do(
    count: int, prefix: int, public: bool
) -> None:
    zones = ["us-west-2a", "us-west-2b"]
    nodes = dict.fromkeys(range(count), zones[0])
    try:
        check_room(lay_out(f"10.0.0.0/{prefix}", zones), nodes, public=public)
    except EarshotError as error:
        if match := re.search(r"a /(\d+)", error.remedy):
            larger = int(match[1])
            check_room(lay_out(f"10.0.0.0/{larger}", zones), nodes, public=public)
            assert larger < prefix
        else:
            assert count > 4000 and "no VPC is large enough" in error.remedy
    else:
        assert count + 2 <= lay_out(f"10.0.0.0/{prefix}", zones)[0].room


def test_zones_without_nodes_need_no_room() -> None:
    subnets = lay_out("10.0.0.0/24", ["us-west-2a", "us-west-2b"])
    check_room(subnets, {}, public=True, spare=100)
    check_room(subnets, {1: "us-west-2a"}, public=False, spare=10)


@pytest.mark.parametrize(
    ("pinned", "observed"),
    [({1: "us-east-1d"}, "is pinned to us-east-1d"),
     ({7: "us-east-1a"}, "is pinned to us-east-1a, and is not a node")],
)  # fmt: skip
def test_a_pin_to_another_zone_or_of_another_node_is_refused(
    pinned: dict[int, str], observed: str
) -> None:
    error = raised(EarshotError, spread, [1, 2], ["us-east-1a", "us-east-1b"], pinned)
    (id,) = pinned
    assert str(error) == (
        f"node {id}: {observed}\n  allowed: nodes of the cluster, in us-east-1a, us-east-1b"
    )
