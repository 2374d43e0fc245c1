"""What a stack has AWS bill for, as formulas: counts times hours or gibibytes times a price.

No price stands here: prices differ by region and change. Each item says which price it takes and on
which of AWS's pages that is found. What AWS does not charge for (VPC, subnets, internet gateway,
S3 gateway endpoint, security groups, standard SSM parameters) is no item.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal

from earshot.aws.subnets import Nat

HOURS = 730
"""Hours of a month as AWS's own calculator counts them."""

_EC2 = "https://aws.amazon.com/ec2/pricing/on-demand/"
_EBS = "https://aws.amazon.com/ebs/pricing/"
_VPC = "https://aws.amazon.com/vpc/pricing/"
_ROUTE53 = "https://aws.amazon.com/route53/pricing/"
_CLOUDWATCH = "https://aws.amazon.com/cloudwatch/pricing/"
_S3 = "https://aws.amazon.com/s3/pricing/"

PRICES = {
    "broker-hour": ("one broker's instance type, an hour", _EC2),
    "controller-hour": ("one controller's instance type, an hour", _EC2),
    "validator-hour": ("the validator's instance type, an hour", _EC2),
    "gp3-gib-month": ("gp3 volume, a GiB and month", _EBS),
    "gp3-iops-month": ("gp3 volume, an IOPS beyond its 3000, a month", _EBS),
    "gp3-mibps-month": ("gp3 volume, a MiB/s beyond its 125, a month", _EBS),
    "io2-gib-month": ("io2 volume, a GiB and month", _EBS),
    "io2-iops-month": ("io2 volume, an IOPS and month; cheaper beyond 32000", _EBS),
    "address-hour": ("public IPv4 address, an hour, in use or not", _VPC),
    "nat-hour": ("NAT gateway, an hour", _VPC),
    "nat-gib": ("NAT gateway, a GiB that passes it", _VPC),
    "out-gib": ("data to the internet, a GiB", _EC2),
    "between-zones-gib": ("data between two zones, a GiB in one direction", _EC2),
    "zone-month": ("Route 53 hosted zone, a month", _ROUTE53),
    "log-gib": ("vended logs taken in, a GiB", _CLOUDWATCH),
    "s3-gib-month": ("S3 Standard, a GiB and month", _S3),
    "s3-1000-gets": ("S3 Standard, a thousand GET and HEAD requests", _S3),
}
"""By key: what the price is for, and the page that has it."""

LOOK_REQUESTS = 2
"""HEAD and GET, of the validator every minute."""
FREE_IOPS, FREE_THROUGHPUT = 3000, 125
"""What a gp3 volume has without a price of its own."""


@dataclass(frozen=True)
class Volume:
    """One data volume; for gp3, None stands for what it has anyway."""

    gib: int
    type: Literal["gp3", "io2"] = "gp3"
    iops: int | None = None
    throughput: int | None = None
    """MiB/s."""


@dataclass(frozen=True)
class Machines:
    """Instances of one role, each with a root volume (gp3) and, but for the validator, data."""

    count: int
    root_gib: int
    data: Volume | None = None


@dataclass(frozen=True)
class Footprint:
    """How much a stack makes of what AWS charges for."""

    zones: int
    brokers: Machines
    controllers: Machines | None = None
    """Controllers on instances of their own."""
    validator: Machines | None = None
    external: bool = False
    """Every broker has an Elastic IP."""
    nat: Nat = "none"
    hosted_zones: int = 0
    flow_logs: bool = False

    @property
    def machines(self) -> dict[str, Machines]:
        """The machines by role."""
        roles = (("broker", self.brokers), ("controller", self.controllers))
        every = (*roles, ("validator", self.validator))
        return {role: item for role, item in every if item is not None and item.count}

    @property
    def nat_gateways(self) -> int:
        return {"none": 0, "one": 1, "per-zone": self.zones}[self.nat]

    @property
    def addresses(self) -> int:
        """Public IPv4 addresses: one per external broker, one per NAT gateway."""
        return (self.brokers.count if self.external else 0) + self.nat_gateways


@dataclass(frozen=True)
class Item:
    """One line of the bill."""

    what: str
    count: int | None
    """How many of them the stack makes; None for what is charged by use alone."""
    price: str
    """A key of PRICES."""
    formula: str
    """How much of it in a month, times the price: `3 x 730 h x broker-hour`."""


def bill(footprint: Footprint) -> tuple[Item, ...]:
    """Every item of ``footprint`` that AWS charges for; what it has none of is left out.

    How much is charged by use nobody knows beforehand: such formulas say GiB.
    """
    f = footprint
    items: list[Item] = []
    for role, group in f.machines.items():
        items.append(_hourly(f"{role} instances", group.count, f"{role}-hour"))
        items += _volumes(role, group)
    for what, count, price in (
        ("public IPv4 addresses", f.addresses, "address-hour"),
        ("NAT gateways", f.nat_gateways, "nat-hour"),
    ):
        if count:
            items.append(_hourly(what, count, price))
    if f.validator is not None:
        formula = f"{HOURS} h x 60 x {LOOK_REQUESTS} / 1000 x s3-1000-gets"
        items.append(Item("the validator's looks into its bucket", None, "s3-1000-gets", formula))
    if n := f.hosted_zones:
        items.append(Item("hosted zones", n, "zone-month", f"{n} x zone-month"))
    for what, there, price, times in (
        ("data through NAT", f.nat_gateways, "nat-gib", 1),
        ("data to the internet", f.external, "out-gib", 1),
        # charged to the zone that sends and to the one that receives
        ("data between zones", f.brokers.count > 1, "between-zones-gib", 2),
        ("flow logs", f.flow_logs, "log-gib", 1),
        ("the validator's reports", f.validator, "s3-gib-month", 1),
    ):
        if there:
            items.append(Item(what, None, price, f"{times} x GiB x {price}"))
    return tuple(items)


def _hourly(what: str, count: int, price: str) -> Item:
    return Item(what, count, price, f"{count} x {HOURS} h x {price}")


def _volumes(role: str, group: Machines) -> Iterator[Item]:
    def sized(what: str, each: int, unit: str, price: str) -> Item:
        n = group.count
        return Item(f"{what} of {role}s", n, price, f"{n} x {each} {unit} x {price}")

    yield sized("root volumes", group.root_gib, "GiB", "gp3-gib-month")
    if (data := group.data) is None:
        return
    yield sized("data volumes", data.gib, "GiB", f"{data.type}-gib-month")
    iops = (data.iops or 0) - (FREE_IOPS if data.type == "gp3" else 0)
    if iops > 0:
        yield sized("IOPS", iops, "IOPS", f"{data.type}-iops-month")
    if data.throughput is not None and data.throughput > FREE_THROUGHPUT:
        beyond = data.throughput - FREE_THROUGHPUT
        yield sized("throughput", beyond, "MiB/s", "gp3-mibps-month")
