"""A double of scheduler and kubelet: a pod's node, network, names, processes and readiness.

The network is made by the CNI plugins ptp and portmap, resolv.conf by the kubelet's own package.
The hosts file and the variables follow the kubelet's sources (`managedHostsFileContent`,
`makeEnvironmentVariables`). A container's process is `place.py`.
"""

import json
import re
import socket
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tests.e2e.docker_hosts import inside
from tests.kubernetes.api import Api, Object
from tests.kubernetes.cluster import DNS, Cluster, Node, run_in
from tests.topologies.engine import ProbeResult

PLACE = Path(__file__).parents[1] / "topologies" / "place.py"
NO_NAMESERVER = "127.0.0.1"
"""The DNS server of nodes and of machines outside. It refuses at once."""
ANSWER_SECONDS = 90.0
PROBE_SECONDS = 5.0
SWITCH = "hosts: files dns\n"
_HOSTS = "127.0.0.1\tlocalhost\n::1\tlocalhost ip6-localhost ip6-loopback\n"
_REFERENCE = re.compile(r"\$\$|\$\(([A-Za-z_][A-Za-z0-9_.-]*)\)", re.ASCII)
_CONFIG: Object = {"cniVersion": "1.0.0", "name": "pods"}


@dataclass(frozen=True)
class Place:
    """The folder with the sockets of one pod's processes, or of a machine (`HOST`)."""

    folder: Path

    def ask(self, name: str, addresses: Sequence[tuple[str, int]]) -> list[ProbeResult]:
        """The results of probing each address from the container ``name``."""
        with socket.socket(socket.AF_UNIX) as connection:
            connection.settimeout(ANSWER_SECONDS)
            connection.connect(str(self.folder / f"{name}.sock"))
            with connection.makefile("rw") as stream:
                stream.write(json.dumps(list(addresses)) + "\n")
                stream.flush()
                return [ProbeResult(**probe) for probe in json.loads(stream.readline())]


@dataclass
class RunningPod:
    """A pod that runs: its network, its address, its processes."""

    resource: Object
    node: Node
    namespace: str
    """The pod's network namespace: its node's with `hostNetwork`."""
    address: str
    place: Place
    processes: list[subprocess.Popen[bytes]] = field(default_factory=list)
    is_ready: bool = True

    @property
    def name(self) -> str:
        return str(self.resource["metadata"]["name"])

    @property
    def label(self) -> str:
        """`NAMESPACE/NAME`, as its processes greet."""
        return f"{self.resource['metadata']['namespace']}/{self.name}"


