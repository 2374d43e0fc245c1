"""The hosted zones and records of a stack for a name, inside and outside of a VPC.

Sources: Route 53's developer guide on private hosted zones (visible in associated VPCs with both
DNS attributes on) and on split-view DNS (an associated private zone hides the public one of the
same name, also for names that it lacks).
"""

from dataclasses import dataclass

from earshot.names.aws import VpcDns
from earshot.names.evidence import Declaration
from earshot.sources import stack_resources as aws
from earshot.sources.stack_resources import References, RegisteredResource, RegisteredStack

_ADDRESSES = ("A", "AAAA", "CNAME")


@dataclass(frozen=True)
class RecordLookup:
    """The result for one name at one vantage."""

    declaration: Declaration | None = None
    why: str = ""
    """The reason why the name is not declared, or empty."""
    pending: bool = False
    """The record does not exist yet: a DNS query now would cache its absence."""
    undecided: bool = False
    """An unknown resource may declare the name."""


@dataclass(frozen=True)
class _ZoneRecord:
    """A record and its zone."""

    record: RegisteredResource
    zone: RegisteredResource | None
    """None if the zone is not in this stack."""
    zone_name: str

    def declare(self, host: str) -> RecordLookup:
        values = self.record.props.get("records")
        numbers = self.record.text("type") in ("A", "AAAA")
        addresses = [value for value in values or () if isinstance(value, str)] if numbers else []
        foreign = "" if self.zone else ", which is not of this stack"
        why = f"record {host} in zone {self.zone_name}{foreign}"
        # Route 53 has answered once the record's full name is known
        return RecordLookup(
            Declaration(why, tuple(addresses)), pending=self.record.text("fqdn") is None
        )


class Zones:
    """The hosted zones of a stack."""

    def __init__(self, stack: RegisteredStack) -> None:
        self._stack = stack
        self._zones = list(stack.all(aws.ZONE))
        self._by_name: dict[str, list[_ZoneRecord]] = {}
        self._unnamed = False
        for record in stack.all(aws.RECORD):
            if record.props.get("type") in _ADDRESSES:
                self._add(record)

    def declared_outside(self, host: str) -> RecordLookup:
        """The result for clients on the internet."""
        records = self._by_name.get(_folded(host), [])
        for zone_record in records:
            if zone_record.zone is None or not self._is_private(zone_record.zone):
                return zone_record.declare(host)
        if records:
            why = f"its one record is in zone {records[0].zone_name}, which is private"
            return RecordLookup(why=why)
        return RecordLookup(undecided=self._unnamed)

    def declared_inside(self, host: str, vpc: References, dns: VpcDns | None) -> RecordLookup:
        """The result for clients in ``vpc``."""
        records = self._by_name.get(_folded(host), [])
        private = [
            zone_record
            for zone_record in records
            if zone_record.zone is not None and self._is_private(zone_record.zone)
        ]
        for zone_record in private:
            lookup = self._record_in_zone(zone_record, host, vpc, dns)
            if lookup is not None:
                return lookup
        if private:
            where = ", ".join(sorted(key.rsplit("::", 1)[-1] for key in vpc.keys))
            why = f"zone {private[0].zone_name} is private, and not associated with VPC {where}"
            return RecordLookup(why=why)
        for zone in self._zones:
            hides = f".{_folded(host)}".endswith(f".{_folded(zone.text('name') or '?')}")
            if hides and self._is_private(zone) and self._vpcs(zone).keys & vpc.keys:
                why = f"the private zone {zone.text('name')} of its VPC does not hold it"
                return RecordLookup(why=why)
        if records:
            return records[0].declare(host)
        return RecordLookup(undecided=self._unnamed)

    def _record_in_zone(
        self, zone_record: _ZoneRecord, host: str, vpc: References, dns: VpcDns | None
    ) -> RecordLookup | None:
        """The result of a private zone's record in ``vpc``; None if the zone is not associated."""
        assert zone_record.zone is not None
        vpcs = self._vpcs(zone_record.zone)
        if not vpcs.keys & vpc.keys:
            return RecordLookup(undecided=True) if vpcs.unknown or vpc.unknown else None
        if dns is not None and dns.off:
            off = f"{' and '.join(dns.off)} of the VPC: off"
            return RecordLookup(why=f"{off}, and private zone {zone_record.zone_name} is not seen")
        return zone_record.declare(host)

    def _add(self, record: RegisteredResource) -> None:
        zones = self._stack.references(record, "zoneId", aws.ZONE)
        zone = zones.resources[0] if zones.resources else None
        name = record.text("fqdn") or record.text("name")
        if name is None:
            self._unnamed = True
            return
        zone_name = (zone.text("name") if zone is not None else None) or ""
        is_below = f".{_folded(name)}".endswith(f".{_folded(zone_name)}")
        if record.text("fqdn") is None and zone_name and not is_below:
            name = f"{name}.{zone_name}"
        shown_zone = zone_name or next(iter(zones.foreign_ids), "(not known yet)")
        zone_record = _ZoneRecord(record, zone, shown_zone.rstrip("."))
        self._by_name.setdefault(_folded(name), []).append(zone_record)

    def _is_private(self, zone: RegisteredResource) -> bool:
        return self._vpcs(zone) != References()

    def _vpcs(self, zone: RegisteredResource) -> References:
        associations = self._stack.referrers(
            zone.urn, "zoneId", (aws.ZONE_ASSOCIATION,), (aws.ZONE,)
        )
        parts = [self._stack.references(zone, "vpcs", *aws.VPCS, inner="vpcId")]
        parts += [
            self._stack.references(association, "vpcId", *aws.VPCS) for association in associations
        ]
        return References(
            tuple(resource for part in parts for resource in part.resources),
            tuple(id for part in parts for id in part.foreign_ids),
            any(part.unknown for part in parts),
        )


def _folded(name: str) -> str:
    return name.lower().rstrip(".")
