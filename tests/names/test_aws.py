from pathlib import Path
from typing import Any

import botocore
import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from earshot.errors import AddressError
from earshot.listeners.address import check_host
from earshot.listeners.terms import Scope
from earshot.names.aws import (
    Ec2Name,
    Interface,
    VpcDns,
    check_region,
    declaration,
    private_name,
    public_name,
    read_name,
    resolution,
)
from earshot.names.kinds import NameKind, kind_of
from earshot.names.reachability import TABLE, Expectation
from earshot.placement_registry import ClientLocation

REGIONS = ["us-east-1", "us-east-2", "us-west-2", "eu-central-1", "ap-southeast-7", "il-central-1"]
REGIONS += ["us-gov-west-1", "us-gov-east-1", "cn-north-1", "cn-northwest-1"]
addresses = st.ip_addresses(v=4).map(str)
regions = st.sampled_from(REGIONS)

FORMS = [
    ("us-east-1", "ip-10-0-0-1.ec2.internal", "ec2-10-0-0-1.compute-1.amazonaws.com"),
    ("us-west-2", "ip-10-0-0-1.us-west-2.compute.internal",
     "ec2-10-0-0-1.us-west-2.compute.amazonaws.com"),
    ("us-gov-west-1", "ip-10-0-0-1.us-gov-west-1.compute.internal",
     "ec2-10-0-0-1.us-gov-west-1.compute.amazonaws.com"),
    ("cn-north-1", "ip-10-0-0-1.cn-north-1.compute.internal",
     "ec2-10-0-0-1.cn-north-1.compute.amazonaws.com.cn"),
]  # fmt: skip


@pytest.mark.parametrize(("region", "private", "public"), FORMS)
def test_each_region_has_its_own_form(region: str, private: str, public: str) -> None:
    assert private_name("10.0.0.1", region) == private
    assert public_name("10.0.0.1", region) == public


@given(addresses, regions)
def test_a_name_leads_back_to_what_it_was_made_from(address: str, region: str) -> None:
    private, public = private_name(address, region), public_name(address, region)
    assert read_name(private) == Ec2Name(NameKind.EC2_PRIVATE, address, region)
    assert read_name(public.upper() + ".") == Ec2Name(NameKind.EC2_PUBLIC, address, region)
    assert (kind_of(private), kind_of(public)) == (NameKind.EC2_PRIVATE, NameKind.EC2_PUBLIC)
    assert check_host(private) == private and check_host(public) == public


@given(addresses, addresses, regions, regions)
def test_two_interfaces_never_share_a_name(one: str, two: str, here: str, there: str) -> None:
    for name in (private_name, public_name):
        assert (name(one, here) == name(two, there)) == ((one, here) == (two, there))


def test_every_public_region_has_names() -> None:
    file = Path(botocore.__file__).parent / "data" / "partitions.json"
    partitions: list[dict[str, Any]] = yaml.safe_load(file.read_text())["partitions"]
    for partition in partitions:
        known = partition["id"] in ("aws", "aws-cn", "aws-us-gov")
        for region in partition["regions"]:
            if region.endswith("-global"):
                continue
            if known:
                assert check_region(region) == region
                assert public_name("192.0.2.1", region).endswith(partition["outputs"]["dnsSuffix"])
            else:
                with pytest.raises(AddressError):
                    check_region(region)


@pytest.mark.parametrize(
    "host",
    [
        "ip-10-0-0-256.ec2.internal",
        "ip-10-0-0.ec2.internal",
        "ip-010-0-0-1.ec2.internal",
        "ip-10-0-0-1.us-east-1.compute.internal",  # the oldest region writes no region
        "ip-10-0-0-1.mars-1.compute.internal",
        "ec2-192-0-2-1.us-east-1.compute.amazonaws.com",
        "ec2-192-0-2-1.compute-1.amazonaws.com.cn",
        "ec2-192-0-2-1.cn-north-1.compute.amazonaws.com",
        "ec2-192-0-2-1.eu-west-1.compute.amazonaws.com.cn",
        "ec2-192-0-2-1.compute.amazonaws.com",
        "i-0123456789abcdef0.ec2.internal",
        "kafka-1.example.com",
        "10.0.0.1",
        "",
    ],
)
def test_what_ec2_would_not_write_is_not_read(host: str) -> None:
    assert read_name(host) is None


@given(st.text(max_size=60))
def test_any_text_is_read_or_not(host: str) -> None:
    assert read_name(host) is None or kind_of(host) in (NameKind.EC2_PRIVATE, NameKind.EC2_PUBLIC)


