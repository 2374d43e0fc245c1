"""`earshot:cluster` with placement aws: defaults, and one clear line per mistake."""

from pathlib import Path
from typing import Any

import pytest

from earshot.config.aws_sections import ZoneSpec, architecture_of
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

VPC = {"id": "vpc-0123abcd", "cidr": "10.1.0.0/16", "zones": ZONES[:2]}
SUBNETS = {ZONES[0]: "subnet-0123abcd", ZONES[1]: "subnet-4567abcd"}
BOTH_SUBNETS = {"public_subnets": SUBNETS, "private_subnets": SUBNETS}
NARROW = {"zones": ZONES, "cidr": "10.0.0.0/24"}
SEPARATE: dict[str, Any] = {"controllers": {"mode": "separate"}}
VOLUME = "vol-0123456789abcdef0"


def test_defaults_of_a_cluster_on_aws() -> None:
    assert sorted(document()) == ["archive", "placement", "region", "vpc"]
    spec = read_aws()
    assert spec.region == REGION
    (internal,) = spec.listeners
    assert (internal.name, internal.scopes) == ("INTERNAL", (Scope.INTERNAL,))
    assert (internal.port, internal.protocol) == (19092, "PLAINTEXT")
    assert not spec.external and spec.deletion_protection
    assert spec.clients.admitted(spec.vpc.cidr).external == ()
    assert not spec.clients.anywhere and spec.clients.ranges == spec.clients.groups == {}
    assert (spec.data, spec.gate, spec.heap, spec.prove) == ("keep", "required", "1g", "here")
    assert (spec.naming, spec.zone, spec.nat, spec.flow_logs) == ("aws", None, None, False)
    assert (spec.drained, spec.ready_seconds, spec.cluster_id) == ((), 900, None)
    assert spec.vpc.cidr == "10.0.0.0/16"
    instances = (spec.instance, spec.controller_instance)
    assert [(instance.type, instance.root_gib, instance.arch) for instance in instances] == [
        ("m7g.large", 16, "arm64"),
        ("t4g.medium", 16, "arm64"),
    ]
    volumes = (spec.volume, spec.controller_volume)
    assert [
        (volume.size_gib, volume.type, volume.iops, volume.throughput) for volume in volumes
    ] == [
        (100, "gp3", None, None),
        (20, "gp3", None, None),
    ]


def test_nodes_are_distributed_over_the_zones() -> None:
    spec = read_aws(brokers=4, controllers={"mode": "separate"})
    assert [spec.zone_of[id][-1] for id in spec.ids] == ["a", "b", "c", "a"]
    assert [spec.zone_of[id][-1] for id in spec.controller_ids] == ["a", "b", "c"]
    assert [spec.name_of(id) for id in (1, 10_001)] == ["broker-1", "controller-10001"]


@pytest.mark.parametrize(("settings", "zones"), [
    ({"brokers": 2, "pinned": {"1": ZONES[2]}}, {1: "c", 2: "a"}),
    ({"pinned": {1: ZONES[1]}}, {1: "b", 2: "a", 3: "c"}),
    ({"controllers": {"mode": "separate"}, "pinned": {10_001: ZONES[2], 3: ZONES[0]}},
     {1: "b", 2: "c", 3: "a", 10_001: "c", 10_002: "a", 10_003: "b"}),
])  # fmt: skip
def test_a_pinned_node_stays_in_its_zone(settings: dict[str, Any], zones: dict[int, str]) -> None:
    zone_of = read_aws(**settings).zone_of
    assert zone_of == {id: f"{REGION}{letter}" for id, letter in zones.items()}


