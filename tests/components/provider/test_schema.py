"""The schema of the package, from which Pulumi generates SDKs in other languages."""

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import earshot_pulumi.package
import pytest
import yaml
from earshot_pulumi.provider import registry
from earshot_pulumi.provider.resource import PACKAGE

from earshot import __version__
from toolchain.paths import ROOT

ABOUT = Path(earshot_pulumi.package.__file__).with_name("PulumiPlugin.yaml")


@pytest.fixture(scope="module")
def schema() -> dict[str, Any]:
    return dict(json.loads(registry.package().schema or ""))


def described(schema: dict[str, Any]) -> Iterator[tuple[str, str]]:
    """Each resource, type, input and output with its description."""
    for token, definition in (schema["resources"] | schema["types"]).items():
        yield token, definition.get("description", "")
        for key in ("inputProperties", "properties"):
            for name, prop in definition.get(key, {}).items():
                yield f"{token}.{name}", prop.get("description", "")


def test_the_folder_says_the_same_as_the_host(schema: dict[str, Any]) -> None:
    about = yaml.safe_load(ABOUT.read_text())
    assert (about["name"], about["version"]) == (PACKAGE, __version__)
    assert (schema["name"], schema["version"]) == (PACKAGE, __version__)


def test_everything_is_described_in_paragraphs_without_wrapped_lines(
    schema: dict[str, Any],
) -> None:
    descriptions = dict(described(schema))
    assert descriptions and [name for name, text in descriptions.items() if not text] == []
    wrapped = re.compile(r"(?<!\n)\n(?!\n)")
    assert [name for name, text in descriptions.items() if wrapped.search(text)] == []
    assert ".\n\nAll outputs wait" in descriptions["earshot:index:Listeners"]
    assert schema["license"] and schema["description"]


def test_names_suit_the_generators_of_sdks(schema: dict[str, Any]) -> None:
    text = json.dumps(schema)
    assert '"earshot:index:Listener"' in text and '"#/types/earshot:index:Listener"' in text
    assert 'Args"' not in text, "the generators append it"
    languages = schema["language"]
    assert languages["python"]["packageName"] == "pulumi_earshot"
    assert languages["nodejs"]["packageName"] == "@pulumi/earshot"
    assert schema["resources"]["earshot:index:Listeners"]["isComponent"] is True
    assert schema["resources"]["earshot:index:Proof"]["isComponent"] is False


def test_a_network_asks_for_zones_alone(schema: dict[str, Any]) -> None:
    resource = schema["resources"]["earshot:index:AwsNetwork"]
    assert resource["isComponent"]
    assert resource["requiredInputs"] == ["zones"]
    assert {name: prop["type"] for name, prop in resource["inputProperties"].items()} == {
        "zones": "array",
        "cidr": "string",
        "nat": "string",
        "flowLogs": "boolean",
        "deletionProtection": "boolean",
    }
    assert resource["required"] == ["privateSubnets", "publicSubnets", "vpcId"]
    assert resource["properties"]["publicSubnets"]["additionalProperties"]["type"] == "string"


def test_a_cluster_asks_for_a_place_and_for_kafka(schema: dict[str, Any]) -> None:
    resource = schema["resources"]["earshot:index:AwsCluster"]
    assert resource["requiredInputs"] == ["archive", "region", "vpc"]
    assert resource["inputProperties"]["vpc"]["$ref"] == "#/types/earshot:index:Vpc"
    assert resource["inputProperties"]["brokers"]["type"] == "integer"
    assert resource["inputProperties"]["brokers"]["description"].endswith(" Default: 3.")
    listener = schema["types"]["earshot:index:ClusterListener"]
    assert listener["required"] == ["name", "port", "scopes"]
    assert {"bootstrap", "contract", "instances", "vpcId"} <= set(resource["required"])
    assert not [prop for prop in resource["inputProperties"].values() if prop.get("plain")]


def test_an_endpoint_takes_outputs_of_another_stack(schema: dict[str, Any]) -> None:
    resource = schema["resources"]["earshot:index:AwsEndpoint"]
    assert resource["requiredInputs"] == ["contract", "serviceName", "subnets", "vpcId"]
    assert {"bootstrap", "contract", "endpointId", "state"} <= set(resource["required"])
    assert not [prop for prop in resource["inputProperties"].values() if prop.get("plain")]
    service = schema["resources"]["earshot:index:AwsCluster"]["properties"]["endpointService"]
    assert service["additionalProperties"]["$ref"] == "pulumi.json#/Any"


def test_a_waiver_is_a_reason_or_a_map_with_its_last_day(schema: dict[str, Any]) -> None:
    waived = schema["types"]["earshot:index:Name"]["properties"]["waived"]
    assert waived["additionalProperties"]["$ref"] == "pulumi.json#/Any"
    assert "`until`" in waived["description"]


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
    assert {*registry.COMPONENTS, *registry.PUBLIC} == SCANS.keys() | WITHOUT_SECRETS
    for file, _, test in (scan.partition("::") for scan in SCANS.values()):
        assert f"def {test}(" in (ROOT / "tests" / "e2e" / file).read_text()
