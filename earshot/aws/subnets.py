"""Divides the range of a VPC among availability zones, and spreads nodes over them.

A zone's subnets depend only on the zone's letter: each zone has an eighth of the range (a to h), of
which the first half is public and the second private. So adding or removing a zone never moves the
subnets of others. Sources: the VPC guide on CIDR blocks and on subnet sizing (from /16 to /28; AWS
reserves five addresses of each subnet).
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from ipaddress import IPv4Address, IPv4Network
from typing import Literal

from earshot.errors import EarshotError
from earshot.names.kinds import NameKind, kind_of

Nat = Literal["none", "one", "per-zone"]
"""The number of NAT gateways of a network."""
MIN_ZONES, MAX_ZONES = 2, 3
LARGEST_VPC = 16
SMALLEST_SUBNET = 28
_BITS = 4  # eight zones, two halves
SMALLEST_VPC = SMALLEST_SUBNET - _BITS
RESERVED = 5
"""Addresses of each subnet that AWS reserves: the first four and the last."""
SPARE = 2
"""Interfaces in a subnet in addition to nodes: a NAT gateway's, the validator's."""
_ZONE = re.compile(r"(?P<region>[a-z]{2}(?:-[a-z]+)+-[0-9]+)(?P<letter>[a-h])", re.ASCII)
_ROUTED_PRIVATELY = (NameKind.PRIVATE_ADDRESS, NameKind.SHARED_ADDRESS)


@dataclass(frozen=True)
class Subnet:
    """One subnet of one zone."""

    zone: str
    public: bool
    """True with a route to the internet gateway, which an Elastic IP needs."""
    cidr: IPv4Network

    @property
    def name(self) -> str:
        """`public-a`."""
        return f"{'public' if self.public else 'private'}-{self.zone[-1]}"

    @property
    def room(self) -> int:
        """The number of addresses for network interfaces."""
        return self.cidr.num_addresses - RESERVED

    def has(self, address: str) -> bool:
        """True if a network interface in this subnet may have ``address``."""
        number = IPv4Address(address)
        first_free = int(self.cidr.network_address) + RESERVED - 1
        return first_free <= int(number) < int(self.cidr.broadcast_address)


def lay_out(vpc: str, zones: Sequence[str]) -> tuple[Subnet, ...]:
    """A public and a private subnet for each of ``zones`` (`us-east-1a`, ...), in their order.

    Raises EarshotError for a range that a VPC cannot have, or unless there are two or three
    distinct zones of one region, with letters from a to h.
    """
    network = check_vpc(vpc)
    check_zones(zones)
    blocks = list(network.subnets(prefixlen_diff=_BITS))
    subnets = []
    for zone in zones:
        index = 2 * (ord(zone[-1]) - ord("a"))
        subnets += [Subnet(zone, True, blocks[index]), Subnet(zone, False, blocks[index + 1])]
    return tuple(subnets)


def check_vpc(text: str) -> IPv4Network:
    """``text`` as the range of a VPC. Raises EarshotError, with the fix if there is one."""
    subject = f"VPC range {text!r}"
    allowed = f"a private IPv4 range from /{LARGEST_VPC} to /{SMALLEST_VPC}, as in 10.0.0.0/16"
    try:
        network = IPv4Network(text, strict=False)
    except ValueError as reason:
        raise EarshotError(subject, observed=f"is invalid ({reason})", allowed=allowed) from None
    ends = (network.network_address, network.broadcast_address)
    remedy = ""
    if str(network) != text:
        observed, remedy = "is not written as a range", f"write {network}"
    elif not LARGEST_VPC <= network.prefixlen <= SMALLEST_VPC:
        observed = f"has {network.num_addresses} addresses"
        allowed += f": AWS allows no larger VPC, and no subnet below /{SMALLEST_SUBNET}"
    elif not all(kind_of(str(end)) in _ROUTED_PRIVATELY for end in ends):
        observed = "is not a range for private networks"
        allowed = "a range of 10.0.0.0/8, 172.16.0.0/12, 192.168.0.0/16 or 100.64.0.0/10"
    else:
        return network
    raise EarshotError(subject, observed=observed, allowed=allowed, remedy=remedy)


def check_zones(zones: Sequence[str]) -> str:
    """The region of ``zones``. Raises EarshotError unless it has two or three distinct zones."""
    subject = f"zones {', '.join(zones)}" if zones else "zones"
    allowed = f"{MIN_ZONES} or {MAX_ZONES} distinct zones of one region, as in us-east-1a"
    regions = set()
    for zone in zones:
        match = _ZONE.fullmatch(zone)
        if match is None:
            raise EarshotError(
                f"zone {zone!r}", observed="is not the name of a zone", allowed=allowed
            )
        regions.add(match["region"])
    if len(set(zones)) != len(zones):
        observed = "contain one of them twice"
    elif not MIN_ZONES <= len(zones) <= MAX_ZONES:
        observed = f"found {len(zones)}"
    elif len(regions) > 1:
        observed = f"are of {' and '.join(sorted(regions))}"
    else:
        return regions.pop()
    raise EarshotError(subject, observed=observed, allowed=allowed)


def spread(
    ids: Iterable[int], zones: Sequence[str], pinned: Mapping[int, str] | None = None
) -> dict[int, str]:
    """A zone for every node, as evenly as ``pinned`` allows, in the order of ``ids``.

    A data volume cannot leave its zone. If a zone is added to a running cluster, pin the existing
    nodes, so that only new ones use it. Raises EarshotError if a pinned node or zone is unknown.
    """
    nodes = list(ids)
    fixed = dict(pinned or {})
    for id, zone in fixed.items():
        if zone not in zones or id not in nodes:
            raise EarshotError(
                f"node {id}",
                observed=f"is pinned to {zone}" + ("" if id in nodes else ", and is not a node"),
                allowed=f"nodes of the cluster, in {', '.join(zones)}",
            )
    load = Counter(fixed.values())
    for id in nodes:
        if id not in fixed:
            fixed[id] = min(zones, key=lambda zone: load[zone])
            load[fixed[id]] += 1
    return {id: fixed[id] for id in nodes}


def check_room(
    subnets: Iterable[Subnet], nodes: Mapping[int, str], *, public: bool, spare: int = SPARE
) -> None:
    """Raises EarshotError unless ``nodes`` (zones by id) fit into the subnets of their zones.

    The subnets are the public or the private ones, and ``spare`` interfaces stay free in each. The
    error has a sufficient range.
    """
    load = Counter(nodes.values())
    for subnet in subnets:
        interface_count = load[subnet.zone] + spare if subnet.public is public else 0
        if load[subnet.zone] and interface_count > subnet.room:
            raise EarshotError(
                f"subnet {subnet.name} ({subnet.cidr})",
                observed=f"would have {load[subnet.zone]} nodes and {spare} other interfaces",
                allowed=f"{subnet.room} ({subnet.cidr.num_addresses} addresses, of which AWS "
                f"reserves {RESERVED})",
                remedy=_sufficient_range(interface_count),
            )


def _sufficient_range(interface_count: int) -> str:
    prefix = 32 - (interface_count + RESERVED - 1).bit_length() - _BITS
    if prefix < LARGEST_VPC:
        limit = (1 << (32 - LARGEST_VPC - _BITS)) - RESERVED
        return f"no VPC is large enough: at most {limit} per zone"
    return f"give the VPC a /{prefix}, or spread the nodes over more zones"
