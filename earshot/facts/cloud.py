"""The AWS network around a cluster's instances, as data that can be sent to another process.

Ingress rules are read and written as inputs of pulumi-aws, which has three forms of them: a
group's own `ingress` blocks, `SecurityGroupRule` and `SecurityGroupIngressRule`, which AWS
recommends. None is an unknown value.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from ipaddress import IPv4Network, ip_network
from typing import Any

from earshot.facts.connected import ConnectedVpc
from earshot.facts.security_groups import (
    Clients,
    Ingress,
    Members,
    Source,
    UnknownSource,
    read_range,
)
from earshot.json_object import Document, JsonObject
from earshot.listeners.terms import Scope, UnknownHost
from earshot.names.evidence import Declaration, EvidenceKey

Inputs = Mapping[str, object]
_ALL = ("-1", "all")
_TCP = ("tcp", "6")
_LAST = 65535
_RANGES = ("cidrIpv4", "cidrIpv6", "cidrBlocks", "ipv6CidrBlocks")
_GROUPS = ("referencedSecurityGroupId", "sourceSecurityGroupId", "securityGroups")
_LISTS = ("prefixListId", "prefixListIds")


def read_ingress(inputs: Inputs, own: str = "") -> Iterator[Ingress]:
    """One Ingress per source of a rule or block; none for egress and for protocols but TCP.

    ``own`` is the group's name, for a rule with `self: true`.
    """
    if inputs.get("type", "ingress") == "egress":
        return
    ports = _ports(inputs)
    if ports is None:
        return
    why = str(inputs.get("description") or "")
    for source in _sources(inputs, own):
        yield Ingress(*ports, source, why)


def read_group(inputs: Inputs, own: str = "") -> Iterator[Ingress]:
    """The TCP ingress of a `SecurityGroup` with `ingress` blocks."""
    blocks = inputs.get("ingress", ())
    if blocks is None:
        yield Ingress(0, _LAST, UnknownSource("the group's rules"))
    elif isinstance(blocks, list | tuple):
        for block in blocks:
            if block is None:
                yield Ingress(0, _LAST, UnknownSource("a rule of the group"))
            else:
                yield from read_ingress(block, own)


def write_ingress(rule: Ingress) -> dict[str, object]:
    """``rule`` as inputs of `SecurityGroupIngressRule`, without its group.

    Raises ValueError for an unknown source.
    """
    source = rule.source
    if isinstance(source, UnknownSource):
        raise ValueError(f"cannot be written: {source}")
    if isinstance(source, Members):
        key, value = "referencedSecurityGroupId", source.group
    else:
        key = "cidrIpv4" if isinstance(source, IPv4Network) else "cidrIpv6"
        value = str(source)
    return {
        "ipProtocol": "tcp",
        "fromPort": rule.first,
        "toPort": rule.last,
        key: value,
        "description": rule.why,
    }


def _ports(inputs: Inputs) -> tuple[int, int] | None:
    """The first and last TCP port, all ports if they are unknown; None for other protocols."""
    protocol = inputs.get("ipProtocol", inputs.get("protocol", "-1"))
    name = "all" if protocol is None else _number(protocol).lower()
    if name not in _ALL + _TCP:
        return None
    first, last = inputs.get("fromPort"), inputs.get("toPort")
    if name in _ALL or first is None or last is None:
        return 0, _LAST
    return int(_number(first)), int(_number(last))


def _sources(inputs: Inputs, own: str) -> Iterator[Source]:
    for key in ("ipProtocol", "protocol", "fromPort", "toPort"):
        if key in inputs and inputs[key] is None:
            yield UnknownSource(f"a rule whose {key} is not known yet")
            return
    for key in (name for name in (*_RANGES, *_GROUPS, *_LISTS) if name in inputs):
        value = inputs[key]
        for entry in value if isinstance(value, list | tuple) else (value,):
            if entry is None:
                yield UnknownSource(f"a rule whose {key} is not known yet")
            elif key in _RANGES:
                yield _range(str(entry))
            elif key in _GROUPS:
                yield Members(str(entry))
            else:
                yield UnknownSource(f"prefix list {entry}")
    if inputs.get("self"):
        yield Members(own)


def _range(text: str) -> Source:
    try:
        return ip_network(text, strict=False)
    except ValueError:
        return UnknownSource(f"the range {text!r}")


def _number(value: object) -> str:
    return str(value).removesuffix(".0")  # Pulumi passes numbers as floats


@dataclass(frozen=True)
class Instance:
    """The ingress and Elastic IPs of one instance; None if not stated."""

    ingress: tuple[Ingress, ...] | None = None
    """The TCP ingress of all its security groups; a rule for all protocols opens every port."""
    elastic: tuple[str | UnknownHost, ...] | None = None

    def document(self) -> JsonObject:
        """Returns plain data for `read`; facts that are not stated become empty."""
        elastic = self.elastic or ()
        return {
            "ingress": [write_ingress(rule) for rule in self.ingress or ()],
            "elastic": [ip if isinstance(ip, str) else ip.written for ip in elastic],
        }

    @classmethod
    def read(cls, document: Document) -> Instance:
        elastic = document["elastic"]
        return cls(
            tuple(rule for inputs in document["ingress"] for rule in read_ingress(inputs)),
            tuple(ip if isinstance(ip, str) else UnknownHost.read(ip) for ip in elastic),
        )


@dataclass(frozen=True)
class Cloud:
    """Instances by node id, their clients, and the names that the stack declares."""

    instances: Mapping[int, Instance]
    clients: Clients
    declared: Mapping[EvidenceKey, Declaration]
    connected: tuple[ConnectedVpc, ...] = ()
    """Other VPCs with clients of scope internal."""

    def document(self) -> JsonObject:
        """Returns plain data for `read`."""
        return {
            "instances": {str(id): instance.document() for id, instance in self.instances.items()},
            "clients": {
                "internal": [str(client) for client in self.clients.internal],
                "external": [str(ip_range) for ip_range in self.clients.external],
            },
            "declared": [
                {
                    "listener": listener,
                    "scope": str(scope),
                    "host": host,
                    "why": declaration.why,
                    "addresses": list(declaration.addresses),
                    **({"elsewhere": True} if declaration.elsewhere else {}),
                }
                for (listener, scope, host), declaration in self.declared.items()
            ],
            **({"connected": [vpc.document() for vpc in self.connected]} if self.connected else {}),
        }

    @classmethod
    def read(cls, document: Document) -> Cloud:
        clients, instances = document["clients"], document["instances"].items()
        return cls(
            instances={int(id): Instance.read(instance) for id, instance in instances},
            clients=Clients(
                internal=tuple(map(_client, clients["internal"])),
                external=tuple(map(read_range, clients["external"])),
            ),
            declared={
                (entry["listener"], Scope(entry["scope"]), entry["host"]): Declaration(
                    entry["why"], tuple(entry["addresses"]), entry.get("elsewhere", False)
                )
                for entry in document["declared"]
            },
            connected=tuple(map(ConnectedVpc.read, document.get("connected", ()))),
        )


_GROUP = str(Members(""))


def _client(text: str) -> Any:
    # written by `document`: a group's name alone could be any text
    return Members(text.removeprefix(_GROUP)) if text.startswith(_GROUP) else read_range(text)
