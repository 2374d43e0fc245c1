"""What surrounds a cluster's instances on AWS, in a form that can be sent to another process.

What security groups let in is read, and written, as the inputs of pulumi-aws say it. Three
resources say the same in other words: a group's own `ingress` blocks, `SecurityGroupRule` and, the
one that AWS advises, `SecurityGroupIngressRule`. A value of None is not known yet.
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
    """What one rule or block lets in over TCP: one Ingress per source.

    ``own`` is what the group is known by, for a rule that names itself. Rules of other protocols
    and of `type: egress` let in nothing here.
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
    """What the `ingress` blocks of a `SecurityGroup` let in."""
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
    """``rule`` as a `SecurityGroupIngressRule`'s inputs, but for the group that it belongs to.

    A source that names a group is written as it is known here. Raises ValueError for a source
    that could not be read.
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
    """First and last TCP port; all of them where that is not known yet, None for no TCP."""
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
    for key in (*_RANGES, *_GROUPS, *_LISTS):
        if key not in inputs:
            continue
        value = inputs[key]
        for entry in value if isinstance(value, list | tuple) else (value,):
            if entry is None:
                yield UnknownSource(f"a rule whose {key} is not known yet")
            elif key in _RANGES:
                yield _range(str(entry))
            else:
                yield (
                    Members(str(entry)) if key in _GROUPS else UnknownSource(f"prefix list {entry}")
                )
    if inputs.get("self"):
        yield Members(own)


def _range(text: str) -> Source:
    try:
        return ip_network(text, strict=False)
    except ValueError:
        return UnknownSource(f"the range {text!r}")


def _number(value: object) -> str:
    return str(value).removesuffix(".0")  # Pulumi hands numbers over as floats


@dataclass(frozen=True)
class Instance:
    """One instance's inputs; None is what is not stated."""

    ingress: tuple[Ingress, ...] | None = None
    """What all of its security groups together let in; a rule of all protocols opens every port,
    and a rule of another protocol than TCP is left out."""
    elastic: tuple[str | UnknownHost, ...] | None = None
    """Its Elastic IPs."""


@dataclass(frozen=True)
class Cloud:
    """Instances by node id, who may come in on them, and what the stack declares of names."""

    instances: Mapping[int, Instance]
    clients: Clients
    declared: Mapping[EvidenceKey, Declaration]
    connected: tuple[ConnectedVpc, ...] = ()
    """Other VPCs with clients of scope internal."""

    def document(self) -> dict[str, Any]:
        """The same as plain data; `read` takes it back."""
        return {
            "instances": {
                str(id): {
                    "ingress": [write_ingress(rule) for rule in instance.ingress or ()],
                    "elastic": [
                        address if isinstance(address, str) else address.written
                        for address in instance.elastic or ()
                    ],
                }
                for id, instance in self.instances.items()
            },
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
    def read(cls, document: Mapping[str, Any]) -> Cloud:
        clients = document["clients"]
        return cls(
            instances={
                int(id): _instance(instance) for id, instance in document["instances"].items()
            },
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
    # a group may be known by a name, which could be read as nothing else
    return Members(text.removeprefix(_GROUP)) if text.startswith(_GROUP) else read_range(text)


def _instance(document: Mapping[str, Any]) -> Instance:
    return Instance(
        ingress=tuple(rule for inputs in document["ingress"] for rule in read_ingress(inputs)),
        elastic=tuple(
            address if isinstance(address, str) else UnknownHost.read(address)
            for address in document["elastic"]
        ),
    )
