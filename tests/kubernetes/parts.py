"""The parts of a Kubernetes cluster, built from their Go modules as ``module/`` pins them.

One executable is etcd, kube-apiserver, kube-controller-manager, kube-proxy and CoreDNS, by the name
that starts it; beside it are the CNI plugins that give pods their networks.
"""

import hashlib
import os
import shutil
from pathlib import Path

from earshot.files import cache
from toolchain import progress
from toolchain.paths import LOGS, PYTHON
from toolchain.pulumi_cli import go

MODULE = Path(__file__).with_name("module")
NAMES = ("etcd", "kube-apiserver", "kube-controller-manager", "kube-proxy", "coredns", "pod-dns")
_PLUGINS = "github.com/containernetworking/plugins/plugins"
PLUGINS = {
    "ptp": f"{_PLUGINS}/main/ptp",
    "host-local": f"{_PLUGINS}/ipam/host-local",
    "portmap": f"{_PLUGINS}/meta/portmap",
}
TOOLS = ("ip", "iptables", "nft", "nsenter", "unshare", "openssl")
PACKAGES = "iproute2 iptables nftables util-linux openssl"


def hindrance() -> str | None:
    """Why no cluster can be started here, or None."""
    if os.geteuid() != 0:
        return "only root can give the machines of a cluster their networks"
    if missing_tools := [tool for tool in TOOLS if shutil.which(tool) is None]:
        names = ", ".join(missing_tools)
        return f"not on this machine: {names}; to have it: apt-get install {PACKAGES}"
    return None


def executables() -> Path:
    """The folder of the executables, built where the cache has none. Raises EarshotError."""

    def make(fresh: Path) -> None:
        compiler = go.ensure(PYTHON, MODULE / "go.mod")
        with progress.step("Kubernetes: building its parts from Go modules (some minutes)"):
            _build(fresh, compiler)

    return cache.ensure(cache.root() / "kubernetes" / _digest(), make)


def _digest() -> str:
    """A digest of the modules and of the programs that are built from them."""
    content_hash = hashlib.sha256(repr((NAMES, PLUGINS, os.uname().machine)).encode())
    for path in sorted(MODULE.iterdir()):
        content_hash.update(path.read_bytes())
    return content_hash.hexdigest()[:12]


def _build(folder: Path, compiler: Path) -> None:
    work, environment = go.prepare(MODULE, folder)
    for name, package in {"cluster": ".", **PLUGINS}.items():
        progress.run(
            [compiler, "build", "-trimpath", "-ldflags", "-s -w", "-o", folder / name, package],
            log=LOGS / "kubernetes-build.log",
            failure="Kubernetes's parts",
            remedy="check that Go can reach its module proxy (go env GOPROXY), then run it again",
            cwd=work,
            environment=environment,
        )
    for name in NAMES:
        (folder / name).symlink_to("cluster")
    shutil.rmtree(work)
