"""KL016: nodes of one cluster reach its controllers, and agree on voters, id and protocols.

Sources: KIP-595 (`controller.quorum.voters` is the same on every node), KIP-853 (bootstrap
servers; a controller's advertised address), and `INCONSISTENT_CLUSTER_ID` of Kafka's protocol.
"""

from collections import Counter
from collections.abc import Callable, Hashable, Iterator, Sequence
from typing import TypeVar

from earshot.listeners.address import Address
from earshot.listeners.listed import by_key, shortened
from earshot.rules.rule import Finding, Rule, Severity
from earshot.topology.broker import Broker, ReachedListener
from earshot.topology.model import Deployment
from earshot.topology.walk import failing, failing_hop_to, may_resolve

VOTERS = "controller.quorum.voters"
SERVERS = "controller.quorum.bootstrap.servers"
UNNAMED = "give the node a name: POD.SERVICE of a headless Service, or a Service of its own"
T = TypeVar("T", bound=Hashable)


def check(deployment: Deployment, rule: Rule) -> Iterator[Finding]:
    """Checks the addresses of voters and servers, then the agreement of nodes in a cluster."""
    yield from _voters(deployment, rule)
    yield from _servers(deployment, rule)
    yield from _advertised(deployment, rule)
    for nodes in by_key((broker.cluster, broker) for broker in deployment.brokers).values():
        yield from _lists(deployment, nodes, rule)
        yield from _ids(deployment, nodes, rule)
        yield from _protocols(deployment, nodes, rule)


def _voters(deployment: Deployment, rule: Rule) -> Iterator[Finding]:
    nodes = {(broker.cluster, broker.id): broker for broker in deployment.brokers}
    holders = Counter((broker.cluster, broker.id) for broker in deployment.brokers)
    reported: set[tuple[str, int, Address]] = set()
    for broker in deployment.brokers:
        for id, address in broker.voters.items():
            ids = [voter for voter, other in broker.voters.items() if other == address]
            key = (broker.cluster, id, address)
            voter = nodes.get((broker.cluster, id))
            if key in reported or holders[broker.cluster, id] > 1:
                continue
            if voter is not None and deployment.apart(broker.service, voter.service):
                continue
            if voter is None or not voter.endpoints:
                problem = _no_controller_at(deployment, broker, address)
                remedy = "write the address of a controller's listener"
            else:
                problem = _misplaced(deployment, broker, voter, address)
                remedy = _remedy(deployment, id, voter, address)
            if not problem and ids[0] != id:
                problem = f"voter {ids[0]} has the same address"
            if problem:
                reported.add(key)
                trace = deployment.trace(broker.service, address)
                is_certain = voter is not None and deployment.is_certain(trace, voter)
                yield rule.finding(
                    f"{VOTERS} places voter {id} at {address}: {problem}",
                    "the address of that node's controller listener",
                    container=broker.service,
                    severity=None if is_certain else _severity(deployment, broker, [address]),
                    remedy=remedy,
                    inputs=(VOTERS,),
                )


def _misplaced(deployment: Deployment, broker: Broker, voter: Broker, address: Address) -> str:
    """The problem if ``broker`` expects ``voter`` at ``address``, or an empty string."""
    if hop := failing_hop_to(deployment, broker.service, address, voter):
        return hop.because
    if voter.for_controllers is None:
        return ""
    return _no_controllers(deployment.reached(broker.service, address))


def _no_controller_at(deployment: Deployment, broker: Broker, address: Address) -> str:
    """The problem of an address without a controller in the file, or an empty string.

    Empty without other controllers: the address may be in another file.
    """
    controllers = [
        broker for broker in deployment.brokers if broker.is_controller and broker.is_kafka
    ]
    if not controllers or (broker.is_controller and controllers == [broker]):
        return ""
    trace = deployment.trace(broker.service, address)
    hop = failing(trace.hops)
    return hop.because if hop else _no_controllers(trace.reached)


def _no_controllers(reached: ReachedListener | None) -> str:
    """The problem of a connection to a controller that reaches another listener, or empty."""
    if reached is None or reached.endpoint.is_controller:
        return ""
    listener, service = reached.endpoint.name, reached.broker.service
    return f"it is the listener {listener} of {service}, no controller's"


def _servers(deployment: Deployment, rule: Rule) -> Iterator[Finding]:
    reported: set[tuple[Address, ...]] = set()
    for broker in deployment.brokers:
        servers = dict.fromkeys(broker.quorum_servers)
        problems = {at: _no_controller_at(deployment, broker, at) for at in servers}
        lost = [f"{address}: {problem}" for address, problem in problems.items() if problem]
        if not lost or broker.quorum_servers in reported:
            continue
        reported.add(broker.quorum_servers)
        yield rule.finding(
            f"{SERVERS} leads to no controller ({'; '.join(lost)})",
            "addresses of controllers' listeners",
            container=broker.service,
            severity=_severity(deployment, broker, list(problems))
            if len(lost) == len(problems)
            else Severity.WARNING,
            remedy="write the names of the controllers' services and the ports of their listeners",
            inputs=(SERVERS,),
        )


