"""The AWS double's inputs and outputs, against the types of the official package, and what it
refuses."""

import asyncio
import inspect
import json
import uuid
from pathlib import Path
from typing import Any

import pytest
from pulumi.provider.experimental import provider as protocol
from pulumi.runtime.rpc import UNKNOWN

from tests.doubles.aws import official
from tests.doubles.aws.cloud import Cloud
from tests.doubles.aws.install import VERSION, install_aws_double
from tests.doubles.aws.lookups import LOOKUPS
from tests.doubles.aws.provider import KINDS, SETTINGS, AwsDouble
from tests.doubles.plugin.kind import ProviderError, not_implemented
from tests.doubles.plugin.values import plain, wrapped

INSTANCE = KINDS["aws:ec2/instance:Instance"]


@pytest.mark.parametrize("token", KINDS)
def test_every_input_is_one_of_the_official_plugins(token: str) -> None:
    assert list(not_implemented(KINDS[token].shape, official.inputs(token))) == []


@pytest.mark.parametrize("token", KINDS)
def test_every_output_is_one_of_the_official_plugins(token: str) -> None:
    kind = KINDS[token]
    assert kind.outputs <= official.outputs(token).keys() - kind.shape.keys()


@pytest.mark.parametrize("token", KINDS)
def test_what_is_said_of_inputs_is_of_known_inputs(token: str) -> None:
    kind = KINDS[token]
    for names in (kind.defaults.keys(), kind.in_place, kind.unordered, kind.computed_later):
        assert names <= kind.shape.keys()
    assert kind.name_input is None or kind.name_input in kind.shape
    assert ("tags" in kind.shape) == ("tagsAll" in kind.outputs)


@pytest.mark.parametrize("token", KINDS)
def test_tokens_are_those_of_the_official_classes(token: str) -> None:
    assert f"'{token}'" in inspect.getsource(official.resource(token))


@pytest.mark.parametrize("token", LOOKUPS)
def test_functions_take_and_give_what_the_official_ones_do(token: str) -> None:
    lookup = LOOKUPS[token]
    assert lookup.shape.keys() <= official.arguments(token).keys()
    assert lookup.outputs <= official.results(token).keys()


def test_settings_are_those_of_the_official_provider() -> None:
    assert SETTINGS - {"version"} <= official.settings().keys()


def test_a_made_up_name_would_be_noticed() -> None:
    token = "aws:ec2/instance:Instance"
    made_up = {"rootBlockDevice": {"volumeSizes": None}, "amis": None}
    assert list(not_implemented(made_up, official.inputs(token))) == [
        "rootBlockDevice.volumeSizes",
        "amis",
    ]
    assert "publicIp" not in official.inputs(token)


def test_the_version_is_the_packages_own(tmp_path: Path) -> None:
    import pulumi_aws

    about = json.loads((Path(pulumi_aws.__file__).parent / "pulumi-plugin.json").read_text())
    assert about["version"] == VERSION
    folder = install_aws_double(tmp_path)
    assert folder == tmp_path / "plugins" / f"resource-aws-v{VERSION}"
    assert "AwsDouble()" in (folder / "__main__.py").read_text()


def test_inputs_that_are_not_implemented_are_named_by_their_path() -> None:
    inputs = {
        "ami": "ami-1",
        "tenancy": "host",
        "rootBlockDevice": {"volumeSize": 8, "volumeInitializationRate": 100},
        "primaryNetworkInterface": UNKNOWN,
    }
    assert list(not_implemented(inputs, INSTANCE.shape)) == [
        "tenancy",
        "rootBlockDevice.volumeInitializationRate",
    ]


@pytest.mark.parametrize(("token", "inputs", "refused_inputs"), [
    ("aws:ec2/vpcEndpoint:VpcEndpoint", {"vpcEndpointType": "GatewayLoadBalancer"},
     ["vpcEndpointType"]),
    ("aws:ec2/vpcEndpoint:VpcEndpoint", {"vpcEndpointType": "Gateway"}, []),
    ("aws:ec2/eip:Eip", {"domain": "standard"}, ["domain"]),
    ("aws:ec2/eip:Eip", {"domain": "vpc"}, []),
    ("aws:ec2/instance:Instance",
     {"primaryNetworkInterface": {}, "subnetId": "s", "vpcSecurityGroupIds": ["g"]},
     ["subnetId", "vpcSecurityGroupIds"]),
    ("aws:ec2/instance:Instance", {"subnetId": "s", "userData": "a"}, []),
])  # fmt: skip
def test_values_that_are_not_implemented_are_refused(
    token: str, inputs: dict[str, Any], refused_inputs: list[str]
) -> None:
    assert [name for name, _ in KINDS[token].objections(inputs)] == refused_inputs


def test_without_an_endpoint_nothing_is_called() -> None:
    with pytest.raises(ProviderError, match="no endpoint for ec2: this test double"):
        Cloud({"region": "us-west-2"}).client("ec2")
    with pytest.raises(ProviderError, match="no endpoint for iam"):
        Cloud({"region": "r", "endpoints": '[{"ec2": "http://127.0.0.1:1"}]'}).client("iam")
    with pytest.raises(ProviderError, match="no region is set: give aws:region"):
        Cloud({}).client("ec2")