def test_brokers_are_in_public_subnets_if_clients_are_outside_the_vpc_or_the_file_says_so() -> None:
    inside, outside = read_aws(), read_aws(controllers={"mode": "separate"}, **TWO_LISTENERS)
    assert [inside.is_public(id) for id in inside.node_ids] == [False] * 3
    assert [outside.is_public(id) for id in outside.node_ids] == [True] * 3 + [False] * 3
    spec = read_aws(place="public", controllers={"mode": "separate", "count": 1})
    assert [spec.is_public(id) for id in spec.node_ids] == [True] * 3 + [False]
    assert spec.elastic_ips == 3 + spec.gateways
    assert [spec.subnet_of(id) for id in (1, 10_001)] == ["10.0.0.0/20", "10.0.16.0/20"]
    assert read_aws(place="public", **TWO_LISTENERS).at("public").public


@pytest.mark.parametrize(
    ("settings", "expected"),
    [
        ({}, "one"),
        (TWO_LISTENERS, "none"),
        ({"nat": "none", **TWO_LISTENERS}, "none"),
        ({"validator": True, **TWO_LISTENERS}, "one"),
        (ONE_LISTENER, "none"),
        ({"validator": True, **ONE_LISTENER}, "one"),
        ({**SEPARATE, **TWO_LISTENERS}, "one"),
        ({"nat": "per-zone"}, "per-zone"),
        # an existing VPC has its own subnets and gateways
        ({"vpc": {**VPC, "private_subnets": SUBNETS}}, "none"),
        ({"vpc": {**VPC, "public_subnets": SUBNETS}, **TWO_LISTENERS}, "none"),
        ({"vpc": {**VPC, **BOTH_SUBNETS}, **SEPARATE, **TWO_LISTENERS}, "none"),
    ],
)
def test_private_subnets_of_a_new_vpc_have_nat_gateways(
    settings: dict[str, Any], expected: str
) -> None:
    spec = read_aws(**settings)
    assert spec.nat_gateways == expected
    assert bool(spec.subnets) is ("id" not in settings.get("vpc", {}))


def test_clients_are_ranges_and_groups() -> None:
    clients = {**OFFICE, "anywhere": True, "groups": {"application": "sg-0123abcd"}}
    spec = read_aws(**{**TWO_LISTENERS, "clients": clients})
    admitted = spec.clients.admitted(spec.vpc.cidr)
    assert admitted.internal == (read_range("10.0.0.0/16"), Members("sg-0123abcd"))
    assert admitted.external == (read_range("203.0.113.0/24"), read_range("0.0.0.0/0"))
    twice = {"office": "203.0.113.0/24", "again": "203.0.113.0/24"}
    spec = read_aws(**{**TWO_LISTENERS, "clients": {"ranges": twice}})
    assert spec.clients.admitted("10.0.0.0/16").external == (read_range("203.0.113.0/24"),)


ANYWHERE = {**TWO_LISTENERS, "clients": {"anywhere": True}}


@pytest.mark.parametrize(
    "settings", [ONE_LISTENER, TWO_LISTENERS, ANYWHERE, {**TWO_LISTENERS, **OWN_ZONE}]
)
def test_templates_of_the_options_can_be_read(settings: dict[str, Any]) -> None:
    assert read_aws(**settings).external


def zone_spec(**zone: Any) -> ZoneSpec:
    zone_spec = read_aws(naming="zone", zone={"name": "kafka.example.com", **zone}).zone
    assert zone_spec is not None
    return zone_spec


def test_records_of_a_zone() -> None:
    zone = zone_spec(name="Kafka.Example.com", record="k{id}")
    assert (zone.ttl, zone.public_zone_id) == (60, None)
    assert zone.broker(2) == "k2.kafka.example.com"
    assert zone.controller(10_001) == "controller-10001.kafka.example.com"
    assert zone_spec().broker(3) == "broker-3.kafka.example.com"
    for ttl in (1, 86_400):
        assert zone_spec(ttl=ttl).ttl == ttl


