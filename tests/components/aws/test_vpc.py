"""A network through the package's host: what is registered, what comes back, what is refused."""

from typing import Any

import pulumi
import pytest
from earshot_pulumi.aws.vpc import AwsNetwork
from pulumi.runtime import mocks

from tests.components.aws.registered import SUBNET, VPC, Answers
from tests.components.constructed import constructed, given_later
from tests.components.engine_double import Engine
from tests.config.aws_documents import ZONES

NETWORK = "earshot:index:AwsNetwork"
NAT = "aws:ec2/natGateway:NatGateway"
BUCKET = "aws:s3/bucket:Bucket"


def test_a_network_is_made_below_the_component() -> None:
    engine, outputs = constructed("AwsNetwork", {"zones": ZONES[:2]})
    whole, inner = engine.one(NETWORK), engine.one("earshot:aws:Network")
    assert whole.inputs["zones"] == ZONES[:2]
    assert inner.is_below(whole)
    kinds = {resource.type.partition(":")[0] for resource in engine.seen}
    assert kinds - {"pulumi"} == {"earshot", "aws"}, "nothing dynamic"
    resources = [it for it in engine.seen if it.type.startswith("aws:")]
    assert resources and all(it.is_below(inner) and it.request.custom for it in resources)
    vpc = engine.one(VPC)
    assert vpc.inputs["enableDnsSupport"] and vpc.inputs["enableDnsHostnames"]
    assert vpc.inputs["cidrBlock"] == "10.0.0.0/16"
    assert vpc.request.protect
    assert len(engine.of(NAT)) == 1 and not engine.of(BUCKET)
    assert outputs == {
        "vpcId": "id of mine",
        "publicSubnets": {zone: f"id of mine-public-{zone[-1]}" for zone in ZONES[:2]},
        "privateSubnets": {zone: f"id of mine-private-{zone[-1]}" for zone in ZONES[:2]},
    }


def test_every_input_counts() -> None:
    inputs = {
        "zones": ZONES,
        "cidr": "10.9.0.0/20",
        "nat": "per-zone",
        "flowLogs": True,
        "deletionProtection": False,
    }
    engine, _ = constructed("AwsNetwork", inputs)
    assert engine.one(VPC).inputs["cidrBlock"] == "10.9.0.0/20"
    assert not engine.one(VPC).request.protect
    assert {item.inputs["availabilityZone"] for item in engine.of(SUBNET).values()} == set(ZONES)
    assert len(engine.of(NAT)) == 3
    assert engine.one(BUCKET).inputs["forceDestroy"]


@pytest.mark.parametrize("zones", [ZONES, given_later(ZONES)], ids=["known", "of a data source"])
def test_zones_known_or_of_a_data_source_make_the_same_network(zones: Any) -> None:
    urns = []
    for answers in (Answers(), Answers(preview=True)):
        engine, outputs = constructed("AwsNetwork", {"zones": zones, "flowLogs": True}, answers)
        urns.append(sorted(resource.urn for resource in engine.seen))
        assert answers.preview or outputs["privateSubnets"].keys() == set(ZONES)
        assert not answers.preview or outputs == {}, "a preview knows nothing of a new network"
    plain, _ = constructed("AwsNetwork", {"zones": ZONES, "flowLogs": True})
    assert urns == [sorted(resource.urn for resource in plain.seen)] * 2


def test_a_preview_without_the_zones_shows_the_component_alone() -> None:
    engine, outputs = constructed(
        "AwsNetwork", {"zones": given_later(None, known=False)}, Answers(preview=True)
    )
    assert engine.of(NETWORK) and not engine.of("earshot:aws:Network")
    assert outputs == {}


@pytest.mark.parametrize(
    ("inputs", "said"),
    [
        ({"zones": ["eu-central-1a"]}, "zones: zones eu-central-1a: found 1"),
        ({"zones": ["here", "there"]}, "zones: zone 'here': is not the name of a zone"),
        ({"zones": ZONES, "cidr": "10.0.0.0/8"}, "cidr: VPC range '10.0.0.0/8'"),
        ({"zones": ZONES, "nat": "two"}, "nat: found 'two'; allowed: none, one or per-zone"),
        ({"zones": ["x"], "cidr": "y", "flow_logs": 5}, "AwsNetwork mine:\n  - zones: zone 'x'"),
        ({"zones": ZONES, "flow_logs": 5}, "flow_logs: found 5; allowed: true or false"),
        ({}, "zones: is missing"),
        ({"zones": ZONES, "flow_log": True}, "flow_log: is no key that earshot knows"),
    ],
)
def test_what_cannot_be_is_told_in_words(inputs: dict[str, Any], said: str) -> None:
    mocks.set_mocks(answers := Answers(), monitor=Engine(answers))
    with pytest.raises(pulumi.RunError) as caught:
        AwsNetwork("mine", inputs)  # type: ignore[arg-type]
    assert str(caught.value).removeprefix("AwsNetwork mine: ").startswith(said)
