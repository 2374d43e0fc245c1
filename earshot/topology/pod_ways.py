"""The ways into pods: through Services and node ports, to the listeners."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

from earshot.listeners.listed import by_key
from earshot.names.kinds import NameKind, kind_of
from earshot.topology.broker import Broker, ReachedListener
from earshot.topology.cluster import ClusterService, Pod, ServicePort, in_cluster
from earshot.topology.container import is_loopback
from earshot.topology.ways import (
    Answer,
    Failure,
    Hop,
    HopKind,
    Leg,
    Outcome,
    blocked_leg,
    socket_leg,
    unknown_leg,
    unknown_socket,
)

BEYOND = ""
"""The place of a client outside of all pods."""


@dataclass(frozen=True)
class PodWays:
    """The pods and brokers by the service of each container, and the Services."""

    pods: Mapping[str, Pod]
    services: tuple[ClusterService, ...]
    brokers: Mapping[str, Broker]

    def services_named(self, host: str, namespace: str) -> Sequence[ClusterService]:
        """The Services that ``host`` resolves to in ``namespace``."""
        parts = in_cluster(host)
        if len(parts) > 2:
            return ()
        key = (parts[0], parts[1] if len(parts) > 1 else namespace)
        return self._by_name.get(key, ())

    def stable_pods(self, host: str, namespace: str) -> list[tuple[Pod, ClusterService]]:
        """The pods called `HOSTNAME.SUBDOMAIN`, each with its headless Service."""
        name, *parts = in_cluster(host)
        if not 1 <= len(parts) <= 2:
            return []
        services = self.services_named(".".join(parts), namespace)
        return [
            (pod, service)
            for pod in self.by_hostname.get(name, ())
            for service in services
            if service.is_headless
            and pod.subdomain.lower() == service.name
            and pod in self.selected(service)
            if service.selector.items() <= pod.labels_of(name)
        ]

    def replicas_of(self, workload: str, service: ClusterService) -> list[str]:
        """The replicas of the StatefulSet ``workload`` that have names by ``service``."""
        return [
            name
            for pod in self.all
            if (pod.namespace, pod.subdomain.lower()) == (service.namespace, service.name)
            for name in pod.replica_labels
            if name.rpartition("-")[0] == workload
        ]

    def ways_by_service(self, service: ClusterService, port: int, place: str) -> list[Leg]:
        """The ways through a Service to its pods."""
        if service.external_name:
            return self._by_external_name(service, port, place)
        if service.is_headless:
            return self.ways_to_pods(service, ServicePort(port, port), place)
        if service.ports is None:
            return [unknown_leg(f"which ports the Service {service.name} has")]
        ports = {service_port.port: service_port for service_port in reversed(service.ports)}
        if ports and port not in ports:
            port_list = ", ".join(map(str, sorted(ports)))
            why = f"the Service {service.name} has no port but {port_list}"
            return [blocked_leg(Failure.REFUSED, why)]
        legs = self.ways_to_pods(service, ports.get(port, ServicePort(port, port)), place)
        if service.is_local_inside:
            fact = f"whether a pod of the Service {service.name} runs on the client's node"
            return [leg.depending_on(fact) for leg in legs]
        return legs

    def ways_to_pods(self, service: ClusterService, port: ServicePort, place: str) -> list[Leg]:
        """The ways to ``port`` of every pod that ``service`` selects."""
        pods = self.selected(service)
        if not pods:
            fact = f"which pods the Service {service.name} selects: none of the file"
            return [unknown_leg(fact)]
        return [
            unknown_leg(f"which port of {pod.workload} is called {port.target}")
            if (target := pod.target_of(port)) is None
            else self.by_service(service, pod, target, place)
            for pod in pods
        ]

    def loopback_listeners(
        self, service: ClusterService, port: ServicePort
    ) -> Iterator[ReachedListener]:
        """The listeners behind ``port`` that accept connections from their own pod only."""
        for pod in self.selected(service):
            target = None if self._other_containers(pod) else pod.target_of(port)
            for broker in self._brokers_in(pod):
                for endpoint in broker.for_clients:
                    if endpoint.bind.port == target and is_loopback(endpoint.bind.host):
                        yield ReachedListener(broker, endpoint)

    def by_service(self, service: ClusterService, pod: Pod, port: int, place: str) -> Leg:
        """The way to one pod of ``service``, with its readiness."""
        leg = self.way_to_pod(pod, port, place)
        unanswered = self._unanswered(pod)
        if service.has_unready or unanswered is None:
            return leg
        fact = f"whether {pod.workload} becomes ready: its probe asks port {unanswered}"
        if service.is_headless:  # without a ready pod its name has no address
            return replace(leg, hops=(Hop(HopKind.RESOLVE, Answer.UNKNOWN, fact), *leg.hops))
        return leg.depending_on(fact)

    def way_to_pod(self, pod: Pod, port: int, place: str, *, loopback: bool = False) -> Leg:
        """The way to ``port`` of ``pod``, whichever its replica."""
        is_own = place in pod.containers
        way = Hop(HopKind.WAY, Answer.YES, "the pod itself" if is_own else f"to {pod.workload}")
        if not pod.is_one and not loopback:
            way = Hop(HopKind.WAY, Answer.UNKNOWN, f"which pod of {pod.workload} it is")
        end, why = self._listens(pod, port, place, loopback=loopback)
        if end is Failure.REFUSED and is_own:
            end, why = Failure.SELF, f"it is the client itself, and {why}"
        return socket_leg(way, end, why)

    def selected(self, service: ClusterService) -> Sequence[Pod]:
        return self._selections[id(service)]

    @cached_property
    def by_node_port(self) -> Mapping[int, Sequence[Leg]]:
        """The legs behind each node port and each `hostPort`."""
        return by_key((*self._through_nodes(), *self._on_nodes()))

    @cached_property
    def published_ports(self) -> frozenset[int]:
        """The ports of Services that have a node port."""
        ports = (port for service in self.services for port in service.ports or ())
        return frozenset(port.port for port in ports if port.node_port is not None)

    @cached_property
    def all(self) -> Sequence[Pod]:
        """The pods, each once."""
        return list({pod.containers: pod for pod in self.pods.values()}.values())

    @cached_property
    def by_hostname(self) -> Mapping[str, Sequence[Pod]]:
        return by_key((name, pod) for pod in self.all for name in pod.hostnames)

    def _by_external_name(self, service: ClusterService, port: int, place: str) -> list[Leg]:
        """The ways of an `ExternalName` that is a Service of the cluster."""
        targets = self.services_named(service.external_name, "")
        if targets and not any(target.external_name for target in targets):
            return [leg for target in targets for leg in self.ways_by_service(target, port, place)]
        return [unknown_leg(f"where the external name of the Service {service.name} leads")]

    def _through_nodes(self) -> Iterator[tuple[int, Leg]]:
        """The legs of Services' node ports."""
        for service in self.services:
            fact = f"whether a pod of the Service {service.name} runs on that node"
            for port in service.ports or ():
                if port.node_port is not None:
                    for leg in self.ways_to_pods(service, port, BEYOND):
                        is_local = service.is_local_outside
                        yield port.node_port, leg.depending_on(fact) if is_local else leg

    def _on_nodes(self) -> Iterator[tuple[int, Leg]]:
        """The legs of ports that pods bind on their nodes."""
        for pod in self.all:
            brokers = self._brokers_in(pod) if pod.on_host else ()
            own = {port: port for broker in brokers for port in broker.ports}
            for at, to in {**own, **pod.node_ports}.items():
                leg = self.way_to_pod(pod, to, BEYOND)
                yield at, leg.depending_on(f"on which node {pod.workload} runs")

    def _listens(self, pod: Pod, port: int, place: str, *, loopback: bool) -> tuple[Outcome, str]:
        brokers = self._brokers_in(pod)
        others = self._other_containers(pod, place)
        for broker in brokers:
            for endpoint in broker.endpoints or ():
                if endpoint.bind.port != port:
                    continue
                takes = _takes(endpoint.bind.host, pod, loopback=loopback)
                if takes:
                    return ReachedListener(broker, endpoint), f"{endpoint.name} listens there"
                if takes is None:
                    return unknown_socket(f"on which address {endpoint.bind} is")
                if not others:
                    return Failure.REFUSED, f"{endpoint.name} listens on {endpoint.bind} alone"
                at = f"at port {port} of {pod.workload} as well"
                return unknown_socket(f"whether {others[0]} listens {at}")
        is_known_whole = all(broker.endpoints is not None for broker in brokers)
        if others or not is_known_whole or not (brokers or place in pod.containers):
            return unknown_socket(f"what listens at port {port} of {pod.workload}")
        if pod.on_host:
            return unknown_socket(f"what else listens at port {port} of the node of {pod.workload}")
        return Failure.REFUSED, f"nothing listens at port {port} of {pod.workload}"

    def _other_containers(self, pod: Pod, place: str = "") -> list[str]:
        """The containers of ``pod`` but brokers and the client at ``place``."""
        return [
            container
            for container in pod.containers
            if container not in self.brokers and container != place
        ]

    def _brokers_in(self, pod: Pod) -> list[Broker]:
        return [
            self.brokers[container] for container in pod.containers if container in self.brokers
        ]

    def _unanswered(self, pod: Pod) -> int | None:
        """A probed port of ``pod`` at which no broker listens, or None."""
        brokers = self._brokers_in(pod)
        if not brokers or any(broker.endpoints is None for broker in brokers):
            return None
        open_ports = {
            endpoint.bind.port
            for broker in brokers
            for endpoint in broker.endpoints or ()
            if not is_loopback(endpoint.bind.host)
        }
        return next((check.port for check in pod.checks if check.port not in open_ports), None)

    @cached_property
    def _selections(self) -> Mapping[int, Sequence[Pod]]:
        """The pods of each Service, by the Service's `id()`."""
        labelled = by_key(
            ((pod.namespace, *label), pod) for pod in self.all for label in pod.every_label
        )
        selections: dict[int, Sequence[Pod]] = {}
        for service in self.services:
            labels = service.selector.items()
            first = next(iter(labels), None)
            pods = labelled.get((service.namespace, *first), ()) if first is not None else ()
            selections[id(service)] = [pod for pod in pods if labels <= pod.every_label]
        return selections

    @cached_property
    def _by_name(self) -> Mapping[tuple[str, str], Sequence[ClusterService]]:
        return by_key(((service.name, service.namespace), service) for service in self.services)


def _takes(host: str, pod: Pod, *, loopback: bool) -> bool | None:
    """Whether a listener bound to ``host`` takes connections to loopback, or to the address."""
    if not host or kind_of(host) is NameKind.ANY_ADDRESS:
        return True
    if is_loopback(host):
        return loopback
    # a pod's hosts file has its names with its address, on the node's network it is the node's
    is_own = pod.is_one and not pod.on_host
    if is_own and host.lower() in (*pod.hostnames, *pod.full_names):
        return not loopback
    return None
