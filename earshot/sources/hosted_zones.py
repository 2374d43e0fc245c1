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
        listed = self.record.props.get("records")
        numbers = self.record.text("type") in ("A", "AAAA")
        known = [item for item in listed or () if isinstance(item, str)] if numbers else []
        foreign = "" if self.zone else ", which is not of this stack"
        why = f"record {host} in zone {self.zone_name}{foreign}"
        # Route 53 has answered once the record's full name is known
        return RecordLookup(
            Declaration(why, tuple(known)), pending=self.record.text("fqdn") is None
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
        held = self._by_name.get(_folded(host), [])
        for item in held:
            if item.zone is None or not self._is_private(item.zone):
                return item.declare(host)
        if held:
            why = f"its one record is in zone {held[0].zone_name}, which is private"
            return RecordLookup(why=why)
        return RecordLookup(undecided=self._unnamed)

    def declared_inside(self, host: str, vpc: References, dns: VpcDns | None) -> RecordLookup:
        """The result for clients in ``vpc``."""
        held = self._by_name.get(_folded(host), [])
        private = [item for item in held if item.zone is not None and self._is_private(item.zone)]
        for item in private:
            word = self._record_in_zone(item, host, vpc, dns)
            if word is not None:
                return word
        if private:
            where = ", ".join(sorted(key.rsplit("::", 1)[-1] for key in vpc.keys))
            why = f"zone {private[0].zone_name} is private, and not associated with VPC {where}"
            return RecordLookup(why=why)
        for zone in self._zones:
            hides = f".{_folded(host)}".endswith(f".{_folded(zone.text('name') or '?')}")
            if hides and self._is_private(zone) and self._vpcs(zone).keys & vpc.keys:
                why = f"the private zone {zone.text('name')} of its VPC does not hold it"
                return RecordLookup(why=why)
        if held:
            return held[0].declare(host)
        return RecordLookup(undecided=self._unnamed)

    def _record_in_zone(
        self, item: _ZoneRecord, host: str, vpc: References, dns: VpcDns | None
    ) -> RecordLookup | None:
        """The result of a private zone's record in ``vpc``; None if the zone is not associated."""
        assert item.zone is not None
        vpcs = self._vpcs(item.zone)
        if not vpcs.keys & vpc.keys:
            return RecordLookup(undecided=True) if vpcs.unknown or vpc.unknown else None
        if dns is not None and dns.off:
            off = f"{' and '.join(dns.off)} of the VPC: off"
            return RecordLookup(why=f"{off}, and private zone {item.zone_name} is not seen")
        return item.declare(host)

    def _add(self, record: RegisteredResource) -> None:
        pointed = self._stack.references(record, "zoneId", aws.ZONE)
        zone = pointed.resources[0] if pointed.resources else None
        name = record.text("fqdn") or record.text("name")
        if name is None:
            self._unnamed = True
            return
        of = (zone.text("name") if zone is not None else None) or ""
        is_below = f".{_folded(name)}".endswith(f".{_folded(of)}")
        if record.text("fqdn") is None and of and not is_below:
            name = f"{name}.{of}"
        shown = of or next(iter(pointed.foreign_ids), "(not known yet)")
        held = _ZoneRecord(record, zone, shown.rstrip("."))
        self._by_name.setdefault(_folded(name), []).append(held)

    def _is_private(self, zone: RegisteredResource) -> bool:
        return self._vpcs(zone) != References()

    def _vpcs(self, zone: RegisteredResource) -> References:
        joined = self._stack.referrers(zone.urn, "zoneId", (aws.ZONE_ASSOCIATION,), (aws.ZONE,))
        parts = [self._stack.references(zone, "vpcs", *aws.VPCS, inner="vpcId")]
        parts += [self._stack.references(item, "vpcId", *aws.VPCS) for item in joined]
        return References(
            tuple(found for part in parts for found in part.resources),
            tuple(id for part in parts for id in part.foreign_ids),
            any(part.unknown for part in parts),
        )


def _folded(name: str) -> str:
    return name.lower().rstrip(".")
