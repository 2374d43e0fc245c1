"""`earshot:cluster` with placement aws: defaults, and one clear line per mistake."""

from __future__ import annotations

from typing import Any

import pytest

from earshot.aws.sources import Members, read_range
from earshot.listeners.model import Scope
from earshot.spec.aws_parts import architecture_of
from tests.spec.aws_documents import (
    BOTH,
    EXTERNAL,
    INTERNAL,
    OFFICE,
    ONE_LISTENER,
    OWN_ZONE,
    REGION,
    TWO_LISTENERS,
    ZONES,
    document,
    read_aws,
    refused,
)


def test_what_is_not_said_is_safe() -> None:
    spec = read_aws()
    assert [(item.name, item.scopes) for item in spec.listeners] == [
        ("INTERNAL", (Scope.INTERNAL,))
    ]
    assert not spec.external
    assert spec.clients.admitted(spec.vpc.cidr).external == ()
    assert spec.deletion_protection
    assert (spec.data, spec.gate) == ("keep", "required")


def test_nodes_are_dealt_out_to_the_zones() -> None:
    spec = read_aws(brokers=4, controllers={"mode": "separate"})
    assert [spec.zone_of[id][-1] for id in spec.ids] == ["a", "b", "c", "a"]
    assert [spec.zone_of[id][-1] for id in spec.controller_ids] == ["a", "b", "c"]
    assert [spec.name_of(id) for id in (1, 10_001)] == ["broker-1", "controller-10001"]


def test_a_node_stays_in_the_zone_that_it_is_pinned_to() -> None:
    spec = read_aws(brokers=2, pinned={"1": ZONES[2]})
    assert spec.zone_of == {1: ZONES[2], 2: ZONES[0]}


def test_brokers_stand_in_public_subnets_only_where_clients_are_beyond_the_vpc() -> None:
    inside, beyond = read_aws(), read_aws(controllers={"mode": "separate"}, **TWO_LISTENERS)
    assert [inside.is_public(id) for id in inside.node_ids] == [False] * 3
    assert [beyond.is_public(id) for id in beyond.node_ids] == [True] * 3 + [False] * 3


@pytest.mark.parametrize(
    ("settings", "expected"),
    [
        ({}, "one"),
        (TWO_LISTENERS, "none"),
        ({"controllers": {"mode": "separate"}, **TWO_LISTENERS}, "one"),
        ({"nat": "per-zone"}, "per-zone"),
    ],
)
def test_nodes_in_private_subnets_get_a_way_out(settings: dict[str, Any], expected: str) -> None:
    assert read_aws(**settings).nat_gateways == expected


def test_clients_are_ranges_and_groups() -> None:
    clients = {**OFFICE, "anywhere": True, "groups": {"application": "sg-0123abcd"}}
    spec = read_aws(**{**TWO_LISTENERS, "clients": clients})
    admitted = spec.clients.admitted(spec.vpc.cidr)
    assert admitted.internal == (read_range("10.0.0.0/16"), Members("sg-0123abcd"))
    assert admitted.external == (read_range("203.0.113.0/24"), read_range("0.0.0.0/0"))


@pytest.mark.parametrize("settings", [ONE_LISTENER, TWO_LISTENERS, {**TWO_LISTENERS, **OWN_ZONE}])
def test_templates_of_the_options_can_be_read(settings: dict[str, Any]) -> None:
    assert read_aws(**settings).external


def test_names_of_a_zone() -> None:
    zone = {**OWN_ZONE["zone"], "name": "Kafka.Example.com", "record": "k{id}"}
    spec = read_aws(naming="zone", zone=zone)
    assert spec.zone is not None
    assert spec.zone.broker(2) == "k2.kafka.example.com"
    assert spec.zone.controller(10_001) == "controller-10001.kafka.example.com"


@pytest.mark.parametrize(
    ("type", "expected"),
    [
        ("m7g.large", "arm64"),
        ("t4g.medium", "arm64"),
        ("im4gn.xlarge", "arm64"),
        ("x2gd.medium", "arm64"),
        ("a1.large", "arm64"),
        ("g4dn.xlarge", "x86_64"),
        ("m7i.large", "x86_64"),
        ("m5zn.large", "x86_64"),
        ("g5g.xlarge", "arm64"),
        ("m7i-flex.large", "x86_64"),
        ("u-6tb1.56xlarge", None),
    ],
)
def test_the_type_tells_the_architecture(type: str, expected: str | None) -> None:
    if expected is None:
        with pytest.raises(ValueError, match="is no instance type"):
            architecture_of(type)
    else:
        assert architecture_of(type) == expected


VPC = {"id": "vpc-0123abcd", "cidr": "10.1.0.0/16", "zones": ZONES[:2]}
SUBNETS = {ZONES[0]: "subnet-0123abcd", ZONES[1]: "subnet-4567abcd"}


def test_a_vpc_that_is_there_has_its_own_subnets() -> None:
    spec = read_aws(vpc={**VPC, "private_subnets": SUBNETS})
    assert spec.subnets == ()
    assert spec.nat_gateways == "none"


