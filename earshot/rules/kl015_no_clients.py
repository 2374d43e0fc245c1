"""Part of KL015: a listener without a client in the file advertises a name that resolves nowhere.

Only containers on the networks of its broker could connect to it. Nothing there has the name.
"""

from collections.abc import Collection, Iterator

from earshot.rules.kl016_itself import problem_of
from earshot.rules.rule import Finding, Rule, Severity
from earshot.topology.broker import Broker, Endpoint
from earshot.topology.container import is_loopback
from earshot.topology.model import Deployment
from earshot.topology.walk import failing_hop_to
from earshot.topology.ways import Failure, Trace


def check(
    deployment: Deployment, rule: Rule, reported: Collection[tuple[str, str]]
) -> Iterator[Finding]:
    """A finding for each such listener, a warning unless a container of the file evidently uses it.
    Pairs of service and listener in ``reported`` have a finding."""
    for broker in deployment.brokers:
        if not _is_known(broker):
            continue
        for endpoint in broker.for_clients:
            if (broker.service, endpoint.name) in reported:
                continue
            if (trace := _lost(deployment, broker, endpoint)) is not None:
                yield rule.finding(
                    f"advertises {trace.address}, and {trace.hops[-1].because}",
                    "a name of the broker on its networks, or a published port",
                    listener=endpoint.name,
                    container=broker.service,
                    severity=None if _has_lost_user(deployment, broker) else Severity.WARNING,
                    remedy=f"advertise {endpoint.name}://{broker.service}:{endpoint.bind.port}; "
                    "for clients elsewhere publish the port, and advertise a name of the machine",
                    inputs=("advertised.listeners",),
                )


def _has_lost_user(deployment: Deployment, broker: Broker) -> bool:
    """Whether a container on a network of ``broker`` waits for it, shows no bootstrap address, and
    reaches none of its listeners."""
    networks = {network.name for network in broker.container.networks}
    others = {each.service for each in deployment.brokers}
    others |= {client.service for client in deployment.bootstraps}
    return any(
        broker.service in container.needs
        and name not in others
        and networks & {network.name for network in container.networks}
        and all(
            endpoint.advertised and failing_hop_to(deployment, name, endpoint.advertised, broker)
            for endpoint in broker.for_clients
        )
        for name, container in deployment.containers.items()
    )


def _is_known(broker: Broker) -> bool:
    """Whether the file shows every name on the networks of ``broker``."""
    container = broker.container
    is_completed = container.has_proxy_labels or container.is_published_elsewhere
    joined = any(network.is_named or network.is_routed for network in container.networks)
    return bool(container.networks) and not (
        is_completed or joined or container.open_networks or container.unknown
    )


def _lost(deployment: Deployment, broker: Broker, endpoint: Endpoint) -> Trace | None:
    """The trace to the advertised address if it resolves for no container, else None."""
    address = endpoint.advertised
    if address is None or is_loopback(endpoint.bind.host):
        return None
    is_of_nodes = endpoint.name == broker.inter_broker and (
        len([*deployment.members(broker)]) > 1 or bool(problem_of(deployment, broker, endpoint))
    )
    if is_of_nodes or broker.container.published_at(endpoint.bind.port):
        return None  # KL016 and KL017 report it
    host, containers = address.host.lower(), deployment.containers.values()
    if any(host in container.extra_hosts or host in container.links for container in containers):
        return None  # for that container the name is the broker's
    trace = deployment.trace(broker.service, address)
    is_lost = trace.end is Failure.NOWHERE and not trace.doubt and deployment.is_certain(trace)
    return trace if is_lost else None
