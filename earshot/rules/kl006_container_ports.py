"""KL006: a listener's bound, published and advertised addresses agree.

On its network a container is reached at its names and its own ports, from its host at the
published ports, and from elsewhere at the host's names and the published ports.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import TYPE_CHECKING

from earshot.facts.cluster import ClusterFacts
from earshot.listeners.address import Address, bracketed
from earshot.listeners.terms import Scope
from earshot.names.kinds import ip_of
from earshot.rules.rule import Finding, FindingState, Rule, Severity
from earshot.topology.broker import Broker, Endpoint
from earshot.topology.container import Container, JoinedNetwork, is_loopback
from earshot.topology.model import Deployment
from earshot.topology.names import HOST, OUTSIDE, Unknown, is_gateway
from earshot.topology.ways import Failure, Trace

if TYPE_CHECKING:
    from earshot.listeners.model import Listener, Node

_OUTSIDE_SCOPES = (Scope.HOST, Scope.EXTERNAL)
_ANY = "0.0.0.0"
_PEER = "another container"
"""The place of clients on the container's networks; no container's name has a blank."""


def check(facts: ClusterFacts) -> Iterator[Finding]:
    """Checks the bind address of each listener, and walks to its advertised address."""
    nodes = {node.id: node for node in facts.nodes}
    for id, container in facts.containers.items():
        if container.unknown:
            yield RULE.finding(
                f"{', '.join(container.unknown)}: not known yet",
                "the container's variables, ports and networks, checked again with their values",
                node=id,
                state=FindingState.UNKNOWN,
                remedy="nothing yet: the update checks it",
            )
            continue
        if (node := nodes.get(id)) is None:
            continue  # KL002 reports its unreadable settings
        whole = _broker_alone(node, container)
        for listener in node.listeners:
            yield from _bind_findings(facts, node, listener, container)
            if listener.known and not listener.forwarded:
                yield from _advertised_findings(facts, whole, node, listener, container)


def _bind_findings(
    facts: ClusterFacts, node: Node, listener: Listener, container: Container
) -> Iterator[Finding]:
    host, anywhere = listener.bind_host, f"{_ANY}:{listener.bind_port}"
    remedy = f"write {listener.name}://{anywhere} into `listeners`"
    if is_loopback(host):
        if _may_bind_loopback(facts, listener, container):
            return
        published = container.published_at(listener.bind_port)
        behind = f", behind the published port {published[0]}" if published else ""
        scope_text = f"which inside the container is the container alone{behind}"
        expected = f"a listener on all of the container's interfaces ({anywhere})"
        remedy += ", and keep what it advertises"
    elif ip_of(host) is None and not container.has_name(host) and not container.on_host_network:
        scope_text = f"and {host} is no name of the container"
        expected = f"{_ANY}, or one of its names: {', '.join(sorted(container.names))}"
    else:
        return
    observed = f"listens on {listener.bind}, {scope_text}"
    yield RULE.finding(observed, expected, remedy, node=node, listener=listener.name)


def _may_bind_loopback(facts: ClusterFacts, listener: Listener, container: Container) -> bool:
    if container.on_host_network:
        return set(listener.scopes) <= {Scope.HOST}
    is_for_itself = len(facts.nodes) == 1 and is_loopback(str(listener.host))
    return listener.scopes == (Scope.CONTROLLER,) and is_for_itself


def _advertised_findings(
    facts: ClusterFacts, whole: Deployment, node: Node, listener: Listener, container: Container
) -> Iterator[Finding]:
    """A client of each scope reaches the listener at its advertised address."""
    host = str(listener.host)
    beyond = [scope for scope in listener.scopes if scope in _OUTSIDE_SCOPES]
    if not beyond and is_loopback(host):
        return  # KL003 reports loopback in a network
    is_inside = not beyond and container.has_name(host)
    if container.on_host_network and not beyond and not is_inside:
        return
    place = _PEER if is_inside else HOST if is_loopback(host) or is_gateway(host) else OUTSIDE
    trace = whole.trace(place, listener.advertised)
    for scope in beyond or listener.scopes[:1]:
        yield from _walk_findings(node, listener, container, trace, None if is_inside else scope)
    if is_inside:
        yield from _published_inside(facts, node, listener, container)


def _broker_alone(node: Node, container: Container) -> Deployment:
    """The node and a peer container, with each listener on all interfaces."""
    if container.on_host_network:  # its names are the machine's
        container = replace(container, name="the node", hostname="")
    endpoints = tuple(
        Endpoint(own.name, Address("", own.bind_port), own.advertised if own.known else None)
        for own in node.listeners
    )
    broker = Broker(container.name, container, node.id, endpoints)
    networks = tuple(JoinedNetwork(network.name) for network in container.networks)
    peer = Container(_PEER, networks=networks, network_mode=container.network_mode)
    return Deployment({container.name: container, _PEER: peer}, (broker,))


def _walk_findings(
    node: Node, listener: Listener, container: Container, trace: Trace, scope: Scope | None
) -> Iterator[Finding]:
    """A finding if the trace does not end at the listener; ``scope`` is None for clients inside."""
    end, bind = trace.end, listener.bind_port
    published = container.published_at(bind)
    why = trace.hops[-1].because
    if trace.reached:
        why = f"that is the listener {trace.reached.endpoint.name}"
        if trace.reached.endpoint.name == listener.name:
            return
    elif isinstance(end, Unknown):
        why = f"the published port is {', '.join(map(str, published))}"
        why = why if published else f"the container publishes no port for {bind}"
        if any(port.host_port == listener.port for port in published):
            return  # only the host's address is unknown
    expected = f"a published port that leads to {bind}, advertised unchanged"
    remedy = f"publish {listener.port}:{bind}"
    if scope is None:
        expected = f"{bracketed(str(listener.host))}:{bind}"
        remedy = f"advertise {listener.name}://{expected}"
    elif end is Failure.NOWHERE:
        expected = f"{'localhost or ' if scope is Scope.HOST else ''}a name of the host"
        remedy = "advertise the name under which these clients reach the host"
    elif end is Failure.REFUSED:
        remedy += " on all of the host's addresses"
    elif outer := next((port.host_port for port in published if port.host_port), None):
        remedy += f", or advertise {listener.name}://{Address(str(listener.host), outer)}"
    yield RULE.finding(
        f"advertises {listener.advertised}, and {why}",
        expected,
        remedy,
        node=node,
        listener=listener,
        scope=scope,
    )


def _published_inside(
    facts: ClusterFacts, node: Node, listener: Listener, container: Container
) -> Iterator[Finding]:
    """A finding if the port is published and the advertised name is the container's."""
    published = container.published_at(listener.bind_port)
    if not published or container.on_host_network or Scope.CONTROLLER in listener.scopes:
        return
    between = facts.plan is not None and listener.name == facts.plan.inter_broker
    yield RULE.finding(
        f"its port is published ({published[0]}), and clients that come in there are sent "
        f"to {listener.host}, a name that only the container's own networks know",
        "for clients beyond the network a listener that advertises a name of the host",
        node=node,
        listener=listener,
        severity=Severity.WARNING if between else None,
        remedy="advertise localhost (for this host) or the host's name (for others) on a "
        "listener of its own, or take the published port away",
    )


RULE = Rule(
    id="KL006",
    title="What a container binds, publishes and advertises for a listener agrees",
    reason="Published ports exist on the host only and container names in its networks only: an "
    "address that mixes the two, or a listener on the container's loopback, is not reachable.",
    remedy="bind all interfaces, publish the port, and advertise the published port",
    source="https://docs.docker.com/engine/network/port-publishing/",
    check=check,
    inputs=("listeners", "advertised.listeners", "ports", "networks"),
    needs="containers",
)
