from __future__ import annotations

from decimal import Decimal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from earshot.aws.costs import PRICES, Footprint, Traffic, bill, total
from earshot.errors import EarshotError

SMALL = Footprint(brokers=1, zones=2, external=True)
LARGE = Footprint(
    brokers=3,
    zones=3,
    controllers=3,
    external=True,
    nat="per-zone",
    validator=True,
    hosted_zones=2,
    flow_logs=True,
)


def told(footprint: Footprint) -> list[tuple[str, int | None, str]]:
    return [(item.what, item.count, item.formula) for item in bill(footprint)]


def test_a_small_stack() -> None:
    assert told(SMALL) == [
        ("broker instances", 1, "1 x 730 h x broker-hour"),
        ("public IPv4 addresses", 1, "1 x 730 h x address-hour"),
        ("root volumes", 1, "1 x 8 GiB x gp3-gib-month"),
        ("data volumes of brokers", 1, "1 x 100 GiB x gp3-gib-month"),
        ("data to the internet", None, "1 x GiB x out-gib"),
    ]


def test_a_large_stack() -> None:
    assert told(LARGE) == [
        ("broker instances", 3, "3 x 730 h x broker-hour"),
        ("controller instances", 3, "3 x 730 h x controller-hour"),
        ("validator instance", 1, "1 x 730 h x validator-hour"),
        ("public IPv4 addresses", 6, "6 x 730 h x address-hour"),
        ("NAT gateways", 3, "3 x 730 h x nat-hour"),
        ("root volumes", 7, "7 x 8 GiB x gp3-gib-month"),
        ("data volumes of brokers", 3, "3 x 100 GiB x gp3-gib-month"),
        ("data volumes of controllers", 3, "3 x 10 GiB x gp3-gib-month"),
        ("hosted zones", 2, "2 x zone-month"),
        ("data through NAT", None, "1 x GiB x nat-gib"),
        ("data to the internet", None, "1 x GiB x out-gib"),
        ("data between zones", None, "2 x GiB x between-zones-gib"),
        ("flow logs", None, "1 x GiB x log-gib"),
    ]


def test_one_nat_gateway_serves_every_zone_and_has_an_address() -> None:
    inside = Footprint(brokers=3, zones=3, nat="one")
    assert (inside.nat_gateways, inside.addresses) == (1, 1)
    assert Footprint(brokers=3, zones=3).addresses == 0


def test_the_sum_takes_every_price_once() -> None:
    prices = {key: Decimal(0) for key in PRICES}
    used = Traffic(nat=Decimal(5), out=Decimal(7), between_zones=Decimal(11), logs=Decimal(13))
    items = bill(LARGE, used)
    assert total(items, prices) == 0
    for key, wanted in (
        ("broker-hour", 2190),
        ("gp3-gib-month", 7 * 8 + 300 + 30),
        ("address-hour", 4380),
        ("zone-month", 2),
        ("nat-gib", 5),
        ("out-gib", 7),
        ("between-zones-gib", 22),
        ("log-gib", 13),
    ):
        assert total(items, prices | {key: Decimal(1)}) == wanted


def test_a_price_that_is_missing_is_named_with_its_page() -> None:
    with pytest.raises(EarshotError) as caught:
        total(bill(SMALL), {"broker-hour": Decimal(1), "gp3-gib-month": Decimal(1)})
    assert str(caught.value) == (
        "prices: missing:\n"
        "  - address-hour: public IPv4 address, an hour, in use or not, see "
        "https://aws.amazon.com/vpc/pricing/\n"
        "  - out-gib: data to the internet, a GiB, see "
        "https://aws.amazon.com/ec2/pricing/on-demand/"
    )


def test_every_price_has_its_use_and_its_page() -> None:
    assert {item.price for item in bill(LARGE)} == set(PRICES)
    assert all(item.page.startswith("https://aws.amazon.com/") for item in bill(LARGE))


@given(st.integers(1, 300), st.integers(2, 3), st.integers(0, 9), st.booleans())
def test_cost_grows_in_step_with_brokers(
    brokers: int, zones: int, controllers: int, external: bool
) -> None:
    prices = {key: Decimal(1) for key in PRICES}

    def cost(count: int) -> Decimal:
        footprint = Footprint(count, zones, controllers=controllers, external=external)
        return total(bill(footprint), prices)

    each = 730 + 8 + 100 + (730 if external else 0)
    assert cost(brokers + 1) - cost(brokers) == each
