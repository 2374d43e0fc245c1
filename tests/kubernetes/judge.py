"""Apply manifests to a cluster of real parts, run their pods, and ask their containers."""

import contextlib
import itertools
import re
import time
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field

from tests.kubernetes.api import Object
from tests.kubernetes.cluster import (
    DNS,
    READY_SECONDS,
    SYSTEM,
    Cluster,
    cluster,
    corefile,
    until,
)
from tests.kubernetes.generate import OTHER, Topology
from tests.kubernetes.kubelet import Kubelet, Place, RunningPod

QUIET_SECONDS = 4.0
"""After which no further pod is made: one that is not ready holds up those after it."""
MARKER_PORT = 7000
AT_ONCE = 8
IMAGE = "example/any"
_POD_OF = {
    "StatefulSet": "{}-[0-9]+",
    "Deployment": "{}-[0-9a-z]+-[0-9a-z]{{5}}",
    "DaemonSet": "{}-[0-9a-z]{{5}}",
    "Pod": "{}",
}


@dataclass
class Running:
    """A topology as it runs: its pods by namespace and name."""

    topology: Topology
    outside: Place
    pods: dict[tuple[str, str], RunningPod] = field(default_factory=dict)
    services: dict[tuple[str, str], Object] = field(default_factory=dict)

    def of_workload(self, resource: Object) -> list[RunningPod]:
        """The pods of a workload, by their names."""
        meta = resource["metadata"]
        pattern = _POD_OF[resource["kind"]].format(re.escape(meta["name"]))
        pods = [
            pod
            for (namespace, name), pod in self.pods.items()
            if namespace == meta["namespace"] and re.fullmatch(pattern, name)
        ]
        return sorted(pods, key=lambda pod: (len(pod.name), pod.name))


@dataclass
class Judge:
    """A cluster, its kubelets, and a process on a machine that is no node."""

    cluster: Cluster
    kubelet: Kubelet
    outside: Place
    _numbers: Iterator[int] = field(default_factory=itertools.count)

    @property
    def nodes(self) -> tuple[str, ...]:
        """The addresses of the nodes."""
        return tuple(node.address for node in self.cluster.nodes)

    @contextlib.contextmanager
    def running(self, topologies: Sequence[Topology]) -> Iterator[list[Running]]:
        """``topologies`` at once, all of them gone at the end."""
        running_topologies = [
            Running(drawn_topology, self.outside) for drawn_topology in topologies
        ]
        try:
            with ThreadPoolExecutor(AT_ONCE) as pool:
                list(pool.map(self._apply, running_topologies))
                self._run_pods(running_topologies, pool)
            until(
                lambda: all(map(self._has_all_endpoints, running_topologies)),
                lambda: "no EndpointSlices",
            )
            self._wait_for_proxies()
            yield running_topologies
        finally:
            with ThreadPoolExecutor(AT_ONCE) as pool:
                list(pool.map(self._remove, running_topologies))

    def _apply(self, running: Running) -> None:
        api = self.cluster.api
        for name in running.topology.namespaces:
            api.create(_named("Namespace", name))
        for name in running.topology.namespaces:
            api.create(_pod(OTHER, name, ""))
        for resource in running.topology.documents:
            created_service = api.create(resource)
            if resource["kind"] == "Service":
                meta = created_service["metadata"]
                running.services[meta["namespace"], meta["name"]] = created_service

    def _run_pods(self, topologies: Sequence[Running], pool: ThreadPoolExecutor) -> None:
        """Run pods until all are there, or no other comes."""
        end, last_news = time.monotonic() + READY_SECONDS, time.monotonic()
        expected_count = sum(
            running.topology.pods + len(running.topology.namespaces) for running in topologies
        )
        while time.monotonic() < end:
            new_pods = [
                (running, pod)
                for running in topologies
                for namespace in running.topology.namespaces
                for pod in self.cluster.api.pods(namespace)
                if (namespace, pod["metadata"]["name"]) not in running.pods
            ]
            started_pods = pool.map(lambda running: self.kubelet.run(running[1]), new_pods)
            for (running, pod), started_pod in zip(new_pods, started_pods, strict=True):
                running.pods[pod["metadata"]["namespace"], started_pod.name] = started_pod
            last_news = time.monotonic() if new_pods else last_news
            count = sum(len(running.pods) for running in topologies)
            if count == expected_count or time.monotonic() - last_news > QUIET_SECONDS:
                return
            time.sleep(0.2)
        raise TimeoutError("pods are made without end")

    def _has_all_endpoints(self, running: Running) -> bool:
        """True if the EndpointSlices name every pod that a Service selects, ready or not."""
        endpoints_by_service: dict[tuple[str, str], set[str]] = {}
        for namespace in running.topology.namespaces:
            for endpoint_slice in self.cluster.api.slices(namespace):
                service = endpoint_slice["metadata"]["labels"]["kubernetes.io/service-name"]
                for endpoint in endpoint_slice["endpoints"] or ():
                    ready = endpoint["conditions"]["ready"]
                    endpoint_texts = endpoints_by_service.setdefault((namespace, service), set())
                    endpoint_texts |= {f"{address} {ready}" for address in endpoint["addresses"]}
        for key, service in running.services.items():
            selector = service["spec"].get("selector")
            if not selector or service["spec"]["type"] == "ExternalName":
                continue
            counts_unready = service["spec"].get("publishNotReadyAddresses", False)
            selected_pods = {
                f"{pod.address} {pod.is_ready or counts_unready}"
                for (namespace, _), pod in running.pods.items()
                if namespace == key[0]
                and selector.items() <= pod.resource["metadata"].get("labels", {}).items()
            }
            if selected_pods != endpoints_by_service.get(key, set()):
                return False
        return True

    def _wait_for_proxies(self) -> None:
        """Wait until kube-proxy and CoreDNS know a Service that is made after all others."""
        name = f"marker{next(self._numbers)}"
        ports = [{"port": MARKER_PORT}]
        spec = {"type": "NodePort", "selector": {"app": "marker"}, "ports": ports}
        created_service = self.cluster.api.create({**_named("Service", name, SYSTEM), "spec": spec})
        port = created_service["spec"]["ports"][0]["nodePort"]
        marker = Place(self.kubelet.folder / SYSTEM / "marker")
        host = f"{name}.{SYSTEM}.svc.cluster.local"

        def is_known() -> bool:
            probes = self.outside.ask("HOST", [(probe, port) for probe in self.nodes])
            probes += marker.ask("it", [(host, MARKER_PORT)])
            return all(any(probe.greetings.values()) for probe in probes)

        until(is_known, self.cluster.last_words)
        self.cluster.api.delete_service(SYSTEM, name)

    def _remove(self, running: Running) -> None:
        for name in running.topology.namespaces:
            self.cluster.api.delete_namespace(name)
        for pod in running.pods.values():
            self.kubelet.stop(pod)


