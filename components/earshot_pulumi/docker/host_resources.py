"""What a cluster of containers needs of one Docker host before its nodes."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pulumi
import pulumi_docker as docker

from earshot.config.docker import DockerHost
from earshot.engine import address_of
from earshot.placement.node_container import NodeContainer
from earshot_pulumi.deployment import child_name
from earshot_pulumi.docker.leftovers import clearing

if TYPE_CHECKING:
    from earshot_pulumi.docker.brokers import DockerBrokers


class HostResources:
    """The provider, network and image of one Docker host."""

    def __init__(
        self,
        cluster: DockerBrokers,
        host: DockerHost,
        container: NodeContainer,
        opts: Callable[..., pulumi.ResourceOptions],
    ) -> None:
        self.hooks = clearing(host, cluster.hosts)
        name = child_name(cluster.stack, host.name)
        certificates = host.cert_path and str(Path(host.cert_path).expanduser())
        self.provider = cluster.at.provider or docker.Provider(
            name, host=address_of(host), cert_path=certificates, opts=opts()
        )
        self.network: pulumi.Input[str] = container.network
        if cluster.makes_network:
            self.network = docker.Network(
                name,
                name=container.network,
                driver="bridge",
                labels=cluster.own_labels,
                opts=opts(provider=self.provider, hooks=self.hooks),
            ).name
        self.image = docker.RemoteImage(
            name, name=container.image, keep_locally=True, opts=opts(provider=self.provider)
        )


def labelled(values: Mapping[str, str]) -> Any:
    """``values`` as an input of the provider's resources."""
    return [{"label": key, "value": value} for key, value in sorted(values.items())]
