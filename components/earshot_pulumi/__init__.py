"""Pulumi components that turn a plan into running, gated and validated brokers.

`__all__` is the public API; docs/module.md describes it. Each name is imported at its first use, so
that a program needs only the extras of the components that it uses.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from earshot_pulumi.aws.cluster import AwsCluster
    from earshot_pulumi.aws.endpoint import AwsEndpoint, AwsEndpointArgs
    from earshot_pulumi.aws.vpc import AwsNetwork
    from earshot_pulumi.cluster_args import (
        AwsClusterArgs,
        AwsNetworkArgs,
        DockerClusterArgs,
        DockerHostsArgs,
        LocalClusterArgs,
    )
    from earshot_pulumi.docker.cluster import DockerCluster
    from earshot_pulumi.docker_hosts.component import DockerHosts
    from earshot_pulumi.given.listeners import Listeners, ListenersArgs
    from earshot_pulumi.given.proof import Proof, ProofArgs
    from earshot_pulumi.local.cluster import LocalCluster
    from earshot_pulumi.program import stack_cluster

__all__ = [
    "AwsCluster",
    "AwsClusterArgs",
    "AwsEndpoint",
    "AwsEndpointArgs",
    "AwsNetwork",
    "AwsNetworkArgs",
    "DockerCluster",
    "DockerClusterArgs",
    "DockerHosts",
    "DockerHostsArgs",
    "Listeners",
    "ListenersArgs",
    "LocalCluster",
    "LocalClusterArgs",
    "Proof",
    "ProofArgs",
    "stack_cluster",
]
_MODULES = {
    "aws.cluster": ("AwsCluster",),
    "aws.endpoint": ("AwsEndpoint", "AwsEndpointArgs"),
    "aws.vpc": ("AwsNetwork",),
    "cluster_args": (
        "AwsClusterArgs",
        "AwsNetworkArgs",
        "DockerClusterArgs",
        "DockerHostsArgs",
        "LocalClusterArgs",
    ),
    "docker.cluster": ("DockerCluster",),
    "docker_hosts.component": ("DockerHosts",),
    "given.listeners": ("Listeners", "ListenersArgs"),
    "given.proof": ("Proof", "ProofArgs"),
    "local.cluster": ("LocalCluster",),
    "program": ("stack_cluster",),
}


def __getattr__(name: str) -> Any:
    module = next((candidate for candidate, names in _MODULES.items() if name in names), None)
    if module is None:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from earshot.extras import extra_of, installing

    try:
        return getattr(import_module(f"{__name__}.{module}"), name)
    except ModuleNotFoundError as fault:
        if not (extra := extra_of(fault)):
            raise
        problem = f"{name} needs the package {fault.name}, which is not installed"
        raise ImportError(f"{problem}; fix: {installing(extra)}") from None
