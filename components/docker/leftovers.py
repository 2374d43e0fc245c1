"""What an interrupted run has made and no state knows of: in the way of making it again."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

import pulumi

from components.docker import labels
from earshot.engine import connect
from earshot.spec.docker import DockerHost

GRACE: Final = 10


def clearing(host: DockerHost) -> pulumi.ResourceHookBinding:
    """A hook for the containers and the network of ``host`` that clears the way for each.

    When Pulumi is about to make one, its state knows none of that name. If there is one of this
    very deployment all the same, an interrupted run has left it; its data is in a named volume.
    What is of others is left alone.
    """

    def clear(args: pulumi.ResourceHookArgs) -> None:
        inputs = args.new_inputs or {}
        remove = _remove_network if args.type.endswith(":Network") else _remove_container
        if remove(host, inputs["name"], _deployment(inputs)):
            pulumi.log.info(f"removed {inputs['name']}, which an interrupted run had left")

    return pulumi.ResourceHookBinding(before_create=[clear])


def _deployment(inputs: Mapping[str, Any]) -> str:
    own = {item["label"]: item["value"] for item in inputs["labels"]}
    return str(own[labels.DEPLOYMENT])


def _remove_container(host: DockerHost, name: str, deployment: str) -> bool:
    from docker.errors import NotFound

    with connect(host) as client:
        try:
            found = client.containers.get(name)
        except NotFound:
            return False
        if found.labels.get(labels.DEPLOYMENT) != deployment:
            return False
        found.stop(timeout=GRACE)
        found.remove(force=True, v=True)
    return True


def _remove_network(host: DockerHost, name: str, deployment: str) -> bool:
    with connect(host) as client:
        for network in client.networks.list(names=[name]):
            own = (network.attrs or {}).get("Labels") or {}
            if network.name == name and own.get(labels.DEPLOYMENT) == deployment:
                network.remove()
                return True
    return False
