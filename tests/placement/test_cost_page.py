"""The page about costs lists the resources of the templates."""

from typing import Any

import pytest

from earshot.config.aws import AwsSpec
from tests.config.aws_documents import (
    INTERNAL,
    OFFICE,
    OWN_ZONE,
    TWO_LISTENERS,
    ZONES,
    read_aws,
)
from tests.goldens import is_golden
from tests.placement.cost_page import (
    PRICES,
    balancer_bill,
    bill,
    connected_bill,
    cost_page,
    endpoint_bill,
    gateway_bill,
    hosts_bill,
)
from tests.placement.test_aws_docker_template import NAME as HOSTS_NAME
from tests.placement.test_aws_docker_template import hosts_of_template
from tests.placement.test_aws_templates import NAMES, filled
from toolchain.paths import ROOT

PAGE = ROOT / "docs" / "aws-costs.md"
LARGE: dict[str, Any] = {
    **TWO_LISTENERS,
    **OWN_ZONE,
    "volume": {"size_gib": 500, "iops": 4000, "throughput": 250},
    "controllers": {"mode": "separate", "count": 3},
    "controller_instance": {"root_gib": 8},
    "controller_volume": {"size_gib": 20, "type": "io2", "iops": 1000},
    "validator": {"instance": {"root_gib": 8}},
    "nat": "per-zone",
    "flow_logs": True,
}


DOCKER_HOSTS = {HOSTS_NAME: hosts_of_template()}


def small(**rest: Any) -> AwsSpec:
    return read_aws(brokers=1, vpc={"zones": ZONES[:2]}, nat="one", **rest)


def reported(spec: AwsSpec) -> list[tuple[str, int | None, str]]:
    return [(item.what, item.count, item.formula) for item in bill(spec)]


def test_the_page_on_disk_is_current() -> None:
    text = cost_page({name: filled(name) for name in NAMES}, DOCKER_HOSTS)
    is_golden(text, PAGE)


def test_every_price_that_a_formula_takes_has_its_page() -> None:
    text = cost_page({name: filled(name) for name in NAMES}, DOCKER_HOSTS)
    assert "| broker instances | 1 | `1 x 730 h x broker-hour` |" in text
    assert "| NAT gateways | 3 | `3 x 730 h x nat-hour` |" in text
    assert "| `nat-hour` | NAT gateway, an hour | <https://aws.amazon.com/vpc/pricing/> |" in text
    assert "| interface endpoints, one per zone | 2 | `2 x 730 h x endpoint-hour` |" in text
    assert "| validator instances | 1 | `1 x 730 h x validator-hour` |" in text
    assert "io2-gib-month" not in text


def test_docker_hosts() -> None:
    items = {it.what: it.formula for it in hosts_bill(hosts_of_template())}
    assert items["Docker host instances"] == "2 x 730 h x docker-host-hour"
    assert items["data volumes of Docker hosts"] == "2 x 40 GiB x gp3-gib-month"
    assert items["NAT gateways"] == "1 x 730 h x nat-hour"


def test_a_small_stack() -> None:
    spec = read_aws(brokers=1, vpc={"zones": ZONES[:2]}, **TWO_LISTENERS)
    assert reported(spec) == [
        ("broker instances", 1, "1 x 730 h x broker-hour"),
        ("root volumes of brokers", 1, "1 x 16 GiB x gp3-gib-month"),
        ("data volumes of brokers", 1, "1 x 100 GiB x gp3-gib-month"),
        ("public IPv4 addresses", 1, "1 x 730 h x address-hour"),
        ("data to the internet", None, "1 x GiB x out-gib"),
    ]


