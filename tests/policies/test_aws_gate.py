"""The pack on the gate of instances: what the stack declares, and what stops it."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from components.gate import GATE_TYPE
from earshot.aws.registered import INSTANCE
from earshot.names.aws import VpcDns
from earshot.placement.aws import AwsPlan, Provisioned, node_user_data, plan_aws
from earshot.rules.cloud import Cloud
from earshot.spec.aws import AwsSpec
from tests.placement.test_aws import given
from tests.policies.calls import UNKNOWN, Pack
from tests.spec.aws_documents import OWN_ZONE, TWO_LISTENERS, read_aws

NOBODY = {"resolvers": {"external": ["127.0.0.1:1"]}, "timeout": 0.2}
"""No resolver answers: the network of the tests has no part in what they find."""


def gate(made: AwsPlan) -> dict[str, Any]:
    cloud = Cloud(made.instances, made.clients, made.declared)
    return {
        "placement": "aws",
        "plan": made.plan.model_dump(mode="json"),
        "addresses": {str(id): list(own) for id, own in made.addresses.items()},
        "containers": {},
        "cloud": cloud.document(),
    }


def judged(made: AwsPlan) -> dict[str, list[str]]:
    return Pack(NOBODY).analyze(GATE_TYPE, gate(made))


def made(spec: AwsSpec, **changed: Any) -> AwsPlan:
    return plan_aws(spec, "mine", given(spec), **changed)


@pytest.mark.parametrize("settings", [{}, TWO_LISTENERS, {**TWO_LISTENERS, **OWN_ZONE}])
def test_what_is_computed_passes(settings: dict[str, Any]) -> None:
    found = judged(made(read_aws(**settings)))
    assert list(found) == ["advice"]
    assert all("is taken on its declaration" in text for text in found["advice"])


def test_a_name_not_known_yet_is_reported_as_that_alone() -> None:
    found = judged(plan_aws(read_aws(**TWO_LISTENERS), "mine"))
    assert list(found) == ["not-known-yet"]
    assert any("the Elastic IP of broker-2" in text for text in found["not-known-yet"])


def test_a_private_name_for_external_clients_is_stopped() -> None:
    listeners = [
        TWO_LISTENERS["listeners"][0],
        {
            **TWO_LISTENERS["listeners"][1],
            "advertised": {"1": "ip-10-0-0-10.eu-central-1.compute.internal"},
        },
    ]
    found = judged(made(read_aws(**{**TWO_LISTENERS, "listeners": listeners})))
    assert "broker 1, listener EXTERNAL (scope external)" in found["kl011"][0]


def test_a_public_name_without_the_vpcs_attribute_is_stopped() -> None:
    found = judged(made(read_aws(**TWO_LISTENERS), dns=VpcDns(support=True, hostnames=False)))
    assert any("listener EXTERNAL" in text for text in found["kl011"])


def test_a_public_name_without_an_elastic_ip_is_stopped() -> None:
    spec = read_aws(brokers=1, **TWO_LISTENERS)
    lent = {id: replace(item, public_address=None) for id, item in given(spec).items()}
    found = judged(plan_aws(spec, "mine", lent))
    assert "advertises ec2-198-51-100-10" in found["kl009"][0]


def test_own_names_without_a_public_record_are_stopped() -> None:
    spec = read_aws(brokers=1, **TWO_LISTENERS, **OWN_ZONE)
    (item,) = given(spec).values()
    other = Provisioned(item.private_name, item.private_address, "b.other.example", "198.51.100.9")
    documents = gate(plan_aws(spec, "mine", {1: other}))
    documents["cloud"]["declared"] = [
        entry for entry in documents["cloud"]["declared"] if entry["scope"] != "external"
    ]
    found = Pack(NOBODY).analyze(GATE_TYPE, documents)
    assert "b.other.example" in found["kl011"][0]


def test_two_brokers_on_one_name_are_stopped() -> None:
    spec = read_aws(brokers=2, **TWO_LISTENERS)
    twice = given(spec)
    found = judged(plan_aws(spec, "mine", {1: twice[1], 2: twice[1]}))
    assert "kl004" in found


@pytest.mark.parametrize("settings", [{}, TWO_LISTENERS, {**TWO_LISTENERS, **OWN_ZONE}])
def test_an_instance_boots_with_what_was_judged_and_with_nothing_else(
    settings: dict[str, Any],
) -> None:
    spec = read_aws(**settings)
    planned, pack, another = made(spec), Pack(NOBODY), Pack(NOBODY)
    for item in (pack, another):
        item.analyze(GATE_TYPE, gate(planned), name="mine")
    where = {"parents": f"{GATE_TYPE}$", "parent": f"urn:pulumi:s::p::{GATE_TYPE}::mine"}
    for id in spec.node_ids:
        text = node_user_data(planned, spec, id, "vol-0123456789abcdef0", "/p")
        for name, data in {"same": text, "unknown": UNKNOWN}.items():
            assert pack.analyze(INSTANCE, {"userData": data}, name=f"{name}-{id}", **where) == {}
        other = text.replace("10-0-0-1", "10-0-0-2").replace("broker-", "borker-")
        found = another.analyze(INSTANCE, {"userData": other}, name=f"other-{id}", **where)
        assert set(found) == {"as-judged"}
        (said,) = found["as-judged"]
        assert said.startswith(f"node {id}: /etc/kafka/server.properties has advertised.listeners=")


def test_a_port_open_to_nobody_or_to_the_world_is_stopped() -> None:
    document = gate(made(read_aws(brokers=1, **TWO_LISTENERS)))
    rules = document["cloud"]["instances"]["1"]["ingress"]
    external = next(rule for rule in rules if rule["fromPort"] == 9092)
    external["cidrIpv4"] = "0.0.0.0/0"
    assert "open to more" in Pack(NOBODY).analyze(GATE_TYPE, document)["kl007"][0]
    rules.remove(external)
    assert "no security group opens" in Pack(NOBODY).analyze(GATE_TYPE, document)["kl007"][0]
