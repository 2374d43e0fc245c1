"""The package's schema, which software development kits in other languages are made from."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import earshot_pulumi.package
import pytest
import yaml
from earshot_pulumi.provider import parts
from earshot_pulumi.provider.resource import PACKAGE

from earshot import __version__
from tests.components.constructed import offered
from toolchain.paths import ROOT

ABOUT = Path(earshot_pulumi.package.__file__).with_name("PulumiPlugin.yaml")


@pytest.fixture(scope="module")
def schema() -> dict[str, Any]:
    text = offered().schema
    assert text is not None
    return dict(json.loads(text))


def described(schema: dict[str, Any]) -> Iterator[tuple[str, str]]:
    """Everything that a user meets by name, with what is said of it."""
    for token, item in (schema["resources"] | schema["types"]).items():
        yield token, item.get("description", "")
        for key in ("inputProperties", "properties"):
            for name, found in item.get(key, {}).items():
                yield f"{token}.{name}", found.get("description", "")


def test_the_folder_says_the_same_as_the_host(schema: dict[str, Any]) -> None:
    about = yaml.safe_load(ABOUT.read_text())
    assert (about["name"], about["version"]) == (PACKAGE, __version__)
    assert (schema["name"], schema["version"]) == (PACKAGE, __version__)


def test_everything_is_described(schema: dict[str, Any]) -> None:
    found = dict(described(schema))
    assert found and [name for name, text in found.items() if not text] == []


def test_a_network_asks_for_zones_alone(schema: dict[str, Any]) -> None:
    found = schema["resources"]["earshot:index:AwsNetwork"]
    assert found["isComponent"]
    assert found["requiredInputs"] == ["zones"]
    assert {name: item["type"] for name, item in found["inputProperties"].items()} == {
        "zones": "array",
        "cidr": "string",
        "nat": "string",
        "flowLogs": "boolean",
        "deletionProtection": "boolean",
    }
    assert found["required"] == ["privateSubnets", "publicSubnets", "vpcId"]
    assert found["properties"]["publicSubnets"]["additionalProperties"]["type"] == "string"


def test_a_cluster_asks_for_a_place_and_for_kafka(schema: dict[str, Any]) -> None:
    found = schema["resources"]["earshot:index:AwsCluster"]
    assert found["requiredInputs"] == ["archive", "region", "vpc"]
    assert found["inputProperties"]["vpc"]["$ref"] == "#/types/earshot:index:Vpc"
    assert found["inputProperties"]["brokers"]["type"] == "integer"
    listener = schema["types"]["earshot:index:ClusterListener"]
    assert listener["required"] == ["name", "port", "scopes"]
    assert {"bootstrap", "contract", "instances", "vpcId"} <= set(found["required"])
    assert not [it for it in found["inputProperties"].values() if it.get("plain")]


def test_an_endpoint_takes_outputs_of_another_stack(schema: dict[str, Any]) -> None:
    found = schema["resources"]["earshot:index:AwsEndpoint"]
    assert found["requiredInputs"] == ["contract", "serviceName", "subnets", "vpcId"]
    assert {"bootstrap", "contract", "endpointId", "state"} <= set(found["required"])
    assert not [it for it in found["inputProperties"].values() if it.get("plain")]
    service = schema["resources"]["earshot:index:AwsCluster"]["properties"]["endpointService"]
    assert service["additionalProperties"]["$ref"] == "pulumi.json#/Any"


def test_no_description_breaks_within(schema: dict[str, Any]) -> None:
    assert [name for name, text in described(schema) if "\n" in text] == []


SCANS = {
    "AwsCluster": "test_aws_secure.py::"
    "test_one_instance_is_replaced_for_users_and_none_for_another_checkout",
    "DockerCluster": "test_docker_secure.py::test_no_secret_is_anywhere_but_in_its_own_file",
    "DockerHosts": "test_box_docker_hosts.py::test_hosts_and_a_cluster_in_one_update",
    "Listeners": "test_component_secrets.py::test_secret_inputs_of_listeners_are_nowhere_in_clear",
    "LocalCluster": "test_local_secure.py::test_no_secret_is_anywhere_but_in_its_own_file",
    "Proof": "test_module.py::test_own_brokers_are_checked_and_proved_without_a_pack",
}
"""By resource: the test with real parts that looks for its secrets in the state."""
WITHOUT_SECRETS = {"AwsEndpoint", "AwsNetwork"}


def test_the_secrets_of_every_resource_are_looked_for() -> None:
    assert {*parts.COMPONENTS, *parts.PUBLIC} == SCANS.keys() | WITHOUT_SECRETS
    for file, _, test in (it.partition("::") for it in SCANS.values()):
        assert f"def {test}(" in (ROOT / "tests" / "e2e" / file).read_text()