def test_a_large_stack() -> None:
    assert reported(read_aws(**LARGE)) == [
        ("broker instances", 3, "3 x 730 h x broker-hour"),
        ("root volumes of brokers", 3, "3 x 16 GiB x gp3-gib-month"),
        ("data volumes of brokers", 3, "3 x 500 GiB x gp3-gib-month"),
        ("IOPS of brokers", 3, "3 x 1000 IOPS x gp3-iops-month"),
        ("throughput of brokers", 3, "3 x 125 MiB/s x gp3-mibps-month"),
        ("controller instances", 3, "3 x 730 h x controller-hour"),
        ("root volumes of controllers", 3, "3 x 8 GiB x gp3-gib-month"),
        ("data volumes of controllers", 3, "3 x 20 GiB x io2-gib-month"),
        ("IOPS of controllers", 3, "3 x 1000 IOPS x io2-iops-month"),
        ("validator instances", 1, "1 x 730 h x validator-hour"),
        ("root volumes of validators", 1, "1 x 8 GiB x gp3-gib-month"),
        ("public IPv4 addresses", 6, "6 x 730 h x address-hour"),
        ("NAT gateways", 3, "3 x 730 h x nat-hour"),
        ("the validator's requests to its bucket", None, "730 h x 60 x 2 / 1000 x s3-1000-gets"),
        ("hosted zones", 1, "1 x zone-month"),
        ("data through NAT", None, "1 x GiB x nat-gib"),
        ("data to the internet", None, "1 x GiB x out-gib"),
        ("data between zones", None, "2 x GiB x between-zones-gib"),
        ("flow logs", None, "1 x GiB x log-gib"),
        ("the validator's reports", None, "1 x GiB x s3-gib-month"),
    ]


@pytest.mark.parametrize("volume", [{}, {"type": "gp3", "iops": 3000, "throughput": 125}])
def test_what_a_gp3_volume_has_anyway_is_no_item(volume: dict[str, Any]) -> None:
    prices = [item.price for item in bill(small(volume=volume))]
    assert prices[:3] == ["broker-hour", "gp3-gib-month", "gp3-gib-month"]
    assert prices[3:] == ["address-hour", "nat-hour", "nat-gib"]


def test_one_nat_gateway_serves_every_zone_and_has_an_address() -> None:
    inside = read_aws()
    assert (inside.gateways, inside.elastic_ips) == (1, 1)
    beyond = read_aws(**TWO_LISTENERS)
    assert (beyond.gateways, beyond.elastic_ips) == (0, 3)


def test_every_price_has_its_use_and_its_page() -> None:
    bills = (
        bill(read_aws(**LARGE)),
        hosts_bill(hosts_of_template()),
        balancer_bill(),
        endpoint_bill(2),
        gateway_bill(),
        connected_bill(),
    )
    used = {item.price for items in bills for item in items}
    assert used == set(PRICES)
    assert all(page.startswith("https://aws.amazon.com/") for _, page in PRICES.values())


def test_an_internal_balancer_is_billed_and_sends_nothing_to_the_internet() -> None:
    address = {"strategy": "port", "base_port": 9100}
    external = {"name": "EXTERNAL", "port": 1, "scopes": ["external"], "protocol": "SSL"}
    listeners = [INTERNAL, {**external, "address": address}]
    for scheme, is_sent in (("internal", False), ("internet", True)):
        spec = read_aws(listeners=listeners, clients=OFFICE, expose={"scheme": scheme})
        prices = {item.price for item in bill(spec)}
        assert {"nlb-hour", "nlcu-hour"} <= prices
        assert ("out-gib" in prices) is is_sent
        assert spec.elastic_ips == spec.gateways


def test_two_brokers_have_traffic_between_zones_and_one_has_none() -> None:
    for count, there in ((1, False), (2, True)):
        items = list(bill(read_aws(brokers=count)))
        assert ("between-zones-gib" in {item.price for item in items}) is there
        assert "out-gib" not in {item.price for item in items}


@pytest.mark.parametrize(
    ("volume", "prices"),
    [
        ({"iops": 3001}, ["gp3-iops-month"]),
        ({"throughput": 126}, ["gp3-mibps-month"]),
        ({"type": "io2", "iops": 100}, ["io2-iops-month"]),
    ],
)
def test_what_is_beyond_the_free_part_is_billed(volume: dict[str, Any], prices: list[str]) -> None:
    items = [item for item in bill(small(volume=volume)) if "volumes" not in item.what][1:]
    beyond = [item for item in items if item.what.endswith("of brokers")]
    assert [item.price for item in beyond] == prices
    size = "100" if volume.get("type") == "io2" else "1"
    assert [item.formula.split()[2] for item in beyond] == [size]
