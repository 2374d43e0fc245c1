"""The address range of a VPC, divided among availability zones, and nodes spread over them.

A zone's subnets follow from the zone's letter alone: every zone owns an eighth of the range (a to
h), its first half public and its second private. So a zone that is added or taken away never moves
another's subnets, and nothing has to be remembered. Sources: the VPC guide on CIDR blocks and on
subnet sizing (from /16 to /28; five addresses of each subnet are AWS's own).
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
"""How many NAT gateways a network has."""
MIN_ZONES, MAX_ZONES = 2, 3
LARGEST_VPC = 16
SMALLEST_SUBNET = 28
_BITS = 4  # eight zones, two halves
SMALLEST_VPC = SMALLEST_SUBNET - _BITS
RESERVED = 5
"""Addresses of each subnet that AWS keeps: the first four and the last."""
SPARE = 2
"""Interfaces that may be in a subnet beside nodes: a NAT gateway's, the validator's."""
_ZONE = re.compile(r"(?P<region>[a-z]{2}(?:-[a-z]+)+-[0-9]+)(?P<letter>[a-h])", re.ASCII)
_ROUTED_PRIVATELY = (NameKind.PRIVATE_ADDRESS, NameKind.SHARED_ADDRESS)


@dataclass(frozen=True)
class Subnet:
    """One subnet of one zone."""

    zone: str
    public: bool
    """Routed to the internet gateway: an Elastic IP works here only."""
    cidr: IPv4Network

    @property
    def name(self) -> str:
        """`public-a`."""
        return f"{'public' if self.public else 'private'}-{self.zone[-1]}"

    @property
    def room(self) -> int:
        """Addresses for network interfaces."""
        return self.cidr.num_addresses - RESERVED

    def has(self, address: str) -> bool:
        """Whether a network interface may have ``address`` here."""
        number = IPv4Address(address)
        first = int(self.cidr.network_address) + RESERVED - 1
        return first <= int(number) < int(self.cidr.broadcast_address)


def lay_out(vpc: str, zones: Sequence[str]) -> tuple[Subnet, ...]:
    """Public, then private, for each of ``zones`` (`us-east-1a`, ...) in the order given.

    Raises EarshotError for a range that is no VPC's, and for zones that are not two or three
    distinct ones of one region, with a letter from a to h.
    """
    whole = check_vpc(vpc)
    check_zones(zones)
    parts = list(whole.subnets(prefixlen_diff=_BITS))
    found = []
    for zone in zones:
        first = 2 * (ord(zone[-1]) - ord("a"))
        found += [Subnet(zone, True, parts[first]), Subnet(zone, False, parts[first + 1])]
    return tuple(found)


def check_vpc(text: str) -> IPv4Network:
    """``text`` as the range of a VPC; raises EarshotError with the way out."""
    what = f"VPC range {text!r}"
    allowed = f"a private IPv4 range from /{LARGEST_VPC} to /{SMALLEST_VPC}, as in 10.0.0.0/16"
    try:
        network = IPv4Network(text, strict=False)
    except ValueError as reason:
        raise EarshotError(what, observed=f"is none ({reason})", allowed=allowed) from None
    ends = (network.network_address, network.broadcast_address)
    remedy = ""
    if str(network) != text:
        observed, remedy = "is not written as a range", f"write {network}"
    elif not LARGEST_VPC <= network.prefixlen <= SMALLEST_VPC:
        observed = f"has {network.num_addresses} addresses"
        allowed += f": AWS takes no larger VPC, and no subnet below /{SMALLEST_SUBNET}"
    elif not all(kind_of(str(end)) in _ROUTED_PRIVATELY for end in ends):
        observed = "is routed on the internet, where it belongs to others"
        allowed = "a range of 10.0.0.0/8, 172.16.0.0/12, 192.168.0.0/16 or 100.64.0.0/10"
    else:
        return network
    raise EarshotError(what, observed=observed, allowed=allowed, remedy=remedy)


def check_zones(zones: Sequence[str]) -> str:
    """The region of ``zones``; raises EarshotError unless there are two or three, all of it."""
    what = f"zones {', '.join(zones)}" if zones else "zones"
    allowed = f"{MIN_ZONES} or {MAX_ZONES} distinct zones of one region, as in us-east-1a"
    regions = set()
    for zone in zones:
        match = _ZONE.fullmatch(zone)
        if match is None:
            raise EarshotError(f"zone {zone!r}", observed="is no zone's name", allowed=allowed)
        regions.add(match["region"])
    if len(set(zones)) != len(zones):
        observed = "name one of them twice"
    elif not MIN_ZONES <= len(zones) <= MAX_ZONES:
        observed = f"are {len(zones)}"
    elif len(regions) > 1:
        observed = f"are of {' and '.join(sorted(regions))}"
    else:
        return regions.pop()
    raise EarshotError(what, observed=observed, allowed=allowed)


def spread(
    ids: Iterable[int], zones: Sequence[str], pinned: Mapping[int, str] | None = None
) -> dict[int, str]:
    """A zone for every node, as evenly as ``pinned`` allows, in the order of ``ids``.

    A data volume cannot leave its zone. Where a zone is added to a cluster that runs, pin the
    nodes it has: then only new ones go there. Raises EarshotError for a pin to another zone or of
    another node.
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
    """Whether the ``nodes`` (zones by id) fit into the public or private subnets of their zones.

    ``spare`` interfaces are kept free in each. Raises EarshotError with the range that would do.
    """
    load = Counter(nodes.values())
    for subnet in subnets:
        wanted = load[subnet.zone] + spare if subnet.public is public else 0
        if load[subnet.zone] and wanted > subnet.room:
            raise EarshotError(
                f"subnet {subnet.name} ({subnet.cidr})",
                observed=f"is to hold {load[subnet.zone]} nodes and {spare} other interfaces",
                allowed=f"{subnet.room} ({subnet.cidr.num_addresses} addresses, of which AWS "
                f"keeps {RESERVED})",
                remedy=_way_out(wanted),
            )


def _way_out(wanted: int) -> str:
    prefix = 32 - (wanted + RESERVED - 1).bit_length() - _BITS
    if prefix < LARGEST_VPC:
        most = (1 << (32 - LARGEST_VPC - _BITS)) - RESERVED
        return f"no VPC is large enough: at most {most} to a zone"
    return f"give the VPC a /{prefix}, or spread the nodes over more zones"
