"""The provider, network and image that a cluster needs on each Docker host."""

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, Final

import pulumi
import pulumi_docker as docker

from earshot.config.docker_host import DockerHost
from earshot.engine.connection import address_of, connect
from earshot.placement.node_container import NodeContainer
from earshot_pulumi.deployment import child_name
from earshot_pulumi.docker import labels, rolling_restart
from earshot_pulumi.docker.container_address import Engines, is_up

UNSERVED_GRACE: Final = 10
"""Seconds until a container that may never have served is killed."""


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
        network_labels: pulumi.Input[Any] | None,
    ) -> None:
        """``container`` is that of any node on ``host``; ``hosts`` are all hosts of ``stack``.

        Without ``network_labels``, containers join an existing network. ``provider`` is the
        program's own provider, if it has one.
        """
        self.hooks = clearing(host, hosts)
        name = child_name(stack, host.name)
        certificates = host.cert_path and str(Path(host.cert_path).expanduser())
        self.provider = provider or docker.Provider(
            name, host=address_of(host), cert_path=certificates, opts=opts()
        )
        self.network: pulumi.Input[str] = container.network
        if network_labels is not None:
            self.network = docker.Network(
                name,
                name=container.network,
                driver="bridge",
                labels=network_labels,
                opts=opts(provider=self.provider, hooks=self.hooks),
            ).name
        self.image = docker.RemoteImage(
            name, name=container.image, keep_locally=True, opts=opts(provider=self.provider)
        )


def labelled(values: Mapping[str, str]) -> Any:
    """``values`` as the `labels` input of the provider's resources."""
    return [{"label": key, "value": value} for key, value in sorted(values.items())]


def clearing(host: DockerHost, hosts: Sequence[DockerHost]) -> pulumi.ResourceHookBinding:
    """A hook that removes a leftover container or network of ``host`` before Pulumi creates it.

    At that time Pulumi's state has no object of that name. If the engine has one of this
    deployment, an interrupted run has left it or a failed change has put it back. Data is in a
    named volume.
    Objects of other deployments stay. Raises EarshotError if the container runs while another node
    on the stack's ``hosts`` is down.
    """

    def clear(args: pulumi.ResourceHookArgs) -> None:
        inputs = args.new_inputs or {}
        object_labels = {label["label"]: label["value"] for label in inputs["labels"]}
        deployment = str(object_labels[labels.DEPLOYMENT])
        if args.type.endswith(":Network"):
            is_removed = _remove_network(host, inputs["name"], deployment)
        else:
            is_removed = _remove_container(host, hosts, inputs["name"], deployment)
        if is_removed:
            pulumi.log.info(f"removed {inputs['name']}, which was not in Pulumi's state")

    return pulumi.ResourceHookBinding(before_create=[clear])


def _remove_container(
    host: DockerHost, hosts: Sequence[DockerHost], name: str, deployment: str
) -> bool:
    with Engines() as engines:
        api = engines.of(host).api
        container = engines.inspect(f"Docker host {host.name}", host, name)
        own_labels = container["Config"]["Labels"] or {} if container else {}
        if not container or own_labels.get(labels.DEPLOYMENT) != deployment:
            return False
        if is_up(container):
            rolling_restart.check_others(engines, hosts, name, own_labels)
        api.stop(
            container["Id"],
            timeout=rolling_restart.GRACE if labels.PUT_BACK in own_labels else UNSERVED_GRACE,
        )
        api.remove_container(container["Id"], force=True, v=True)
    return True


def _remove_network(host: DockerHost, name: str, deployment: str) -> bool:
    with connect(host) as client:
        for network in client.networks.list(names=[name]):
            network_labels = (network.attrs or {}).get("Labels") or {}
            if network.name == name and network_labels.get(labels.DEPLOYMENT) == deployment:
                network.remove()
                return True
    return False
