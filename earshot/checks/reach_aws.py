"""The hops to brokers on AWS: names by EC2's documentation, ways by security groups."""

from collections.abc import Sequence

from earshot.facts.cloud import Cloud
from earshot.facts.security_groups import IpRange, Members, Reach
from earshot.listeners.address import Address
from earshot.listeners.model import Listener, Node
from earshot.listeners.terms import Scope
from earshot.names.kinds import NameKind, kind_of
from earshot.names.reachability import TABLE, Expectation, outlook
from earshot.placement import PlacementPlan
from earshot.placements import ClientLocation
from earshot.topology.ways import Answer, Hop, Stage

_ANSWERS = {
    Expectation.YES: Answer.YES,
    Expectation.NO: Answer.NO,
    Expectation.ITSELF: Answer.NO,
    Expectation.DEPENDS: Answer.UNKNOWN,
}


def sent_in_cloud(
    planned: PlacementPlan, cloud: Cloud, location: ClientLocation, node: Node, name: str
) -> tuple[Address | None, Sequence[Hop]]:
    """What ``node`` advertises on a listener, and the hops of a client at ``location`` to it."""
    listener = node.listener(name)
    if listener is None:
        why = f"broker {node.id} has no listener of that name"
        return None, (Hop(Stage.RESOLVE, Answer.NO, why),)
    hops = [_resolved(planned, cloud, location, node, listener)]
    if hops[0].answer is not Answer.NO:
        hops.append(_let_in(cloud, location, node, listener))
    return listener.advertised if listener.known else None, hops


def _resolved(
    planned: PlacementPlan, cloud: Cloud, location: ClientLocation, node: Node, listener: Listener
) -> Hop:
    """A name that the stack makes is known by its kind before AWS has given it."""
    host = str(listener.host)
    scope = Scope.EXTERNAL if location is ClientLocation.OUTSIDE else Scope.INTERNAL
    if declared := cloud.declared.get((listener.name, scope, host)):
        return Hop(Stage.RESOLVE, Answer.YES, declared.why)
    kind = kind_of(host) if listener.known else NameKind.FQDN
    hosts = planned.names[node.id].hosts
    if listener.host == hosts.get(Scope.EXTERNAL):
        kind = NameKind.EC2_PUBLIC
    elif listener.host == hosts.get(Scope.INTERNAL):
        kind = NameKind.EC2_PRIVATE
    shown = host.strip("()").removesuffix(": not known yet")
    return Hop(
        Stage.RESOLVE, _ANSWERS[outlook(kind, location).reaches], f"{shown}: {TABLE[kind].note}"
    )


def _let_in(cloud: Cloud, location: ClientLocation, node: Node, listener: Listener) -> Hop:
    """All clients that are named must be let in to the listener's port."""
    inside = location is ClientLocation.SAME_VPC
    wanted: Sequence[IpRange | Members] = (
        cloud.clients.internal if inside else cloud.clients.external
    )
    if not wanted:
        return Hop(Stage.WAY, Answer.NO, "no clients beyond the VPC are named")
    rules = cloud.instances[node.id].ingress or ()
    sources = [rule.source for rule in rules if rule.opens(listener.bind_port)]
    ranges = Reach(it for it in sources if isinstance(it, IpRange))
    closed = [
        it
        for it in wanted
        if it not in sources and (isinstance(it, Members) or not ranges.covers(it))
    ]
    port = listener.bind_port
    if closed:
        why = f"no security group opens port {port} to {', '.join(map(str, closed))}"
        return Hop(Stage.WAY, Answer.NO, why)
    return Hop(Stage.WAY, Answer.YES, f"security groups open port {port} to them")
