"""`earshot:cluster` with placement aws: defaults, and one clear line per mistake."""

from pathlib import Path
from typing import Any

import pytest

from earshot.config.aws_parts import architecture_of
from earshot.facts.security_groups import Members, read_range
from earshot.listeners.terms import Scope
from tests.config.aws_documents import (
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
from tests.goldens import refusals_are_golden

MISTAKES = Path(__file__).parent / "mistakes"
"""The texts of refusals, which `EARSHOT_WRITE_GOLDENS=1` writes."""


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


def test_the_stack_file_says_where_brokers_are() -> None:
    spec = read_aws(place="public", controllers={"mode": "separate", "count": 1})
    assert [spec.is_public(id) for id in spec.node_ids] == [True] * 3 + [False]
    assert spec.elastic_ips == 3 + spec.gateways
    assert [spec.subnet_of(id) for id in (1, 10_001)] == ["10.0.0.0/20", "10.0.16.0/20"]
    (problem,) = refused(place="private", **TWO_LISTENERS)
    assert problem == (
        "place: found private with a listener for scope external (EXTERNAL); allowed: public, for "
        "an Elastic IP works in a public subnet only, or `expose: nlb` and the address strategy "
        "port"
    )
    assert read_aws(place="public", **TWO_LISTENERS).at("public").public


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


def test_a_mistake_is_one_line_with_its_key() -> None:
    mistakes: list[Any] = [
        {"region": "moon-1"},
        {"region": "us-west-2"},
        {"vpc": {"zones": ZONES[:1]}},
        {"vpc": {"zones": ZONES, "cidr": "10.0.0.0/8"}},
        {"vpc": {"zones": ZONES, "cidr": "10.0.0.0/24"}, "brokers": 40},
        {"vpc": {"zones": ZONES, "public_subnets": SUBNETS}},
        {"vpc": {**VPC, "private_subnets": {ZONES[0]: "subnet-0123abcd"}}},
        {"vpc": VPC},
        {"vpc": {**VPC, "id": "mine"}},
        {"vpc": {**VPC, "private_subnets": SUBNETS}, "nat": "one", "flow_logs": True},
        {"nat": "none"},
        {"naming": "zone"},
        {"zone": {"name": "kafka.example.com"}},
        {**TWO_LISTENERS, "naming": "zone", "zone": {"name": "kafka.example.com"}},
        {"naming": "zone", "zone": {"name": "kafka"}},
        {"naming": "zone", "zone": {"name": "a.example", "record": "broker"}},
        {"listeners": [INTERNAL, EXTERNAL]},
        {"clients": OFFICE},
        {**TWO_LISTENERS, "clients": {"ranges": {"all": "0.0.0.0/0"}}},
        {**TWO_LISTENERS, "clients": {"ranges": {"half": "128.0.0.0/1"}}},
        {"listeners": [BOTH], "clients": OFFICE},
        {"clear_text": {"INTERNAL": "why"}},
        {"instance": {"type": "large"}},
        {"instance": {"type": "m7i.large", "architecture": "arm64"}},
        {"volume": {"type": "io2"}},
        {"volume": {"iops": 1000}},
        {"volume": {"type": "io2", "iops": 5000, "throughput": 500}},
        {"pinned": {9: ZONES[0]}},
        {"pinned": {1: "us-east-1a"}},
        {"archive": {"url": "ftp://x", "sha512": "0" * 128}},
        {"client": {"listeners": "x"}},
        {"secrets": {"key.pem": "plain"}},
        {"secrets": {"../key": "/k"}},
        {"deletion_protecton": True},
    ]
    refusals_are_golden(mistakes, lambda it: refused(**it), MISTAKES / "aws.txt")


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


def test_defaults_of_a_cluster_on_aws() -> None:
    spec = read_aws()
    (internal,) = spec.listeners
    assert (internal.port, internal.protocol) == (19092, "PLAINTEXT")
    assert (spec.naming, spec.zone, spec.heap, spec.nat, spec.flow_logs) == (
        *("aws", None, "1g", None, False),
    )
    assert (spec.drained, spec.prove, spec.ready_seconds, spec.cluster_id) == (
        (),
        "here",
        900,
        None,
    )
    assert spec.vpc.cidr == "10.0.0.0/16"
    assert [
        (it.type, it.root_gib, it.arch) for it in (spec.instance, spec.controller_instance)
    ] == [("m7g.large", 16, "arm64"), ("t4g.medium", 16, "arm64")]
    volumes = (spec.volume, spec.controller_volume)
    assert [(it.size_gib, it.type, it.iops, it.throughput) for it in volumes] == [
        (100, "gp3", None, None),
        (20, "gp3", None, None),
    ]
    assert not spec.clients.anywhere and spec.clients.ranges == spec.clients.groups == {}


@pytest.mark.parametrize(
    ("key", "name", "least", "most"),
    [
        ("instance", "root_gib", 8, 16_384),
        ("volume", "size_gib", 1, 16_384),
        ("volume", "throughput", 125, 2000),
        ("validator", "every", 5, 1440),
        ("validator", "keep_days", 1, 3650),
        (None, "ready_seconds", 60, 7200),
    ],
)
def test_numbers_have_their_bounds(key: str | None, name: str, least: int, most: int) -> None:
    for value in (least, most):
        spec = read_aws(**({key: {name: value}} if key else {name: value}))
        assert getattr(getattr(spec, key) if key else spec, name) == value
    where = f"{key}.{name}" if key else name
    for value, allowed in ((least - 1, f"{least} or more"), (most + 1, f"{most} or less")):
        assert refused(**({key: {name: value}} if key else {name: value})) == [
            f"{where}: found {value}; allowed: {allowed}"
        ]


def test_performance_of_volumes() -> None:
    for volume in (
        {"type": "io2", "iops": 100},
        {"type": "io2", "iops": 256_000},
        {"iops": 3000, "throughput": 500},
    ):
        spec = read_aws(volume=volume)
        assert (spec.volume.iops, spec.volume.throughput) == (
            *(volume["iops"], volume.get("throughput")),
        )
    assert refused(volume={"type": "io2", "iops": 99}) == [
        "volume.iops: found 99; allowed: 100 or more"
    ]
    assert refused(volume={"type": "io2", "iops": 256_001}) == [
        "volume.iops: found 256001; allowed: 256000 or less"
    ]
    assert refused(volume={"iops": 2999}) == [
        "volume: iops: found 2999 for gp3; allowed: 3000 or more"
    ]


def test_a_zone_s_records() -> None:
    zone = OWN_ZONE["zone"]
    for ttl in (1, 86_400):
        spec = read_aws(naming="zone", zone={**zone, "ttl": ttl})
        assert spec.zone is not None and spec.zone.ttl == ttl
    spec = read_aws(naming="zone", zone=zone)
    assert spec.zone is not None
    assert (spec.zone.ttl, spec.zone.broker(3)) == (60, "broker-3.kafka.example.com")
    for name in ("kafka", "10.0.0.1", "a.b1"):
        assert refused(naming="zone", zone={"name": name}) == [
            f"zone.name: found '{name}'; allowed: a domain such as kafka.example.com"
        ]
    (line,) = refused(naming="zone", zone={"name": "a_b.example"})
    assert line.startswith("zone.name: host 'a_b.example'")
    (line,) = refused(naming="zone", zone={**zone, "record": "-{id}"})
    assert line.startswith("zone: record: host '-1.kafka.example.com'")


@pytest.mark.parametrize(
    ("vpc", "lines"),
    [
        (
            {"zones": ZONES[:2], "public_subnets": SUBNETS, "private_subnets": SUBNETS},
            [
                f"vpc: {key}: found subnets without a VPC's `id`; a new VPC gets its own"
                for key in ("public_subnets", "private_subnets")
            ],
        ),
        (
            {**VPC, "private_subnets": {**SUBNETS, ZONES[2]: "subnet-89abcdef"}},
            [
                (
                    "vpc: private_subnets: found eu-central-1a, eu-central-1b, eu-central-1c; "
                    "allowed: one for each of eu-central-1a, eu-central-1b"
                )
            ],
        ),
        (
            {**VPC, "private_subnets": {**SUBNETS, ZONES[1]: "sg-4567abcd"}},
            [
                (
                    "vpc.private_subnets.eu-central-1b: found 'sg-4567abcd'; allowed: an id such "
                    "as subnet-0123456789abcdef0"
                )
            ],
        ),
    ],
)
def test_subnets_are_one_for_each_zone_of_a_vpc_that_is_there(
    vpc: dict[str, Any], lines: list[str]
) -> None:
    assert refused(vpc=vpc) == lines


def test_a_vpc_that_is_there_needs_subnets_for_all_that_stand_in_it() -> None:
    apart = {"controllers": {"mode": "separate"}, **TWO_LISTENERS}
    assert refused(vpc=VPC, **apart) == [
        "vpc.public_subnets: is missing; nodes would be there",
        "vpc.private_subnets: is missing; nodes would be there",
    ]
    public = {**VPC, "public_subnets": SUBNETS}
    assert read_aws(vpc=public, **TWO_LISTENERS).nat_gateways == "none"
    assert read_aws(vpc={**public, "private_subnets": SUBNETS}, **apart).subnets == ()
    both = {**VPC, "private_subnets": SUBNETS}
    assert refused(vpc=both, nat="one", flow_logs=True) == [
        f"{key}: found one for a VPC that is there, which has its own"
        for key in ("nat", "flow_logs")
    ]


def test_without_nat_nothing_stands_in_a_private_subnet() -> None:
    assert read_aws(nat="none", **TWO_LISTENERS).nat_gateways == "none"
    assert refused(nat="none") == [
        (
            "nat: found none with nodes in private subnets, which must reach packages, archives "
            "and AWS's services; allowed: one, per-zone"
        )
    ]


def test_a_range_has_room_for_its_nodes_and_the_validator() -> None:
    narrow = {"zones": ZONES, "cidr": "10.0.0.0/24"}
    assert read_aws(vpc=narrow, brokers=27).vpc.cidr == "10.0.0.0/24"
    assert len(refused(vpc=narrow, brokers=28)) == 1
    assert len(refused(vpc=narrow, brokers=27, validator=True)) == 1
    (line,) = refused(vpc=narrow, brokers=30, **TWO_LISTENERS)
    assert line.startswith("vpc.cidr: subnet public-a (10.0.0.0/28): would have 10 nodes")
    assert read_aws(vpc=narrow, brokers=27, validator=True, **TWO_LISTENERS).validator


def test_the_first_zone_tells_the_region_of_all() -> None:
    assert refused(region="us-west-2") == [
        "vpc.zones: found zones of eu-central-1; allowed: zones of us-west-2"
    ]
    assert refused(vpc={"zones": ["eu-central-1a", "us-west-2b"]}) == [
        (
            "vpc.zones: zones eu-central-1a, us-west-2b: are of eu-central-1 and us-west-2; "
            "allowed: 2 or 3 distinct zones of one region, as in us-east-1a"
        )
    ]


def test_a_mistake_is_told_with_all_that_mends_it() -> None:
    mistakes: list[Any] = [
        {"naming": "zone"},
        {"zone": {"name": "kafka.example.com"}},
        {**TWO_LISTENERS, "naming": "zone", "zone": {"name": "kafka.example.com"}},
        {"listeners": [INTERNAL, EXTERNAL]},
        {"clients": {"anywhere": True}},
        {"drained": [3]},
        {"clients": {"groups": {"apps": "vpc-0123abcd"}}},
        {"instance": {"ami": "m7g"}},
        {**TWO_LISTENERS, "clients": {"ranges": {"office": 7}}},
    ]
    refusals_are_golden(mistakes, lambda it: refused(**it), MISTAKES / "aws_remedies.txt")


def test_a_zone_may_be_private_if_all_clients_are_in_the_vpc() -> None:
    spec = read_aws(naming="zone", zone={"name": "kafka.example.com"})
    assert spec.zone is not None and spec.zone.public_zone_id is None
    assert read_aws(**{**TWO_LISTENERS, "clients": {"anywhere": True}}).external


def test_each_role_has_its_own_machines() -> None:
    spec = read_aws(brokers=1, controllers={"mode": "separate"})
    assert [spec.instance_of(id).type for id in (1, 10_001)] == ["m7g.large", "t4g.medium"]
    assert [spec.volume_of(id).size_gib for id in (1, 10_001)] == [100, 20]


def test_controllers_may_be_pinned_too() -> None:
    spec = read_aws(controllers={"mode": "separate"}, pinned={10_001: ZONES[2], 3: ZONES[0]})
    assert spec.zone_of == {
        1: ZONES[1],
        2: ZONES[2],
        3: ZONES[0],
        10_001: ZONES[2],
        10_002: ZONES[0],
        10_003: ZONES[1],
    }
    combined = read_aws(pinned={1: ZONES[1]})
    assert combined.zone_of == {1: ZONES[1], 2: ZONES[0], 3: ZONES[2]}


def test_the_type_that_is_said_to_have_its_own_architecture_is_taken() -> None:
    assert read_aws(instance={"type": "m7i.large", "architecture": "x86_64"}).instance.arch == (
        "x86_64"
    )
    assert architecture_of("a2.large") == architecture_of("m1.large") == "x86_64"


def test_a_range_that_stands_twice_is_admitted_once() -> None:
    ranges = {"office": "203.0.113.0/24", "again": "203.0.113.0/24"}
    spec = read_aws(**{**TWO_LISTENERS, "clients": {"ranges": ranges}})
    assert spec.clients.admitted("10.0.0.0/16").external == (read_range("203.0.113.0/24"),)


def test_credentials_are_asked_for_by_internal_listeners_alone() -> None:
    outside = {**EXTERNAL, "protocol": "SASL_SSL"}
    spec = read_aws(validator=True, listeners=[INTERNAL, outside], clients=OFFICE)
    assert spec.validator is not None and spec.validator.client == {}
    assert (spec.validator.every, spec.validator.keep_days) == (60, 30)
    assert spec.validator.instance.type == "t4g.medium"
    secured = {**INTERNAL, "protocol": "SASL_SSL"}
    assert read_aws(listeners=[secured]).validator is None
    assert read_aws(listeners=[{**INTERNAL, "protocol": "SSL"}], validator=True).validator


def test_client_properties_are_kept_and_checked() -> None:
    assert read_aws(client={"sasl.mechanism": "PLAIN"}).client == {"sasl.mechanism": "PLAIN"}
