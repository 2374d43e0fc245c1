"""KL009: the advertised address of an external listener outlives a stop of its instance."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import islice
from typing import TYPE_CHECKING

from earshot.facts.cluster import ClusterFacts
from earshot.listeners.terms import Scope, UnknownHost
from earshot.names.kinds import NameKind, ip_of, kind_of
from earshot.rules.rule import AppliedAt, Finding, FindingState, Rule, label

if TYPE_CHECKING:
    from earshot.listeners.model import Listener, Node


def check(facts: ClusterFacts) -> Iterator[Finding]:
    """Checks the public IPv4 addresses of external listeners' hosts.

    KL012 checks addresses of other machines (a load balancer, another broker). Private and IPv6
    addresses stay with their interface when an instance stops.
    """
    elastic_ips = (
        address for instance in facts.instances.values() for address in instance.elastic or ()
    )
    elastic = {ip_of(ip) for ip in elastic_ips if isinstance(ip, str)}
    external: dict[str, None] = {}
    for node, listener, scope in facts.advertised():
        instance = facts.instances.get(node.id)
        if scope is not Scope.EXTERNAL or instance is None or instance.elastic is None:
            continue
        if listener.forwarded:
            continue  # the address is the forwarder's
        external[listener.name] = None
        public = _public(facts, node, listener) if listener.known else ()
        lent = (address for address in public if ip_of(address) not in elastic)
        for text in islice(lent, 1):
            yield _violation(node, listener, text, instance.elastic)
    for name in external:
        yield from RULE.pending(facts, only=name)


def _public(facts: ClusterFacts, node: Node, listener: Listener) -> Iterator[str]:
    """The public IPv4 addresses of the host that belong to this node."""
    from earshot.names.aws import read_name  # slow to import

    host = str(listener.host)
    if ip_of(host) is not None:
        addresses: Iterable[str] = (host,)
    elif (name := read_name(host)) is not None:
        addresses = (name.address,)
    else:
        evidence = facts.evidence_for(listener, Scope.EXTERNAL)
        node_ips = [ip_of(text) for text in facts.addresses.get(node.id, ())]
        addresses = (
            text for text in (evidence.addresses if evidence else ()) if ip_of(text) in node_ips
        )
    for text in addresses:
        address = ip_of(text)
        if address and address.version == 4 and kind_of(text) is NameKind.PUBLIC_ADDRESS:
            yield text


def _violation(
    node: Node, listener: Listener, address: str, elastic: tuple[str | UnknownHost, ...]
) -> Finding:
    host = str(listener.host)
    name = host if host == address else f"{host}, which is {address}"
    # the address may be that of an Elastic IP that does not exist yet
    unknown = any(isinstance(address, UnknownHost) for address in elastic)
    observed = (
        f"has the Elastic IP {', '.join(map(str, elastic))}" if elastic else "has no Elastic IP"
    )
    if unknown:
        observed = "has an Elastic IP that is not known yet"
    return RULE.finding(
        f"advertises {name}, and {label(node)} {observed}",
        f"an Elastic IP of {label(node)}, or a name that leads to one",
        node=node,
        listener=listener,
        scope=Scope.EXTERNAL,
        state=FindingState.UNKNOWN if unknown else FindingState.VIOLATED,
        remedy="nothing yet: the update checks it" if unknown else "",
    )


RULE = Rule(
    id="KL009",
    title="An external address outlives a stop of its instance",
    reason="AWS takes back a public address that it lent when the instance stops, and clients go "
    "on connecting to it when another customer has it.",
    remedy="give the broker an Elastic IP, and advertise its name",
    source="https://docs.aws.amazon.com/AWSEC2/latest/UserGuide/using-instance-addressing.html",
    check=check,
    inputs=("advertised.listeners", "evidence", "Elastic IPs", "addresses of the nodes"),
    needs="instances",
    applied_at=(AppliedAt.PLAN, AppliedAt.INSTANCES),
)
