"""Kinds of hosts, by their text alone.

Addresses are compared by number, so `::ffff:127.0.0.1` is loopback. Sources: IANA's special-purpose
address registries (RFC 6890), RFC 6761 and RFC 6762 (special names), the AWS guide on instance
hostnames for EC2's three kinds of names, Docker's documentation for its own, and
the release notes of Docker Desktop 3.2.0 and 4.3.0 for the former names `docker.for.*`.
"""

import ipaddress
import re
from enum import StrEnum
from functools import lru_cache

Ip = ipaddress.IPv4Address | ipaddress.IPv6Address


class NameKind(StrEnum):
    """What a host looks like; the value reads in a sentence after "is"."""

    ANY_ADDRESS = "the any-address"
    LOOPBACK_ADDRESS = "a loopback address"
    LINK_LOCAL_ADDRESS = "a link-local address"
    PRIVATE_ADDRESS = "a private address"
    SHARED_ADDRESS = "an address behind carrier-grade NAT"
    RESERVED_ADDRESS = "a multicast or reserved address"
    PUBLIC_ADDRESS = "a public address"
    LOCALHOST = "every machine's name for itself"
    DOCKER_HOST = "Docker's name for its host"
    CONTAINER_ID = "a container id"
    EC2_PUBLIC = "an EC2 public name"
    EC2_PRIVATE = "an EC2 private name"
    EC2_RESOURCE = "an EC2 resource-based name"
    SINGLE_LABEL = "a name of one label"
    LOCAL_DOMAIN = "a name under .local"
    PRIVATE_TLD = "a name of a private network"
    UNDELEGATED = "a name that no public DNS ever answers"
    FQDN = "a fully qualified name"


_NETWORKS = {
    NameKind.ANY_ADDRESS: "0.0.0.0/32 ::/128",
    NameKind.LOOPBACK_ADDRESS: "127.0.0.0/8 ::1/128",
    NameKind.LINK_LOCAL_ADDRESS: "169.254.0.0/16 fe80::/10",
    NameKind.PRIVATE_ADDRESS: "10.0.0.0/8 172.16.0.0/12 192.168.0.0/16 fc00::/7",
    NameKind.SHARED_ADDRESS: "100.64.0.0/10",
    NameKind.RESERVED_ADDRESS: "0.0.0.0/8 192.0.0.0/24 224.0.0.0/3 ff00::/8 100::/64",
}
# documentation networks count as public: examples and tests use them as public addresses
_RANGES = tuple(
    # as numbers, because thousands of addresses are checked at once
    (network.version, int(network.network_address), int(network.broadcast_address), kind)
    for kind, texts in _NETWORKS.items()
    for network in map(ipaddress.ip_network, texts.split())
)

_LABELS = re.compile(r"[\w-]{1,63}(?:\.[\w-]{1,63})*\.?")
_EC2_ZONE = r"(?:ec2\.internal|[a-z0-9-]+\.compute\.internal)"
_DESKTOP = (
    r"(?:host|gateway|kubernetes|vm)\.docker\.internal"
    r"|docker\.for\.(?:mac|win)\.(?:localhost|(?:host|gateway)\.internal)"
)
_HOSTS_FILES = r"ip6-localhost|ip6-loopback|localhost[46](?:\.localdomain[46])?"
"""Names of loopback in the hosts files of Debian and Fedora."""
_NAMES = tuple(
    (kind, re.compile(pattern, re.ASCII))
    for kind, pattern in (
        (NameKind.DOCKER_HOST, rf"{_DESKTOP}|host\.containers\.internal"),
        (NameKind.LOCALHOST, rf"(?:.+\.)?localhost(?:\.localdomain)?|{_HOSTS_FILES}"),
        (NameKind.CONTAINER_ID, r"[0-9a-f]{12}"),
        (
            NameKind.EC2_PUBLIC,
            r"ec2-\d+-\d+-\d+-\d+\.(?:compute-1|[a-z0-9-]+\.compute)\.amazonaws\.com(?:\.cn)?",
        ),
        (NameKind.EC2_PRIVATE, rf"ip-\d+-\d+-\d+-\d+\.{_EC2_ZONE}"),
        (NameKind.EC2_RESOURCE, rf"i-[0-9a-f]+\.{_EC2_ZONE}"),
        (NameKind.SINGLE_LABEL, r"[^.]+"),
        (NameKind.LOCAL_DOMAIN, r".+\.local"),
        (NameKind.PRIVATE_TLD, r".+\.(?:internal|home\.arpa|lan|intranet|corp|home)"),
        (NameKind.UNDELEGATED, r".+\.(?:invalid|test|example|onion)"),
    )
)


def is_name(host: str) -> bool:
    """True if ``host`` is an address or a name that a resolver may have; false for `a:9092`.

    Like resolvers, this accepts more than earshot's grammar: underscores, a trailing dot, letters
    of any script.
    """
    return ip_of(host) is not None or bool(_LABELS.fullmatch(host))


@lru_cache(maxsize=16384)
def kind_of(host: str) -> NameKind:
    """The kind of ``host``, an address without brackets or a name in any case."""
    address = ip_of(host)
    if address is None:
        name = host.lower().removesuffix(".")
        return next((kind for kind, shape in _NAMES if shape.fullmatch(name)), NameKind.FQDN)
    version, number = address.version, int(address)
    for family, first, last, kind in _RANGES:
        if family == version and first <= number <= last:
            return kind
    return NameKind.PUBLIC_ADDRESS


@lru_cache(maxsize=16384)
def ip_of(host: str) -> Ip | None:
    """``host`` as an address, IPv4 if it is IPv4-mapped IPv6; None for a name."""
    if ":" not in host and not host[-1:].isdigit():
        return None  # cheaper than an exception
    try:
        address = ipaddress.ip_address(host.partition("%")[0])
    except ValueError:
        return None
    mapped = address.ipv4_mapped if isinstance(address, ipaddress.IPv6Address) else None
    return mapped or address
