"""Removing what an interrupted run has made, and no state knows, before it is made again."""

from collections.abc import Sequence
from typing import Final

import pulumi

from earshot.config.docker import DockerHost
from earshot.engine import connect
from earshot_pulumi.docker import in_turn, labels
from earshot_pulumi.docker.container_address import Engines, is_up

GRACE: Final = 10
"""Seconds for a container that may never have served."""


def clearing(host: DockerHost, hosts: Sequence[DockerHost]) -> pulumi.ResourceHookBinding:
    """A hook that removes a container or the network of ``host`` before Pulumi makes it.

    Pulumi's state has none of that name then. If the engine has one of this deployment, an
    interrupted run has left it, or a change that failed has put it back; its data is in a named
    volume. Those of others are left alone, and so is one that runs while another of the stack's
    ``hosts`` has one that does not.
    """

    def clear(args: pulumi.ResourceHookArgs) -> None:
        inputs = args.new_inputs or {}
        own = {item["label"]: item["value"] for item in inputs["labels"]}
        deployment = str(own[labels.DEPLOYMENT])
        if args.type.endswith(":Network"):
            removed = _remove_network(host, inputs["name"], deployment)
        else:
            removed = _remove_container(host, hosts, inputs["name"], deployment)
        if removed:
            pulumi.log.info(f"removed {inputs['name']}, of which Pulumi's state knew nothing")

    return pulumi.ResourceHookBinding(before_create=[clear])


def _remove_container(
    host: DockerHost, hosts: Sequence[DockerHost], name: str, deployment: str
) -> bool:
    with Engines() as engines:
        api = engines.of(host).api
        found = engines.inspect(f"Docker host {host.name}", host, name)
        own = found["Config"]["Labels"] or {} if found else {}
        if not found or own.get(labels.DEPLOYMENT) != deployment:
            return False
        if is_up(found):
            in_turn.check_others(engines, hosts, name, own)
        api.stop(found["Id"], timeout=in_turn.GRACE if labels.PUT_BACK in own else GRACE)
        api.remove_container(found["Id"], force=True, v=True)
    return True


def _remove_network(host: DockerHost, name: str, deployment: str) -> bool:
    with connect(host) as client:
        for network in client.networks.list(names=[name]):
            found = (network.attrs or {}).get("Labels") or {}
            if network.name == name and found.get(labels.DEPLOYMENT) == deployment:
                network.remove()
                return True
    return False
