"""KL006: what a container binds, publishes and advertises for a listener agrees.

Inside its network a container is reached at its names and its own ports, from its host at the
published ports, and from elsewhere at the host's names and the published ports: never at a mix.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from earshot.facts.cluster import ClusterFacts
from earshot.listeners.address import bracketed
from earshot.listeners.terms import Scope
from earshot.names.kinds import ip_of
from earshot.rules.registry import Finding, FindingState, Rule, Severity
from earshot.topology.container import Container, PublishedPort, is_loopback

if TYPE_CHECKING:
    from earshot.listeners.model import Listener, Node

_BEYOND = (Scope.HOST, Scope.EXTERNAL)
_ANY = "0.0.0.0"


def check(facts: ClusterFacts) -> Iterator[Finding]:
    """Per listener: where it binds, then what leads to it, then whom its name is meant for."""
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
            continue  # its settings cannot be read: KL001 and KL002 say so
        for listener in node.listeners:
            yield from _bound(facts, node, listener, container)
            if listener.known:
                yield from _reached(facts, node, listener, container)


def _bound(
    facts: ClusterFacts, node: Node, listener: Listener, container: Container
) -> Iterator[Finding]:
    host, anywhere = listener.bind_host, f"{_ANY}:{listener.bind_port}"
    remedy = f"write {listener.name}://{anywhere} into `listeners`"
    if is_loopback(host):
        if _loopback_will_do(facts, listener, container):
            return
        published = container.published_at(listener.bind_port)
        behind = f", behind the published port {published[0]}" if published else ""
        where = f"which inside the container is the container alone{behind}"
        expected = f"a listener on all of the container's interfaces ({anywhere})"
        remedy += ", and keep what it advertises"
    elif ip_of(host) is None and not container.answers_to(host) and not container.on_host_network:
        where = f"and {host} is no name of the container"
        expected = f"{_ANY}, or one of its names: {', '.join(sorted(container.names))}"
    else:
        return
    observed = f"listens on {listener.bind}, {where}"
    yield RULE.finding(observed, expected, remedy, node=node, listener=listener.name)


def _loopback_will_do(facts: ClusterFacts, listener: Listener, container: Container) -> bool:
    if container.on_host_network:
        return set(listener.scopes) <= {Scope.HOST}
    alone = facts.plan is not None and len(facts.plan.nodes) == 1
    return listener.scopes == (Scope.CONTROLLER,) and alone and is_loopback(str(listener.host))


def _reached(
    facts: ClusterFacts, node: Node, listener: Listener, container: Container
) -> Iterator[Finding]:
    beyond = [scope for scope in listener.scopes if scope in _BEYOND]
    for scope in beyond:
        yield from _beyond(node, listener, container, scope)
    if beyond or is_loopback(str(listener.host)):
        return  # KL003 reports loopback in a network
    if container.answers_to(str(listener.host)):
        yield from _inside(facts, node, listener, container)
    elif not container.on_host_network:
        # no name of its networks: then it is a name and a published port of its host
        yield from _port(node, listener, container, listener.scopes[0])


def _inside(
    facts: ClusterFacts, node: Node, listener: Listener, container: Container
) -> Iterator[Finding]:
    """Advertised under a name of the container itself."""
    host = str(listener.host)
    if listener.port != listener.bind_port:
        published = any(item.host_port == listener.port for item in container.published)
        kind = "a port of the host" if published else "no port of the container"
        yield RULE.finding(
            f"advertises {listener.advertised}, and {listener.port} is {kind}: inside its network "
            f"the container listens on {listener.bind_port}",
            f"{bracketed(host)}:{listener.bind_port}",
            node=node,
            listener=listener,
            remedy=f"advertise {listener.name}://{bracketed(host)}:{listener.bind_port}",
        )
    published_at = container.published_at(listener.bind_port)
    if published_at and not container.on_host_network and Scope.CONTROLLER not in listener.scopes:
        between = facts.plan is not None and listener.name == facts.plan.inter_broker
        yield RULE.finding(
            f"its port is published ({published_at[0]}), and clients that come in there are sent "
            f"to {host}, a name that only the container's own networks know",
            "for clients beyond the network a listener that advertises a name of the host",
            node=node,
            listener=listener,
            severity=Severity.WARNING if between else None,
            remedy="advertise localhost (for this host) or the host's name (for others) on a "
            "listener of its own, or take the published port away",
        )


def _beyond(
    node: Node, listener: Listener, container: Container, scope: Scope
) -> Iterator[Finding]:
    host = str(listener.host)
    if container.answers_to(host) and not container.on_host_network:
        yield RULE.finding(
            f"advertises {host}, a name that only the container's own networks know",
            "localhost or a name of the host" if scope is Scope.HOST else "a name of the host",
            node=node,
            listener=listener,
            scope=scope,
            remedy="advertise the name under which these clients reach the host",
        )
    else:
        yield from _port(node, listener, container, scope)


def _port(node: Node, listener: Listener, container: Container, scope: Scope) -> Iterator[Finding]:
    """Advertised under a name of the host: host port and bind port belong together."""
    published = container.published_at(listener.bind_port)
    usable = [item for item in published if item.host_port is not None]
    remedy = f"publish {listener.port}:{listener.bind_port}"
    expected = f"a published port that leads to {listener.bind_port}, advertised as it is"
    if not published:
        found = f"no port for {listener.bind_port}"
        if taken := container.behind(listener.port):
            found = f"{taken[0]}, which is not this listener's port {listener.bind_port}"
            remedy += f", or let {listener.name} bind {taken[0].container_port}"
        observed = f"advertises {listener.advertised}, and the container publishes {found}"
    elif not usable:
        observed = f"the host's port for {listener.bind_port} is chosen when the container starts"
    elif all(item.host_port != listener.port for item in usable):
        port = f"{usable[0].host_port} ({', '.join(map(str, usable))})"
        observed = f"advertises {listener.advertised}, and the published port is {port}"
        if listener.port == listener.bind_port:
            observed += f": {listener.port} is the port inside the container"
        expected = f"{bracketed(str(listener.host))}:{usable[0].host_port}"
        remedy = f"advertise {listener.name}://{expected}, or {remedy}"
    else:
        fitting = [item for item in usable if item.host_port == listener.port]
        where = _elsewhere(str(listener.host), fitting)
        if not where:
            return
        observed = f"advertises {listener.advertised}, and the port is published {where}"
        expected = "a port published on the address that the advertised name leads to"
        remedy += " on all of the host's addresses"
    yield RULE.finding(observed, expected, remedy, node=node, listener=listener, scope=scope)


def _elsewhere(host: str, published: list[PublishedPort]) -> str:
    """On which addresses of the machine a port is, where the advertised ``host`` leads to none."""
    local_name = is_loopback(host)
    if local_name and not any(item.for_loopback for item in published):
        return f"on {published[0].host_ip} alone, where {host} does not lead ({published[0]})"
    if not local_name and all(item.for_host_only for item in published):
        return f"on loopback alone, where nothing but localhost leads ({published[0]})"
    return ""


RULE = Rule(
    id="KL006",
    title="What a container binds, publishes and advertises for a listener agrees",
    reason="Published ports exist on the host only and container names in its networks only: an "
    "address that mixes the two, or a listener on the container's loopback, is reached by nobody.",
    remedy="bind all interfaces, publish the port, and advertise the published port",
    source="https://docs.docker.com/engine/network/port-publishing/",
    check=check,
    inputs=("listeners", "advertised.listeners", "ports", "networks"),
    needs="containers",
)
