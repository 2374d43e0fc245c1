"""The listeners of one node, read from its properties, and the plan that they make."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from earshot.errors import AddressError
from earshot.facts.container import is_loopback
from earshot.facts.settings import (
    asks_itself_alone,
    controller_names,
    inter_broker_name,
    own_voter,
    readable,
    roles_of,
)
from earshot.listeners.address import Address, check_host
from earshot.listeners.grammar import read_listeners, read_protocols
from earshot.listeners.model import ClusterPlan, Listener, Node
from earshot.listeners.terms import ANY_IPV4, Protocol, Scope, UnknownHost
from earshot.sources.audience import Audience

_NAME = re.compile(r"[A-Z][A-Z0-9_]*", re.ASCII)


@dataclass(frozen=True)
class ParsedListener:
    """One listener as it was read, and whom it is for."""

    name: str
    bind: Address
    advertised: Address
    protocol: Protocol
    audience: Audience


AudienceOf = Callable[[str, int, Address], Audience]
"""Whom a listener is for, by its name, bind port and advertised address."""


def parsed_listeners(
    values: Mapping[str, str], audience_of: AudienceOf, own_name: str = ""
) -> list[ParsedListener]:
    """Every listener of a node that can be read, in its order; what cannot is KL001's business.

    ``own_name`` is what a controller is reached at where neither its voter entry nor its bind
    address says.
    """
    binds = dict(readable(read_listeners(values.get("listeners", ""))))
    text = values.get("advertised.listeners")
    advertised = binds if text is None else dict(readable(read_listeners(text)))
    protocols = dict(readable(read_protocols(values.get("listener.security.protocol.map", ""))))
    controllers = controller_names(values)
    found = []
    for name, bind in binds.items():
        address = advertised.get(name)
        if name in controllers:
            if asks_itself_alone(values):
                continue  # its loopback is nobody else's business
            address = address or own_voter(values) or bind
            address = address if address.host else Address(own_name, address.port)
        if address is None or not _is_host(address.host):
            continue
        fallback = Protocol(name) if name in list(Protocol) else Protocol.PLAINTEXT
        audience = audience_of(name, bind.port, address)
        found.append(ParsedListener(name, bind, address, protocols.get(name, fallback), audience))
    return found


def lone_plan(
    id: int,
    values: Mapping[str, str],
    notes: Mapping[str, str],
    listeners: Sequence[ParsedListener],
    hosts: Mapping[str, str | UnknownHost] | None = None,
) -> ClusterPlan | None:
    """A plan of the node ``id`` alone; None where its settings make none (KL001 and KL002 say why).

    ``hosts`` holds what stands for some of the advertised hosts, by their text in ``values``.
    """
    names = (inter_broker_name(values), *controller_names(values)[:1])
    if not listeners or not all(map(_NAME.fullmatch, names)):
        return None
    own = tuple(_listener(item, hosts or {}) for item in listeners)
    return ClusterPlan(
        kafka_version=notes.get("kafka_version", ""),
        inter_broker=names[0],
        controller=names[1] if len(names) > 1 else "CONTROLLER",
        replication_factor=1,
        min_insync_replicas=1,
        nodes=(Node(id=id, roles=roles_of(values), listeners=own),),
    )


def _listener(item: ParsedListener, hosts: Mapping[str, str | UnknownHost]) -> Listener:
    host = item.advertised.host
    widest = Scope.HOST if is_loopback(host) else Scope.EXTERNAL
    return Listener(
        name=item.name,
        protocol=item.protocol,
        scopes=item.audience.scopes or (widest,),
        bind_host=item.bind.host or ANY_IPV4,
        bind_port=item.bind.port,
        host=hosts.get(host, host),
        port=item.advertised.port,
    )


def _is_host(text: str) -> bool:
    try:
        return bool(check_host(text))
    except AddressError:
        return False