def test_a_resource_may_name_a_region_of_its_own() -> None:
    cloud = Cloud({"region": "us-west-2", "endpoints": '[{"ec2": "http://127.0.0.1:1"}]'})
    assert cloud.client("ec2").meta.region_name == "us-west-2"
    assert cloud.client("ec2", {"region": "eu-west-1"}).meta.region_name == "eu-west-1"
    assert cloud.client("ec2") is cloud.client("ec2", {"region": "us-west-2"})
    assert cloud.arn("ec2", {"region": "cn-north-1"}, "1", "vpc/v") == (
        "arn:aws-cn:ec2:cn-north-1:1:vpc/v"
    )
    cloud.close()


def check_response(token: str, settings: dict[str, Any], **inputs: Any) -> protocol.CheckResponse:
    """The double's answer to the inputs of a new resource `x`."""
    double = AwsDouble()
    double.set_up({"region": "us-west-2", **settings})
    urn = f"urn:pulumi:stack::project::{token}::x"
    request = protocol.CheckRequest(urn, {}, wrapped(inputs), uuid.uuid4().bytes)
    return asyncio.run(double.check(request))


def inputs_of(response: protocol.CheckResponse) -> dict[str, Any]:
    assert response.inputs is not None
    return plain(response.inputs)


def test_checked_inputs_have_the_providers_tags_and_a_name() -> None:
    settings = {"defaultTags": '{"tags": {"owner": "me", "stage": "dev"}}'}
    inputs = inputs_of(check_response("aws:iam/role:Role", settings, tags={"stage": "prod"}))
    assert inputs["tags"] == {"stage": "prod"}
    assert inputs["tagsAll"] == {"owner": "me", "stage": "prod"}
    assert inputs["__defaults"] == ["name"]
    assert inputs["name"].startswith("x-") and len(inputs["name"]) == len("x-1234567")
    named_inputs = inputs_of(check_response("aws:iam/role:Role", {}, name="mine"))
    assert (named_inputs["name"], named_inputs["__defaults"], named_inputs["tagsAll"]) == (
        "mine",
        [],
        {},
    )


def test_tags_that_are_not_known_yet_make_all_tags_unknown() -> None:
    settings = {"defaultTags": '{"tags": {"owner": "me"}}'}
    inputs = inputs_of(check_response("aws:ec2/vpc:Vpc", settings, tags={"a": UNKNOWN}))
    assert inputs["tagsAll"] == UNKNOWN
    assert "name" not in inputs


def test_what_takes_no_tags_gets_none() -> None:
    inputs = inputs_of(
        check_response("aws:ec2/route:Route", {"defaultTags": '{"tags": {"a": "b"}}'})
    )
    assert inputs == {"__defaults": []}


def test_refused_inputs_are_said_with_the_reason() -> None:
    response = check_response(
        "aws:ec2/vpcEndpoint:VpcEndpoint", {}, vpcEndpointType="GatewayLoadBalancer", dnsOptions={}
    )
    assert [(failure.property, failure.reason) for failure in response.failures or []] == [
        (
            "dnsOptions",
            "the input dnsOptions is not implemented by this test double of the AWS provider",
        ),
        (
            "vpcEndpointType",
            "this test double of the AWS provider knows only Gateway and Interface",
        ),
    ]


def test_unknown_types_functions_and_settings_are_refused_by_name() -> None:
    double = AwsDouble()
    with pytest.raises(ProviderError, match="aws:alb/loadBalancer:LoadBalancer is not impl"):
        check_response("aws:alb/loadBalancer:LoadBalancer", {})
    with pytest.raises(ProviderError, match="aws:acm/getCertificate:getCertificate is not impl"):
        asyncio.run(
            double.invoke(protocol.InvokeRequest("aws:acm/getCertificate:getCertificate", {}))
        )
    invoke_response = asyncio.run(
        double.invoke(protocol.InvokeRequest("aws:ec2/getVpc:getVpc", wrapped({"state": "x"})))
    )
    assert [failure.property for failure in invoke_response.failures or []] == ["state"]
    request = protocol.CheckRequest("u", {}, wrapped({"region": "r", "profile": "p"}), b"")
    response = asyncio.run(double.check_config(request))
    assert [failure.property for failure in response.failures or []] == ["profile"]


def test_a_preview_creates_nothing() -> None:
    double = AwsDouble()  # it has no endpoint: any call of the cloud would fail
    urn = "urn:pulumi:stack::project::aws:ec2/vpc:Vpc::x"
    inputs = wrapped({"cidrBlock": "10.0.0.0/16"})
    create_response = asyncio.run(
        double.create(protocol.CreateRequest(urn, inputs, 0, preview=True))
    )
    assert (create_response.resource_id, create_response.properties) == (None, inputs)
    with pytest.raises(ProviderError, match="no region is set"):
        asyncio.run(double.create(protocol.CreateRequest(urn, inputs, 0, preview=False)))