@pytest.mark.parametrize(
    ("types", "architecture"),
    [
        ("m7g.large t4g.medium im4gn.xlarge x2gd.medium a1.large g5g.xlarge", "arm64"),
        ("g4dn.xlarge m7i.large m5zn.large m7i-flex.large a2.large m1.large", "x86_64"),
    ],
)
def test_a_type_has_an_architecture(types: str, architecture: str) -> None:
    for type in types.split():
        instance = {"type": type, "architecture": architecture}
        assert read_aws(instance=instance).instance.arch == architecture_of(type) == architecture
    with pytest.raises(ValueError, match="is no instance type"):
        architecture_of("u-6tb1.56xlarge")


def test_each_mistake_has_one_error_with_its_key() -> None:
    mistakes: list[Any] = [
        {"region": "moon-1"},
        {"region": "us-west-2"},
        {"vpc": {"zones": ZONES[:1]}},
        {"vpc": {"zones": ZONES, "cidr": "10.0.0.0/8"}},
        {"vpc": {"zones": ZONES, "cidr": "10.0.0.0/24"}, "brokers": 40},
        {"vpc": {"zones": ZONES, "public_subnets": SUBNETS}},
        {"vpc": {"zones": ZONES[:2], **BOTH_SUBNETS}},
        {"vpc": {"zones": ["eu-central-1a", "us-west-2b"]}},
        {"vpc": {**VPC, "private_subnets": {ZONES[0]: "subnet-0123abcd"}}},
        {"vpc": {**VPC, "private_subnets": {**SUBNETS, ZONES[2]: "subnet-89abcdef"}}},
        {"vpc": {**VPC, "private_subnets": {**SUBNETS, ZONES[1]: "sg-4567abcd"}}},
        {"vpc": {**VPC, "public_subnets": SUBNETS}, "validator": True, **TWO_LISTENERS},
        {"vpc": VPC, **SEPARATE, **TWO_LISTENERS},
        {"vpc": NARROW, "brokers": 28},
        {"vpc": NARROW, "brokers": 27, "validator": True},
        {"vpc": NARROW, "brokers": 30, **TWO_LISTENERS},
        {"place": "private", **TWO_LISTENERS},
        {"vpc": VPC},
        {"vpc": {**VPC, "id": "mine"}},
        {"vpc": {**VPC, "private_subnets": SUBNETS}, "nat": "one", "flow_logs": True},
        {"nat": "none"},
        {"nat": "none", "validator": True, **ONE_LISTENER},
        {"nat": "none", "validator": True, **TWO_LISTENERS},
        {"naming": "zone"},
        {"zone": {"name": "kafka.example.com"}},
        {**TWO_LISTENERS, "naming": "zone", "zone": {"name": "kafka.example.com"}},
        *(
            {"naming": "zone", "zone": {"name": name}}
            for name in ("kafka", "10.0.0.1", "a.b1", "a_b.example")
        ),
        {"naming": "zone", "zone": {"name": "kafka.example.com", "record": "-{id}"}},
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
        {"volume": {"type": "io2", "iops": 99}},
        {"volume": {"type": "io2", "iops": 256_001}},
        {"volume": {"iops": 2999}},
        {"volumes": {4: VOLUME}},
        {"volumes": {1: VOLUME, 3: VOLUME}},
        {"volumes": {"1": "sg-0123abcd"}},
        {"drained": [3]},
        {"pinned": {9: ZONES[0]}},
        {"pinned": {1: "us-east-1a"}},
        {"pinned": {9: ZONES[0]}, "naming": "zone", "listeners": [INTERNAL, BOTH]},
        {"archive": {"url": "ftp://x", "sha512": "0" * 128}},
        {"client": {"listeners": "x"}},
        {"secrets": {"key.pem": "plain"}},
        {"secrets": {"../key": "/k"}},
        {"deletion_protecton": True},
        {"clients": {"anywhere": True}},
        {"clients": {"groups": {"apps": "vpc-0123abcd"}}},
        {**TWO_LISTENERS, "clients": {"ranges": {"office": 7}}},
        {"instance": {"ami": "m7g"}},
        *(
            {"extra": {key: "1"}}
            for key in ("broker.rack", "broker.id", "advertised.listeners", "log.dirs")
        ),
        {"validator": "on"},
        {"validator": {"every": 1}},
        {"validator": {"hourly": True}},
        {"validator": {"client": {"sasl.password": "x"}}},
        {"validator": {"secrets": {"a": "/k/{id}"}}},
        {"validator": {"secrets": {"a/b": "/k"}}},
        {"validator": True, "listeners": [{**INTERNAL, "protocol": "SASL_SSL"}]},
    ]
    refusals_are_golden(mistakes, lambda case: refused(**case), MISTAKES / "aws.txt")


