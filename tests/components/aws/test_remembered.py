"""What is known of a stack's nodes from its state, and where its brokers stay."""

from typing import Any

import pytest
from botocore.exceptions import ClientError
from earshot_pulumi.aws.remembered import Remembered, check_attached, placed

from earshot.errors import EarshotError
from tests.config.aws_documents import INTERNAL, OFFICE, TWO_LISTENERS, ZONES, read_aws

URN = "urn:pulumi:mine::p::earshot:aws:AwsCluster$"
READY = "earshot:index:AwsReadiness"
INSTANCE = "aws:ec2/instance:Instance"
ASSOCIATION = "aws:ec2/eipAssociation:EipAssociation"


def state(*items: tuple[str, str]) -> dict[str, Any]:
    return {f"{URN}{type}::mine-{name}": {"type": type, "outputs": {}} for type, name in items}


PRIVATE = state((INSTANCE, "broker-1"), (INSTANCE, "validator"))
PUBLIC = {**PRIVATE, **state((ASSOCIATION, "broker-1"))}


def test_brokers_behind_a_balancer_stay_private() -> None:
    external = {"name": "EXTERNAL", "port": 9094, "scopes": ["external"], "protocol": "SSL"}
    address = {"strategy": "port", "base_port": 9100}
    spec = read_aws(
        listeners=[INTERNAL, {**external, "address": address}], clients=OFFICE, expose="nlb"
    )
    assert not placed(spec, Remembered(place="private")).public


@pytest.mark.parametrize(
    ("resources", "expected"),
    [
        ({}, Remembered()),
        (state((INSTANCE, "validator"), (ASSOCIATION, "broker-1")), Remembered()),
        (PRIVATE, Remembered(place="private")),
        (PUBLIC, Remembered(place="public")),
        (
            {**PUBLIC, **state((READY, "broker-1"), (READY, "controller-10001"))},
            Remembered(nodes=frozenset({"broker-1", "controller-10001"}), place="public"),
        ),
        (state((READY, "broker-1"), (READY, "cluster")), Remembered(True, frozenset({"broker-1"}))),
    ],
)
def test_the_state_tells_nodes_and_their_place(
    resources: dict[str, Any], expected: Remembered
) -> None:
    assert Remembered.read("mine", resources) == expected


def test_a_new_cluster_is_where_its_listeners_or_its_file_have_it() -> None:
    for settings, public in (({}, False), (TWO_LISTENERS, True), ({"place": "public"}, True)):
        spec = read_aws(**settings)
        assert placed(spec, Remembered()) is spec and spec.public is public


def test_brokers_stay_where_they_are_when_the_last_external_listener_goes() -> None:
    spec = placed(read_aws(), Remembered(place="public"))
    assert spec.place == "public" and spec.is_public(1) and not spec.external
    assert spec.elastic_ips == spec.brokers + spec.gateways, "their way out, too"
    assert placed(read_aws(**TWO_LISTENERS), Remembered(place="public")).public
    assert not placed(read_aws(), Remembered(place="private")).public


@pytest.mark.parametrize(
    ("settings", "known", "said"),
    [
        (TWO_LISTENERS, "private", "listeners for scope external: these take `place: public`, and"),
        ({"place": "public"}, "private", "place: public: the brokers are in private subnets"),
        ({"place": "private"}, "public", "place: private: the brokers are in public subnets"),
    ],
)
def test_another_place_is_refused_with_the_way_out(
    settings: dict[str, Any], known: Any, said: str
) -> None:
    with pytest.raises(EarshotError) as caught:
        placed(read_aws(**settings), Remembered(place=known))
    text = str(caught.value)
    assert f"nothing was touched: {said}" in text and f"allowed: `place: {known}`" in text
    assert "`pulumi destroy`, then `pulumi up` with `place: " in text


def test_a_vpc_that_is_there_must_still_have_the_subnets() -> None:
    vpc = {"id": "vpc-0123abcd", "zones": ZONES[:2], "private_subnets": {}}
    vpc["private_subnets"] = {zone: f"subnet-0000000{zone[-1]}" for zone in ZONES[:2]}
    with pytest.raises(EarshotError, match="public_subnets: is missing"):
        placed(read_aws(vpc=vpc), Remembered(place="public"))


INTERFACE = "aws:ec2/networkInterface:NetworkInterface"
ARN = "arn:aws:ec2:us-west-2:123456789012"


def remembered_props(**instances: str) -> dict[str, Any]:
    """Nodes, each with an interface, and the instances of a state."""
    nodes = ("broker-1", "broker-2")
    found = state(*((INTERFACE, name) for name in nodes), (INSTANCE, "validator"))
    found |= state(*((INSTANCE, name.replace("_", "-")) for name in instances))
    ids = {name.replace("_", "-"): id for name, id in instances.items()} | {"validator": "i-9"}
    for urn, item in found.items():
        name = urn.rpartition("::mine-")[2]
        kind = "network-interface/eni-" if item["type"] == INTERFACE else "instance/"
        item["outputs"] = {"arn": f"{ARN}:{kind}{name if kind.endswith('eni-') else ids[name]}"}
    return found


class Interfaces:
    """EC2, with an instance at each interface of a node (None: at none), or an error."""

    def __init__(self, first: str | None, second: str | None, error: str = "") -> None:
        self._at = {"eni-broker-1": first, "eni-broker-2": second}
        self._error = error

    def describe_network_interfaces(self, Filters: Any) -> Any:
        if self._error:
            raise ClientError({"Error": {"Code": self._error}}, "DescribeNetworkInterfaces")
        assert Filters == [{"Name": "network-interface-id", "Values": list(self._at)}]
        found = [
            {"NetworkInterfaceId": id} | ({"Attachment": {"InstanceId": at}} if at else {})
            for id, at in self._at.items()
        ]
        return {"NetworkInterfaces": found}


@pytest.mark.parametrize("second", ["i-2", None])
def test_nodes_on_the_instances_of_the_state_are_as_it_says(second: str | None) -> None:
    check_attached(
        "mine", remembered_props(broker_1="i-1", broker_2="i-2"), Interfaces("i-1", second)
    )
    check_attached("mine", {}, Interfaces("i-7", None))


@pytest.mark.parametrize(
    "known", [remembered_props(broker_1="i-1", broker_2="i-2"), remembered_props(broker_1="i-1")]
)
def test_a_state_that_is_older_than_its_nodes_is_refused(known: dict[str, Any]) -> None:
    with pytest.raises(EarshotError) as caught:
        check_attached("mine", known, Interfaces("i-1", "i-3"))
    assert caught.value.object.startswith("nothing was touched")
    assert caught.value.observed.endswith("does not have: broker-2 on i-3")
    assert caught.value.remedy is not None and "pulumi stack import" in caught.value.remedy


def test_unreadable_interfaces_end_the_update() -> None:
    with pytest.raises(EarshotError, match="ec2:DescribeNetworkInterfaces"):
        check_attached(
            "mine",
            remembered_props(broker_1="i-1"),
            Interfaces(None, None, "UnauthorizedOperation"),
        )
