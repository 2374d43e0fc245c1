"""The schema of the double, for programs without an SDK of their own, such as those in YAML.

Names of inputs and outputs are those of the official SDK for Python; every type is Any.
"""

import json
from importlib.metadata import version
from typing import Any

import pulumi_docker as docker
from pulumi import _types

RESOURCES: dict[type, type] = {
    docker.Container: docker.ContainerArgs,
    docker.Network: docker.NetworkArgs,
    docker.RemoteImage: docker.RemoteImageArgs,
    docker.Volume: docker.VolumeArgs,
}
ANY = {"$ref": "pulumi.json#/Any"}


def schema() -> str:
    property_schemas: dict[str, Any] = {}
    for resource, args in RESOURCES.items():
        inputs = _types.input_type_py_to_pulumi_names(args).values()
        property_schemas[resource.pulumi_type] = {  # type: ignore[attr-defined]
            "inputProperties": dict.fromkeys(inputs, ANY),
            "properties": dict.fromkeys(_types.resource_types(resource), ANY),
        }
    about = {"name": "docker", "version": version("pulumi-docker"), "resources": property_schemas}
    return json.dumps(about)
