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
"""Of each kind: Kubernetes chooses node ports of its own above eight times as many."""
Pair = tuple[str, int]


@dataclass(frozen=True)
class Topology:
    """The documents of a manifest, all with a namespace."""

    seed: int
    documents: tuple[Object, ...]

    @property
    def namespaces(self) -> tuple[str, ...]:
        return tuple(dict.fromkeys(it["metadata"]["namespace"] for it in self.documents))

    @property
    def workloads(self) -> list[Object]:
        return [it for it in self.documents if it["kind"] != "Service"]

    @property
    def pods(self) -> int:
        """How many pods its workloads have on two nodes."""
        return sum(replicas_of(it) for it in self.workloads)

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
        self.chance = random.Random(seed)
        self.nodes = nodes
        self.near, self.far = f"a{seed}", f"b{seed}"
        self.ports = {it: it + slot * PORTS_OF_SLOT for it in (NODE_PORTS, HOST_PORTS, OWN_PORTS)}
        self.last = {it: first + PORTS_OF_SLOT for it, first in self.ports.items()}
        self.made: list[Object] = []
        self.known: list[Pair] = []
        """Hosts and ports that clients may begin with and brokers advertise."""

    def documents(self) -> list[Object]:
        names = ["kafka", "queue"][: self.chance.choice((1, 1, 2))]
        for name in names:
            self.broker(name)
        for number in range(self.chance.choice((1, 2, 3))):
            self.client(f"app{number}")
        return self.made

    def likely(self, part: float) -> bool:
        return self.chance.random() < part

    def port(self, kind: int) -> int | None:
        """A port that only this topology has; None where it has used up its own."""
        if self.ports[kind] == self.last[kind]:
            return None
        self.ports[kind] += 1
        return self.ports[kind] - 1

    def broker(self, name: str) -> None:
        """A workload of brokers and its Services."""
        kind = self.chance.choice(("StatefulSet",) * 6 + ("Deployment", "Deployment", "Pod"))
        kind = "DaemonSet" if self.likely(0.05) else kind
        replicas = self.chance.choice((1, 1, 2, 3)) if kind in ("StatefulSet", "Deployment") else 1
        namespace = self.near if self.likely(0.85) else self.far
        on_node = self.likely(0.1) and (kind == "DaemonSet" or replicas == 1)
        inner = self.port(OWN_PORTS) if on_node else 9092
        outer = self.port(OWN_PORTS) if on_node else 9094
        assert inner is not None and outer is not None
        services = self.services(name, kind, namespace, replicas, (inner, outer))
        headless = [it["metadata"]["name"] for it in services if self.is_headless(it)]
        governing = self.chance.choice([*headless, *headless, f"{name}-none", ""])
        # only the names of a StatefulSet's pods are known before they are made
        own = "$(POD_NAME)" if kind == "StatefulSet" else name
        spec: Object = {
            "containers": [self.container(own, name, (inner, outer), namespace, governing)]
        }
        if on_node:
            spec["hostNetwork"] = True
        if self.likely(0.12):
            spec["containers"].append({"name": "helper", "image": "example/helper"})
        if kind == "Pod" and governing and self.likely(0.7):
            spec |= {"hostname": self.chance.choice((name, f"{name}-0")), "subdomain": governing}
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
            found = {"apiVersion": "v1", "kind": kind, "metadata": {**meta, "labels": labels}}
            self.made.append({**found, "spec": spec})
            return
        outer: Object = {"selector": {"matchLabels": {"app": name}}}
        outer["template"] = {"metadata": {"labels": labels}, "spec": spec}
        if kind != "DaemonSet":
            outer["replicas"] = replicas
        if kind == "StatefulSet":
            if governing:
                outer["serviceName"] = governing
            if self.likely(0.5):
                outer["podManagementPolicy"] = "Parallel"
        self.made.append({"apiVersion": "apps/v1", "kind": kind, "metadata": meta, "spec": outer})

    def container(
        self, own: str, name: str, ports: tuple[int, int], namespace: str, governing: str
    ) -> Object:
        """The broker: what it listens on, what it advertises, which ports it declares."""
        binds = [*[""] * 6, *["0.0.0.0"] * 5, "127.0.0.1", "localhost", "$(POD_IP)", "[::]"]
        listeners, advertised, declared = [], [], []
        count = self.chance.choice((1, 2, 2))
        for listener, port in list(zip(("INNER", "OUTER"), ports, strict=True))[:count]:
            bind = port if self.likely(0.93) else port + 7
            listeners.append(f"{listener}://{self.chance.choice(binds)}:{bind}")
            host, to = self.advertised(own, name, port, namespace, governing)
            advertised.append(f"{listener}://{host}:{to}")
            if self.likely(0.8):
                one: Object = {"name": listener.lower(), "containerPort": port}
                if self.likely(0.12) and port in (9092, 9094):
                    at = self.port(HOST_PORTS)
                    one |= {"hostPort": at} if at else {}
                    self.known += [(it, at) for it in self.nodes if at]
                declared.append(one)
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
        found: Object = {"name": "broker", "image": IMAGE, "env": variables, "ports": declared}
        if self.likely(0.2):
            at = ports[0] if self.likely(0.8) else ports[0] + 3
            found["readinessProbe"] = {"tcpSocket": {"port": at}}
        return found

    def advertised(self, own: str, name: str, port: int, namespace: str, governing: str) -> Pair:
        """A host and a port that are right, nearly right or wrong; ``own`` is the pod's name."""
        under = governing or name
        hosts = [
            f"{own}.{under}",
            f"{own}.{under}.{namespace}.svc.cluster.local",
            f"{own}.{under}.{namespace}",
            f"{own}.{name}-other.{namespace}.svc",
            f"{own}.{under}.{namespace}.cluster.local",
            own,
            "$(POD_IP)",
            name,
            name,
            "localhost",
            "nothing",
            "kafka.example.com",
            self.chance.choice(self.nodes),
        ]
        if self.known and self.likely(0.6):
            return self.chance.choice(self.known)
        return self.chance.choice(hosts), self.chance.choice((port, port, port, 9999))

    def services(
        self, name: str, kind: str, namespace: str, replicas: int, ports: tuple[int, int]
    ) -> list[Object]:
        """One to four Services that shall lead to the pods of ``name``."""
        called = [name, f"{name}-headless", f"{name}-outer", f"{name}-other"]
        found = []
        for own in self.chance.sample(called, self.chance.choice((1, 2, 2, 3))):
            form = "headless" if own.endswith("headless") else ""
            forms = ("ClusterIP",) * 4 + ("headless",) * 3 + ("NodePort",) * 3
            form = form or self.chance.choice((*forms, "LoadBalancer", "ExternalName"))
            found.append(self.service(own, form, name, namespace, ports))
        if kind == "StatefulSet" and self.likely(0.3):
            for number in range(replicas):
                form = self.chance.choice(("ClusterIP", "NodePort", "headless"))
                item = self.service(f"{name}-{number}", form, name, namespace, ports)
                label = {"statefulset.kubernetes.io/pod-name": f"{name}-{number}"}
                item["spec"]["selector"] = label
                found.append(item)
        self.made += found
        for item in found:
            self.remember(item, name, replicas)
        return found

    def service(
        self, own: str, form: str, name: str, namespace: str, ports: tuple[int, int]
    ) -> Object:
        spec: Object = {}
        if form == "ExternalName":
            target = f"{name}.{namespace}.svc.cluster.local"
            to = self.chance.choice((target, "kafka.example.com"))
            spec = {"type": form, "externalName": to, "ports": [{"port": 9092}]}
        else:
            spec = {"type": form} if form != "headless" else {"clusterIP": "None"}
            selectors: list[Object] = [{"app": name}] * 6
            selectors += [{"app": name, "role": "any"}, {"app": f"{name}s"}]
            selectors += [{"app": name, "tier": "none"}, {}]
            if selector := self.chance.choice(selectors):
                spec["selector"] = selector
            listed = list(zip(("inner", "outer"), ports, strict=True))
            if self.likely(0.3):
                listed = [self.chance.choice(listed)]
            spec["ports"] = [self.service_port(word, port, form) for word, port in listed]
            if self.likely(0.15):
                spec["publishNotReadyAddresses"] = True
            if form in ("NodePort", "LoadBalancer") and self.likely(0.3):
                spec["externalTrafficPolicy"] = "Local"
        meta = {"name": own, "namespace": namespace}
        return {"apiVersion": "v1", "kind": "Service", "metadata": meta, "spec": spec}

    def service_port(self, word: str, port: int, form: str) -> Object:
        found: Object = {"name": word, "port": port if self.likely(0.8) else port + 100}
        target = self.chance.choice(("same", "same", "number", "name", "name", "wrong"))
        if target == "number":
            found["targetPort"] = port
        elif target == "name":
            found["targetPort"] = word if self.likely(0.85) else f"{word}s"
        elif target == "wrong":
            found["targetPort"] = port + 1
        node_port = self.port(NODE_PORTS) if form in ("NodePort", "LoadBalancer") else None
        if node_port is not None and self.likely(0.8):
            found["nodePort"] = node_port
        return found

    def remember(self, service: Object, name: str, replicas: int) -> None:
        """The names and ports by which clients may come to ``service``."""
        own, namespace = service["metadata"]["name"], service["metadata"]["namespace"]
        hosts = [own, own, f"{own}.{namespace}", f"{own}.{namespace}.svc"]
        hosts += [f"{own}.{namespace}.svc.cluster.local"]
        hosts += [f"{name}-{self.chance.randrange(replicas)}.{own}.{namespace}"]
        for item in service["spec"]["ports"]:
            targets = [it for it in (item.get("targetPort"), item["port"]) if isinstance(it, int)]
            self.known += [(self.chance.choice(hosts), it) for it in targets for _ in range(2)]
            if "nodePort" in item:
                self.known.append((self.chance.choice(self.nodes), item["nodePort"]))

    def client(self, name: str) -> None:
        namespace = self.near if self.likely(0.65) else self.far
        chosen = self.chance.sample(self.known, min(len(self.known), self.chance.choice((1, 1, 2))))
        servers = ",".join(f"{host}:{port}" for host, port in chosen)
        variables = [{"name": "KAFKA_BOOTSTRAP_SERVERS", "value": servers}]
        spec: Object = {"containers": [{"name": "it", "image": "example/app", "env": variables}]}
        if self.likely(0.12):
            spec["hostNetwork"] = True
        spec |= self.chance.choice(
            ({},) * 8 + ({"dnsPolicy": "ClusterFirstWithHostNet"}, {"dnsPolicy": "Default"})
        )
        if self.likely(0.12) and not spec.get("hostNetwork"):
            to = self.chance.choice(("127.0.0.1", self.nodes[0]))
            alias = {"ip": to, "hostnames": [self.chance.choice(("kafka", "kafka.example.com"))]}
            spec["hostAliases"] = [alias]
        kind = self.chance.choice(("Deployment", "Deployment", "Pod"))
        self.workload(kind, name, namespace, 1, spec)
