"""KL016: brokers and controllers of a file reach each other at their advertised addresses."""

from collections.abc import Iterator, Sequence

from earshot.facts.cluster import ClusterFacts
from earshot.listeners.address import Address
from earshot.listeners.listed import by_key, shortened
from earshot.rules import kl016_itself, kl016_quorum
from earshot.rules.rule import AppliedAt, Finding, Rule, Severity
from earshot.topology.broker import Broker, Endpoint
from earshot.topology.container import is_loopback
from earshot.topology.model import Deployment
from earshot.topology.names import Unknown
from earshot.topology.walk import failing_hop_to, may_resolve
from earshot.topology.ways import HopKind


def check(facts: ClusterFacts) -> Iterator[Finding]:
    if facts.deployment is None:
        return
    yield from _ids(facts.deployment)
    yield from _shared_addresses(facts.deployment)
    yield from _between_brokers(facts.deployment)
    yield from kl016_itself.check(facts.deployment, RULE)
    yield from kl016_quorum.check(facts.deployment, RULE)


def _ids(deployment: Deployment) -> Iterator[Finding]:
    holders: dict[tuple[str, int], Broker] = {}
    for broker in deployment.brokers:
        if broker.id is None or broker.id < 0:
            continue
        other = holders.setdefault((broker.cluster, broker.id), broker)
        if other is not broker and not deployment.apart(broker.service, other.service):
            yield RULE.finding(
                f"has the node id {broker.id}, as {other.service} of the same cluster has",
                "an id of its own for every node",
                container=broker.service,
                remedy="give it another id",
                inputs=("node.id", "broker.id"),
            )


def _shared_addresses(deployment: Deployment) -> Iterator[Finding]:
    """Findings where an advertised address leads to another broker."""
    holders: dict[tuple[str, str, Address], list[str]] = {}
    for broker in deployment.brokers:
        for endpoint in broker.endpoints or ():
            if endpoint.advertised is None or is_loopback(endpoint.advertised.host):
                continue
            trace = deployment.trace(broker.service, endpoint.advertised)
            # one of several targets answers
            is_shared = len(trace.reached_services) > 1
            services = holders.setdefault((broker.cluster, endpoint.name, endpoint.advertised), [])
            same = [name for name in services if not deployment.apart(broker.service, name)]
            services += [broker.service] if broker.is_broker else []
            if trace.reached and trace.reached.broker is not broker and not is_shared:
                holder_text = f"which is {trace.reached.broker.service}"
                remedy = _remedy(deployment, broker, endpoint)
            elif (isinstance(trace.end, Unknown) or is_shared) and same:
                holder_text, remedy = f"as {same[0]} does", "give each broker its own name or port"
            else:
                continue
            yield RULE.finding(
                f"advertises {endpoint.advertised}, {holder_text}",
                "an address of its own for every broker",
                remedy,
                listener=endpoint.name,
                container=broker.service,
                inputs=("advertised.listeners",),
            )


def _between_brokers(deployment: Deployment) -> Iterator[Finding]:
    """Every broker is a client of the others, on its inter-broker listener."""
    lacking: set[tuple[str, str]] = set()
    for broker in deployment.brokers:
        if not broker.is_broker:
            continue
        peers = [member for member in deployment.members(broker) if member is not broker]
        for name, users in by_key(
            (peer.inter_broker, peer) for peer in peers if peer.named(peer.inter_broker)
        ).items():
            endpoint = broker.named(name)
            if endpoint is not None:
                yield from _unreachable_for(deployment, broker, endpoint, users)
            elif broker.endpoints is not None and (broker.service, name) not in lacking:
                # brokers with different names for the listener have one mistake
                lacking |= {(user.service, broker.inter_broker) for user in users}
                yield _missing_listener(broker, name, users)


def _missing_listener(broker: Broker, name: str, users: Sequence[Broker]) -> Finding:
    services = shortened([user.service for user in users])
    return RULE.finding(
        f"has no listener {name}, over which {services} replicates",
        "one inter-broker listener for all brokers of a cluster",
        listener=name,
        container=broker.service,
        severity=None if broker.is_image_known else Severity.WARNING,
        remedy=f"give every broker the listener {name}, and the same inter.broker.listener.name",
        inputs=("inter.broker.listener.name", "listeners", "advertised.listeners"),
    )


def _unreachable_for(
    deployment: Deployment, broker: Broker, endpoint: Endpoint, users: Sequence[Broker]
) -> Iterator[Finding]:
    """Findings for ``users`` that do not reach ``broker`` at its advertised address."""
    address = endpoint.advertised
    if address is None:
        return
    problems = by_key((_reason(deployment, user, broker, address), user.service) for user in users)
    for problem, names in problems.items():
        doubtful = all(may_resolve(deployment, name, address) for name in names)
        if problem:
            yield RULE.finding(
                f"advertises {address} to other brokers, and for {shortened(names)}: {problem}",
                "an address at which the other brokers reach this one",
                listener=endpoint.name,
                container=broker.service,
                severity=Severity.WARNING if doubtful else None,
                remedy=_remedy(deployment, broker, endpoint),
                inputs=("advertised.listeners",),
            )


def _reason(deployment: Deployment, client: Broker, broker: Broker, address: Address) -> str:
    """The reason why ``client`` does not reach ``broker`` at ``address``, or an empty string.

    Empty at a third broker's address, which `_shared_addresses` reports.
    """
    hop = failing_hop_to(deployment, client.service, address, broker)
    if hop is None or (hop.kind is HopKind.BROKER and not is_loopback(address.host)):
        return ""
    return hop.because


def _remedy(deployment: Deployment, broker: Broker, endpoint: Endpoint) -> str:
    """The remedy for an advertised address that does not lead other brokers to ``broker``."""
    host = deployment.host_of(broker, endpoint.bind.port)
    if host is None:
        return kl016_quorum.UNNAMED
    if broker.container.on_host_network and endpoint.advertised is not None:
        host = endpoint.advertised.host
    own_address = Address(host, endpoint.bind.port)
    if own_address == endpoint.advertised:
        return "put the brokers on one network"
    return f"advertise {endpoint.name}://{own_address}"


RULE = Rule(
    id="KL016",
    title="Brokers and controllers find each other where each says that it is",
    reason="Brokers replicate and vote over what is advertised or listed, not over what they bind.",
    remedy="correct the address",
    source="https://kafka.apache.org/documentation/#brokerconfigs_controller.quorum.voters",
    check=check,
    oldest=(0, 11),
    needs="deployment",
    applied_at=(AppliedAt.FILE, AppliedAt.REPLICAS, AppliedAt.CONTAINERS),
)
