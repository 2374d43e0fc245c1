"""A cluster of real parts on this machine: two nodes and a control plane, each a network namespace.

etcd, kube-apiserver and kube-controller-manager run in the first, kube-proxy in each node, CoreDNS
in a pod. The scheduler's and the kubelet's part is `Kubelet`. No machine has a way to any other
network, so that no packet of a test leaves this machine.
"""

import contextlib
import json
import secrets
import shutil
import subprocess
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from tests.e2e.docker_hosts import inside, switch
from tests.kubernetes import parts
from tests.kubernetes.api import Api, Object

PODS = "10.244.0.0/16"
SERVICES = "10.96.0.0/16"
DNS = "10.96.0.10"
SYSTEM = "kube-system"
PORT = 6443
NODES = 2
READY_SECONDS = 120.0
STOP_SECONDS = 10
CONTROLLERS = ("deployment", "replicaset", "statefulset", "daemonset", "endpointslice", "namespace")
_COREFILE = """
.:53 {{
    errors
    kubernetes cluster.local in-addr.arpa ip6.arpa {{
        kubeconfig {kubeconfig}
        pods insecure
        fallthrough in-addr.arpa ip6.arpa
        ttl 0
    }}
    loadbalance
}}
"""
"""kubeadm's, without its cache and without servers for other names."""


@dataclass(frozen=True)
class Node:
    """A machine of the cluster; ``subnet`` is the first three numbers of its pods' addresses."""

    name: str
    namespace: str
    address: str
    subnet: str


@dataclass
class Cluster:
    """A running cluster. ``outside`` is the network namespace of a machine that is no node."""

    api: Api
    nodes: tuple[Node, ...]
    outside: str
    folder: Path
    executables: Path
    _processes: list[subprocess.Popen[bytes]] = field(default_factory=list)

    def start(self, namespace: str, *command: object, name: str) -> subprocess.Popen[bytes]:
        """A process in ``namespace``, ended with the cluster; its output is in `NAME.log`."""
        with (self.folder / f"{name}.log").open("ab") as log:
            process = subprocess.Popen(
                inside(namespace, *map(str, command)),
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=subprocess.STDOUT,
                cwd=self.folder,
            )
        self._processes.append(process)
        return process

    def stop(self) -> None:
        for process in reversed(self._processes):
            process.terminate()
        for process in reversed(self._processes):
            try:
                process.wait(STOP_SECONDS)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()

    def last_words(self) -> str:
        """The end of every log, for a part that does not come up."""
        logs = sorted(self.folder.glob("*.log"))
        return "\n".join(f"{log.name}:\n{log.read_text(errors='replace')[-1500:]}" for log in logs)


@contextlib.contextmanager
def cluster(mode: str) -> Iterator[Cluster]:
    """A cluster whose kube-proxy is in ``mode`` (iptables or nftables); gone at the end."""
    executables = parts.executables()
    folder = Path(tempfile.mkdtemp(prefix="earshot-kube-", dir="/tmp"))
    with switch() as network, contextlib.ExitStack() as cleanup:
        cleanup.callback(shutil.rmtree, folder, ignore_errors=True)
        control, address = network.machine(is_routed=False)
        outside, _ = network.machine(is_routed=False)
        machines = [network.machine(is_routed=False) for _ in range(NODES)]
        nodes = tuple(
            Node(f"node{i}", namespace, node_address, f"10.244.{i}")
            for i, (namespace, node_address) in enumerate(machines, 1)
        )
        token = secrets.token_hex(16)
        api = Api(f"https://{address}:{PORT}", token, folder / "certificates" / "apiserver.crt")
        kube_cluster = Cluster(api, nodes, outside, folder, executables)
        cleanup.callback(kube_cluster.stop)
        _start_control_plane(kube_cluster, control, address, token)
        until(api.is_ready, kube_cluster.last_words)
        kubeconfig = _kubeconfig(kube_cluster, address, token)
        kube_cluster.start(
            control,
            executables / "kube-controller-manager",
            f"--kubeconfig={kubeconfig}",
            f"--controllers={','.join(f'{controller}-controller' for controller in CONTROLLERS)}",
            "--leader-elect=false",
            name="controllers",
        )
        for node in nodes:
            _join(kube_cluster, node, kubeconfig, mode)
        yield kube_cluster


