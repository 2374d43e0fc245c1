"""Pods and Services of one manifest, and where addresses lead.

Other manifests of the cluster are unknown, and network policies are not read. Sources: the
Kubernetes documentation on DNS for Services and Pods, on Services (ports, node ports, headless
Services), and on hosts files of pods.
"""

from collections.abc import Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property

from earshot.listeners.address import Address
from earshot.listeners.listed import by_key, shortened
from earshot.listeners.placeholders import is_known
from earshot.names.kinds import NameKind, ip_of, kind_of
from earshot.topology.broker import Bootstrap, Broker, Endpoint, ReachedListener
from earshot.topology.cluster import ClusterService, Pod, ServicePort, in_cluster
from earshot.topology.container import is_loopback
from earshot.topology.model import Deployment
from earshot.topology.names import OUTSIDE
from earshot.topology.pod_ways import PodWays
from earshot.topology.walk import walk
from earshot.topology.ways import (
    NO_BROKER_IN_CLIENT,
    Answer,
    Failure,
    Hop,
    HopKind,
    Leg,
    Trace,
    best_trace,
    blocked_leg,
    unknown_trace,
    unresolved_trace,
)

NODE = "NODE"
"""Placeholder for the address of any node, as the bootstrap of clients outside the cluster."""
_ANOTHER_POD = "another pod"