class Kubelet:
    """The kubelets of all nodes, with the scheduler before them."""

    def __init__(self, kube_cluster: Cluster) -> None:
        self._cluster = kube_cluster
        self._turn = 0
        self.folder = kube_cluster.folder / "places"
        self.folder.mkdir()
        (self.folder / "switch.conf").write_text(SWITCH)
        (self.folder / "node.conf").write_text(f"nameserver {NO_NAMESERVER}\noptions timeout:1\n")
        (self.folder / "hosts").write_text(_HOSTS)

    @property
    def api(self) -> Api:
        return self._cluster.api

    def outside(self) -> Place:
        """A process on the machine that is no node."""
        self._start(self._cluster.outside, self.folder, "", "", {})
        _wait_for(self.folder / "HOST.sock")
        return Place(self.folder)

    def run(self, pod: Object, command: Sequence[str] = ()) -> RunningPod:
        """Bind ``pod`` to a node and start it; ``command`` instead of places."""
        spec, meta = pod["spec"], pod["metadata"]
        wanted_node = _wanted_node(spec)
        node = next(
            (
                cluster_node
                for cluster_node in self._cluster.nodes
                if cluster_node.name == wanted_node
            ),
            None,
        )
        if node is None:
            self._turn += 1
            node = self._cluster.nodes[self._turn % len(self._cluster.nodes)]
        self.api.bind(pod, node.name)
        folder = self.folder / meta["namespace"] / meta["name"]
        folder.mkdir(parents=True)
        if spec.get("hostNetwork"):
            namespace, address = node.namespace, node.address
        else:
            namespace, address = self._connect_to_network(pod, node)
        running = RunningPod(pod, node, namespace, address, Place(folder))
        self._write_names(running)
        if command:
            name = f"{meta['namespace']}-{meta['name']}"
            self._cluster.start(namespace, *command, name=name)
        else:
            self._start_containers(running)
        self._report(running)
        return running

    def stop(self, running: RunningPod) -> None:
        """End its processes and its network."""
        for process in running.processes:
            process.kill()
            process.wait()
        if not running.resource["spec"].get("hostNetwork"):
            self._run_cni_plugins("DEL", running.resource, running.node, running.namespace)
            subprocess.run(["ip", "netns", "delete", running.namespace], check=True)

    def _connect_to_network(self, pod: Object, node: Node) -> tuple[str, str]:
        """A network for ``pod``: its namespace, and its address."""
        namespace = f"pod-{pod['metadata']['uid']}"
        subprocess.run(["ip", "netns", "add", namespace], check=True)
        subprocess.run(["ip", "-n", namespace, "link", "set", "lo", "up"], check=True)
        result = self._run_cni_plugins("ADD", pod, node, namespace)
        return namespace, str(result["ips"][0]["address"]).partition("/")[0]

    def _run_cni_plugins(self, action: str, pod: Object, node: Node, namespace: str) -> Object:
        """Runs the CNI plugins. ``action`` is ADD or DEL."""
        addresses = {
            "type": "host-local",
            "ranges": [[{"subnet": f"{node.subnet}.0/24"}]],
            "routes": [{"dst": "0.0.0.0/0"}],
            "dataDir": str(self._cluster.folder / "addresses" / node.name),
        }
        ports = [
            {
                "hostPort": port["hostPort"],
                "containerPort": port["containerPort"],
                "protocol": "tcp",
            }
            for container in pod["spec"]["containers"]
            for port in container.get("ports", [])
            if "hostPort" in port
        ]
        chain: list[Object] = [{**_CONFIG, "type": "ptp", "ipam": addresses}]
        if ports:
            capabilities = {"capabilities": {"portMappings": True}, "snat": True}
            runtime_settings = {"runtimeConfig": {"portMappings": ports}}
            chain.append({**_CONFIG, "type": "portmap", **capabilities, **runtime_settings})
        result: Object = {}
        for config in chain if action == "ADD" else reversed(chain):
            path = self._cluster.executables
            text = run_in(
                node.namespace,
                [str(path / config["type"])],
                stdin=json.dumps({**config, "prevResult": result} if result else config),
                CNI_COMMAND=action,
                CNI_CONTAINERID=namespace,
                CNI_NETNS=f"/run/netns/{namespace}",
                CNI_IFNAME="eth0",
                CNI_PATH=str(path),
            )
            result = json.loads(text) if text.strip() else {}
        return result

    def _write_names(self, running: RunningPod) -> None:
        """The pod's resolv.conf and hosts file."""
        spec, meta = running.resource["spec"], running.resource["metadata"]
        pod = {**running.resource, "spec": {**spec, "nodeName": running.node.name}}
        command = [str(self._cluster.executables / "pod-dns"), DNS, str(self.folder / "node.conf")]
        dns_settings = json.loads(run_in(running.namespace, command, stdin=json.dumps(pod)))
        lines = [f"nameserver {server}" for server in dns_settings.get("servers", [])]
        lines += (
            [f"search {' '.join(dns_settings['searches'])}"] if dns_settings.get("searches") else []
        )
        lines += (
            [f"options {' '.join(dns_settings['options'])}"] if dns_settings.get("options") else []
        )
        (running.place.folder / "resolv.conf").write_text("".join(f"{line}\n" for line in lines))
        hostname, hosts = str(spec.get("hostname") or meta["name"]), _HOSTS
        if not spec.get("hostNetwork"):
            domain = f".{spec.get('subdomain')}.{meta['namespace']}.svc.cluster.local"
            full = f"{hostname}{domain}\t" if spec.get("subdomain") else ""
            hosts += f"{running.address}\t{full}{hostname}\n"
        for alias in spec.get("hostAliases", []):
            hosts += f"{alias['ip']}\t{chr(9).join(alias['hostnames'])}\n"
        (running.place.folder / "hosts").write_text(hosts)

    def _start_containers(self, running: RunningPod) -> None:
        spec = running.resource["spec"]
        for container in spec["containers"]:
            values = environment(running, container)
            hostname = spec.get("hostname") or running.name
            folder = running.place.folder
            called = str((folder / container["name"]).relative_to(self.folder))
            process = self._start(running.namespace, folder, called, hostname, values)
            running.processes.append(process)
        for container in spec["containers"]:
            _wait_for(running.place.folder / f"{container['name']}.sock")

    def _start(
        self,
        namespace: str,
        folder: Path,
        process_name: str,
        hostname: str,
        values: Mapping[str, str],
    ) -> subprocess.Popen[bytes]:
        """A process in ``namespace`` that greets as ``process_name``; ``folder`` has its names."""
        resolver, hosts = folder / "resolv.conf", folder / "hosts"
        mounts = {
            resolver if resolver.exists() else self.folder / "node.conf": "/etc/resolv.conf",
            hosts if hosts.exists() else self.folder / "hosts": "/etc/hosts",
            self.folder / "switch.conf": "/etc/nsswitch.conf",
        }
        steps = [f"mount --bind {source} {target}" for source, target in mounts.items()]
        steps += [f"hostname {hostname}"] if hostname else []
        steps.append(f"exec {sys.executable} {PLACE} {self.folder} '{process_name}'")
        unshare = ["unshare", "--mount", "--uts", "--propagation", "private"]
        return self._cluster.start(
            namespace,
            *("env", "-i", f"KAFKA_LISTENERS={values.get('KAFKA_LISTENERS', '')}"),
            *(*unshare, "sh", "-c", " && ".join(steps)),
            name="places",
        )

    def _report(self, running: RunningPod) -> None:
        """The pod's status; it is ready where every readiness probe gets a connection."""
        containers = running.resource["spec"]["containers"]
        running.is_ready = all(self._answers(running, condition) for condition in containers)
        answer = "True" if running.is_ready else "False"
        conditions = [
            {"type": condition, "status": answer if condition.endswith("eady") else "True"}
            for condition in ("Initialized", "ContainersReady", "Ready", "PodScheduled")
        ]
        self.api.status(
            running.resource,
            {
                "phase": "Running",
                "conditions": conditions,
                "hostIP": running.node.address,
                "hostIPs": [{"ip": running.node.address}],
                "podIP": running.address,
                "podIPs": [{"ip": running.address}],
            },
        )

    def _answers(self, running: RunningPod, container: Object) -> bool:
        probe = container.get("readinessProbe", {}).get("tcpSocket")
        if probe is None:
            return True
        port_by_name = {
            port.get("name"): port["containerPort"] for port in container.get("ports", [])
        }
        port = port_by_name.get(probe["port"], probe["port"])
        test = f"import socket; socket.create_connection(('{running.address}', {port}), 0.5)"
        end = time.monotonic() + PROBE_SECONDS
        while time.monotonic() < end:
            command = inside(running.node.namespace, sys.executable, "-S", "-c", test)
            if subprocess.run(command, capture_output=True).returncode == 0:
                return True
            time.sleep(0.5)
        return False


