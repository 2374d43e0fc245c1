"""Random manifests: Services of every kind before brokers that listen right, nearly or wrong."""

import random
from collections.abc import Sequence
from dataclasses import dataclass

import yaml

from tests.kubernetes.api import Object

OTHER = "another"
"""The pod of each namespace that no document describes; it is a client."""
IMAGE = "confluentinc/cp-kafka:7.6.0"
NODE_PORTS, HOST_PORTS, OWN_PORTS = 30_000, 25_000, 20_000
"""From which the ports of Services on nodes, of pods on nodes, and of host networking count."""
PORTS_OF_SLOT = 10
"""Ports of each kind per slot. Kubernetes chooses node ports above eight times as many."""
Pair = tuple[str, int]


@dataclass(frozen=True)
class Topology:
    """The documents of a manifest, all with a namespace."""

    seed: int
    documents: tuple[Object, ...]

    @property
    def namespaces(self) -> tuple[str, ...]:
        return tuple(
            dict.fromkeys(document["metadata"]["namespace"] for document in self.documents)
        )

    @property
    def workloads(self) -> list[Object]:
        return [document for document in self.documents if document["kind"] != "Service"]

    @property
    def pods(self) -> int:
        """The number of pods of all workloads on two nodes."""
        return sum(replicas_of(workload) for workload in self.workloads)

    @property
    def text(self) -> str:
        return yaml.safe_dump_all(self.documents, sort_keys=False)


def replicas_of(workload: Object) -> int:
    """The pods of a workload on two nodes."""
    if workload["kind"] == "Pod":
        return 1
    return 2 if workload["kind"] == "DaemonSet" else int(workload["spec"]["replicas"])


def topology(seed: int, nodes: Sequence[str], slot: int) -> Topology:
    """The topology of ``seed`` for a cluster with ``nodes``; no other ``slot`` has its ports."""
    return Topology(seed, tuple(Maker(seed, nodes, slot).documents()))


