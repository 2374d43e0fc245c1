"""KL016: brokers and controllers of a file find each other where each says that it is."""

from __future__ import annotations

from collections.abc import Iterator

from earshot.facts.cluster import ClusterFacts
from earshot.facts.container import is_loopback
from earshot.facts.deployment import Arrival, Broker, Deployment, End
from earshot.rules.finding import Finding
from earshot.rules.kl015_clients import failure
from earshot.rules.registry import Rule


def check(facts: ClusterFacts) -> Iterator[Finding]:
    """Ids first: two nodes that share one are not asked about each other."""
    if facts.deployment is None:
        return
    yield from _ids(facts.deployment)
    yield from _another_s_address(facts.deployment)
    yield from _between_brokers(facts.deployment)
    yield from _quorum(facts.deployment)


def _ids(deployment: Deployment) -> Iterator[Finding]:
    holders: dict[tuple[str, int], Broker] = {}
    for broker in deployment.brokers:
        if broker.id is None or broker.id < 0:
            continue
        other = holders.setdefault((broker.cluster, broker.id), broker)
        if other is not broker:
            yield RULE.finding(
                f"has the node id {broker.id}, as {other.service} of the same cluster has",
                "an id of its own for every node",
                container=broker.service,
                remedy="give it another id",
                inputs=("node.id", "broker.id"),
            )


def _another_s_address(deployment: Deployment) -> Iterator[Finding]:
    """Whoever is sent there is with another broker."""
    for broker in deployment.brokers:
        for endpoint in broker.endpoints or ():
            if endpoint.advertised is None or is_loopback(endpoint.advertised.host):
                continue
            way = deployment.way(broker.service, endpoint.advertised)
            if isinstance(way, Arrival) and way.broker is not broker:
                yield RULE.finding(
                    f"advertises {endpoint.advertised}, which is {way.broker.service}",
                    "an address of its own for every broker",
                    listener=endpoint.name,
                    container=broker.service,
                    remedy=f"advertise {endpoint.name}://{broker.service}:{endpoint.bind.port}",
                    inputs=("advertised.listeners",),
                )


def _between_brokers(deployment: Deployment) -> Iterator[Finding]:
    for broker in deployment.brokers:
        endpoint = broker.named(broker.inter_broker)
        if endpoint is None or endpoint.advertised is None or not broker.is_broker:
            continue
        problems: dict[str, list[str]] = {}
        for other in deployment.members(broker):
            if other is broker:
                continue
            way = deployment.way(other.service, endpoint.advertised)
            if isinstance(way, Arrival) and not is_loopback(endpoint.advertised.host):
                continue  # another broker's address, as said above
            if problem := failure(way, endpoint.advertised, other.service, broker):
                problems.setdefault(problem, []).append(other.service)
        for problem, others in problems.items():
            yield RULE.finding(
                f"advertises {endpoint.advertised} to other brokers, and for "
                f"{', '.join(others)} {problem}",
                "an address at which the other brokers reach this one",
                listener=endpoint.name,
                container=broker.service,
                remedy=f"advertise {endpoint.name}://{broker.service}:{endpoint.bind.port}",
                inputs=("advertised.listeners",),
            )


def _quorum(deployment: Deployment) -> Iterator[Finding]:
    nodes = {(item.cluster, item.id): item for item in deployment.brokers}
    told: set[tuple[str, int]] = set()
    for broker in deployment.brokers:
        for id, address in broker.voters.items():
            voter = nodes.get((broker.cluster, id))
            if voter is None or (broker.cluster, id) in told or not voter.endpoints:
                continue
            way = deployment.way(broker.service, address)
            problem = failure(way, address, broker.service, voter)
            if way is End.SELF and voter is not broker:
                problem = f"{address} is the node's own container"
            known = any(item.is_controller for item in voter.endpoints)
            if isinstance(way, Arrival) and known and not (problem or way.endpoint.is_controller):
                problem = f"{address} is the listener {way.endpoint.name}, no controller's"
            if problem:
                told.add((broker.cluster, id))
                yield RULE.finding(
                    f"controller.quorum.voters places voter {id} at {address}, and {problem}",
                    "the address of that node's controller listener",
                    container=broker.service,
                    remedy=f"write {id}@{_controller(voter)}, on every node",
                    inputs=("controller.quorum.voters",),
                )


def _controller(node: Broker) -> str:
    port = next((item.bind.port for item in node.endpoints or () if item.is_controller), "PORT")
    return f"{node.service}:{port}"


RULE = Rule(
    id="KL016",
    title="Brokers and controllers find each other where each says that it is",
    reason="Brokers replicate and vote over what is advertised or listed, not over what they bind.",
    remedy="correct the address",
    source="https://kafka.apache.org/documentation/#brokerconfigs_controller.quorum.voters",
    check=check,
    kafka=">=0.11",
    needs="deployment",
)
