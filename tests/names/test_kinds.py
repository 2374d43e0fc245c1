import ipaddress

import pytest
from hypothesis import given
from hypothesis import strategies as st

from earshot.names.kinds import NameKind, ip_of, is_name, kind_of

KINDS = {
    NameKind.ANY_ADDRESS: "0.0.0.0 :: 0:0:0:0:0:0:0:0 ::ffff:0.0.0.0 ::ffff:0:0",
    NameKind.LOOPBACK_ADDRESS: "127.0.0.1 127.0.1.1 127.255.255.255 ::1 ::ffff:127.0.0.1 0:0::0:1",
    NameKind.LINK_LOCAL_ADDRESS: "169.254.0.1 169.254.169.253 fe80::1 fe80::1%eth0 febf::1",
    NameKind.PRIVATE_ADDRESS: "10.0.0.1 172.16.0.1 172.31.255.255 192.168.1.1 fd00::1 "
    "fc00::1 ::ffff:10.0.0.1",
    NameKind.SHARED_ADDRESS: "100.64.0.1 100.127.255.255",
    NameKind.RESERVED_ADDRESS: "224.0.0.1 255.255.255.255 240.0.0.1 ff02::1 0.0.0.1",
    NameKind.PUBLIC_ADDRESS: "8.8.8.8 172.32.0.1 172.15.0.1 100.128.0.1 203.0.113.5 2001:db8::1 "
    "fec0::1 169.253.0.1 128.0.0.1 223.255.255.255",
    NameKind.LOCALHOST: "localhost LOCALHOST localhost.localdomain kafka.localhost ip6-localhost "
    "localhost4 localhost4.localdomain4 localhost6",
    NameKind.DOCKER_HOST: "host.docker.internal Host.Docker.Internal gateway.docker.internal",
    NameKind.CONTAINER_ID: "4f66ad9a0b2e 4F66AD9A0B2E",
    NameKind.EC2_PUBLIC: "ec2-203-0-113-25.compute-1.amazonaws.com "
    "ec2-203-0-113-25.us-west-2.compute.amazonaws.com "
    "ec2-203-0-113-25.cn-north-1.compute.amazonaws.com.cn",
    NameKind.EC2_PRIVATE: "ip-172-31-18-160.us-west-2.compute.internal ip-10-0-0-11.ec2.internal "
    "IP-10-0-0-11.EC2.internal",
    NameKind.EC2_RESOURCE: "i-0123456789abcdef0.ec2.internal "
    "i-0123456789abcdef0.eu-central-1.compute.internal",
    NameKind.SINGLE_LABEL: "kafka0 kafka-1 4f66ad9a0b2 4f66ad9a0b2e0 localhost1",
    NameKind.LOCAL_DOMAIN: "kafka.local kafka-0.kafka.default.svc.cluster.local",
    NameKind.PRIVATE_TLD: "kafka.internal ip-10-0-0.ec2.internal k.corp k.home.arpa",
    NameKind.UNDELEGATED: "kafka.invalid kafka.test kafka.example",
    NameKind.FQDN: "kafka-1.example.com localhost.example.com ec2-1.compute.amazonaws.com "
    "internal.example.com b-1.cluster.kafka.us-east-1.amazonaws.com",
}
"""Hosts of each kind, separated by spaces."""


@pytest.mark.parametrize(
    ("host", "kind"), [(host, kind) for kind, hosts in KINDS.items() for host in hosts.split()]
)
def test_kind(host: str, kind: NameKind) -> None:
    assert kind_of(host) is kind


def test_every_kind_has_an_example() -> None:
    assert set(KINDS) == set(NameKind)


@given(st.ip_addresses())
def test_every_address_has_a_kind(address: ipaddress.IPv4Address | ipaddress.IPv6Address) -> None:
    assert kind_of(str(address)).name.endswith("_ADDRESS")
    assert kind_of(address.exploded) is kind_of(address.compressed)


@given(st.ip_addresses(v=4))
def test_an_address_mapped_into_ipv6_keeps_its_kind(address: ipaddress.IPv4Address) -> None:
    assert kind_of(f"::ffff:{address}") is kind_of(str(address))
    assert ip_of(f"::ffff:{address}") == address


@given(st.text(max_size=30))
def test_any_text_is_of_some_kind(text: str) -> None:
    assert kind_of(text) in NameKind


@pytest.mark.parametrize("text", ["kafka-1", "1.2.3", "a.b:c", "", "256.1.1.1", "deadbeef1234"])
def test_what_is_no_address(text: str) -> None:
    assert ip_of(text) is None


NAMES = ("10.0.0.1", "2001:db8::1", "::ffff:10.0.0.1", "b1", "b_1.example.", "b\u00fcro.example")


@pytest.mark.parametrize("host", [*NAMES, "a" * 63])
def test_what_could_be_some_resolvers_name(host: str) -> None:
    assert is_name(host)


@pytest.mark.parametrize("host", ["a:9092", "a b", "a..b", "", "a" * 64])
def test_what_no_resolver_could_know(host: str) -> None:
    assert not is_name(host)