class Maker:
    """Draws one topology."""

    def __init__(self, seed: int, nodes: Sequence[str], slot: int) -> None:
        self.random = random.Random(seed)
        self.nodes = nodes
        self.near, self.far = f"a{seed}", f"b{seed}"
        self.ports = {
            start: start + slot * PORTS_OF_SLOT for start in (NODE_PORTS, HOST_PORTS, OWN_PORTS)
        }
        self.port_limits = {
            start: first_port + PORTS_OF_SLOT for start, first_port in self.ports.items()
        }
        self.resources: list[Object] = []
        self.known_addresses: list[Pair] = []
        """Hosts and ports that clients may begin with and brokers advertise."""

    def documents(self) -> list[Object]:
        names = ["kafka", "queue"][: self.random.choice((1, 1, 2))]
        for name in names:
            self.broker(name)
        for number in range(self.random.choice((1, 2, 3))):
            self.client(f"app{number}")
        return self.resources

    def likely(self, probability: float) -> bool:
        return self.random.random() < probability

    def port(self, kind: int) -> int | None:
        """A port that only this topology has; None where it has used up its own."""
        if self.ports[kind] == self.port_limits[kind]:
            return None
        self.ports[kind] += 1
        return self.ports[kind] - 1

    def broker(self, name: str) -> None:
        """A workload of brokers and its Services."""
        kind = self.random.choice(("StatefulSet",) * 6 + ("Deployment", "Deployment", "Pod"))
        kind = "DaemonSet" if self.likely(0.05) else kind
        replicas = self.random.choice((1, 1, 2, 3)) if kind in ("StatefulSet", "Deployment") else 1
        namespace = self.near if self.likely(0.85) else self.far
        on_node = self.likely(0.1) and (kind == "DaemonSet" or replicas == 1)
        inner_port = self.port(OWN_PORTS) if on_node else 9092
        outer_port = self.port(OWN_PORTS) if on_node else 9094
        assert inner_port is not None and outer_port is not None
        services = self.services(name, kind, namespace, replicas, (inner_port, outer_port))
        headless = [
            service["metadata"]["name"] for service in services if self.is_headless(service)
        ]
        governing = self.random.choice([*headless, *headless, f"{name}-none", ""])
        # only the names of a StatefulSet's pods are known before they are made
        pod_name = "$(POD_NAME)" if kind == "StatefulSet" else name
        spec: Object = {
            "containers": [
                self.container(pod_name, name, (inner_port, outer_port), namespace, governing)
            ]
        }
        if on_node:
            spec["hostNetwork"] = True
        if self.likely(0.12):
            spec["containers"].append({"name": "helper", "image": "example/helper"})
        if kind == "Pod" and governing and self.likely(0.7):
            spec |= {"hostname": self.random.choice((name, f"{name}-0")), "subdomain": governing}
        self.workload(kind, name, namespace, replicas, spec, governing)

    @staticmethod
    def is_headless(service: Object) -> bool:
        return bool(service["spec"].get("clusterIP") == "None")

    def workload(
        self, kind: str, name: str, namespace: str, replicas: int, spec: Object, governing: str = ""
    ) -> None:
        meta = {"name": name, "namespace": namespace}
        labels = {"app": name, "role": "any"}
        if kind == "Pod":
            pod = {"apiVersion": "v1", "kind": kind, "metadata": {**meta, "labels": labels}}
            self.resources.append({**pod, "spec": spec})
            return
        workload_spec: Object = {"selector": {"matchLabels": {"app": name}}}
        workload_spec["template"] = {"metadata": {"labels": labels}, "spec": spec}
        if kind != "DaemonSet":
            workload_spec["replicas"] = replicas
        if kind == "StatefulSet":
            if governing:
                workload_spec["serviceName"] = governing
            if self.likely(0.5):
                workload_spec["podManagementPolicy"] = "Parallel"
        self.resources.append(
            {"apiVersion": "apps/v1", "kind": kind, "metadata": meta, "spec": workload_spec}
        )

    def container(
        self, pod_name: str, name: str, ports: tuple[int, int], namespace: str, governing: str
    ) -> Object:
        """The broker's container: its listeners, advertised listeners and declared ports."""
        binds = [*[""] * 6, *["0.0.0.0"] * 5, "127.0.0.1", "localhost", "$(POD_IP)", "[::]"]
        listeners, advertised, declared = [], [], []
        count = self.random.choice((1, 2, 2))
        for listener, port in list(zip(("INNER", "OUTER"), ports, strict=True))[:count]:
            bind = port if self.likely(0.93) else port + 7
            listeners.append(f"{listener}://{self.random.choice(binds)}:{bind}")
            host, advertised_port = self.advertised(pod_name, name, port, namespace, governing)
            advertised.append(f"{listener}://{host}:{advertised_port}")
            if self.likely(0.8):
                container_port: Object = {"name": listener.lower(), "containerPort": port}
                if self.likely(0.12) and port in (9092, 9094):
                    other_port = self.port(HOST_PORTS)
                    container_port |= {"hostPort": other_port} if other_port else {}
                    self.known_addresses += [
                        (node, other_port) for node in self.nodes if other_port
                    ]
                declared.append(container_port)
        variables: list[Object] = [
            {"name": "POD_NAME", "valueFrom": {"fieldRef": {"fieldPath": "metadata.name"}}},
            {"name": "POD_IP", "valueFrom": {"fieldRef": {"fieldPath": "status.podIP"}}},
            {"name": "KAFKA_ZOOKEEPER_CONNECT", "value": "zookeeper.test:2181"},
            {"name": "KAFKA_LISTENERS", "value": ",".join(listeners)},
            {"name": "KAFKA_ADVERTISED_LISTENERS", "value": ",".join(advertised)},
            {"name": "KAFKA_LISTENER_SECURITY_PROTOCOL_MAP",
             "value": "INNER:PLAINTEXT,OUTER:PLAINTEXT"},
            {"name": "KAFKA_INTER_BROKER_LISTENER_NAME", "value": "INNER"},
        ]  # fmt: skip
        broker_container: Object = {
            "name": "broker",
            "image": IMAGE,
            "env": variables,
            "ports": declared,
        }
        if self.likely(0.2):
            other_port = ports[0] if self.likely(0.8) else ports[0] + 3
            broker_container["readinessProbe"] = {"tcpSocket": {"port": other_port}}
        return broker_container

    def advertised(
        self, pod_name: str, name: str, port: int, namespace: str, governing: str
    ) -> Pair:
        """A host and a port that are right, nearly right or wrong."""
        service_name = governing or name
        hosts = [
            f"{pod_name}.{service_name}",
            f"{pod_name}.{service_name}.{namespace}.svc.cluster.local",
            f"{pod_name}.{service_name}.{namespace}",
            f"{pod_name}.{name}-other.{namespace}.svc",
            f"{pod_name}.{service_name}.{namespace}.cluster.local",
            pod_name,
            "$(POD_IP)",
            name,
            name,
            "localhost",
            "nothing",
            "kafka.example.com",
            self.random.choice(self.nodes),
        ]
        if self.known_addresses and self.likely(0.6):
            return self.random.choice(self.known_addresses)
        return self.random.choice(hosts), self.random.choice((port, port, port, 9999))

    def services(
        self, name: str, kind: str, namespace: str, replicas: int, ports: tuple[int, int]
    ) -> list[Object]:
        """One to four Services for the pods of ``name``."""
        service_names = [name, f"{name}-headless", f"{name}-outer", f"{name}-other"]
        made_services = []
        for service_name in self.random.sample(service_names, self.random.choice((1, 2, 2, 3))):
            form = "headless" if service_name.endswith("headless") else ""
            forms = ("ClusterIP",) * 4 + ("headless",) * 3 + ("NodePort",) * 3
            form = form or self.random.choice((*forms, "LoadBalancer", "ExternalName"))
            made_services.append(self.service(service_name, form, name, namespace, ports))
        if kind == "StatefulSet" and self.likely(0.3):
            for number in range(replicas):
                form = self.random.choice(("ClusterIP", "NodePort", "headless"))
                service = self.service(f"{name}-{number}", form, name, namespace, ports)
                label = {"statefulset.kubernetes.io/pod-name": f"{name}-{number}"}
                service["spec"]["selector"] = label
                made_services.append(service)
        self.resources += made_services
        for service in made_services:
            self.remember(service, name, replicas)
        return made_services

    def service(
        self, service_name: str, form: str, name: str, namespace: str, ports: tuple[int, int]
    ) -> Object:
        spec: Object = {}
        if form == "ExternalName":
            target = f"{name}.{namespace}.svc.cluster.local"
            external_name = self.random.choice((target, "kafka.example.com"))
            spec = {"type": form, "externalName": external_name, "ports": [{"port": 9092}]}
        else:
            spec = {"type": form} if form != "headless" else {"clusterIP": "None"}
            selectors: list[Object] = [{"app": name}] * 6
            selectors += [{"app": name, "role": "any"}, {"app": f"{name}s"}]
            selectors += [{"app": name, "tier": "none"}, {}]
            if selector := self.random.choice(selectors):
                spec["selector"] = selector
            ports_by_word = list(zip(("inner", "outer"), ports, strict=True))
            if self.likely(0.3):
                ports_by_word = [self.random.choice(ports_by_word)]
            spec["ports"] = [self.service_port(word, port, form) for word, port in ports_by_word]
            if self.likely(0.15):
                spec["publishNotReadyAddresses"] = True
            if form in ("NodePort", "LoadBalancer") and self.likely(0.3):
                spec["externalTrafficPolicy"] = "Local"
        meta = {"name": service_name, "namespace": namespace}
        return {"apiVersion": "v1", "kind": "Service", "metadata": meta, "spec": spec}

    def service_port(self, word: str, port: int, form: str) -> Object:
        service_port: Object = {"name": word, "port": port if self.likely(0.8) else port + 100}
        target = self.random.choice(("same", "same", "number", "name", "name", "wrong"))
        if target == "number":
            service_port["targetPort"] = port
        elif target == "name":
            service_port["targetPort"] = word if self.likely(0.85) else f"{word}s"
        elif target == "wrong":
            service_port["targetPort"] = port + 1
        node_port = self.port(NODE_PORTS) if form in ("NodePort", "LoadBalancer") else None
        if node_port is not None and self.likely(0.8):
            service_port["nodePort"] = node_port
        return service_port

    def remember(self, service: Object, name: str, replicas: int) -> None:
        """The names and ports by which clients may come to ``service``."""
        service_name, namespace = service["metadata"]["name"], service["metadata"]["namespace"]
        hosts = [
            service_name,
            service_name,
            f"{service_name}.{namespace}",
            f"{service_name}.{namespace}.svc",
        ]
        hosts += [f"{service_name}.{namespace}.svc.cluster.local"]
        hosts += [f"{name}-{self.random.randrange(replicas)}.{service_name}.{namespace}"]
        for service_port in service["spec"]["ports"]:
            targets = [
                port
                for port in (service_port.get("targetPort"), service_port["port"])
                if isinstance(port, int)
            ]
            self.known_addresses += [
                (self.random.choice(hosts), port) for port in targets for _ in range(2)
            ]
            if "nodePort" in service_port:
                self.known_addresses.append(
                    (self.random.choice(self.nodes), service_port["nodePort"])
                )

    def client(self, name: str) -> None:
        namespace = self.near if self.likely(0.65) else self.far
        chosen = self.random.sample(
            self.known_addresses, min(len(self.known_addresses), self.random.choice((1, 1, 2)))
        )
        servers = ",".join(f"{host}:{port}" for host, port in chosen)
        variables = [{"name": "KAFKA_BOOTSTRAP_SERVERS", "value": servers}]
        spec: Object = {"containers": [{"name": "it", "image": "example/app", "env": variables}]}
        if self.likely(0.12):
            spec["hostNetwork"] = True
        spec |= self.random.choice(
            ({},) * 8 + ({"dnsPolicy": "ClusterFirstWithHostNet"}, {"dnsPolicy": "Default"})
        )
        if self.likely(0.12) and not spec.get("hostNetwork"):
            to = self.random.choice(("127.0.0.1", self.nodes[0]))
            alias = {"ip": to, "hostnames": [self.random.choice(("kafka", "kafka.example.com"))]}
            spec["hostAliases"] = [alias]
        kind = self.random.choice(("Deployment", "Deployment", "Pod"))
        self.workload(kind, name, namespace, 1, spec)
