"""A table that predicts whether each kind of host resolves and works at each client location.

"Resolves" and "reaches" are different answers, and a name may have another address elsewhere. The
rows for AWS come from its documentation, those for Docker were measured on Linux (Docker 20.10).
Rules and reports take their explanations from here.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum

from earshot.listeners.terms import Scope
from earshot.names.kinds import NameKind
from earshot.placement_registry import ClientLocation, internal_location


class Expectation(StrEnum):
    """The answer to whether a host resolves, or whether it leads to the broker."""

    YES = "yes"
    NO = "no"
    DEPENDS = "depends"
    ITSELF = "itself"
    """It leads to the client's own machine or container."""


@dataclass(frozen=True)
class Reachability:
    """The predictions for one kind of host at one location."""

    resolves: Expectation
    reaches: Expectation


@dataclass(frozen=True)
class ReachabilityRow:
    """One kind of host at all locations, with a note and its source."""

    outlooks: Mapping[ClientLocation, Reachability]
    note: str
    source: str


_LETTERS = {
    "y": Expectation.YES,
    "n": Expectation.NO,
    "d": Expectation.DEPENDS,
    "s": Expectation.ITSELF,
}


def _row(outlooks: str, source: str, note: str) -> ReachabilityRow:
    # two letters per location: does it resolve, does it reach the broker
    pairs = [Reachability(_LETTERS[pair[0]], _LETTERS[pair[1]]) for pair in outlooks.split()]
    return ReachabilityRow(dict(zip(ClientLocation, pairs, strict=True)), note, source)


_RFC6890 = "https://www.rfc-editor.org/rfc/rfc6890"
_RFC6761 = "https://www.rfc-editor.org/rfc/rfc6761"
_RFC6762 = "https://www.rfc-editor.org/rfc/rfc6762"
_RFC1918 = "https://www.rfc-editor.org/rfc/rfc1918"
_DOCKER = "https://docs.docker.com/engine/network/"
_DESKTOP = "https://docs.docker.com/desktop/features/networking/"
_EC2 = "https://docs.aws.amazon.com/AWSEC2/latest/UserGuide/ec2-instance-naming.html"
_VPC = "https://docs.aws.amazon.com/vpc/latest/userguide/AmazonDNS-concepts.html"
_ZONES = "https://docs.aws.amazon.com/Route53/latest/DeveloperGuide/hosted-zones-private.html"

# fmt: off
TABLE: dict[NameKind, ReachabilityRow] = {
    # two letters for each of: this machine, same network, other network, outside, VPC, peered VPC
    NameKind.ANY_ADDRESS: _row("ys ys ys ys ys ys", _RFC6890,
        "it is for binding, and a client that connects to it stays on its own machine"),
    NameKind.LOOPBACK_ADDRESS: _row("yy ys ys ys ys ys", _RFC6890,
        "it leads every client to its own machine or container"),
    NameKind.LINK_LOCAL_ADDRESS: _row("yd yd yn yd yn yn", _RFC6890,
        "it means something on one link only, in IPv6 only with a zone"),
    NameKind.PRIVATE_ADDRESS: _row("yy yy yd yd yy yd", _RFC1918,
        "it is routed inside its own network only"),
    NameKind.SHARED_ADDRESS: _row("yy yy yd yd yd yd", _RFC6890,
        "it lies between a provider and its customers"),
    NameKind.RESERVED_ADDRESS: _row("yn yn yn yn yn yn", _RFC6890, "no host has such an address"),
    NameKind.PUBLIC_ADDRESS: _row("yy yd yd yy yd yd", _VPC,
        "inside a VPC it leaves through the gateway, past rules that name security groups"),
    NameKind.LOCALHOST: _row("yy ys ys ys ys ys", _RFC6761,
        "it leads every client to its own machine or container"),
    NameKind.DOCKER_HOST: _row("dd dd dd nn nn nn", _DESKTOP,
        "on Linux it exists only where --add-host gives it"),
    NameKind.CONTAINER_ID: _row("nn yy nn nn nn nn", _DOCKER,
        "only its own Docker network resolves it, and it changes"),
    NameKind.EC2_PUBLIC: _row("yy yy yy yy yy yd", _VPC,
        "private inside the VPC, public outside; without an Elastic IP it changes on stop"),
    NameKind.EC2_PRIVATE: _row("yy yy yy nn yy dd", _EC2, "only the resolver of its VPC knows it"),
    NameKind.EC2_RESOURCE: _row("dd dd dd nn dd dd", _EC2,
        "only inside its VPC, where resource-name records are enabled"),
    NameKind.SINGLE_LABEL: _row("dd yy nn dd dd nn", _DOCKER,
        "a container's name is known to its Docker network only; elsewhere it takes a hosts file "
        "or a search domain"),
    NameKind.LOCAL_DOMAIN: _row("dd dd dd dd dd dd", _RFC6762,
        "multicast DNS answers it on one link, a private network's DNS inside that network"),
    NameKind.PRIVATE_TLD: _row("dd dd dd nn dd dd", _ZONES,
        "only resolvers inside that private network know it"),
    NameKind.UNDELEGATED: _row("dd dd dd nn dd dd", _RFC6761,
        "such names are reserved for examples and tests"),
    NameKind.FQDN: _row("dd dd dd dd dd dd", _ZONES,
        "a record of a private zone is known to its networks only"),
}
# fmt: on


def location_of(scope: Scope, placement: str) -> ClientLocation:
    """Where the clients of ``scope`` are; an unknown placement counts as the widest."""
    if scope is Scope.EXTERNAL:
        return ClientLocation.OUTSIDE
    return ClientLocation.THIS_MACHINE if scope is Scope.HOST else internal_location(placement)


def outlook(kind: NameKind, location: ClientLocation) -> Reachability:
    """The prediction for hosts of ``kind`` at ``location``."""
    return TABLE[kind].outlooks[location]