def _start_control_plane(kube_cluster: Cluster, control: str, address: str, token: str) -> None:
    folder, executables = kube_cluster.folder, kube_cluster.executables
    (folder / "tokens.csv").write_text(f"{token},judge,judge,system:masters\n")
    (folder / "tokens.csv").chmod(0o600)
    key = ["openssl", "genrsa", "-out", str(folder / "accounts.key"), "2048"]
    subprocess.run(key, check=True, capture_output=True)
    kube_cluster.start(
        control,
        executables / "etcd",
        f"--data-dir={folder / 'etcd'}",
        "--unsafe-no-fsync",
        "--listen-client-urls=http://127.0.0.1:2379",
        "--advertise-client-urls=http://127.0.0.1:2379",
        "--listen-peer-urls=http://127.0.0.1:2380",
        name="etcd",
    )
    kube_cluster.start(
        control,
        executables / "kube-apiserver",
        "--etcd-servers=http://127.0.0.1:2379",
        f"--advertise-address={address}",
        f"--secure-port={PORT}",
        f"--cert-dir={folder / 'certificates'}",
        f"--service-cluster-ip-range={SERVICES}",
        "--service-account-issuer=https://kubernetes.default.svc",
        f"--service-account-key-file={folder / 'accounts.key'}",
        f"--service-account-signing-key-file={folder / 'accounts.key'}",
        f"--token-auth-file={folder / 'tokens.csv'}",
        "--authorization-mode=AlwaysAllow",
        "--disable-admission-plugins=ServiceAccount,TaintNodesByCondition",
        "--endpoint-reconciler-type=none",
        name="apiserver",
    )


def _kubeconfig(kube_cluster: Cluster, address: str, token: str) -> Path:
    path = kube_cluster.folder / "kubeconfig"
    server = {
        "server": f"https://{address}:{PORT}",
        "certificate-authority": str(kube_cluster.folder / "certificates" / "apiserver.crt"),
    }
    path.touch(mode=0o600)
    path.write_text(
        json.dumps(
            {
                "apiVersion": "v1",
                "kind": "Config",
                "clusters": [{"name": "judge", "cluster": server}],
                "users": [{"name": "judge", "user": {"token": token}}],
                "contexts": [{"name": "judge", "context": {"cluster": "judge", "user": "judge"}}],
                "current-context": "judge",
            }
        )
    )
    return path


def _join(kube_cluster: Cluster, node: Node, kubeconfig: Path, mode: str) -> None:
    """Make ``node`` one of the cluster's: ways to the pods of the others, kube-proxy."""
    commands = [["sysctl", "-qw", "net.ipv4.ip_forward=1"]]
    # its own processes need a route before kube-proxy sends them elsewhere; on the switch it ends
    commands.append(["ip", "route", "add", SERVICES, "dev", "eth0"])
    for other_node in kube_cluster.nodes:
        if other_node is not node:
            route = ["ip", "route", "add", f"{other_node.subnet}.0/24", "via", other_node.address]
            commands.append(route)
    masquerade = ["iptables", "-w", "-t", "nat", "-A", "POSTROUTING", "-s", f"{node.subnet}.0/24"]
    commands.append([*masquerade, "!", "-d", PODS, "-j", "MASQUERADE"])
    for command in commands:
        subprocess.run(inside(node.namespace, *command), check=True)
    resource: Object = {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {"name": node.name, "labels": {"kubernetes.io/hostname": node.name}},
        "spec": {"podCIDR": f"{node.subnet}.0/24", "podCIDRs": [f"{node.subnet}.0/24"]},
    }
    kube_cluster.api.create(resource)
    addresses = [{"type": "InternalIP", "address": node.address}]
    kube_cluster.api.status(resource, {"addresses": addresses})
    kube_cluster.start(
        node.namespace,
        kube_cluster.executables / "kube-proxy",
        f"--kubeconfig={kubeconfig}",
        f"--hostname-override={node.name}",
        f"--proxy-mode={mode}",
        f"--cluster-cidr={PODS}",
        "--conntrack-max-per-core=0",
        "--conntrack-tcp-timeout-established=0s",
        "--conntrack-tcp-timeout-close-wait=0s",
        name=f"proxy-{node.name}",
    )


def corefile(kube_cluster: Cluster) -> Path:
    path = kube_cluster.folder / "Corefile"
    path.write_text(_COREFILE.format(kubeconfig=kube_cluster.folder / "kubeconfig"))
    return path


def until(
    condition: Callable[[], bool], error_text: Callable[[], str], seconds: float = READY_SECONDS
) -> None:
    """Waits for ``condition``. Raises TimeoutError with ``error_text`` after ``seconds``."""
    end = time.monotonic() + seconds
    while not condition():
        if time.monotonic() > end:
            raise TimeoutError(error_text())
        time.sleep(0.1)


def run_in(namespace: str, command: Sequence[str], **variables: str) -> str:
    """The output of ``command`` in ``namespace``, which reads ``stdin`` where that is given."""
    stdin = variables.pop("stdin", "")
    completed = subprocess.run(
        inside(namespace, "env", *(f"{key}={value}" for key, value in variables.items()), *command),
        input=stdin,
        capture_output=True,
        text=True,
    )
    if completed.returncode:
        raise RuntimeError(f"{command}: {completed.stdout}{completed.stderr}")
    return completed.stdout