def _advertised(deployment: Deployment, rule: Rule) -> Iterator[Finding]:
    """Other nodes reach a controller of a dynamic quorum at its advertised address."""
    for broker in deployment.brokers:
        address = broker.quorum_address
        if address is None:
            continue
        host = deployment.host_of(broker, address.port)
        for other in deployment.brokers:
            if other is broker or other.cluster != broker.cluster:
                continue
            if hop := failing_hop_to(deployment, other.service, address, broker):
                yield rule.finding(
                    f"advertises {address} as its controller's address, and for {other.service}: "
                    f"{hop.because}",
                    "an address at which the other nodes reach this controller",
                    container=broker.service,
                    severity=_severity(deployment, other, [address]),
                    remedy=f"advertise {host}:{address.port}" if host else UNNAMED,
                    inputs=("advertised.listeners",),
                )
                break


def _lists(deployment: Deployment, nodes: Sequence[Broker], rule: Rule) -> Iterator[Finding]:
    for broker, usual, rest in _minority(deployment, nodes, _ids_of_voters):
        own_ids = shortened(_ids_of_voters(broker) or ())
        yield rule.finding(
            f"{VOTERS} lists {own_ids}, and that of {shortened(rest)} lists {shortened(usual)}",
            "the same voters on every node",
            container=broker.service,
            remedy=f"give it the list of {rest[0]}",
            inputs=(VOTERS,),
        )


def _ids_of_voters(broker: Broker) -> tuple[str, ...] | None:
    return tuple(map(str, sorted(broker.voters))) or None


def _ids(deployment: Deployment, nodes: Sequence[Broker], rule: Rule) -> Iterator[Finding]:
    random = [node for node in nodes if node.cluster_id == ""]
    together = [
        node
        for node in nodes
        if node.cluster_id is not None and not deployment.apart(node.service, nodes[0].service)
    ]
    if random and len(together) > 1:
        rest = [node.service for node in together if node is not random[0]]
        yield rule.finding(
            f"sets no cluster id, and {random[0].container.image} makes a random one: "
            f"{shortened(rest)} of the same cluster will not have it",
            "one cluster id on all nodes",
            container=random[0].service,
            remedy="set KAFKA_KRAFT_CLUSTER_ID to the same value on all nodes",
            inputs=("image",),
        )
        return
    for broker, usual, rest in _minority(deployment, nodes, lambda item: item.cluster_id or None):
        yield rule.finding(
            f"has the cluster id {broker.cluster_id}, and {shortened(rest)} of the same cluster "
            f"{'has' if len(rest) == 1 else 'have'} {usual}: Kafka refuses it "
            "(INCONSISTENT_CLUSTER_ID)",
            "one cluster id on all nodes",
            container=broker.service,
            remedy=f"set CLUSTER_ID to {usual}",
            inputs=("CLUSTER_ID", "KAFKA_KRAFT_CLUSTER_ID", "KAFKA_CLUSTER_ID"),
        )


def _protocols(deployment: Deployment, nodes: Sequence[Broker], rule: Rule) -> Iterator[Finding]:
    """Nodes use one protocol for controllers, and one between brokers."""
    questions: tuple[tuple[str, Callable[[Broker], Hashable | None]], ...] = (
        ("controllers", lambda item: item.quorum_protocol),
        ("other brokers", _inter_broker_protocol),
    )
    for peer, protocol_of in questions:
        for broker, usual, rest in _minority(deployment, nodes, protocol_of):
            yield rule.finding(
                f"speaks {protocol_of(broker)} with {peer}, and {shortened(rest)} "
                f"{'speaks' if len(rest) == 1 else 'speak'} {usual}",
                "one protocol on all nodes of a cluster",
                container=broker.service,
                remedy=f"map the listener to {usual}, or to {protocol_of(broker)} on all nodes",
                inputs=("listener.security.protocol.map",),
            )


def _inter_broker_protocol(broker: Broker) -> Hashable | None:
    endpoint = broker.named(broker.inter_broker) if broker.is_broker else None
    return endpoint.protocol if endpoint is not None else None


def _minority(
    deployment: Deployment, nodes: Sequence[Broker], value_of: Callable[[Broker], T | None]
) -> Iterator[tuple[Broker, T, list[str]]]:
    """(node, usual value, services with it) for each node that differs from the most frequent
    value, the first of equally frequent ones."""
    answers = [(node, answer) for node in nodes if (answer := value_of(node)) is not None]
    counts = Counter(answer for _, answer in answers)
    if len(counts) < 2:
        return
    usual, _ = counts.most_common(1)[0]
    holders = [node.service for node, answer in answers if answer == usual]
    for broker, answer in answers:
        beside = [name for name in holders if not deployment.apart(broker.service, name)]
        if answer != usual and beside:
            yield broker, usual, beside


def _severity(
    deployment: Deployment, broker: Broker, addresses: Sequence[Address]
) -> Severity | None:
    """A warning if another file may define all ``addresses``."""
    doubtful = all(may_resolve(deployment, broker.service, address) for address in addresses)
    return Severity.WARNING if doubtful else None


def _remedy(deployment: Deployment, id: int, voter: Broker, address: Address) -> str:
    """The remedy for a voter that is not at its listed ``address``."""
    host_name = deployment.host_of(voter, address.port)
    if host_name is None:
        return UNNAMED
    host = address.host if voter.container.on_host_network else host_name
    port = voter.for_controllers.bind.port if voter.for_controllers else "PORT"
    if f"{host}:{port}" == str(address):
        return "put the nodes on one network"
    return f"write {id}@{host}:{port}, on every node"