def test_volumes_drained_brokers_and_client_properties_are_read() -> None:
    assert read_aws(volumes={"2": VOLUME}).volumes == {2: VOLUME}
    assert read_aws(drained=[4, 5]).drained == (4, 5)
    assert read_aws(client={"sasl.mechanism": "PLAIN"}).client == {"sasl.mechanism": "PLAIN"}


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
    def settings(value: int) -> dict[str, Any]:
        return {key: {name: value}} if key else {name: value}

    for value in (least, most):
        spec = read_aws(**settings(value))
        assert getattr(getattr(spec, key) if key else spec, name) == value
    where = f"{key}.{name}" if key else name
    for value, allowed in ((least - 1, f"{least} or more"), (most + 1, f"{most} or less")):
        assert refused(**settings(value)) == [f"{where}: found {value}; allowed: {allowed}"]


@pytest.mark.parametrize(
    "volume",
    [
        {"type": "io2", "iops": 100},
        {"type": "io2", "iops": 256_000},
        {"iops": 3000, "throughput": 500},
    ],
)
def test_performance_of_volumes(volume: dict[str, Any]) -> None:
    spec = read_aws(volume=volume).volume
    assert (spec.iops, spec.throughput) == (volume["iops"], volume.get("throughput"))


@pytest.mark.parametrize("settings", [{}, {"validator": True, **TWO_LISTENERS}])
def test_a_range_has_addresses_for_its_nodes_and_the_validator(settings: dict[str, Any]) -> None:
    assert read_aws(vpc=NARROW, brokers=27, **settings).vpc.cidr == "10.0.0.0/24"


def test_each_role_has_its_own_machines() -> None:
    spec = read_aws(brokers=1, controllers={"mode": "separate"})
    assert [spec.instance_of(id).type for id in (1, 10_001)] == ["m7g.large", "t4g.medium"]
    assert [spec.volume_of(id).size_gib for id in (1, 10_001)] == [100, 20]


@pytest.mark.parametrize(("value", "is_on"), [(True, True), (False, False), ({}, True)])
def test_the_validator_is_switched_on_and_off(value: Any, is_on: bool) -> None:
    assert (read_aws(validator=value).validator is not None) is is_on
    assert read_aws().validator is None


def test_settings_of_the_validator() -> None:
    spec = read_aws(validator={"every": 15, "instance": {"type": "m7i.large"}})
    assert spec.validator is not None
    assert (spec.validator.every, spec.validator.instance.arch) == (15, "x86_64")


def test_the_validator_needs_the_credentials_of_internal_listeners_only() -> None:
    outside = {**EXTERNAL, "protocol": "SASL_SSL"}
    spec = read_aws(validator=True, listeners=[INTERNAL, outside], clients=OFFICE)
    assert spec.validator is not None and spec.validator.client == {}
    assert (spec.validator.every, spec.validator.keep_days) == (60, 30)
    assert spec.validator.instance.type == "t4g.medium"
    secured = {**INTERNAL, "protocol": "SASL_SSL"}
    assert read_aws(listeners=[secured]).validator is None
    assert read_aws(listeners=[{**INTERNAL, "protocol": "SSL"}], validator=True).validator
    client = {"client": {"sasl.mechanism": "SCRAM-SHA-512"}}
    assert read_aws(listeners=[secured], validator=client).validator
