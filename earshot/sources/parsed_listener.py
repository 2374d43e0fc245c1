"""The listeners of one node from its properties, with their scopes, and the node's plan.

The scopes of a container's listener follow from its advertised host: a name on the container's
networks, `localhost` on a published port, or another name on a published port. Otherwise it has no
scope.
"""

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from earshot.errors import AddressError
from earshot.facts.settings import (
    controller_names,
    has_lone_quorum,
    inter_broker_name,
    own_voter,
    readable_entries,
    roles_of,
)
from earshot.listeners.address import Address, bracketed, check_host
from earshot.listeners.grammar import read_listeners, read_protocols
from earshot.listeners.model import ClusterPlan, Listener, Node
from earshot.listeners.terms import ANY_IPV4, Protocol, Scope, UnknownHost
from earshot.topology.container import Container, is_loopback

_NAME = re.compile(r"[A-Z][A-Z0-9_]*", re.ASCII)


@dataclass(frozen=True)
class Audience:
    """The scopes of one listener, empty if nothing shows them; ``why`` is the reason."""

    scopes: tuple[Scope, ...]
    why: str


def noted_scopes(text: str) -> dict[str, tuple[Scope, ...]]:
    """Scopes by listener from a note such as `CLIENTS:internal,LAN:host+external`."""
    scopes_by_name = {}
    for entry in filter(None, text.split(",")):
        name, _, scope_texts = entry.partition(":")
        scopes = (part for part in scope_texts.split("+") if part in list(Scope))
        scopes_by_name[name.strip()] = tuple(map(Scope, scopes))
    return scopes_by_name


def audience(
    name: str,
    bind_port: int,
    advertised: Address,
    container: Container,
    values: Mapping[str, str],
) -> Audience:
    """The scopes of the listener ``name`` of a broker with the properties ``values``."""
    host, local = bracketed(advertised.host), is_loopback(advertised.host)
    if container.has_name(advertised.host):
        networks = ", ".join(network.name for network in container.networks)
        where = f"on network {networks}" if networks else "inside its network"
        return Audience((Scope.INTERNAL,), f"{host} is the container's name {where}")
    scopes: dict[Scope, str] = {}
    # a lone quorum has no other brokers
    if name == inter_broker_name(values) and not (local and has_lone_quorum(values)):
        scopes[Scope.INTERNAL] = "the brokers talk through it"
    reached = _published(container, bind_port, advertised.port)
    if reached and local:
        scopes[Scope.HOST] = f"{host} on the published port {reached}"
    elif reached:
        scopes[Scope.EXTERNAL] = f"{host}, which is elsewhere, on the published port {reached}"
    elif not scopes:
        return Audience((), f"{host} is no name of the container, and its port is not published")
    return Audience(tuple(scopes), "; ".join(scopes.values()))


def _published(container: Container, bind_port: int, advertised_port: int) -> str:
    if container.on_host_network:
        return f"{advertised_port} (the container is on the host's network)"
    ports = container.published_at(bind_port) or container.ports_behind(advertised_port)
    return str(ports[0]) if ports else ""


@dataclass(frozen=True)
class ParsedListener:
    """One listener of a source, and its scopes."""

    name: str
    bind: Address
    advertised: Address
    protocol: Protocol
    audience: Audience


AudienceOf = Callable[[str, int, Address], Audience]
"""The scopes of a broker's listener, by its name, bind port and advertised address."""


def parsed_listeners(
    values: Mapping[str, str],
    audience_of: AudienceOf,
    own_name: str = "",
    *,
    scopes_by_name: Mapping[str, tuple[Scope, ...]] | None = None,
) -> list[ParsedListener]:
    """The readable listeners of a node, in its order; KL002 reports the others.

    ``scopes_by_name`` are scopes that the user states, with precedence over ``audience_of``.
    ``own_name`` is the host of a controller that neither its voter entry nor its bind address
    shows.
    """
    binds = dict(readable_entries(read_listeners(values.get("listeners", ""))))
    text = values.get("advertised.listeners")
    advertised = binds if text is None else dict(readable_entries(read_listeners(text)))
    protocols = dict(
        readable_entries(read_protocols(values.get("listener.security.protocol.map", "")))
    )
    controllers = controller_names(values)
    listeners = []
    for name, bind in binds.items():
        address = advertised.get(name)
        if name in controllers:
            if has_lone_quorum(values):
                continue  # only the broker itself connects to its loopback
            address = address or own_voter(values) or bind
            address = address if address.host else Address(own_name, address.port)
        if address is None or not _is_host(address.host):
            continue
        fallback = Protocol(name) if name in list(Protocol) else Protocol.PLAINTEXT
        if scopes := (scopes_by_name or {}).get(name):
            audience = Audience(scopes, "said so")
        elif name in controllers:
            audience = Audience((Scope.CONTROLLER,), "named in controller.listener.names")
        else:
            audience = audience_of(name, bind.port, address)
        listeners.append(
            ParsedListener(name, bind, address, protocols.get(name, fallback), audience)
        )
    return listeners


def lone_plan(
    id: int,
    values: Mapping[str, str],
    notes: Mapping[str, str],
    listeners: Sequence[ParsedListener],
    hosts: Mapping[str, str | UnknownHost] | None = None,
) -> ClusterPlan | None:
    """A plan with the single node ``id``; None if its settings are invalid (KL002 reports them).

    ``hosts`` maps advertised hosts in ``values`` to their replacements.
    """
    names = (inter_broker_name(values), *controller_names(values)[:1])
    if not listeners or not all(map(_NAME.fullmatch, names)):
        return None
    plan_listeners = tuple(_listener(listener, hosts or {}) for listener in listeners)
    return ClusterPlan(
        kafka_version=notes.get("kafka_version", ""),
        inter_broker=names[0],
        controller=names[1] if len(names) > 1 else "CONTROLLER",
        replication_factor=1,
        min_insync_replicas=1,
        nodes=(Node(id=id, roles=roles_of(values), listeners=plan_listeners),),
    )


def _listener(parsed: ParsedListener, hosts: Mapping[str, str | UnknownHost]) -> Listener:
    host = parsed.advertised.host
    widest = Scope.HOST if is_loopback(host) else Scope.EXTERNAL
    return Listener(
        name=parsed.name,
        protocol=parsed.protocol,
        scopes=parsed.audience.scopes or (widest,),
        bind_host=parsed.bind.host or ANY_IPV4,
        bind_port=parsed.bind.port,
        host=hosts.get(host, host),
        port=parsed.advertised.port,
    )


def _is_host(text: str) -> bool:
    try:
        return bool(check_host(text))
    except AddressError:
        return False
