"""The hops to brokers on AWS: names as EC2 documents them, ways by security groups."""

from collections.abc import Sequence
from ipaddress import ip_network

from earshot.facts.cloud import Cloud
from earshot.facts.connected import ConnectedVpc
from earshot.facts.security_groups import IpRange, Members, SourceSet
from earshot.listeners.address import Address
from earshot.listeners.model import Listener, Node
from earshot.listeners.terms import Scope
from earshot.names.kinds import NameKind, kind_of
from earshot.names.reachability import TABLE, Expectation, outlook
from earshot.placement import PlacementPlan
from earshot.placement_registry import ClientLocation
from earshot.topology.ways import Answer, Hop, HopKind

_ANSWERS = {
    Expectation.YES: Answer.YES,
    Expectation.NO: Answer.NO,
    Expectation.ITSELF: Answer.NO,
    Expectation.DEPENDS: Answer.UNKNOWN,
}


def hops_in_cloud(
    planned: PlacementPlan,
    cloud: Cloud,
    place: ClientLocation | ConnectedVpc,
    node: Node,
    name: str,
) -> tuple[Address | None, Sequence[Hop]]:
    """The address of ``node`` on the listener ``name``, and the hops to it from ``place``."""
    listener = node.listener(name)
    if listener is None:
        why = f"broker {node.id} has no listener of that name"
        return None, (Hop(HopKind.RESOLVE, Answer.NO, why),)
    if isinstance(place, ConnectedVpc):
        hops = [_resolved_in(planned, place, node, listener)]
        ways = [_admitted(cloud, node, listener, [ip_network(place.cidr)]), _routed(place)]
    else:
        hops = [_resolved(planned, cloud, place, node, listener)]
        ways = [_admits_clients(cloud, place, node, listener)]
    if hops[0].answer is not Answer.NO:
        hops += ways
    return listener.advertised if listener.known else None, hops


def _routed(vpc: ConnectedVpc) -> Hop:
    routes = "routes lead to the brokers and back"
    if vpc.is_routed:
        return Hop(HopKind.WAY, Answer.YES, routes)
    answer = Answer.UNKNOWN if vpc.is_routed is None else Answer.NO
    return Hop(HopKind.WAY, answer, f"nothing says that {routes}")


def _resolved_in(planned: PlacementPlan, vpc: ConnectedVpc, node: Node, listener: Listener) -> Hop:
    host, internal = str(listener.host), planned.names[node.id].hosts.get(Scope.INTERNAL)
    is_in_zone = listener.host == internal or host.lower().endswith(f".{vpc.zone}")
    if vpc.zone and is_in_zone and vpc.is_associated is not None:
        verb = "is" if vpc.is_associated else "is not"
        answer = Answer.YES if vpc.is_associated else Answer.NO
        return Hop(HopKind.RESOLVE, answer, f"the private zone {vpc.zone} {verb} associated")
    return _by_kind(planned, ClientLocation.PEERED_VPC, node, listener)


def _resolved(
    planned: PlacementPlan, cloud: Cloud, location: ClientLocation, node: Node, listener: Listener
) -> Hop:
    """The resolution of a declared name, or else by the name's kind."""
    host = str(listener.host)
    scope = Scope.EXTERNAL if location is ClientLocation.OUTSIDE else Scope.INTERNAL
    if declared := cloud.declared.get((listener.name, scope, host)):
        return Hop(HopKind.RESOLVE, Answer.YES, declared.why)
    return _by_kind(planned, location, node, listener)


def _by_kind(
    planned: PlacementPlan, location: ClientLocation, node: Node, listener: Listener
) -> Hop:
    host = str(listener.host)
    kind = kind_of(host) if listener.known else NameKind.FQDN
    hosts = planned.names[node.id].hosts
    if listener.host == hosts.get(Scope.EXTERNAL):
        kind = NameKind.EC2_PUBLIC
    elif listener.host == hosts.get(Scope.INTERNAL):
        kind = NameKind.EC2_PRIVATE
    host_text = host.strip("()").removesuffix(": not known yet")
    return Hop(
        HopKind.RESOLVE,
        _ANSWERS[outlook(kind, location).reaches],
        f"{host_text}: {TABLE[kind].note}",
    )


def _admits_clients(cloud: Cloud, location: ClientLocation, node: Node, listener: Listener) -> Hop:
    """Whether security groups open the listener's port to all clients of the location."""
    inside = location is ClientLocation.SAME_VPC
    sources: Sequence[IpRange | Members] = (
        cloud.clients.internal if inside else cloud.clients.external
    )
    if not sources:
        return Hop(HopKind.WAY, Answer.NO, "no clients beyond the VPC are named")
    return _admitted(cloud, node, listener, sources)


def _admitted(
    cloud: Cloud, node: Node, listener: Listener, clients: Sequence[IpRange | Members]
) -> Hop:
    port, rules = listener.bind_port, cloud.instances[node.id].ingress or ()
    sources = SourceSet(rule.source for rule in rules if rule.opens(port))
    if closed := [client for client in clients if not sources.has(client)]:
        why = f"no security group opens port {port} to {', '.join(map(str, closed))}"
        return Hop(HopKind.WAY, Answer.NO, why)
    return Hop(HopKind.WAY, Answer.YES, f"security groups open port {port} to them")
