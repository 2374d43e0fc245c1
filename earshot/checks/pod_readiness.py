"""KL016: quorums that cannot form, as each controller must be ready before others find it.

A broker answers clients after it has found its controllers. Before that Kafka 3.3.2 accepts
connections without an answer; 3.9.2 and 4.1.1 accept none. A Service leads only to ready pods,
unless it has `publishNotReadyAddresses`. Source: the Kubernetes documentation on Services, and on
the pod management policies of StatefulSets.
"""

from collections.abc import Iterator

from earshot.rules.kl016_nodes import RULE
from earshot.rules.kl016_quorum import VOTERS
from earshot.rules.rule import Finding
from earshot.sources.kubernetes import Manifest
from earshot.sources.workloads import PodContainer
from earshot.topology.broker import Broker
from earshot.topology.pods import PodDeployment

_REFUSES = (3, 9)
"""The first release whose port is closed until the broker has found its controllers."""


def never_ready(replicas: Manifest, whole: PodDeployment) -> Iterator[Finding]:
    """Findings for quorums that cannot form, as their pods would have to be ready first."""
    containers = {broker.name: broker for broker in replicas.brokers}
    waiting = {
        broker.service: listener
        for broker in whole.brokers
        if broker.is_controller
        and (listener := _probed_listener(containers[broker.service], broker))
    }
    for name, listener in waiting.items():
        broker = whole.by_service[name]
        if not broker.voters:
            continue
        majority = len(broker.voters) // 2 + 1
        unnamed = sum(_needs_readiness(whole, broker, id, waiting) for id in broker.voters)
        later = sum(_starts_later(whole, broker, id, containers) for id in broker.voters)
        if len(broker.voters) - unnamed < majority:
            services = (_services_of_ready_pods(whole, broker, id) for id in broker.voters)
            service = next(filter(None, services))[0]
            yield RULE.finding(
                f"is ready when {listener} answers, which takes a quorum, and {VOTERS} names pods "
                f"by the Service {service}, which leads to ready pods alone",
                "a Service with publishNotReadyAddresses: true for the voters",
                container=name,
                remedy=f"set publishNotReadyAddresses to true in the Service {service}",
                inputs=("readinessProbe", "startupProbe"),
            )
        elif len(broker.voters) - later < majority:
            yield RULE.finding(
                f"is ready when {listener} answers, which takes {majority} of "
                f"{len(broker.voters)} voters, and the next replica starts when it is ready",
                "podManagementPolicy: Parallel, with which all replicas start at once",
                container=name,
                remedy="set podManagementPolicy to Parallel in the spec of the StatefulSet",
                inputs=("readinessProbe", "startupProbe"),
            )


def _probed_listener(container: PodContainer, broker: Broker) -> str:
    """The listener that must answer before the pod is ready, if that needs a quorum, or empty."""
    release = container.service.settings.release
    for check in container.pod.checks:
        closed = release is not None and release >= _REFUSES
        for endpoint in broker.for_clients if check.is_kafka or closed else ():
            if endpoint.bind.port == check.port:
                return endpoint.name
    return ""


def _services_of_ready_pods(whole: PodDeployment, broker: Broker, id: int) -> list[str]:
    """The Services that lead to the voter only when it is ready."""
    address = broker.voters[id]
    names = whole.services_of(broker.service, address.host)
    return [name.name for name in names if not name.has_unready]


def _needs_readiness(
    whole: PodDeployment, broker: Broker, id: int, waiting: dict[str, str]
) -> bool:
    reached = whole.reached(broker.service, broker.voters[id])
    is_waiting = reached is not None and reached.broker.service in waiting
    return is_waiting and bool(_services_of_ready_pods(whole, broker, id))


def _starts_later(
    whole: PodDeployment, broker: Broker, id: int, containers: dict[str, PodContainer]
) -> bool:
    """Whether the voter is a replica that starts after that of ``broker`` is ready."""
    reached = whole.reached(broker.service, broker.voters[id])
    if reached is None or reached.broker is broker:
        return False
    one, other = containers[broker.service], containers[reached.broker.service]
    order = list(containers)
    is_after = order.index(other.name) > order.index(one.name)
    return one.pod.is_ordered and one.template == other.template and is_after