@contextlib.contextmanager
def judge(mode: str) -> Iterator[Judge]:
    """A judge with its own cluster, whose kube-proxy is in ``mode``."""
    with cluster(mode) as kube_cluster:
        kubelet = Kubelet(kube_cluster)
        pods = [_pod("coredns", SYSTEM, "dns"), _pod("marker", SYSTEM, "marker")]
        pods[1]["spec"]["containers"][0]["env"] = [
            {"name": "KAFKA_LISTENERS", "value": f"MARKER://:{MARKER_PORT}"}
        ]
        until(lambda: _exists(kube_cluster, SYSTEM), kube_cluster.last_words)
        server = [str(kube_cluster.executables / "coredns"), "-conf", str(corefile(kube_cluster))]
        started_pods: list[RunningPod] = []
        ports = [{"name": "dns", "port": 53, "protocol": "UDP"}, {"name": "tcp", "port": 53}]
        spec = {"clusterIP": DNS, "selector": {"app": "dns"}, "ports": ports}
        kube_cluster.api.create({**_named("Service", "kube-dns", SYSTEM), "spec": spec})
        try:
            for pod, command in zip(pods, (server, []), strict=True):
                started_pods.append(kubelet.run(kube_cluster.api.create(pod), command))
            cluster_judge = Judge(kube_cluster, kubelet, kubelet.outside())
            cluster_judge._wait_for_proxies()
            yield cluster_judge
        finally:
            for started_pod in started_pods:
                kubelet.stop(started_pod)


def _exists(kube_cluster: Cluster, namespace: str) -> bool:
    """True if the server has created its own namespaces."""
    return any(
        server_namespace["metadata"]["name"] == namespace
        for server_namespace in kube_cluster.api.namespaces()
    )


def _named(kind: str, name: str, namespace: str = "") -> Object:
    meta = {"name": name, "namespace": namespace} if namespace else {"name": name}
    return {"apiVersion": "v1", "kind": kind, "metadata": meta}


def _pod(name: str, namespace: str, app: str) -> Object:
    pod = _named("Pod", name, namespace)
    labels: Mapping[str, str] = {"app": app} if app else {}
    pod["metadata"]["labels"] = dict(labels)
    pod["spec"] = {"containers": [{"name": "it", "image": IMAGE}]}
    if app == "dns":
        pod["spec"]["dnsPolicy"] = "Default"
    return pod
