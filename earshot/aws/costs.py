"""What a stack has AWS bill for, as formulas: counts times hours or gibibytes times a price.

No price stands here: prices differ by region and change. Each item says which price it takes and on
which of AWS's pages that is found. What AWS does not charge for (VPC, subnets, internet gateway,
S3 gateway endpoint, security groups, standard SSM parameters) is no item.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from decimal import Decimal
from typing import Literal

from earshot.errors import EarshotError

HOURS = 730
"""Hours of a month as AWS's own calculator counts them."""

_EC2 = "https://aws.amazon.com/ec2/pricing/on-demand/"
_EBS = "https://aws.amazon.com/ebs/pricing/"
_VPC = "https://aws.amazon.com/vpc/pricing/"
_ROUTE53 = "https://aws.amazon.com/route53/pricing/"
_CLOUDWATCH = "https://aws.amazon.com/cloudwatch/pricing/"

PRICES = {
    "broker-hour": ("one broker's instance type, an hour", _EC2),
    "controller-hour": ("one controller's instance type, an hour", _EC2),
    "validator-hour": ("the validator's instance type, an hour", _EC2),
    "gp3-gib-month": ("gp3 volume, a GiB and month", _EBS),
    "address-hour": ("public IPv4 address, an hour, in use or not", _VPC),
    "nat-hour": ("NAT gateway, an hour", _VPC),
    "nat-gib": ("NAT gateway, a GiB that passes it", _VPC),
    "out-gib": ("data to the internet, a GiB", _EC2),
    "between-zones-gib": ("data between two zones, a GiB in one direction", _EC2),
    "zone-month": ("Route 53 hosted zone, a month", _ROUTE53),
    "log-gib": ("vended logs taken in, a GiB", _CLOUDWATCH),
}
"""By key: what the price is for, and the page that has it."""

Nat = Literal["none", "one", "per-zone"]


@dataclass(frozen=True)
class Footprint:
    """How much a stack makes of what AWS charges for."""

    brokers: int
    zones: int
    controllers: int = 0
    """Controllers on instances of their own."""
    external: bool = False
    """Every broker has an Elastic IP."""
    nat: Nat = "none"
    validator: bool = False
    hosted_zones: int = 0
    flow_logs: bool = False
    root_gib: int = 8
    """Of each instance."""
    data_gib: int = 100
    """Of each broker's data volume; a separate controller's is ``metadata_gib``."""
    metadata_gib: int = 10

    @property
    def instances(self) -> int:
        return self.brokers + self.controllers + self.validator

    @property
    def nat_gateways(self) -> int:
        return {"none": 0, "one": 1, "per-zone": self.zones}[self.nat]

    @property
    def addresses(self) -> int:
        """Public IPv4 addresses: one per external broker, one per NAT gateway."""
        return (self.brokers if self.external else 0) + self.nat_gateways


@dataclass(frozen=True)
class Traffic:
    """GiB in a month; nobody knows them beforehand."""

    nat: Decimal = Decimal(0)
    out: Decimal = Decimal(0)
    between_zones: Decimal = Decimal(0)
    """Replication and clients of other zones, counted once."""
    logs: Decimal = Decimal(0)


@dataclass(frozen=True)
class Item:
    """One line of the bill."""

    what: str
    count: int | None
    """How many of them the stack makes; None for what is charged by use alone."""
    quantity: Decimal
    """In a month, in the unit of the price."""
    price: str
    """A key of PRICES."""
    formula: str
    """How the quantity comes about, times the price: `3 x 730 h x broker-hour`."""

    @property
    def page(self) -> str:
        """Where AWS publishes the price."""
        return PRICES[self.price][1]


def bill(footprint: Footprint, traffic: Traffic | None = None) -> tuple[Item, ...]:
    """Every item of ``footprint`` that AWS charges for; what it has none of is left out.

    Without ``traffic`` the items that are charged by use are there with the quantity 0.
    """
    used = traffic or Traffic()
    f = footprint
    by_hour = [
        ("broker instances", f.brokers, "broker-hour"),
        ("controller instances", f.controllers, "controller-hour"),
        ("validator instance", int(f.validator), "validator-hour"),
        ("public IPv4 addresses", f.addresses, "address-hour"),
        ("NAT gateways", f.nat_gateways, "nat-hour"),
    ]
    by_size = [
        ("root volumes", f.instances, f.root_gib),
        ("data volumes of brokers", f.brokers, f.data_gib),
        ("data volumes of controllers", f.controllers, f.metadata_gib),
    ]
    by_use = [
        ("data through NAT", f.nat_gateways > 0, "nat-gib", 1, used.nat),
        ("data to the internet", f.external, "out-gib", 1, used.out),
        # charged to the zone that sends and to the one that receives
        ("data between zones", f.instances > 1, "between-zones-gib", 2, used.between_zones),
        ("flow logs", f.flow_logs, "log-gib", 1, used.logs),
    ]
    items = [
        Item(what, n, Decimal(n * HOURS), price, f"{n} x {HOURS} h x {price}")
        for what, n, price in by_hour
    ]
    items += [
        Item(what, n, Decimal(n * gib), "gp3-gib-month", f"{n} x {gib} GiB x gp3-gib-month")
        for what, n, gib in by_size
    ]
    n = f.hosted_zones
    items.append(Item("hosted zones", n, Decimal(n), "zone-month", f"{n} x zone-month"))
    items = [item for item in items if item.count]
    items += [
        Item(what, None, times * gib, price, f"{times} x GiB x {price}")
        for what, there, price, times, gib in by_use
        if there
    ]
    return tuple(items)


def total(items: Iterable[Item], prices: Mapping[str, Decimal]) -> Decimal:
    """The month's sum in the currency of ``prices``, by key of PRICES.

    Raises EarshotError that names every price missing, with the page to look it up on.
    """
    listed = list(items)
    missing = dict.fromkeys(item.price for item in listed if item.price not in prices)
    if missing:
        lines = (f"\n  - {key}: {PRICES[key][0]}, see {PRICES[key][1]}" for key in missing)
        raise EarshotError("prices", observed=f"missing:{''.join(lines)}")
    return sum((item.quantity * prices[item.price] for item in listed), Decimal(0))
