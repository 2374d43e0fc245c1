from ipaddress import ip_network
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from earshot.facts.cloud import read_group, read_ingress, write_ingress
from earshot.facts.security_groups import (
    Clients,
    Ingress,
    Members,
    UnknownSource,
    ingress_of,
    security_groups,
)
from tests.aws.plans import node, plan

TCP = {"protocol": "tcp", "fromPort": 9092.0, "toPort": 9094.0}
RULE = {"ipProtocol": "tcp", "fromPort": 9092.0, "toPort": 9094.0}


def reported(inputs: dict[str, Any], own: str = "sg-own") -> list[str]:
    return [str(rule) for rule in read_ingress(inputs, own)]


def test_a_block_of_a_group() -> None:
    block = TCP | {
        "cidrBlocks": ["10.0.0.0/16", "203.0.113.0/24"],
        "ipv6CidrBlocks": ["2001:db8::/32"],
        "securityGroups": ["sg-apps"],
        "prefixListIds": ["pl-1"],
        "self": True,
        "description": "clients",
    }
    assert reported(block) == [
        "9092-9094 from 10.0.0.0/16",
        "9092-9094 from 203.0.113.0/24",
        "9092-9094 from 2001:db8::/32",
        "9092-9094 from group sg-apps",
        "9092-9094 from prefix list pl-1",
        "9092-9094 from group sg-own",
    ]
    assert {rule.why for rule in read_group({"ingress": [block]})} == {"clients"}


def test_a_rule_of_its_own() -> None:
    assert reported(RULE | {"cidrIpv4": "10.0.0.0/16"}) == ["9092-9094 from 10.0.0.0/16"]
    assert reported(RULE | {"cidrIpv6": "::/0"}) == ["9092-9094 from ::/0"]
    assert reported(RULE | {"referencedSecurityGroupId": "sg-1"}) == ["9092-9094 from group sg-1"]
    assert reported(RULE | {"prefixListId": "pl-1"}) == ["9092-9094 from prefix list pl-1"]


def test_the_older_rule() -> None:
    rule = TCP | {"type": "ingress", "sourceSecurityGroupId": "sg-1"}
    assert reported(rule) == ["9092-9094 from group sg-1"]
    assert reported(rule | {"type": "egress"}) == []


@pytest.mark.parametrize("protocol", ["-1", -1.0, "all", "ALL"])
def test_all_protocols_are_all_ports(protocol: object) -> None:
    rule = {"ipProtocol": protocol, "fromPort": 0, "toPort": 0, "cidrIpv4": "0.0.0.0/0"}
    assert reported(rule) == ["0-65535 from 0.0.0.0/0"]


@pytest.mark.parametrize("protocol", ["tcp", "TCP", "6", 6.0])
def test_tcp_by_name_and_by_number(protocol: object) -> None:
    assert reported(RULE | {"ipProtocol": protocol, "cidrIpv4": "10.0.0.0/8"})


@pytest.mark.parametrize("protocol", ["udp", "icmp", "icmpv6", "17", 58.0])
def test_other_protocols_let_in_no_client(protocol: object) -> None:
    assert reported(RULE | {"ipProtocol": protocol, "cidrIpv4": "10.0.0.0/8"}) == []


@pytest.mark.parametrize(
    ("change", "ports"),
    [
        ({"cidrIpv4": None}, "9092-9094"),
        ({"referencedSecurityGroupId": None}, "9092-9094"),
        ({"cidrBlocks": [None]}, "9092-9094"),
        ({"cidrIpv4": "10.0.0.0/8", "fromPort": None}, "0-65535"),
        ({"cidrIpv4": "10.0.0.0/8", "ipProtocol": None}, "0-65535"),
    ],
)
def test_what_is_not_known_yet_may_open_anything(change: dict[str, Any], ports: str) -> None:
    (rule,) = read_ingress(RULE | change)
    assert isinstance(rule.source, UnknownSource) and "not known yet" in str(rule.source)
    assert str(rule).startswith(f"{ports} from")