def environment(running: RunningPod, container: Object) -> dict[str, str]:
    """The variables of a container: its own, with fields of the pod and with each other."""
    fields: Mapping[str, Any] = {
        "metadata.name": running.name,
        "metadata.namespace": running.resource["metadata"]["namespace"],
        "status.podIP": running.address,
        "status.hostIP": running.node.address,
    }
    variables: dict[str, str] = {}

    def value(match: re.Match[str]) -> str:
        return "$" if match[1] is None else variables.get(match[1], match[0])

    for variable in container.get("env", []):
        path = variable.get("valueFrom", {}).get("fieldRef", {}).get("fieldPath")
        text = fields[path] if path else _REFERENCE.sub(value, variable.get("value", ""))
        variables[variable["name"]] = str(text)
    return variables


def _wanted_node(spec: Object) -> str | None:
    """The node that a DaemonSet's controller has chosen for its pod."""
    rules = spec.get("affinity", {}).get("nodeAffinity", {})
    terms = rules.get("requiredDuringSchedulingIgnoredDuringExecution", {})
    for term in terms.get("nodeSelectorTerms", []):
        for field_ in term.get("matchFields", []):
            if field_["key"] == "metadata.name":
                return str(field_["values"][0])
    return None


def _wait_for(path: Path) -> None:
    end = time.monotonic() + ANSWER_SECONDS
    while not path.exists():
        if time.monotonic() > end:
            raise TimeoutError(f"no process answers at {path}")
        time.sleep(0.02)
