"""What a cluster of containers needs of one Docker host before its nodes."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import pulumi
import pulumi_docker as docker

from earshot.config.docker import DockerHost
from earshot.engine import address_of
from earshot.placement.node_container import NodeContainer
from earshot_pulumi.deployment import child_name
from earshot_pulumi.docker.leftovers import clearing


class HostResources:
    """The provider, network and image of one Docker host."""

    def __init__(
        self,
        stack: str,
        host: DockerHost,
        hosts: Sequence[DockerHost],
        container: NodeContainer,
        opts: Callable[..., pulumi.ResourceOptions],
        *,
        provider: pulumi.ProviderResource | None,
        labels: pulumi.Input[Any] | None,
    ) -> None:
        """``container`` is one of its nodes', ``hosts`` are all of the ``stack``. ``labels`` are
        those of the network; without them, it joins one that is there. ``provider`` is the
        program's own."""
        self.hooks = clearing(host, hosts)
        name = child_name(stack, host.name)
        certificates = host.cert_path and str(Path(host.cert_path).expanduser())
        self.provider = provider or docker.Provider(
            name, host=address_of(host), cert_path=certificates, opts=opts()
        )
        self.network: pulumi.Input[str] = container.network
        if labels is not None:
            self.network = docker.Network(
                name,
                name=container.network,
                driver="bridge",
                labels=labels,
                opts=opts(provider=self.provider, hooks=self.hooks),
            ).name
        self.image = docker.RemoteImage(
            name, name=container.image, keep_locally=True, opts=opts(provider=self.provider)
        )


def labelled(values: Mapping[str, str]) -> Any:
    """``values`` as an input of the provider's resources."""
    return [{"label": key, "value": value} for key, value in sorted(values.items())]
