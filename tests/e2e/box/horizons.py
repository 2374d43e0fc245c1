"""What DNS says inside and outside of a VPC, as it follows from what a moto server holds.

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
"""For so long what was found is believed; what was not found is always asked for anew."""


@dataclass
class Zone:
    name: str
    private: bool
    records: dict[str, Addresses] = field(default_factory=dict)
    other_names: dict[str, str] = field(default_factory=dict)
    """By name, the one that a CNAME or an alias leads to."""

    def has(self, name: str) -> bool:
        return name == self.name or name.endswith(f".{self.name}")


@dataclass(frozen=True)
class Sky:
    """Both sides at one moment."""

    names: Mapping[Side, Mapping[str, Addresses]]
    """EC2's own, and the way back from addresses."""
    zones: tuple[Zone, ...]
    """Public ones, and the private ones that the VPC's resolver answers for; longest name first."""

    def answer(self, side: Side, name: str) -> Addresses | None:
        """None: there is no such name. The most specific zone answers, private before public."""
        if name in self.names[side]:
            return self.names[side][name]
        seen = [
            zone for zone in self.zones if zone.has(name) and (side == "inside" or not zone.private)
        ]
        for private in (True, False):
            for zone in seen:
                if zone.private is private:
                    found = name if name in zone.records else f"*.{name.partition('.')[2]}"
                    if (other := zone.other_names.get(found)) is not None:
                        return self.answer(side, other)
                    return zone.records.get(found)
        return None


def sky(server: Moto, vpc: IPv4Network, elastic: IPv4Network) -> Sky:
    """As seen from, and from outside of, the VPC whose range is ``vpc``.

    Public addresses of balancers are of ``elastic``.
    """
    ec2 = server.client("ec2")
    of_range = [{"Name": "cidr", "Values": [str(vpc)]}]
    found = [item["VpcId"] for item in ec2.describe_vpcs(Filters=of_range)["Vpcs"]]
    names: dict[Side, dict[str, Addresses]] = {"inside": {}, "outside": {}}
    id = found[0] if found else ""
    support = bool(id) and _attribute(ec2, id, "enableDnsSupport", "EnableDnsSupport")
    hostnames = support and _attribute(ec2, id, "enableDnsHostnames", "EnableDnsHostnames")
    if support:
        of_vpc = [{"Name": "vpc-id", "Values": [id]}]
        for item in ec2.describe_network_interfaces(Filters=of_vpc)["NetworkInterfaces"]:
            address = item["PrivateIpAddress"]
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
        for entry in endpoint.get("DnsEntries") or ():
            for side in names.values():
                side[_plain(entry["DnsName"])] = endpoint_addresses(ec2, endpoint)
    return Sky(names, tuple(_zones(server.client("route53"), id if hostnames else "")))


def _attribute(ec2: Any, vpc: str, name: str, key: str) -> bool:
    return bool(ec2.describe_vpc_attribute(VpcId=vpc, Attribute=name)[key]["Value"])


def _both_ways(names: dict[str, Addresses], name: str, address: str) -> None:
    names[name] = (address,)
    names[".".join(reversed(address.split("."))) + ".in-addr.arpa"] = (name,)


def _zones(route53: Any, vpc: str) -> Iterator[Zone]:
    listed = route53.list_hosted_zones()["HostedZones"]
    for item in sorted(listed, key=lambda it: -len(it["Name"])):
        private = bool(item["Config"].get("PrivateZone"))
        if private:
            known = route53.get_hosted_zone(Id=item["Id"]).get("VPCs", [])
            if vpc not in [it["VPCId"] for it in known]:
                continue
        zone = Zone(_plain(item["Name"]), private)
        for page in route53.get_paginator("list_resource_record_sets").paginate(
            HostedZoneId=item["Id"]
        ):
            for record in page["ResourceRecordSets"]:
                values = tuple(it["Value"] for it in record.get("ResourceRecords", []))
                if record["Type"] == "CNAME":
                    zone.other_names[_plain(record["Name"])] = _plain(values[0])
                elif alias := record.get("AliasTarget"):
                    zone.other_names[_plain(record["Name"])] = _plain(alias["DNSName"])
                is_address = record["Type"] in ("A", "AAAA")
                before = zone.records.get(_plain(record["Name"]), NO_RECORD)
                zone.records[_plain(record["Name"])] = before + (values if is_address else ())
        yield zone


def _plain(name: str) -> str:
    return name.removesuffix(".").lower()


class Skies:
    """The sky over a box, looked at when somebody asks."""

    def __init__(self, server: Moto, vpc: IPv4Network, elastic: IPv4Network) -> None:
        self._server, self._vpc, self._elastic = server, vpc, elastic
        self._lock = threading.Lock()
        self._seen: tuple[float, Sky] | None = None

    def answer(self, side: Side, name: str) -> Addresses | None:
        asked = time.monotonic()
        found = self._sky(asked - FRESH_SECONDS).answer(side, name)
        return self._sky(asked).answer(side, name) if found is None else found

    def _sky(self, since: float) -> Sky:
        """The sky as it was at ``since`` or later."""
        with self._lock:
            if self._seen is None or self._seen[0] < since:
                self._seen = time.monotonic(), sky(self._server, self._vpc, self._elastic)
            return self._seen[1]


class Horizon(Mapping[str, "Addresses | str"]):
    """One side of the skies, as a table of `tests.doubles.dns_server`."""

    def __init__(self, skies: Skies, side: Side) -> None:
        self._skies, self._side = skies, side

    def __getitem__(self, name: str) -> Addresses | str:
        found = self._skies.answer(self._side, name)
        if found is None:
            raise KeyError(name)
        return found

    def __iter__(self) -> Iterator[str]:
        raise TypeError("a horizon can be asked for a name, and not be listed")

    def __len__(self) -> int:
        raise TypeError("a horizon can be asked for a name, and not be counted")
