"""The page about what the templates with resources on AWS cost, as formulas.

Counts times hours or gibibytes times a price. No price stands here: prices differ by region and
change. Each item says which price it takes and on which of AWS's pages that is found. What AWS does
not charge for (VPC, subnets, internet gateway, S3 gateway endpoint, security groups, standard SSM
parameters) is no item.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from earshot.config.aws import AwsSpec
from earshot.config.aws_docker_hosts import DockerHostsSpec
from earshot.config.aws_sections import VolumeSpec

HOURS = 730
"""Hours of a month as AWS's own calculator counts them."""

_EC2 = "https://aws.amazon.com/ec2/pricing/on-demand/"
_EBS = "https://aws.amazon.com/ebs/pricing/"
_VPC = "https://aws.amazon.com/vpc/pricing/"
_ELB = "https://aws.amazon.com/elasticloadbalancing/pricing/"
_PRIVATELINK = "https://aws.amazon.com/privatelink/pricing/"
_TRANSIT = "https://aws.amazon.com/transit-gateway/pricing/"
_ROUTE53 = "https://aws.amazon.com/route53/pricing/"
_CLOUDWATCH = "https://aws.amazon.com/cloudwatch/pricing/"
_S3 = "https://aws.amazon.com/s3/pricing/"

PRICES = {
    "docker-host-hour": ("one Docker host's instance type, an hour", _EC2),
    "broker-hour": ("one broker's instance type, an hour", _EC2),
    "controller-hour": ("one controller's instance type, an hour", _EC2),
    "validator-hour": ("the validator's instance type, an hour", _EC2),
    "gp3-gib-month": ("gp3 volume, a GiB and month", _EBS),
    "gp3-iops-month": ("gp3 volume, an IOPS beyond its 3000, a month", _EBS),
    "gp3-mibps-month": ("gp3 volume, a MiB/s beyond its 125, a month", _EBS),
    "io2-gib-month": ("io2 volume, a GiB and month", _EBS),
    "io2-iops-month": ("io2 volume, an IOPS and month; cheaper beyond 32000", _EBS),
    "address-hour": ("public IPv4 address, an hour, used or unused", _VPC),
    "nat-hour": ("NAT gateway, an hour", _VPC),
    "nat-gib": ("NAT gateway, a GiB of traffic", _VPC),
    "nlb-hour": ("Network Load Balancer, an hour", _ELB),
    "nlcu-hour": ("Network Load Balancer, a capacity unit (NLCU) and hour", _ELB),
    "gateway-hour": ("one gateway's instance type, an hour", _EC2),
    "attachment-hour": ("attachment of a VPC to a Transit Gateway, an hour", _TRANSIT),
    "transit-gib": ("data through a Transit Gateway, a GiB", _TRANSIT),
    "endpoint-hour": ("interface endpoint in one zone, an hour", _PRIVATELINK),
    "endpoint-gib": ("data through interface endpoints, a GiB; cheaper in bulk", _PRIVATELINK),
    "out-gib": ("data to the internet, a GiB", _EC2),
    "between-zones-gib": ("data between two zones, a GiB in one direction", _EC2),
    "zone-month": ("Route 53 hosted zone, a month", _ROUTE53),
    "log-gib": ("vended logs, a GiB ingested", _CLOUDWATCH),
    "s3-gib-month": ("S3 Standard, a GiB and month", _S3),
    "s3-1000-gets": ("S3 Standard, a thousand GET and HEAD requests", _S3),
}
"""By key: what the price is for, and the page that has it."""

LOOK_REQUESTS = 2
"""HEAD and GET, of the validator every minute."""
FREE_IOPS, FREE_THROUGHPUT = 3000, 125
"""Features of a gp3 volume that have no separate price."""

