"""The DNS answers inside and outside of a VPC, computed from the state of a moto server.

Amazon's resolver answers inside: an `ip-…` name, an `ec2-…` name with the private address, private
zones of the VPC, and a public name that none of them hides. Outside an `ec2-…` name is the Elastic
IP, and only public zones are known. The name of a balancer leads to its addresses on both sides,
private ones included; so does that of an interface endpoint. A CNAME and an alias are followed, and
a name without a record has those of the wildcard above it. Source: the VPC guide on DNS attributes,
the Route 53 guide on private hosted zones. Not played: weighted and other routed records, IPv6.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from ipaddress import IPv4Network
from typing import Any, Literal

from tests.doubles.aws.names import private_name, public_name
from tests.doubles.aws.server import REGION, Moto
from tests.doubles.dns_server import NO_RECORD
from tests.e2e.box.balancer_state import balancers
from tests.e2e.box.state import addresses, endpoint_addresses

Side = Literal["inside", "outside"]
Addresses = tuple[str, ...]
FRESH_SECONDS = 1.0
"""Seconds that a record is cached. A missing record is always read again."""


@dataclass
class Zone:
    name: str
    private: bool
    records: dict[str, Addresses] = field(default_factory=dict)
    other_names: dict[str, str] = field(default_factory=dict)
    """Target names of CNAME and alias records, by name."""

    def has(self, name: str) -> bool:
        return name == self.name or name.endswith(f".{self.name}")


@dataclass(frozen=True)
class DnsSnapshot:
    """The records of both sides at one moment."""

    names: Mapping[Side, Mapping[str, Addresses]]
    """EC2's own names, and the reverse names of addresses."""
    zones: tuple[Zone, ...]
    """Public zones, and the private zones of the VPC's resolver; the longest name first."""

    def answer(self, side: Side, name: str) -> Addresses | None:
        """The addresses of a name; None if it does not exist. The most specific zone answers,
        private before public."""
        if name in self.names[side]:
            return self.names[side][name]
        visible_zones = [
            zone for zone in self.zones if zone.has(name) and (side == "inside" or not zone.private)
        ]
        for private in (True, False):
            for zone in visible_zones:
                if zone.private is private:
                    record_name = name if name in zone.records else f"*.{name.partition('.')[2]}"
                    if (target_name := zone.other_names.get(record_name)) is not None:
                        return self.answer(side, target_name)
                    return zone.records.get(record_name)
        return None


def dns_snapshot(server: Moto, vpc: IPv4Network, elastic: IPv4Network) -> DnsSnapshot:
    """The records inside and outside the VPC with the range ``vpc``.

    ``elastic`` is the pool of public addresses of balancers.
    """
    ec2 = server.client("ec2")
    of_range = [{"Name": "cidr", "Values": [str(vpc)]}]
    vpc_ids = [description["VpcId"] for description in ec2.describe_vpcs(Filters=of_range)["Vpcs"]]
    names: dict[Side, dict[str, Addresses]] = {"inside": {}, "outside": {}}
    id = vpc_ids[0] if vpc_ids else ""
    support = bool(id) and _attribute(ec2, id, "enableDnsSupport", "EnableDnsSupport")
    hostnames = support and _attribute(ec2, id, "enableDnsHostnames", "EnableDnsHostnames")
    if support:
        of_vpc = [{"Name": "vpc-id", "Values": [id]}]
        for description in ec2.describe_network_interfaces(Filters=of_vpc)["NetworkInterfaces"]:
            address = description["PrivateIpAddress"]
            _both_ways(names["inside"], private_name(address, REGION), address)
    for public, private in addresses(ec2).items():
        if private and not hostnames:
            continue
        name = public_name(public, REGION)
        _both_ways(names["outside"], name, public)
        names["inside"][name] = (private or public,)
    for balancer in balancers(server):
        for side in names.values():
            side[balancer.name.lower()] = balancer.addresses(elastic)
    for endpoint in ec2.describe_vpc_endpoints()["VpcEndpoints"]:
        for dns_entry in endpoint.get("DnsEntries") or ():
            for side in names.values():
                side[_plain(dns_entry["DnsName"])] = endpoint_addresses(ec2, endpoint)
    return DnsSnapshot(names, tuple(_zones(server.client("route53"), id if hostnames else "")))


def _attribute(ec2: Any, vpc: str, name: str, key: str) -> bool:
    return bool(ec2.describe_vpc_attribute(VpcId=vpc, Attribute=name)[key]["Value"])


def _both_ways(names: dict[str, Addresses], name: str, address: str) -> None:
    names[name] = (address,)
    names[".".join(reversed(address.split("."))) + ".in-addr.arpa"] = (name,)


def _zones(route53: Any, vpc: str) -> Iterator[Zone]:
    hosted_zones = route53.list_hosted_zones()["HostedZones"]
    for hosted_zone in sorted(hosted_zones, key=lambda zone: -len(zone["Name"])):
        private = bool(hosted_zone["Config"].get("PrivateZone"))
        if private:
            vpcs = route53.get_hosted_zone(Id=hosted_zone["Id"]).get("VPCs", [])
            if vpc not in [zone_vpc["VPCId"] for zone_vpc in vpcs]:
                continue
        zone = Zone(_plain(hosted_zone["Name"]), private)
        for page in route53.get_paginator("list_resource_record_sets").paginate(
            HostedZoneId=hosted_zone["Id"]
        ):
            for record in page["ResourceRecordSets"]:
                values = tuple(value["Value"] for value in record.get("ResourceRecords", []))
                if record["Type"] == "CNAME":
                    zone.other_names[_plain(record["Name"])] = _plain(values[0])
                elif alias := record.get("AliasTarget"):
                    zone.other_names[_plain(record["Name"])] = _plain(alias["DNSName"])
                is_address = record["Type"] in ("A", "AAAA")
                old_values = zone.records.get(_plain(record["Name"]), NO_RECORD)
                zone.records[_plain(record["Name"])] = old_values + (values if is_address else ())
        yield zone


def _plain(name: str) -> str:
    return name.removesuffix(".").lower()


class BoxDns:
    """The DNS of a box. moto is read when a name is looked up."""

    def __init__(self, server: Moto, vpc: IPv4Network, elastic: IPv4Network) -> None:
        self._server, self._vpc, self._elastic = server, vpc, elastic
        self._lock = threading.Lock()
        self._cached: tuple[float, DnsSnapshot] | None = None

    def answer(self, side: Side, name: str) -> Addresses | None:
        current_time = time.monotonic()
        result = self._snapshot(current_time - FRESH_SECONDS).answer(side, name)
        return self._snapshot(current_time).answer(side, name) if result is None else result

    def _snapshot(self, since: float) -> DnsSnapshot:
        """The records at ``since`` or later."""
        with self._lock:
            if self._cached is None or self._cached[0] < since:
                self._cached = (
                    time.monotonic(),
                    dns_snapshot(self._server, self._vpc, self._elastic),
                )
            return self._cached[1]


class SideTable(Mapping[str, "Addresses | str"]):
    """One side of the DNS of a box, as a table of `tests.doubles.dns_server`."""

    def __init__(self, box_dns: BoxDns, side: Side) -> None:
        self._box_dns, self._side = box_dns, side

    def __getitem__(self, name: str) -> Addresses | str:
        result = self._box_dns.answer(self._side, name)
        if result is None:
            raise KeyError(name)
        return result

    def __iter__(self) -> Iterator[str]:
        raise TypeError("this table answers for single names only and cannot be listed")

    def __len__(self) -> int:
        raise TypeError("this table answers for single names only and has no length")
