"""The pack on the gate of instances: what the stack declares, and what stops it."""

from typing import Any

import pytest
from earshot_pulumi.gate import GATE_TYPE

from earshot.config.aws import AwsSpec
from earshot.facts.cloud import Cloud
from earshot.placement.aws import AwsPlan, node_user_data, plan_aws
from earshot.sources.stack_resources import INSTANCE
from tests.config.aws_documents import OWN_ZONE, TWO_LISTENERS, read_aws
from tests.placement.test_aws import given
from tests.policies.calls import UNKNOWN, Pack, headline

OWN_ID = "5L6g3nShT-eMCtK-X86swQ"
SILENT_RESOLVERS = {"resolvers": {"external": ["127.0.0.1:1"]}, "timeout": 0.05}
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


def checked(made: AwsPlan) -> dict[str, list[str]]:
    return Pack(SILENT_RESOLVERS).analyze(GATE_TYPE, gate(made))


def made(spec: AwsSpec, **changed: Any) -> AwsPlan:
    return plan_aws(spec, given(spec), **changed)


@pytest.mark.parametrize("settings", [{}, TWO_LISTENERS, {**TWO_LISTENERS, **OWN_ZONE}])
def test_what_is_computed_passes(settings: dict[str, Any]) -> None:
    found = checked(made(read_aws(**settings)))
    # a plan without `security` does not show the certificates of listeners with TLS
    certificates = found.pop("not-known-yet", [])
    assert all("[KL010]" in headline(text) for text in certificates)
    assert list(found) == ["advice"] and len(certificates) == bool(settings)
    assert all("are taken on their declarations" in text for text in found["advice"])
    assert len(found["advice"]) <= 3, "one for each listener and scope"


def test_a_name_not_known_yet_is_reported_as_that_alone() -> None:
    found = checked(plan_aws(read_aws(**TWO_LISTENERS)))
    assert list(found) == ["not-known-yet"]
    assert (
        "brokers 1 to 3, listener EXTERNAL (scope external): 3 findings that are alike [KL011]\n"
        "  broker 1: its host is not known yet: the Elastic IP of broker-1\n"
        "  broker 2: its host is not known yet: the Elastic IP of broker-2\n"
        "  broker 3: its host is not known yet: the Elastic IP of broker-3\n"
        "  expected: a name that resolves, checked again with the value\n"
        "  fix: nothing yet: the update checks it\n"
        "  source: https://kafka.apache.org/documentation/#brokerconfigs_advertised.listeners"
    ) in found["not-known-yet"]


@pytest.mark.parametrize("settings", [{}, TWO_LISTENERS, {**TWO_LISTENERS, **OWN_ZONE}])
def test_an_instance_boots_with_what_was_checked_and_with_nothing_else(
    settings: dict[str, Any],
) -> None:
    spec = read_aws(**settings)
    planned, pack, another = made(spec), Pack(SILENT_RESOLVERS), Pack(SILENT_RESOLVERS)
    for item in (pack, another):
        item.analyze(GATE_TYPE, gate(planned), name="mine")
    where = {"parents": f"{GATE_TYPE}$", "parent": f"urn:pulumi:s::p::{GATE_TYPE}::mine"}
    for id in spec.node_ids:
        text = node_user_data(planned, spec, "mine", id, OWN_ID, "vol-0123456789abcdef0", "/p")
        for name, data in {"same": text, "unknown": UNKNOWN}.items():
            assert pack.analyze(INSTANCE, {"userData": data}, name=f"{name}-{id}", **where) == {}
        other = text.replace("10-0-0-1", "10-0-0-2").replace("broker-", "borker-")
        found = another.analyze(INSTANCE, {"userData": other}, name=f"other-{id}", **where)
        assert set(found) == {"as-approved"}
        (said,) = found["as-approved"]
        assert said.startswith(f"node {id}: /etc/kafka/server.properties has advertised.listeners=")


def test_a_port_closed_to_all_or_open_to_the_world_is_stopped() -> None:
    document = gate(made(read_aws(brokers=1, **TWO_LISTENERS)))
    rules = document["cloud"]["instances"]["1"]["ingress"]
    external = next(rule for rule in rules if rule["fromPort"] == 9092)
    external["cidrIpv4"] = "0.0.0.0/0"
    assert headline(Pack(SILENT_RESOLVERS).analyze(GATE_TYPE, document)["kl007"][0]) == (
        "broker 1, listener EXTERNAL: port 9092 is open to more than its clients: 9092 from "
        "0.0.0.0/0 [KL007]"
    )
    rules.remove(external)
    assert headline(Pack(SILENT_RESOLVERS).analyze(GATE_TYPE, document)["kl007"][0]) == (
        "broker 1, listener EXTERNAL: no security group opens port 9092 to 203.0.113.0/24 [KL007]"
    )