_HEAD = f"""\
# What a stack on AWS costs

For each template: the billed resources, and a formula for their cost in a month of {HOURS} hours.
Prices differ by region and change, so the page contains none. Each formula names its price, and
[the list of prices](#prices) has the page of AWS for it. Free resources are left out (VPC, subnets,
internet gateway, S3 gateway endpoint, security groups, standard SSM parameters).

The amount of traffic depends on your clients: GiB is the amount of a month.

This page is generated from the templates.
"""

_END = """\
## Stop paying

`make down STACK=NAME` (or `pulumi destroy`) removes the resources of the stack. With
`deletion_protection: true` it is refused: set it to false, run `make up`, and then destroy. With
`data: keep` the data volumes are kept and billed until you delete them (`aws ec2 delete-volume`).
The stack's output `ids` and their tags show them.
"""


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


def bill(spec: AwsSpec) -> Iterator[Item]:
    """Every item of ``spec`` that AWS charges for; what it has none of is left out.

    How much is charged by use nobody knows beforehand: such formulas say GiB.
    """
    separate = [id for id in spec.controller_ids if id not in spec.ids]
    for role, ids in (("broker", spec.ids), ("controller", separate)):
        if ids:
            root_gib, data = spec.instance_of(ids[0]).root_gib, spec.volume_of(ids[0])
            yield from _machines(role, len(ids), root_gib, data)
    if spec.validator is not None:
        yield from _machines("validator", 1, spec.validator.instance.root_gib)
    for what, count, price in (
        ("public IPv4 addresses", spec.elastic_ips, "address-hour"),
        ("NAT gateways", spec.gateways, "nat-hour"),
    ):
        if count:
            yield _hourly(what, count, price)
    if spec.validator is not None:
        formula = f"{HOURS} h x 60 x {LOOK_REQUESTS} / 1000 x s3-1000-gets"
        yield Item("the validator's requests to its bucket", None, "s3-1000-gets", formula)
    if spec.expose is not None:
        yield from balancer_bill()
    if spec.zone is not None:
        yield Item("hosted zones", 1, "zone-month", "1 x zone-month")
    for what, there, price, times in (
        ("data through NAT", spec.gateways, "nat-gib", 1),
        ("data to the internet", spec.external and not _is_internal(spec), "out-gib", 1),
        # charged to the zone that sends and to the one that receives
        ("data between zones", spec.brokers > 1, "between-zones-gib", 2),
        ("flow logs", spec.flow_logs, "log-gib", 1),
        ("the validator's reports", spec.validator, "s3-gib-month", 1),
    ):
        if there:
            yield Item(what, None, price, f"{times} x GiB x {price}")


def _is_internal(spec: AwsSpec) -> bool:
    """Whether external clients come through an internal balancer, from connected networks."""
    return spec.expose is not None and not spec.expose.public and not spec.public


def balancer_bill() -> Iterator[Item]:
    """What `expose: nlb` adds."""
    yield _hourly("Network Load Balancers", 1, "nlb-hour")
    units = "max(new flows/s / 800, flows / 100000, GiB/h)"  # as the page of its price says
    yield Item("use of the balancer", None, "nlcu-hour", f"{HOURS} h x {units} x nlcu-hour")


def endpoint_bill(zones: int) -> Iterator[Item]:
    """What an `AwsEndpoint` with subnets in ``zones`` costs its own account."""
    yield _hourly("interface endpoints, one per zone", zones, "endpoint-hour")
    yield Item("hosted zones", 1, "zone-month", "1 x zone-month")
    yield Item("data through the endpoints", None, "endpoint-gib", "1 x GiB x endpoint-gib")


def gateway_bill() -> Iterator[Item]:
    """What two gateways of one's own cost, one in each of two zones."""
    yield _hourly("instances, one per zone", 2, "gateway-hour")
    yield Item("data between zones", None, "between-zones-gib", "2 x GiB x between-zones-gib")


def connected_bill() -> Iterator[Item]:
    """What `connected` adds for a VPC, with the connection that exists already."""
    yield _hourly("attachments to a Transit Gateway, both VPCs", 2, "attachment-hour")
    yield Item("data through a Transit Gateway", None, "transit-gib", "1 x GiB x transit-gib")
    data = "2 x GiB x between-zones-gib"
    yield Item("data through a peering between zones", None, "between-zones-gib", data)


