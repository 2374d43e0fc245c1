"""What is known of a stack's nodes from its state, and where its brokers stay."""

from __future__ import annotations

from typing import Any

import pytest
from earshot_pulumi.aws.remembered import Remembered, placed

from earshot.errors import EarshotError
from tests.config.aws_documents import TWO_LISTENERS, ZONES, read_aws

URN = "urn:pulumi:mine::p::earshot:aws:AwsCluster$"
READY = "earshot:index:AwsReadiness"
INSTANCE = "aws:ec2/instance:Instance"
ASSOCIATION = "aws:ec2/eipAssociation:EipAssociation"


def state(*items: tuple[str, str]) -> dict[str, Any]:
    return {f"{URN}{type}::mine-{name}": {"type": type, "outputs": {}} for type, name in items}


PRIVATE = state((INSTANCE, "broker-1"), (INSTANCE, "validator"))
PUBLIC = {**PRIVATE, **state((ASSOCIATION, "broker-1"))}


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
