"""EC2's own names: builds and parses them, and predicts their addresses at each location.

Only the forms that AWS documents: for its commercial regions, for GovCloud and for China. Sources:
the EC2 guide on instance hostnames (private names), the VPC guide on Amazon's DNS (public names and
the two DNS attributes of a VPC), the same guide on docs.amazonaws.cn (the suffix of China).
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from ipaddress import IPv4Address
from typing import NamedTuple

from earshot.errors import AddressError
from earshot.listeners.terms import Scope
from earshot.names.evidence import Declaration
from earshot.names.kinds import NameKind
from earshot.names.reachability import location_of
from earshot.placement_registry import ClientLocation

FIRST_REGION = "us-east-1"
"""The region whose names do not contain it."""
_REGION = re.compile(r"(?:us-gov|[a-z]{2})-[a-z]+-[0-9]+", re.ASCII)
_ADDRESS = r"(?P<address>\d+-\d+-\d+-\d+)"
_PLACE = r"(?P<region>[a-z0-9-]+)\.compute"
_SHAPES = {
    NameKind.EC2_PRIVATE: re.compile(rf"ip-{_ADDRESS}\.(?:ec2|{_PLACE})\.internal", re.ASCII),
    NameKind.EC2_PUBLIC: re.compile(
        rf"ec2-{_ADDRESS}\.(?:compute-1|{_PLACE})\.amazonaws\.com(?:\.cn)?", re.ASCII
    ),
}


@dataclass(frozen=True)
class Ec2Name:
    """The parts of one of EC2's names."""

    kind: NameKind
    """EC2_PRIVATE or EC2_PUBLIC."""
    address: str
    region: str


def private_name(address: str, region: str) -> str:
    """`ip-10-0-0-1.ec2.internal` in us-east-1, `ip-10-0-0-1.<region>.compute.internal` elsewhere.

    Raises AddressError if the address is not IPv4 or the region's names are unknown.
    """
    zone = "ec2" if check_region(region) == FIRST_REGION else f"{region}.compute"
    return f"ip-{_dashed(address)}.{zone}.internal"


def public_name(address: str, region: str) -> str:
    """`ec2-192-0-2-1.<region>.compute.amazonaws.com`, with `compute-1` in us-east-1 and `.cn` at
    the end in China.

    Raises AddressError like `private_name`.
    """
    zone = "compute-1" if check_region(region) == FIRST_REGION else f"{region}.compute"
    china = ".cn" if region.startswith("cn-") else ""
    return f"ec2-{_dashed(address)}.{zone}.amazonaws.com{china}"


def read_name(host: str) -> Ec2Name | None:
    """The address and region in ``host``, in any case; None if EC2 makes no such name."""
    name = host.lower().removesuffix(".")
    for kind, shape in _SHAPES.items():
        if match := shape.fullmatch(name):
            address = match["address"].replace("-", ".")
            region = match["region"] or FIRST_REGION
            make = private_name if kind is NameKind.EC2_PRIVATE else public_name
            try:
                name_made = make(address, region)
            except AddressError:
                return None
            return Ec2Name(kind, address, region) if name_made == name else None
    return None


def check_region(text: str) -> str:
    """``text``, if it is a region with names of a known form. Raises AddressError otherwise."""
    if not _REGION.fullmatch(text):
        allowed = "a region of AWS's commercial, GovCloud or China partition, as in us-west-2"
        observed = "is not a region whose names are known"
        raise AddressError(f"region {text!r}", observed=observed, allowed=allowed)
    return text


def _dashed(address: str) -> str:
    try:
        return str(IPv4Address(address)).replace(".", "-")
    except ValueError:
        observed = "is not an IPv4 address, and EC2's names contain no other"
        allowed = "an IPv4 address"
        raise AddressError(f"address {address!r}", observed=observed, allowed=allowed) from None


@dataclass(frozen=True)
class VpcDns:
    """The two DNS attributes of a VPC, with AWS's defaults for a new VPC."""

    support: bool = True
    """enableDnsSupport: the VPC has Amazon's resolver."""
    hostnames: bool = False
    """enableDnsHostnames: public addresses get public names."""

    @property
    def off(self) -> tuple[str, ...]:
        """AWS's names of the attributes that are off."""
        pairs = (("enableDnsSupport", self.support), ("enableDnsHostnames", self.hostnames))
        return tuple(name for name, on in pairs if not on)


@dataclass(frozen=True)
class Interface:
    """The addresses of one network interface."""

    region: str
    private: str
    public: str = ""
    """Its Elastic IP or automatic public address; empty without one."""
    elastic: bool = True
    """True if ``public`` is an Elastic IP, which outlives a stop."""


class Resolution(NamedTuple):
    """The address of a name at one location, empty if it does not resolve, and the reason."""

    address: str
    why: str


def resolution(
    host: str, location: ClientLocation, interface: Interface, dns: VpcDns
) -> Resolution:
    """The address of ``host``, one of EC2's names, for clients at ``location``.

    Containers on an instance resolve names like the instance. The result follows AWS's
    documentation even if it is stricter than practice: with either attribute off, no name counts as
    resolving.
    """
    name = read_name(host)
    if name is None:
        return Resolution("", f"{host} is not a name of EC2")
    private = name.kind is NameKind.EC2_PRIVATE
    address = interface.private if private else interface.public
    outside = location in (ClientLocation.OUTSIDE, ClientLocation.PEERED_VPC)
    if (name.address, name.region) != (address, interface.region):
        return Resolution("", f"{host} is not a name of the interface {interface.private}")
    if dns.off:
        return Resolution("", f"{' and '.join(dns.off)} of the VPC: off")
    if private and outside:
        return Resolution("", f"only the resolver of its VPC is sure to know {host}")
    if private:
        return Resolution(address, f"Amazon's resolver of the VPC answers for interface {address}")
    lasting = (
        f"Elastic IP {address}" if interface.elastic else f"public address {address}, until a stop"
    )
    if outside:
        return Resolution(address, lasting)
    return Resolution(interface.private, f"{lasting}; inside the VPC the private address")


def declaration(host: str, scope: Scope, interface: Interface, dns: VpcDns) -> Declaration | None:
    """The declaration of ``host`` by the stack's interface and VPC for clients of ``scope``; None
    if it does not resolve for them."""
    address, why = resolution(host, location_of(scope, "aws"), interface, dns)
    return Declaration(why, (address,)) if address else None