def hosts_bill(spec: DockerHostsSpec) -> Iterator[Item]:
    """Every item of Docker hosts that AWS charges for."""
    for size in dict.fromkeys(spec.instance_of(host).root_gib for host in spec.host_zones):
        count = sum(spec.instance_of(host).root_gib == size for host in spec.host_zones)
        yield from _machines("docker-host", count, size, spec.volume)
    if spec.vpc_id is None:
        gateways = len(spec.vpc_zones) if spec.nat == "per-zone" else 1
        yield _hourly("public IPv4 addresses", gateways, "address-hour")
        yield _hourly("NAT gateways", gateways, "nat-hour")
    yield Item("data through NAT", None, "nat-gib", "1 x GiB x nat-gib")
    if len({*spec.host_zones.values()}) > 1:
        yield Item("data between zones", None, "between-zones-gib", "2 x GiB x between-zones-gib")


def _hourly(what: str, count: int, price: str) -> Item:
    return Item(what, count, price, f"{count} x {HOURS} h x {price}")


def _machines(
    role: str, count: int, root_gib: int, data: VolumeSpec | None = None
) -> Iterator[Item]:
    """Instances of one role, each with a root volume (gp3) and, but for the validator, data."""

    label = role.replace("docker-host", "Docker host")

    def sized(what: str, each: int, unit: str, price: str) -> Item:
        return Item(f"{what} of {label}s", count, price, f"{count} x {each} {unit} x {price}")

    yield _hourly(f"{label} instances", count, f"{role}-hour")
    yield sized("root volumes", root_gib, "GiB", "gp3-gib-month")
    if data is None:
        return
    yield sized("data volumes", data.size_gib, "GiB", f"{data.type}-gib-month")
    iops = (data.iops or 0) - (FREE_IOPS if data.type == "gp3" else 0)
    if iops > 0:
        yield sized("IOPS", iops, "IOPS", f"{data.type}-iops-month")
    if data.throughput is not None and data.throughput > FREE_THROUGHPUT:
        beyond = data.throughput - FREE_THROUGHPUT
        yield sized("throughput", beyond, "MiB/s", "gp3-mibps-month")


def cost_page(specs: Mapping[str, AwsSpec], hosts: Mapping[str, DockerHostsSpec]) -> str:
    """The page about ``specs`` and ``hosts``, by the names of their stacks."""
    bills = {name: tuple(bill(spec)) for name, spec in specs.items()}
    bills |= {name: tuple(hosts_bill(spec)) for name, spec in hosts.items()}
    bills["With `expose: nlb` or `privatelink`, in addition"] = tuple(balancer_bill())
    bills["An `AwsEndpoint` in two zones, for its own account"] = tuple(endpoint_bill(2))
    bills["Two gateways for strategy `sni` or `port`, in your own instances"] = tuple(
        gateway_bill()
    )
    bills["A VPC in `connected`"] = tuple(connected_bill())
    parts = [_HEAD, *(_stack(name, items) for name, items in bills.items())]
    used = {item.price for items in bills.values() for item in items}
    return "\n".join([*parts, _prices(used), _END])


def _stack(name: str, items: tuple[Item, ...]) -> str:
    rows = [
        f"| {item.what} | {'' if item.count is None else item.count} | `{item.formula}` |"
        for item in items
    ]
    return "\n".join(
        [f"## {name}\n", "| What | How many | In a month |", "|---|---|---|", *rows, ""]
    )


def _prices(used: set[str]) -> str:
    def lines() -> Iterator[str]:
        for key, (what, page) in PRICES.items():
            if key in used:
                yield f"| `{key}` | {what} | <{page}> |"

    head = ["## Prices\n", "| Price | For | Page |", "|---|---|---|"]
    return "\n".join([*head, *lines(), ""])
