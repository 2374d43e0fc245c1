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
from earshot.topology.broker import Arrival, Bootstrap
from earshot.topology.container import is_loopback
from earshot.topology.model import Deployment
from earshot.topology.names import OUTSIDE, Unknown
from earshot.topology.ways import Answer, End, Hop, Stage, Trace, Way

NODE = "NODE"
"""Placeholder for the address of any node, as the bootstrap of clients outside the cluster."""


@dataclass(frozen=True)
class Pod:
    """The pod of one workload, whose containers share one network."""

    workload: str
    namespace: str
    labels: Mapping[str, str]
    containers: tuple[str, ...]
    """Their services."""
    hostnames: tuple[str, ...] = ()
    """Its own name, one of each replica; none where Kubernetes makes it up."""
    subdomain: str = ""
    """The headless Service under which its hostnames resolve."""
    ports: Mapping[str, int] = field(default_factory=dict)
    """Its container ports by their names."""
    node_ports: Mapping[int, int] = field(default_factory=dict)
    """Its ports by those that it takes of its node (`hostPort`)."""
    is_one: bool = True
    """It has no replicas."""
    asks_cluster: bool = True
    """Names mean what the cluster's DNS says, looked up in its own namespace first."""


@dataclass(frozen=True)
class ServicePort:
    """One TCP port; ``target`` is that of the pods, as a number or a name of theirs."""

    port: int
    target: int | str
    node_port: int | None = None


@dataclass(frozen=True)
class ClusterService:
    """A Service; ``ports`` are its TCP ports, None where they are not all known.

    A headless one has no address of its own: its name means the pods, its ports filter nothing,
    and no variables tell of it.
    """

    name: str
    namespace: str
    ports: tuple[ServicePort, ...] | None
    selector: Mapping[str, str] = field(default_factory=dict)
    is_headless: bool = False
    is_external_name: bool = False
    is_balanced: bool = False
    """A load balancer outside of the cluster has its ports."""

    @property
    def has_address(self) -> bool:
        return not (self.is_headless or self.is_external_name)


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
        parts = _in_cluster(host)
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
        if host in pod.hostnames and pod.is_one:
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
        return self._elsewhere(address, host)

    def _elsewhere(self, address: Address, host: str) -> Trace:
        """A word that no Service has; another file may have a Service of it."""
        fact = f"whether another file has a Service {host}"
        own = {name for it in self.pods.values() for name in _own(it)}
        if "." in host or not self.services or host not in own or self.named(host):
            fact = fact if "." not in host else f"what {host} means to other DNS servers"
            return _unknown(address, fact)
        why = f"no Service of the file is called {host}, and pods have no name but by one"
        return Trace(address, (Hop(Stage.RESOLVE, Answer.NO, why),), End.NOWHERE, doubt=fact)

    def _from_beyond(self, address: Address) -> Trace:
        """From another machine, by a port of a node."""
        host = address.host.lower()
        doubt = f"whether {host} is a node"
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
        pods = {pod.containers: pod for pod in self.pods.values()}
        for pod in pods.values():
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

    def _selected(self, service: ClusterService) -> list[Pod]:
        wanted = service.selector.items()
        pods = {pod.containers: pod for pod in self.pods.values()}.values()
        same = (it for it in pods if it.namespace == service.namespace)
        return [it for it in same if wanted and wanted <= it.labels.items()]

    def _has_broker(self, pod: Pod) -> bool:
        return any(it in self.by_service for it in pod.containers)

    def _stable(self, host: str, namespace: str) -> list[Pod]:
        """The pod that has `HOSTNAME.SUBDOMAIN` for a name, where that Service is headless."""
        name, *parts = _in_cluster(host)
        if not 1 <= len(parts) <= 2:
            return []
        services = self.called(".".join(parts), namespace)
        return [
            pod
            for pod in {it.containers: it for it in self.pods.values()}.values()
            for it in services
            if it.is_headless and pod in self._selected(it)
            if name in pod.hostnames and pod.subdomain.lower() == it.name
        ]

    @cached_property
    def _by_name(self) -> Mapping[tuple[str, str], Sequence[ClusterService]]:
        return by_key(((item.name, item.namespace), item) for item in self.services)


def _own(pod: Pod) -> set[str]:
    """What the pod is called in the file, which is no name for other pods."""
    return {pod.workload.lower(), *pod.hostnames}


def _in_cluster(host: str) -> list[str]:
    """The labels of ``host`` without the cluster's domain."""
    parts = host.lower().rstrip(".").split(".")
    if parts[-2:] == ["cluster", "local"]:
        del parts[-2:]
    if len(parts) > 2 and parts[-1] == "svc":
        del parts[-1]
    return parts


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