def test_a_group_whose_rules_are_not_known_yet() -> None:
    whole = Ingress(0, 65535, UnknownSource("the group's rules"))
    assert list(read_group({"ingress": None})) == [whole]
    assert next(read_group({"ingress": [None]})).opens(9092)
    assert list(read_group({})) == list(read_group({"ingress": []})) == []


def test_a_range_that_is_none_is_not_read() -> None:
    (rule,) = read_ingress(RULE | {"cidrIpv4": "everywhere"})
    assert str(rule) == "9092-9094 from the range 'everywhere'"


sources = st.one_of(
    st.ip_addresses().map(lambda address: ip_network(str(address).partition("%")[0])),
    st.from_regex(r"sg-[0-9a-f]{8}", fullmatch=True).map(Members),
)


@given(st.integers(0, 65535), st.integers(0, 65535), sources, st.text(max_size=20))
def test_what_is_written_is_read_again(one: int, two: int, source: Any, why: str) -> None:
    rule = Ingress(min(one, two), max(one, two), source, why)
    assert list(read_ingress(write_ingress(rule))) == [rule]


def test_the_groups_of_a_plan_are_read_again() -> None:
    clients = Clients((ip_network("10.0.0.0/16"), Members("sg-1")), (ip_network("::/0"),))
    made = plan(node(1))
    rules = ingress_of(made.nodes[0], security_groups(made, clients))
    assert [item for rule in rules for item in read_ingress(write_ingress(rule))] == list(rules)


def test_what_was_not_read_is_not_written() -> None:
    with pytest.raises(ValueError, match="prefix list pl-1"):
        write_ingress(Ingress(1, 1, UnknownSource("prefix list pl-1")))


@pytest.mark.parametrize(
    ("source", "key"),
    [
        (ip_network("10.0.0.0/8"), "cidrIpv4"),
        (ip_network("2001:db8::/32"), "cidrIpv6"),
        (Members("sg-1"), "referencedSecurityGroupId"),
    ],
)
def test_a_rule_as_it_is_written(source: Any, key: str) -> None:
    assert write_ingress(Ingress(1, 2, source, "why")) == {
        "ipProtocol": "tcp",
        "fromPort": 1,
        "toPort": 2,
        key: getattr(source, "group", str(source)),
        "description": "why",
    }


@pytest.mark.parametrize(
    "key",
    [
        *("cidrIpv4", "cidrIpv6", "cidrBlocks", "ipv6CidrBlocks", "referencedSecurityGroupId"),
        *("sourceSecurityGroupId", "securityGroups", "prefixListId", "prefixListIds"),
    ],
)
def test_whatever_names_a_source_that_is_not_known_yet_is_unread(key: str) -> None:
    (rule,) = read_ingress(RULE | {key: None, "ipProtocol": "tcp"})
    assert rule == Ingress(9092, 9094, UnknownSource(f"a rule whose {key} is not known yet"))


@pytest.mark.parametrize("key", ["ipProtocol", "protocol", "fromPort", "toPort"])
def test_a_rule_whose_ports_are_not_known_yet_is_one_unread_rule(key: str) -> None:
    rules = list(read_ingress(RULE | {key: None, "cidrIpv4": "10.0.0.0/8", "cidrIpv6": "::/0"}))
    assert [rule.source for rule in rules] == [
        UnknownSource(f"a rule whose {key} is not known yet")
    ]


def test_a_rule_without_a_protocol_is_of_all() -> None:
    assert reported({"cidrIpv4": "10.0.0.0/8"}) == ["0-65535 from 10.0.0.0/8"]
    assert reported(RULE | {"cidrIpv4": "10.0.0.1/8", "self": False}) == [
        "9092-9094 from 10.0.0.0/8"
    ]
    assert [rule.why for rule in read_ingress(RULE | {"cidrIpv4": "::/0"})] == [""]