def test_an_address_or_region_without_names_is_refused() -> None:
    with pytest.raises(AddressError, match="not an IPv4 address"):
        private_name("2001:db8::1", "us-west-2")
    with pytest.raises(AddressError, match="commercial, GovCloud or China") as caught:
        public_name("192.0.2.1", "us-iso-east-1")
    assert "region 'us-iso-east-1'" in str(caught.value)


HERE = Interface("us-west-2", "10.0.0.11", "203.0.113.11")
PRIVATE = private_name(HERE.private, HERE.region)
PUBLIC = public_name(HERE.public, HERE.region)
ON = VpcDns(hostnames=True)
INSIDE = [
    ClientLocation.THIS_MACHINE, ClientLocation.SAME_NETWORK, ClientLocation.OTHER_NETWORK,
    ClientLocation.SAME_VPC,
]  # fmt: skip


def leads_to(host: str, location: ClientLocation, dns: VpcDns = ON, at: Interface = HERE) -> str:
    return resolution(host, location, at, dns).address


@pytest.mark.parametrize("location", INSIDE)
def test_inside_the_vpc_both_names_are_private(location: ClientLocation) -> None:
    assert leads_to(PRIVATE, location) == HERE.private
    assert leads_to(PUBLIC, location) == HERE.private


@pytest.mark.parametrize("location", [ClientLocation.OUTSIDE, ClientLocation.PEERED_VPC])
def test_beyond_the_vpc_only_the_public_name_resolves(location: ClientLocation) -> None:
    assert leads_to(PRIVATE, location) == ""
    assert leads_to(PUBLIC, location) == HERE.public


@pytest.mark.parametrize("location", ClientLocation)
@pytest.mark.parametrize(
    ("dns", "named"),
    [
        (VpcDns(), "enableDnsHostnames of the VPC"),
        (VpcDns(support=False, hostnames=True), "enableDnsSupport of the VPC"),
        (VpcDns(support=False), "enableDnsSupport and enableDnsHostnames of the VPC"),
    ],
)
def test_names_need_both_attributes(location: ClientLocation, dns: VpcDns, named: str) -> None:
    for host in (PRIVATE, PUBLIC):
        found = resolution(host, location, HERE, dns)
        assert found.address == "" and found.why.startswith(named)


@pytest.mark.parametrize("location", ClientLocation)
@pytest.mark.parametrize(
    "host",
    [
        private_name("10.0.0.12", HERE.region),
        private_name(HERE.private, "us-east-1"),
        public_name("203.0.113.12", HERE.region),
        public_name(HERE.public, "us-east-1"),
        "kafka-1.example.com",
    ],
)
def test_a_name_of_another_owner_leads_nowhere(location: ClientLocation, host: str) -> None:
    assert leads_to(host, location) == ""


def test_an_interface_without_a_public_address_has_no_public_name() -> None:
    at = Interface("us-west-2", "10.0.0.11")
    assert leads_to(PUBLIC, ClientLocation.OUTSIDE, at=at) == ""


def test_a_lent_address_is_said_to_be_lent() -> None:
    lent = Interface("us-west-2", "10.0.0.11", "203.0.113.11", elastic=False)
    assert "until a stop" in resolution(PUBLIC, ClientLocation.OUTSIDE, lent, ON).why
    assert "Elastic IP" in resolution(PUBLIC, ClientLocation.OUTSIDE, HERE, ON).why


@pytest.mark.parametrize("host", [PRIVATE, PUBLIC])
@pytest.mark.parametrize("location", ClientLocation)
def test_the_table_of_vantages_says_the_same(host: str, location: ClientLocation) -> None:
    predicted = TABLE[kind_of(host)].outlooks[location].resolves
    if predicted is not Expectation.DEPENDS:
        assert bool(leads_to(host, location)) == (predicted is Expectation.YES)


def test_what_resolves_is_declared_with_its_address() -> None:
    assert (inside := declaration(PUBLIC, Scope.INTERNAL, HERE, ON)) is not None
    assert inside.addresses == (HERE.private,)
    assert (outside := declaration(PUBLIC, Scope.EXTERNAL, HERE, ON)) is not None
    assert (outside.addresses, outside.why) == ((HERE.public,), "Elastic IP 203.0.113.11")
    assert declaration(PRIVATE, Scope.EXTERNAL, HERE, ON) is None
    assert declaration(PRIVATE, Scope.CONTROLLER, HERE, VpcDns()) is None
