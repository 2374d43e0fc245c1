"""Pods of one file, the Services before them, and where addresses lead: Kubernetes.

What other files apply to the cluster is not known, and network policies are not read. Sources: the
Kubernetes documentation on DNS for Services and Pods, on Services (ports, node ports, headless
Services), and on hosts files of pods.
"""

from collections.abc import Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property

from earshot.listeners.address import Address
from earshot.listeners.listed import by_key
from earshot.listeners.placeholders import is_known
from earshot.names.kinds import NameKind, ip_of, kind_of
from earshot.topology.broker import Arrival, Bootstrap, Broker
from earshot.topology.cluster import ClusterService, Pod, ServicePort, in_cluster
from earshot.topology.container import is_loopback
from earshot.topology.model import Deployment
from earshot.topology.names import OUTSIDE, Unknown
from earshot.topology.walk import walk
from earshot.topology.ways import Answer, End, Hop, Stage, Trace, Way

NODE = "NODE"
"""Placeholder for the address of any node, as the bootstrap of clients outside the cluster."""
_ANOTHER_POD = "another pod"


@dataclass(frozen=True)
class _Leg:
    """What the way to one target and its socket come to."""

    end: Way
    hops: tuple[Hop, ...]


@dataclass(frozen=True)
class PodDeployment(Deployment):
    """The containers of a file's pods by service, and the Services before them."""

    pods: Mapping[str, Pod] = field(default_factory=dict)
    """By the service of each of their containers."""
    services: tuple[ClusterService, ...] = ()

    def shows_brokers(self, traces: Sequence[Trace]) -> bool:
        return bool(self.brokers or self.services)

    def trace(self, place: str, address: Address) -> Trace:
        key = (place, address)
        if key not in self._traces:
            self._traces[key] = self._trace(place, address)
        return self._traces[key]

    def outlook(self, place: str) -> Hashable:
        return place

    def is_certain(self, trace: Trace) -> bool:
        return not trace.doubt

    def offers(self, traces: Sequence[Trace]) -> list[str]:
        """The ports of the Services that were asked for, else of those before brokers."""
        asked = [it for trace in traces for it in self.named(trace.address.host)]
        before = [it for it in self.services if any(map(self._has_broker, self._selected(it)))]
        found = (f"{it.name}:{port.port}" for it in asked or before for port in it.ports or ())
        return list(dict.fromkeys(found))

    def called(self, host: str, namespace: str) -> Sequence[ClusterService]:
        """The Services that ``host`` means for a pod in ``namespace``."""
        parts = in_cluster(host)
        if len(parts) > 2:
            return ()
        key = (parts[0], parts[1] if len(parts) > 1 else namespace)
        return self._by_name.get(key, ())

    def named(self, host: str) -> list[ClusterService]:
        """The Services that ``host`` means in any namespace."""
        return [it for it in self.services if it in self.called(host, it.namespace)]

    def by_nodes(self) -> Iterator[Bootstrap]:
        """A client beyond the cluster for each port of the nodes behind which a broker listens."""
        for port in self._node_ports:
            address = Address(NODE, port)
            end = self.trace(OUTSIDE, address).end
            if isinstance(end, Arrival):
                setting = f"port {port} of the nodes"
                yield Bootstrap(OUTSIDE, setting, (address,), end.endpoint.protocol)

    def by_services(self) -> Iterator[Bootstrap]:
        """A client in another pod for each port of a Service behind which a broker listens.

        A broker that clients of the file reach, or clients beyond the cluster, has none of them.
        Where one of its ports works, the others may be for clients elsewhere.
        """
        met = {broker for item in self.bootstraps for broker in self._met(item)}
        listed = by_key(
            (broker, item)
            for service in self.services
            if not service.is_external_name
            for item in self._clients_of(service)
            for broker in self._met(item) - met
        )
        found: dict[tuple[str, tuple[Address, ...]], Bootstrap] = {}
        for clients in listed.values():
            work = [it for it in clients if walk(self, it).answer is not Answer.NO]
            found |= {(it.service, it.addresses): it for it in work or clients}
        yield from found.values()

    def _clients_of(self, service: ClusterService) -> Iterator[Bootstrap]:
        place = other_pod(service.namespace)
        ports = {it.port: None for it in service.ports or ()}
        if service.is_headless:
            ports |= {it.target: None for it in service.ports or () if isinstance(it.target, int)}
        for port in ports if place in self.pods else ():
            address = Address(service.name.lower(), port)
            end = self.trace(place, address).end
            if isinstance(end, Arrival) and not end.endpoint.is_controller:
                setting = f"port {port} of the Service {service.name}"
                yield Bootstrap(place, setting, (address,), end.endpoint.protocol)

    def _met(self, client: Bootstrap) -> set[str]:
        """The brokers that a client bootstraps to."""
        ends = [end for it in client.addresses for end in self.trace(client.service, it).ends]
        return {end.broker.service for end in ends if isinstance(end, Arrival)}

    def services_of(self, place: str, host: str) -> Sequence[ClusterService]:
        """The Services by which ``host`` leads to pods, from the pod of ``place``."""
        pod, host = self.pods[place], host.lower()
        if is_loopback(host) or host in self.containers[place].extra_hosts:
            return ()
        if pod.is_one and host in (*pod.hostnames, *pod.full_names):
            return ()
        _, *parts = in_cluster(host)
        by_pod = (
            self.called(".".join(parts), pod.namespace) if self._stable(host, pod.namespace) else ()
        )
        return self.called(host, pod.namespace) or by_pod

    def host_of(self, broker: Broker, port: int) -> str | None:
        pod = self.pods[broker.service]
        services = [it for it in self.services if pod in self._selected(it)]
        for item in services:
            if item.is_headless and item.name == pod.subdomain and len(pod.hostnames) == 1:
                return f"{pod.hostnames[0]}.{item.name}"
        for item in services:
            if len(self._selected(item)) == 1 and any(it.port == port for it in item.ports or ()):
                return item.name
        return None

    def _trace(self, place: str, address: Address) -> Trace:
        if place == OUTSIDE:
            return self._from_beyond(address)
        pod, host = self.pods[place], address.host.lower()
        aliases = self.containers[place].extra_hosts
        if host in aliases:
            host = aliases[host]
        if not is_known(host):
            return _unknown(address, f"the value of {host}")
        if is_loopback(host) or kind_of(host) is NameKind.ANY_ADDRESS:
            if not self.brokers:
                return _unknown(address, "which brokers there are: the file shows none")
            text = f"{host} is every place's name for itself"
            return _trace(address, text, [self._inside(pod, address.port, place, loopback=True)])
        if pod.is_one and host in (*pod.hostnames, *pod.full_names):
            text = f"{host} is the pod's own name, in its hosts file"
            return _trace(address, text, [self._inside(pod, address.port, place)])
        if ip_of(host) is not None:
            return _unknown(address, f"whose address {host} is")
        if not pod.asks_cluster:
            return _unknown(address, "which DNS servers the client's pod asks")
        if services := self.called(host, pod.namespace):
            legs = [leg for it in services for leg in self._before(it, address.port, place)]
            return _trace(address, f"{host} is the Service {services[0].name}", legs)
        if pods := self._stable(host, pod.namespace):
            legs = [self._inside(it, address.port, place) for it in pods]
            return _trace(address, f"{host} is a pod of {pods[0].workload}", legs)
        return self._elsewhere(address, host, pod.namespace)

    def _elsewhere(self, address: Address, host: str, namespace: str) -> Trace:
        """A name that no Service of the namespace has; another file may have a Service of it."""
        if "." in host:
            return self._unnamed_pod(address, host, namespace)
        fact = f"whether another file has a Service {host}"
        if others := {it.namespace for it in self.named(host)}:
            if "" in others or not namespace:
                return _unknown(address, fact)
            why = (
                f"{host} is a Service of namespace {min(others)}, and the client is in {namespace}"
            )
            return _nowhere(address, why, f"{fact} in namespace {namespace}")
        own = {name for it in self.pods.values() for name in it.own_names}
        if not self.services or host not in own:
            return _unknown(address, fact)
        why = f"no Service of the file is called {host}, and pods have no name but by one"
        return _nowhere(address, why, fact)

    def _unnamed_pod(self, address: Address, host: str, namespace: str) -> Trace:
        """`POD.SERVICE`, where the pod has no name by this Service, or any other full name."""
        name, *parts = in_cluster(host)
        services = self.called(".".join(parts), namespace) if 1 <= len(parts) <= 2 else ()
        for service in services:
            for pod in self._by_hostname.get(name, ()):
                if pod.namespace != service.namespace:
                    continue
                if pod.subdomain.lower() != service.name:
                    under = f"has a name by the Service {pod.subdomain} alone"
                    under = under if pod.subdomain else "has no name by a Service: no serviceName"
                    return _nowhere(address, f"{name} {under}")
                if service.selector and pod not in self._selected(service):
                    why = f"the Service {service.name} does not select {name}"
                    return _nowhere(address, why)
                return _unknown(address, f"whether {service.name}, not headless, names its pods")
            selected = self._selected(service)
            if selected and not any(pod.hostnames for pod in selected):
                why = f"pods of {selected[0].workload} have no names by the Service {service.name}"
                return _nowhere(address, why, f"whether another file has a pod {name}")
        return _unknown(address, f"what {host} means to other DNS servers")

    def _from_beyond(self, address: Address) -> Trace:
        """From another machine, by a port of a node."""
        host = address.host.lower()
        doubt = f"whether {host} is a node"
        if is_loopback(host) and address.port in self._node_ports:
            return _unknown(address, "whether the client is on a node, as with kind or minikube")
        if is_loopback(host):
            why = "it is the client itself, and no broker listens there"
            return Trace(address, (Hop(Stage.RESOLVE, Answer.NO, why),), End.SELF)
        if not is_known(host) or any(it.is_balanced for it in self.services):
            return _unknown(address, "which addresses lead to the cluster's load balancer")
        if self.named(host) or any(self._stable(host, it.namespace) for it in self.pods.values()):
            why = f"{host} is a name that the cluster's own DNS gives"
            doubt = f"whether {host} is known beyond the cluster as well"
            return Trace(address, (Hop(Stage.RESOLVE, Answer.NO, why),), End.NOWHERE, doubt=doubt)
        if ip_of(host) is None and address.host != NODE:
            return _unknown(address, f"what {host} means to other DNS servers")
        resolved = Hop(Stage.RESOLVE, Answer.UNKNOWN, doubt)
        if address.host == NODE:
            resolved, doubt = Hop(Stage.RESOLVE, Answer.YES, "the address of any node"), ""
        legs = self._node_ports.get(address.port)
        if legs is None:
            ports = ", ".join(map(str, self._node_ports))
            why = f"nothing has port {address.port} of the nodes, of which {ports} lead to brokers"
            hops = (resolved, Hop(Stage.WAY, Answer.NO, why))
            return Trace(address, hops, End.REFUSED, doubt=doubt)
        chosen = _best(legs)
        ends = tuple(it.end for it in legs)
        return Trace(address, (resolved, *chosen.hops), chosen.end, ends, doubt)

    @cached_property
    def _node_ports(self) -> Mapping[int, Sequence[_Leg]]:
        """By a port of every node, or of a pod's own: what is behind it."""
        behind: list[tuple[int, _Leg]] = []
        for item in self.services:
            for port in item.ports or ():
                if port.node_port is not None:
                    legs = self._to_pods(item, port, "")
                    behind += [(port.node_port, leg) for leg in legs]
        for pod in self._all:
            behind += [(at, self._inside(pod, to, "")) for at, to in pod.node_ports.items()]
        return by_key(behind)

    def _before(self, service: ClusterService, port: int, place: str) -> list[_Leg]:
        """The ways by a Service to its pods."""
        if service.is_external_name:
            fact = f"where the external name of the Service {service.name} leads"
            return [_Leg(Unknown(fact), (Hop(Stage.WAY, Answer.UNKNOWN, fact),))]
        if service.is_headless:
            return self._to_pods(service, ServicePort(port, port), place)
        if service.ports is None:
            fact = f"which ports the Service {service.name} has"
            return [_Leg(Unknown(fact), (Hop(Stage.WAY, Answer.UNKNOWN, fact),))]
        found = [it for it in service.ports if it.port == port]
        if not found and service.ports:
            listed = ", ".join(str(it) for it in sorted({it.port for it in service.ports}))
            why = f"the Service {service.name} has no port but {listed}"
            return [_Leg(End.REFUSED, (Hop(Stage.WAY, Answer.NO, why),))]
        asked = found[0] if found else ServicePort(port, port)
        return self._to_pods(service, asked, place)

    def _to_pods(self, service: ClusterService, port: ServicePort, place: str) -> list[_Leg]:
        pods = self._selected(service)
        if not pods:
            fact = f"which pods the Service {service.name} selects: none of the file"
            return [_Leg(Unknown(fact), (Hop(Stage.WAY, Answer.UNKNOWN, fact),))]
        legs = []
        for pod in pods:
            target = pod.ports.get(port.target) if isinstance(port.target, str) else port.target
            if target is None:
                fact = f"which port of {pod.workload} is called {port.target}"
                legs.append(_Leg(Unknown(fact), (Hop(Stage.WAY, Answer.UNKNOWN, fact),)))
            else:
                legs.append(self._inside(pod, target, place))
        return legs

    def _inside(self, pod: Pod, port: int, place: str, *, loopback: bool = False) -> _Leg:
        """Who listens at ``port`` of ``pod``: one of its replicas is as good as another."""
        is_own = place in pod.containers
        way = Hop(Stage.WAY, Answer.YES, "the pod itself" if is_own else f"to {pod.workload}")
        if not pod.is_one and not loopback:
            way = Hop(Stage.WAY, Answer.UNKNOWN, f"which pod of {pod.workload} it is")
        end, why = self._listens(pod, port, place, loopback=loopback)
        if end is End.REFUSED and is_own:
            end, why = End.SELF, f"it is the client itself, and {why}"
        answers = {Arrival: Answer.YES, Unknown: Answer.UNKNOWN}
        return _Leg(end, (way, Hop(Stage.SOCKET, answers.get(type(end), Answer.NO), why)))

    def _listens(self, pod: Pod, port: int, place: str, *, loopback: bool) -> tuple[Way, str]:
        brokers = [self.by_service[it] for it in pod.containers if it in self.by_service]
        for broker in brokers:
            for item in broker.endpoints or ():
                if item.bind.port != port:
                    continue
                host = item.bind.host
                if not host or kind_of(host) is NameKind.ANY_ADDRESS:
                    return Arrival(broker, item), f"{item.name} listens there"
                if is_loopback(host) and loopback:
                    return Arrival(broker, item), f"{item.name} listens there"
                if is_loopback(host):
                    return End.REFUSED, f"{item.name} listens on {item.bind} alone"
                fact = f"on which address {item.bind} is"
                return Unknown(fact), fact
        is_known_whole = all(it.endpoints is not None for it in brokers)
        others = [it for it in pod.containers if it not in self.by_service and it != place]
        if others or not is_known_whole or not (brokers or place in pod.containers):
            fact = f"what listens at port {port} of {pod.workload}"
            return Unknown(fact), fact
        return End.REFUSED, f"nothing listens at port {port} of {pod.workload}"

    def _selected(self, service: ClusterService) -> Sequence[Pod]:
        return self._selections[id(service)]

    @cached_property
    def _selections(self) -> Mapping[int, Sequence[Pod]]:
        """The pods that each Service selects, by the identity of the Service."""
        labelled = by_key(
            ((pod.namespace, *label), pod) for pod in self._all for label in pod.labels.items()
        )
        found: dict[int, Sequence[Pod]] = {}
        for it in self.services:
            wanted = it.selector.items()
            first = next(iter(wanted), None)
            pods = labelled.get((it.namespace, *first), ()) if first is not None else ()
            found[id(it)] = [pod for pod in pods if wanted <= pod.labels.items()]
        return found

    def _has_broker(self, pod: Pod) -> bool:
        return any(it in self.by_service for it in pod.containers)

    def _stable(self, host: str, namespace: str) -> list[Pod]:
        """The pod that has `HOSTNAME.SUBDOMAIN` for a name, where that Service is headless."""
        name, *parts = in_cluster(host)
        if not 1 <= len(parts) <= 2:
            return []
        services = self.called(".".join(parts), namespace)
        return [
            pod
            for pod in self._by_hostname.get(name, ())
            for it in services
            if it.is_headless and pod.subdomain.lower() == it.name and pod in self._selected(it)
        ]

    @cached_property
    def _all(self) -> Sequence[Pod]:
        """Every pod once."""
        return list({pod.containers: pod for pod in self.pods.values()}.values())

    @cached_property
    def _by_hostname(self) -> Mapping[str, Sequence[Pod]]:
        return by_key((name, pod) for pod in self._all for name in pod.hostnames)

    @cached_property
    def _by_name(self) -> Mapping[tuple[str, str], Sequence[ClusterService]]:
        return by_key(((item.name, item.namespace), item) for item in self.services)


def other_pod(namespace: str) -> str:
    """The place of a client in a pod that the file does not show."""
    return f"{_ANOTHER_POD} of {namespace}" if namespace else _ANOTHER_POD


def _nowhere(address: Address, because: str, doubt: str = "") -> Trace:
    return Trace(address, (Hop(Stage.RESOLVE, Answer.NO, because),), End.NOWHERE, doubt=doubt)


def _unknown(address: Address, fact: str) -> Trace:
    end = Unknown(fact)
    return Trace(address, (Hop(Stage.RESOLVE, Answer.UNKNOWN, fact),), end, (end,))


def _trace(address: Address, because: str, legs: Sequence[_Leg]) -> Trace:
    chosen = _best(legs)
    hops = (Hop(Stage.RESOLVE, Answer.YES, because), *chosen.hops)
    return Trace(address, hops, chosen.end, tuple(it.end for it in legs))


def _best(legs: Sequence[_Leg]) -> _Leg:
    """A Service gives connections to all its pods: one that arrives will do."""
    return min(legs, key=lambda it: (isinstance(it.end, End), isinstance(it.end, Unknown)))