@dataclass(frozen=True)
class PodDeployment(Deployment):
    """The containers of pods by service, and the Services."""

    pods: Mapping[str, Pod] = field(default_factory=dict)
    """By the service of each of their containers."""
    services: tuple[ClusterService, ...] = ()

    def shows_brokers(self, client: Bootstrap, traces: Sequence[Trace]) -> bool:
        return bool(self.brokers or self.services)

    def trace(self, place: str, address: Address) -> Trace:
        key = (place, address)
        if key not in self._traces:
            self._traces[key] = self._trace(place, address)
        return self._traces[key]

    def position(self, place: str) -> Hashable:
        return place

    def is_certain(self, trace: Trace, broker: Broker | None = None) -> bool:
        if not trace.doubt or broker is None or trace.end is not Failure.NOWHERE:
            return not trace.doubt
        # elsewhere such a name may lead to a pod, but not to this one
        pod, (_, *parts) = self.pods[broker.service], in_cluster(trace.address.host)
        return bool(pod.hostnames and pod.subdomain and pod.subdomain.lower() in parts[:1])

    def alternative_addresses(self, client: Bootstrap, traces: Sequence[Trace]) -> list[Address]:
        """The ports for clients of the Services in ``traces``, or else of Services with brokers."""
        asked = [service for trace in traces for service in self.named(trace.address.host)]
        before = [
            service
            for service in self.services
            if any(map(self._has_broker, self._pod_ways.selected(service)))
        ]
        pod = self.pods.get(client.service)
        offers: dict[Address, None] = {}
        for service in asked or before:
            is_near = pod is None or service.namespace in ("", pod.namespace)
            host = service.name if is_near else f"{service.name}.{service.namespace}"
            for port in service.ports or ():
                offers[Address(host, port.port)] = None
        return [offer for offer in offers if not self._is_for_controllers(client, offer)]

    def _is_for_controllers(self, client: Bootstrap, address: Address) -> bool:
        reached = self.trace(client.service, address).reached
        return reached is not None and reached.endpoint.is_controller

    def services_named(self, host: str, namespace: str) -> Sequence[ClusterService]:
        """The Services that ``host`` resolves to in ``namespace``."""
        return self._pod_ways.services_named(host, namespace)

    def named(self, host: str) -> list[ClusterService]:
        """The Services that ``host`` resolves to in their own namespaces."""
        return [
            service
            for service in self.services
            if service in self.services_named(host, service.namespace)
        ]

    def node_port_clients(self) -> Iterator[Bootstrap]:
        """A client outside the cluster for each node port that leads to a broker."""
        of_services = [port.node_port for service in self.services for port in service.ports or ()]
        of_pods = [port for pod in self._pod_ways.all for port in pod.node_ports]
        # ports of a pod on its node's network show no clients
        for port in dict.fromkeys((*of_services, *of_pods)):
            if port is None:
                continue
            address = Address(NODE, port)
            if reached := self.trace(OUTSIDE, address).reached:
                setting = f"port {port} of the nodes"
                yield Bootstrap(OUTSIDE, setting, (address,), reached.endpoint.protocol)

    def service_clients(self) -> Iterator[Bootstrap]:
        """A client in another pod for each Service port that leads to a broker.

        Brokers with clients in the file or outside the cluster are left out. If a client of one
        port works, those of ports that fail are left out: they may serve clients elsewhere.
        """
        reached = {
            broker for bootstrap in self.bootstraps for broker in self._reached_brokers(bootstrap)
        }
        clients_by_broker = by_key(
            (broker, client)
            for service in self.services
            if not service.external_name
            for client in self._clients_of(service)
            for broker in self._reached_brokers(client) - reached
        )
        bootstraps: dict[tuple[str, tuple[Address, ...]], Bootstrap] = {}
        for clients in clients_by_broker.values():
            working = [client for client in clients if walk(self, client).answer is not Answer.NO]
            bootstraps |= {
                (client.service, client.addresses): client for client in working or clients
            }
        yield from bootstraps.values()

    def closed_ports(self) -> Iterator[tuple[str, ReachedListener]]:
        client_addresses = {
            (service.name, service.namespace, address.port)
            for client in self.bootstraps
            if client.service in self.pods  # clients outside use no names of Services
            for address in client.addresses
            for service in self.services_of(client.service, address.host)
        }
        for service in self.services:
            for port in () if service.external_name else service.ports or ():
                if (service.name, service.namespace, port.port) not in client_addresses:
                    name = f"port {port.port} of the Service {service.name}"
                    for reached in self._pod_ways.loopback_listeners(service, port):
                        yield name, reached

    def loopback_listener(self, place: str, address: Address) -> Endpoint | None:
        # clients outside use no names of Services
        for service in self.services_of(place, address.host) if place in self.pods else ():
            ports = [port for port in service.ports or () if port.port == address.port]
            if service.is_headless:  # clients connect to the pods' own ports
                ports = [ServicePort(address.port, address.port)]
            for port in ports:
                for reached in self._pod_ways.loopback_listeners(service, port):
                    return reached.endpoint
        return None

    def _clients_of(self, service: ClusterService) -> Iterator[Bootstrap]:
        place = other_pod(service.namespace)
        ports = {port.port: None for port in service.ports or ()}
        if service.is_headless:
            ports |= {
                port.target: None for port in service.ports or () if isinstance(port.target, int)
            }
        for port in ports if place in self.pods else ():
            address = Address(service.name.lower(), port)
            reached = self.trace(place, address).reached
            if reached and not reached.endpoint.is_controller:
                setting = f"port {port} of the Service {service.name}"
                yield Bootstrap(place, setting, (address,), reached.endpoint.protocol)

    def _reached_brokers(self, client: Bootstrap) -> frozenset[str]:
        """The services of the brokers that a client bootstraps to."""
        traces = (self.trace(client.service, address) for address in client.addresses)
        return frozenset[str]().union(*(trace.reached_services for trace in traces))

    def services_of(self, place: str, host: str) -> Sequence[ClusterService]:
        """The Services through which ``host`` leads to pods, from the pod of ``place``."""
        pod, host = self.pods[place], host.lower()
        if is_loopback(host) or host in self.containers[place].extra_hosts:
            return ()
        if pod.is_one and not pod.on_host and host in (*pod.hostnames, *pod.full_names):
            return ()
        _, *parts = in_cluster(host)
        by_pod = (
            self.services_named(".".join(parts), pod.namespace)
            if self._pod_ways.stable_pods(host, pod.namespace)
            else ()
        )
        return self.services_named(host, pod.namespace) or by_pod

    def host_of(self, broker: Broker, port: int) -> str | None:
        pod = self.pods[broker.service]
        services = [service for service in self.services if pod in self._pod_ways.selected(service)]
        for service in services:
            if service.is_headless and service.name == pod.subdomain and len(pod.hostnames) == 1:
                return f"{pod.hostnames[0]}.{service.name}"
        for service in services:
            has_port = any(service_port.port == port for service_port in service.ports or ())
            if has_port and len(self._pod_ways.selected(service)) == 1:
                return service.name
        return None

    def _trace(self, place: str, address: Address) -> Trace:
        if place == OUTSIDE:
            return self._trace_from_outside(address)
        pod, host = self.pods[place], address.host.lower()
        aliases = self.containers[place].extra_hosts
        if host in aliases:
            host = aliases[host]
        if not is_known(host):
            return unknown_trace(address, f"the value of {host}")
        if is_loopback(host) or kind_of(host) is NameKind.ANY_ADDRESS:
            if not self.brokers:
                return unknown_trace(address, "which brokers there are: the file shows none")
            leg = self._pod_ways.way_to_pod(pod, address.port, place, loopback=True)
            return _trace(address, f"{host} is the client's own machine", [leg])
        if not pod.on_host and host in (*pod.hostnames, *pod.full_names):
            return self._by_own_name(address, pod, place)
        if ip_of(host) is not None:
            return unknown_trace(address, f"whose address {host} is")
        if not pod.asks_cluster:
            return unknown_trace(address, "which DNS servers the client's pod asks")
        if services := self.services_named(host, pod.namespace):
            legs = [
                leg
                for service in services
                for leg in self._pod_ways.ways_by_service(service, address.port, place)
            ]
            return _trace(address, f"{host} is the Service {services[0].name}", legs)
        if pods_with_services := self._pod_ways.stable_pods(host, pod.namespace):
            legs = [
                self._pod_ways.by_service(service, stable_pod, address.port, place)
                for stable_pod, service in pods_with_services
            ]
            return _trace(address, f"{host} is a pod of {pods_with_services[0][0].workload}", legs)
        return self._unlisted_name(address, host, pod.namespace)

    def _by_own_name(self, address: Address, pod: Pod, place: str) -> Trace:
        """Traces a name in the hosts file of the pod, or of one of its replicas."""
        if not pod.is_one:
            fact = f"whether the client is the replica {address.host} itself"
            return unknown_trace(address, fact)
        text = f"{address.host} is the pod's own name, in its hosts file"
        return _trace(address, text, [self._pod_ways.way_to_pod(pod, address.port, place)])

    def _unlisted_name(self, address: Address, host: str, namespace: str) -> Trace:
        """Traces a name without a Service in the namespace; another file may define one."""
        if "." in host:
            return self._full_pod_name(address, host, namespace)
        fact = f"whether another file has a Service {host}"
        if others := {service.namespace for service in self.named(host)}:
            if "" in others or not namespace:
                return unknown_trace(address, fact)
            why = f"{host} is a Service of namespace {min(others)}, and the client is in "
            return unresolved_trace(address, why + namespace, f"{fact} in namespace {namespace}")
        why = f"no Service of the file is called {host}, and pods have no name but by one"
        named_pods = [pod for pod in self._pod_ways.all if host in pod.own_names]
        if self.services and named_pods:
            if own_service := self._only_service(named_pods, namespace):
                why += f" (that of {host} is {own_service.name})"
            return unresolved_trace(address, why, "" if own_service else fact)
        if own_service := self._service_of_advertiser(host, namespace):
            why += f" (that of the broker is {own_service.name})"
            return unresolved_trace(address, why, fact)
        return unknown_trace(address, fact)

    def _service_of_advertiser(self, host: str, namespace: str) -> ClusterService | None:
        """The Service by which other pods connect to a listener that advertises ``host`` at the
        Service's own port; for another port ``host`` may be a node."""
        for broker in self.brokers:
            pod = self.pods[broker.service]
            service = None if pod.on_host else self._only_service([pod], namespace)
            ways = {(at.port, pod.target_of(at)) for at in (service and service.ports) or ()}
            for endpoint in broker.for_clients:
                advertised = endpoint.advertised
                if advertised is None or advertised.host.lower() != host:
                    continue
                if (advertised.port, endpoint.bind.port) in ways:
                    return service
        return None

    def _only_service(self, pods: Sequence[Pod], namespace: str) -> ClusterService | None:
        """The Service by which other pods of ``namespace`` connect to ``pods``, so that another
        file needs no second one for them; None without it.

        Beside a headless Service and beside one for clients outside there often is a second one.
        """
        for service in self.services:
            is_inside = service.has_address and not service.is_for_outside
            selected = self._pod_ways.selected(service) if is_inside else ()
            if service.namespace == namespace and all(pod in selected for pod in pods):
                return service
        return None

    def _full_pod_name(self, address: Address, host: str, namespace: str) -> Trace:
        """Traces a full name, or `POD.SERVICE` if that is not a name of the pod."""
        name, *parts = in_cluster(host)
        services = self.services_named(".".join(parts), namespace) if 1 <= len(parts) <= 2 else ()
        for service in services:
            for pod in self._pod_ways.by_hostname.get(name, ()):
                if pod.namespace != service.namespace:
                    continue
                if pod.subdomain.lower() != service.name:
                    under = f"has a name by the Service {pod.subdomain} alone"
                    under = under if pod.subdomain else "has no name by a Service: no serviceName"
                    return unresolved_trace(address, f"{name} {under}")
                if service.selector and not service.selector.items() <= pod.labels_of(name):
                    why = f"the Service {service.name} does not select {name}"
                    return unresolved_trace(address, why)
                fact = f"whether {service.name}, not headless, names its pods"
                return unknown_trace(address, fact)
            workload = name.rpartition("-")[0]
            if replicas := self._pod_ways.replicas_of(workload, service):
                why = f"{workload} has no replica {name}, but {shortened(replicas)}"
                fact = f"whether something else scales {workload} to more replicas"
                return unresolved_trace(address, why, fact)
            selected = self._pod_ways.selected(service)
            if selected and not any(pod.hostnames for pod in selected):
                why = f"pods of {selected[0].workload} have no names by the Service {service.name}"
                return unresolved_trace(address, why, f"whether another file has a pod {name}")
        if not services and (trace := self._without_service(address, host, namespace)):
            return trace
        return unknown_trace(address, f"what {host} means to other DNS servers")

    def _without_service(self, address: Address, host: str, namespace: str) -> Trace | None:
        """Traces `POD.SERVICE` of a pod whose name is below another Service, or that is in another
        namespace than the client. A name without `svc` may be one of other DNS servers."""
        name, *parts = labels = in_cluster(host)
        is_cluster_name = len(parts) == 2 and len(labels) <= host.rstrip(".").count(".")
        if not (is_cluster_name or len(parts) == 1):
            return None
        service, asked_namespace = (*parts, namespace)[:2]
        doubt = "" if is_cluster_name else f"what {host} means to other DNS servers"
        for pod in self._pod_ways.by_hostname.get(name, ()):
            subdomain = pod.subdomain.lower()
            if pod.namespace == asked_namespace and subdomain and subdomain != service:
                why = f"{name} has a name by the Service {pod.subdomain} alone"
                return unresolved_trace(address, why, doubt)
            if subdomain == service and pod.namespace and pod.namespace != asked_namespace:
                why = f"{name} is a pod of namespace {pod.namespace}, and the name is looked up in "
                fact = f"whether another file has a pod {name} in namespace {asked_namespace}"
                return unresolved_trace(address, why + asked_namespace, fact)
        return None

    def _trace_from_outside(self, address: Address) -> Trace:
        """Traces an address from another machine, through a node port."""
        host = address.host.lower()
        doubt = f"whether {host} is a node"
        if is_loopback(host) and address.port in self._pod_ways.by_node_port:
            fact = "whether the client is on a node, as with kind or minikube"
            return unknown_trace(address, fact)
        if is_loopback(host) and address.port in self._pod_ways.published_ports:
            fact = f"whether the client's machine forwards port {address.port} to the cluster"
            return unknown_trace(address, f"{fact}, as `extraPortMappings` of kind")
        if is_loopback(host):
            return unresolved_trace(address, NO_BROKER_IN_CLIENT, end=Failure.SELF)
        if not is_known(host) or any(service.is_balanced for service in self.services):
            return unknown_trace(address, "which addresses lead to the cluster's load balancer")
        if self.named(host) or any(
            self._pod_ways.stable_pods(host, pod.namespace) for pod in self.pods.values()
        ):
            why = f"{host} is a name that the cluster's own DNS gives"
            doubt = f"whether {host} is known beyond the cluster as well"
            return unresolved_trace(address, why, doubt)
        if ip_of(host) is None and address.host != NODE:
            return unknown_trace(address, f"what {host} means to other DNS servers")
        resolved = Hop(HopKind.RESOLVE, Answer.UNKNOWN, doubt)
        if address.host == NODE:
            resolved, doubt = Hop(HopKind.RESOLVE, Answer.YES, "the address of any node"), ""
        legs = self._pod_ways.by_node_port.get(address.port)
        if legs is None:
            ports = ", ".join(map(str, self._pod_ways.by_node_port))
            why = f"nothing has port {address.port} of the nodes, of which {ports} lead to brokers"
            legs = [blocked_leg(Failure.REFUSED, why)]
        return best_trace(address, resolved, legs, doubt)

    @cached_property
    def _pod_ways(self) -> PodWays:
        return PodWays(self.pods, self.services, self.by_service)

    def _has_broker(self, pod: Pod) -> bool:
        return any(container in self.by_service for container in pod.containers)


def other_pod(namespace: str) -> str:
    """The place of a client in a pod outside of the file."""
    return f"{_ANOTHER_POD} of {namespace}" if namespace else _ANOTHER_POD


def _trace(address: Address, because: str, legs: Sequence[Leg]) -> Trace:
    return best_trace(address, Hop(HopKind.RESOLVE, Answer.YES, because), legs)
