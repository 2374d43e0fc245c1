"""Removing what an interrupted run has made, and no state knows, before it is made again."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

import pulumi

from components.docker import labels
from earshot.config.docker import DockerHost
from earshot.engine import connect

GRACE: Final = 10


def clearing(host: DockerHost) -> pulumi.ResourceHookBinding:
    """A hook that removes a container or the network of ``host`` before Pulumi makes it.

    Pulumi's state has none of that name then. If the engine has one of this deployment, an
    interrupted run has left it; its data is in a named volume. Those of others are left alone.
    """

    def clear(args: pulumi.ResourceHookArgs) -> None:
        inputs = args.new_inputs or {}
        remove = _remove_network if args.type.endswith(":Network") else _remove_container
        if remove(host, inputs["name"], _deployment(inputs)):
            pulumi.log.info(f"removed {inputs['name']}, which an interrupted run had left")

    return pulumi.ResourceHookBinding(before_create=[clear])


def _deployment(inputs: Mapping[str, Any]) -> str:
    values = {item["label"]: item["value"] for item in inputs["labels"]}
    return str(values[labels.DEPLOYMENT])


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
            found = (network.attrs or {}).get("Labels") or {}
            if network.name == name and found.get(labels.DEPLOYMENT) == deployment:
                network.remove()
                return True
    return False
