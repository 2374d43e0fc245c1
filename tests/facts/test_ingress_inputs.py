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


OLDER = TCP | {"type": "ingress", "sourceSecurityGroupId": "sg-1"}
EVERY = {"fromPort": 0, "toPort": 0, "cidrIpv4": "0.0.0.0/0"}
INNER = {"cidrIpv4": "10.0.0.0/8"}


@pytest.mark.parametrize(("inputs", "rules"), [
    (RULE | {"cidrIpv4": "10.0.0.0/16"}, ["9092-9094 from 10.0.0.0/16"]),
    (RULE | {"cidrIpv6": "::/0"}, ["9092-9094 from ::/0"]),
    (RULE | {"referencedSecurityGroupId": "sg-1"}, ["9092-9094 from group sg-1"]),
    (RULE | {"prefixListId": "pl-1"}, ["9092-9094 from prefix list pl-1"]),
    (RULE | {"cidrIpv4": "everywhere"}, ["9092-9094 from the range 'everywhere'"]),
    (RULE | {"cidrIpv4": "10.0.0.1/8", "self": False}, ["9092-9094 from 10.0.0.0/8"]),
    (OLDER, ["9092-9094 from group sg-1"]),
    (OLDER | {"type": "egress"}, []),
    *((RULE | INNER | {"ipProtocol": tcp}, ["9092-9094 from 10.0.0.0/8"])
      for tcp in ("tcp", "TCP", "6", 6.0)),
    # other protocols let in no client
    *((RULE | INNER | {"ipProtocol": other}, [])
      for other in ("udp", "icmp", "icmpv6", "17", 58.0)),
    # all protocols are all ports, and a rule without a protocol is of all
    *((EVERY | {"ipProtocol": every}, ["0-65535 from 0.0.0.0/0"])
      for every in ("-1", -1.0, "all", "ALL")),
    (INNER, ["0-65535 from 10.0.0.0/8"]),
])  # fmt: skip
def test_a_rule_opens_its_ports_to_its_source(inputs: dict[str, Any], rules: list[str]) -> None:
    assert reported(inputs) == rules
    assert all(rule.why == "" for rule in read_ingress(inputs))


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
