from __future__ import annotations

import pytest

from earshot.aws.costs import PRICES, Footprint, Machines, Volume, bill

SMALL = Footprint(zones=2, brokers=Machines(1, 16, Volume(100)), external=True)
LARGE = Footprint(
    zones=3,
    brokers=Machines(3, 16, Volume(500, iops=4000, throughput=250)),
    controllers=Machines(3, 8, Volume(20, "io2", iops=1000)),
    validator=Machines(1, 8),
    external=True,
    nat="per-zone",
    hosted_zones=2,
    flow_logs=True,
)


def reported(footprint: Footprint) -> list[tuple[str, int | None, str]]:
    return [(item.what, item.count, item.formula) for item in bill(footprint)]


def test_a_small_stack() -> None:
    assert reported(SMALL) == [
        ("broker instances", 1, "1 x 730 h x broker-hour"),
        ("root volumes of brokers", 1, "1 x 16 GiB x gp3-gib-month"),
        ("data volumes of brokers", 1, "1 x 100 GiB x gp3-gib-month"),
        ("public IPv4 addresses", 1, "1 x 730 h x address-hour"),
        ("data to the internet", None, "1 x GiB x out-gib"),
    ]


def test_a_large_stack() -> None:
    assert reported(LARGE) == [
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
        ("the validator's looks into its bucket", None, "730 h x 60 x 2 / 1000 x s3-1000-gets"),
        ("hosted zones", 2, "2 x zone-month"),
        ("data through NAT", None, "1 x GiB x nat-gib"),
        ("data to the internet", None, "1 x GiB x out-gib"),
        ("data between zones", None, "2 x GiB x between-zones-gib"),
        ("flow logs", None, "1 x GiB x log-gib"),
        ("the validator's reports", None, "1 x GiB x s3-gib-month"),
    ]


@pytest.mark.parametrize("volume", [Volume(100), Volume(100, "gp3", 3000, 125)])
def test_what_a_gp3_volume_has_anyway_is_no_item(volume: Volume) -> None:
    items = bill(Footprint(zones=2, brokers=Machines(1, 8, volume)))
    assert [item.price for item in items] == ["broker-hour", "gp3-gib-month", "gp3-gib-month"]


def test_one_nat_gateway_serves_every_zone_and_has_an_address() -> None:
    brokers = Machines(3, 8, Volume(10))
    inside = Footprint(zones=3, brokers=brokers, nat="one")
    assert (inside.nat_gateways, inside.addresses) == (1, 1)
    assert Footprint(zones=3, brokers=brokers).addresses == 0


def test_every_price_has_its_use_and_its_page() -> None:
    assert {item.price for item in bill(LARGE)} == set(PRICES)
    assert all(page.startswith("https://aws.amazon.com/") for _, page in PRICES.values())


def test_two_brokers_have_traffic_between_zones_and_one_has_none() -> None:
    for count, there in ((1, False), (2, True)):
        items = bill(Footprint(zones=2, brokers=Machines(count, 8, Volume(10))))
        assert ("between-zones-gib" in {item.price for item in items}) is there
        assert "out-gib" not in {item.price for item in items}


def test_what_is_not_said_costs_nothing() -> None:
    plain = Footprint(zones=3, brokers=Machines(3, 8))
    assert (plain.external, plain.nat, plain.hosted_zones, plain.flow_logs) == (
        *(False, "none", 0, False),
    )
    assert [item.price for item in bill(plain)] == [
        *("broker-hour", "gp3-gib-month", "between-zones-gib")
    ]


@pytest.mark.parametrize(
    ("volume", "prices"),
    [
        (Volume(10, "gp3", 3001), ["gp3-iops-month"]),
        (Volume(10, "gp3", None, 126), ["gp3-mibps-month"]),
        (Volume(10, "io2", 1), ["io2-iops-month"]),
    ],
)
def test_one_beyond_what_is_free_is_billed(volume: Volume, prices: list[str]) -> None:
    items = bill(Footprint(zones=2, brokers=Machines(1, 8, volume)))
    assert [item.price for item in items[3:]] == prices
    assert [item.formula.split()[2] for item in items[3:]] == ["1"]
