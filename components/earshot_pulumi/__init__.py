"""Pulumi components: what turns a plan into running, gated and proven brokers.

`__all__` is for programs of your own; docs/module.md describes it. Each name is imported when it
is first used, so that a program needs only the extras of the components that it uses.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from earshot_pulumi.given.listeners import Listeners, ListenersArgs
    from earshot_pulumi.given.proof import Proof, ProofArgs
    from earshot_pulumi.package.cluster import AwsCluster
    from earshot_pulumi.package.cluster_args import AwsClusterArgs
    from earshot_pulumi.package.network import AwsNetwork, AwsNetworkArgs

__all__ = [
    "AwsCluster",
    "AwsClusterArgs",
    "AwsNetwork",
    "AwsNetworkArgs",
    "Listeners",
    "ListenersArgs",
    "Proof",
    "ProofArgs",
]
_MODULES = {
    "AwsCluster": "package.cluster",
    "AwsClusterArgs": "package.cluster_args",
    "AwsNetwork": "package.network",
    "AwsNetworkArgs": "package.network",
    "Listeners": "given.listeners",
    "ListenersArgs": "given.listeners",
    "Proof": "given.proof",
    "ProofArgs": "given.proof",
}


def __getattr__(name: str) -> Any:
    if name not in _MODULES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from earshot.extras import extra_of, installing

    try:
        return getattr(import_module(f"{__name__}.{_MODULES[name]}"), name)
    except ModuleNotFoundError as fault:
        if not (extra := extra_of(fault)):
            raise
        missing = f"{name} needs the package {fault.name}, which is not installed"
        raise ImportError(f"{missing}; fix: {installing(extra)}") from None
