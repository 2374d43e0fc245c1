"""The pack on resources of types that no check reads: what may be a broker is named at the end."""

import base64
from typing import Any

import pytest
from earshot_policies.ungated import CONTAINER_TYPE
from earshot_pulumi.gate import PROVIDER_TYPE

from tests.policies.calls import UNKNOWN, Pack
from tests.policies.test_whole_program import resource
from tests.rules.container_examples import KRAFT

SERVICE = "docker:index/service:Service"
SWARM = {"taskSpec": {"containerSpec": {"image": "apache/kafka:4.1.1", "env": KRAFT}}}
VALUES = {"values": {"extraConfig": "advertised.listeners=CLIENT://localhost:9092"}}
CHART = {"values": {"listeners": {"advertisedListeners": "CLIENT://localhost:9092"}}}
SCRIPT = b"#!/bin/sh\necho advertised.listeners=A://a:1 >> server.properties\n"
COMMAND = {"create": "docker run -e KAFKA_ADVERTISED_LISTENERS=A://a:9092 apache/kafka:4.1.1"}


@pytest.mark.parametrize(("type", "props", "is_broker"), [
    (SERVICE, SWARM, True),
    ("kubernetes:helm.sh/v3:Release", VALUES, True),
    ("kubernetes:helm.sh/v3:Release", CHART, True),
    ("command:local:Command", COMMAND, True),
    ("kubernetes:core/v1:Secret", {"data": {"a": base64.b64encode(SCRIPT).decode()}}, True),
    ("aws-native:ec2:Instance", {"userData": base64.b64encode(SCRIPT).decode()}, True),
    (SERVICE, {"taskSpec": {"containerSpec": {"image": "nginx", "env": {"A": UNKNOWN}}}}, False),
    (SERVICE, {"taskSpec": UNKNOWN}, False),
    ("earshot:index:Listeners", {"note": "advertised.listeners"}, False),
    ("pulumi:pulumi:StackReference", {"outputs": {"KAFKA_ADVERTISED_LISTENERS": "A://a:1"}}, False),
])  # fmt: skip
def test_a_broker_in_a_resource_that_is_not_read_is_named(
    type: str, props: Any, is_broker: bool
) -> None:
    pack = Pack()
    assert pack.analyze(type, props) == {}
    text = (
        f"advertised addresses are set here, and the pack does not read {type}; not checked\n"
        "  fix: take them from `Listeners` (docs/module.md), or prove them with `earshot doctor`"
    )
    advice = {"advice-stack": [(f"urn:pulumi:s::p::{type}::x", text)]}
    assert pack.analyze_stack([]) == (advice if is_broker else {})


def test_a_container_whose_command_sets_listeners_is_named() -> None:
    pack = Pack()
    inputs = {"name": "k", "image": "apache/kafka:4.1.1", "command": ["sh", "-c", SCRIPT.decode()]}
    assert pack.analyze(CONTAINER_TYPE, inputs) == {}
    ((_, text),) = pack.analyze_stack([])["advice-stack"]
    assert text.startswith("advertised addresses are set here, and the pack does not read this co")


def test_what_depends_on_a_gate_is_left_alone() -> None:
    pack = Pack()
    pack.analyze(SERVICE, SWARM)
    listeners = resource("earshot:index:Listeners", "kafka")
    gate = resource(PROVIDER_TYPE, "kafka-gate", parent=listeners, props={"plan": {}})
    service = resource(SERVICE, "x", by_property=[gate])
    assert pack.analyze_stack([listeners, gate, service]) == {}