MISTAKES: list[tuple[dict[str, Any], str]] = [
    ({"region": "moon-1"}, "region: region 'moon-1': is none whose names are known"),
    ({"region": "us-west-2"}, "vpc.zones: found zones of eu-central-1; allowed: zones of us-west"),
    ({"vpc": {"zones": ZONES[:1]}}, "vpc.zones: zones eu-central-1a: are 1"),
    ({"vpc": {"zones": ZONES, "cidr": "10.0.0.0/8"}}, "vpc.cidr: VPC range '10.0.0.0/8': has"),
    ({"vpc": {"zones": ZONES, "cidr": "10.0.0.0/24"}, "brokers": 40}, "vpc.cidr: subnet private-a"),
    (
        {"vpc": {"zones": ZONES, "public_subnets": SUBNETS}},
        "vpc: public_subnets: found subnets without a VPC's `id`",
    ),
    (
        {"vpc": {**VPC, "private_subnets": {ZONES[0]: "subnet-0123abcd"}}},
        "vpc: private_subnets: found eu-central-1a; allowed: one for each of eu-central-1a, eu",
    ),
    ({"vpc": VPC}, "vpc.private_subnets: is missing; nodes would stand there"),
    ({"vpc": {**VPC, "id": "mine"}}, "vpc.id: found 'mine'; allowed: an id such as vpc-"),
    (
        {"vpc": {**VPC, "private_subnets": SUBNETS}, "nat": "one", "flow_logs": True},
        "nat: found one for a VPC that is there",
    ),
    ({"nat": "none"}, "nat: found none with nodes in private subnets"),
    ({"naming": "zone"}, "zone: is missing"),
    ({"zone": {"name": "kafka.example.com"}}, "zone: found one with naming aws"),
    (
        {**TWO_LISTENERS, "naming": "zone", "zone": {"name": "kafka.example.com"}},
        "zone.public_zone_id: is missing",
    ),
    ({"naming": "zone", "zone": {"name": "kafka"}}, "zone.name: found 'kafka'; allowed: a domain"),
    (
        {"naming": "zone", "zone": {"name": "a.example", "record": "broker"}},
        "zone.record: found 'broker'; allowed: small letters, digits and hyphens around {id}",
    ),
    ({"listeners": [INTERNAL, EXTERNAL]}, "clients.ranges: is missing; nobody could come in"),
    ({"clients": OFFICE}, "clients: found external ones, and no listener has the scope external"),
    (
        {**TWO_LISTENERS, "clients": {"ranges": {"all": "0.0.0.0/0"}}},
        "clients.ranges.all: found 0.0.0.0/0, which is the world; write `anywhere: true` instead",
    ),
    (
        {**TWO_LISTENERS, "clients": {"ranges": {"half": "128.0.0.0/1"}}},
        "clients.ranges.half: client range '128.0.0.0/1': names nobody",
    ),
    (
        {"listeners": [BOTH], "clients": OFFICE},
        "listeners.PLAINTEXT.protocol: found PLAINTEXT for scope external",
    ),
    ({"clear_text": {"INTERNAL": "why"}}, "clear_text.INTERNAL: found a waiver that nothing needs"),
    ({"instance": {"type": "large"}}, "instance: type: found 'large'; allowed: a type such as"),
    (
        {"instance": {"type": "m7i.large", "architecture": "arm64"}},
        "instance: architecture: found arm64 for m7i.large; allowed: x86_64",
    ),
    ({"volume": {"type": "io2"}}, "volume: iops: is missing; io2 has no default"),
    ({"volume": {"iops": 1000}}, "volume: iops: found 1000 for gp3; allowed: 3000 or more"),
    (
        {"volume": {"type": "io2", "iops": 5000, "throughput": 500}},
        "volume: throughput: found one for io2",
    ),
    ({"pinned": {9: ZONES[0]}}, "pinned: found node 9; allowed: 1 to 3"),
    ({"pinned": {1: "us-east-1a"}}, "pinned.1: found us-east-1a; allowed: eu-central-1a, "),
    ({"archive": {"url": "ftp://x", "sha512": "0" * 128}}, "archive.url: found 'ftp://x'"),
    ({"client": {"listeners": "x"}}, "client: listeners is computed by earshot"),
    ({"secrets": {"key.pem": "plain"}}, "secrets['key.pem']: found 'plain'; allowed: an SSM"),
    ({"secrets": {"../key": "/k"}}, "secrets['../key']: found '../key'; allowed: a file name"),
    ({"deletion_protecton": True}, "deletion_protecton: is no key that earshot knows; did you"),
]


@pytest.mark.parametrize(("settings", "line"), MISTAKES, ids=[line for _, line in MISTAKES])
def test_a_mistake_is_one_line_with_its_key(settings: dict[str, Any], line: str) -> None:
    found = refused(**settings)
    assert any(item.startswith(line) for item in found), found


def test_volumes_are_of_nodes_and_each_of_one() -> None:
    one = "vol-0123456789abcdef0"
    assert read_aws(volumes={"2": one}).volumes == {2: one}
    assert refused(volumes={4: one}) == ["volumes: found node 4; allowed: 1 to 3"]
    assert refused(volumes={1: one, 3: one}) == [
        f"volumes.3: found {one}, which node 1 has already"
    ]
    (line,) = refused(volumes={"1": "sg-0123abcd"})
    assert line.startswith("volumes.1: found 'sg-0123abcd'; allowed: an id such as vol-")


def test_only_brokers_that_are_no_more_are_drained() -> None:
    assert read_aws(drained=[4, 5]).drained == (4, 5)
    (line,) = refused(drained=[3])
    assert line.startswith("drained: found broker 3, which stays and gets replicas")


@pytest.mark.parametrize("key", ["broker.rack", "broker.id", "advertised.listeners", "log.dirs"])
def test_what_is_computed_cannot_be_said_otherwise(key: str) -> None:
    (line,) = refused(extra={key: "1"})
    assert line.startswith(f"extra: {key} is computed by earshot; ")


def test_all_mistakes_are_told_at_once() -> None:
    found = refused(pinned={9: ZONES[0]}, naming="zone", listeners=[INTERNAL, BOTH])
    assert len(found) == 4, found


def test_the_smallest_document_has_four_keys() -> None:
    assert sorted(document()) == ["archive", "placement", "region", "vpc"]
    assert read_aws().region == REGION
