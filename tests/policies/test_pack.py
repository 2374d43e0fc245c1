"""The pack's policies on the gate, and their configuration."""

import json
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from earshot_policies.evaluations import CONTAINER_TYPE
from earshot_policies.pack import SINGLE_RULES, STACK_RULES, policies
from earshot_pulumi.gate import GATE_TYPE, PROVIDER_TYPE
from pulumi_policy import (
    EnforcementLevel,
    Policy,
    PolicyResource,
    PolicyResourceOptions,
    StackValidationPolicy,
)
from pulumi_policy.proxy import unknown_checking_proxy

from earshot.certificates.names import SubjectNames
from earshot.certificates.shown import ShownCertificate
from earshot.listeners.model import ClusterPlan
from earshot.listeners.terms import Protocol, Scope
from earshot.placement.plan import NodeNames, plan
from earshot.rules.evaluate import RULES
from earshot.rules.rule import Rule
from tests.config.read import read_local
from tests.policies.calls import UNKNOWN, Pack
from tests.policies.programs import Program
from toolchain.paths import POLICIES


def planned(external: str = "localhost") -> ClusterPlan:
    spec = read_local({"placement": "local"})
    hosts = {Scope.INTERNAL: "localhost", Scope.CONTROLLER: "localhost", Scope.HOST: external}
    return plan(
        spec,
        {
            id: NodeNames(hosts=hosts, machine="m", port_offset=index)
            for index, id in enumerate(spec.node_ids)
        },
    )


def gate(plan: ClusterPlan) -> dict[str, Any]:
    document = {"placement": "local", "plan": plan.model_dump(mode="json"), "addresses": {}}
    return document


def test_a_good_plan_passes_every_policy_and_an_address_elsewhere_does_not() -> None:
    assert Pack().analyze(GATE_TYPE, gate(planned())) == {}
    assert "kl003" in Pack().analyze(GATE_TYPE, gate(planned("0.0.0.0")))
    assert "kl012" in Pack().analyze(GATE_TYPE, gate(planned("192.0.2.9")))
    assert Pack().analyze("aws:s3/bucket:Bucket", {"bucket": "b"}) == {}


def test_a_certificate_for_other_names_is_reported_with_its_rule() -> None:
    ends = datetime.now(UTC) + timedelta(days=90)
    held = ShownCertificate(SubjectNames(("localhost",)), datetime.now(UTC), ends, "k")
    other = replace(held, names=SubjectNames(("b1.example.com",)), key="other")
    secured = planned()
    nodes = [
        node.model_copy(
            update={
                "listeners": tuple(
                    it.model_copy(update={"protocol": Protocol.SSL}) for it in node.listeners
                )
            }
        )
        for node in secured.nodes
    ]
    document = gate(secured.model_copy(update={"nodes": tuple(nodes)}))
    by_id = {1: held, 2: replace(held, key="2"), 3: other}
    document["certificates"] = {str(id): item.document() for id, item in by_id.items()}
    findings = Pack().analyze(GATE_TYPE, document)
    assert list(findings) == ["kl010"]
    (reported,) = findings["kl010"]
    assert reported.startswith(
        "broker 3, listener INTERNAL: advertises localhost, and its certificate is for "
        "b1.example.com [KL010]"
    )


def test_a_waived_name_passes_and_is_remembered_as_advice() -> None:
    config = {"waived": {"nope.invalid": "the zone is made by another team tomorrow"}}
    findings = Pack(config).analyze(GATE_TYPE, gate(planned("nope.invalid")))
    assert "kl011" not in findings
    assert findings["advice"][0] == (
        "listener EXTERNAL (scope host): nope.invalid is waived: the zone is made by another "
        "team tomorrow"
    )


@pytest.mark.parametrize(
    ("config", "message"),
    [
        ({"resolvers": {"external": ["not an address"]}}, "external"),
        ({"resolvers": {"elsewhere": ["127.0.0.1"]}}, "elsewhere"),
        ({"timeout": -1}, "timeout"),
        ({"waived": {"a.example": " "}}, "needs a reason"),
        ({"resolver": {}}, "resolver"),
    ],
)
def test_a_wrong_configuration_is_named(config: dict[str, Any], message: str) -> None:
    findings = Pack(config).analyze(GATE_TYPE, gate(planned()))
    assert message in findings["names"][0]


def test_a_host_that_is_not_known_yet_is_neither_passed_nor_stopped() -> None:
    document = gate(planned())
    document["plan"]["nodes"][1]["listeners"][1]["host"] = UNKNOWN
    findings = Pack().analyze(GATE_TYPE, document)
    assert "kl011" not in findings
    assert (
        "broker 2, listener EXTERNAL (scope host): its host is not known yet: a value of a "
        "resource that is still to be made [KL011]\n"
        "  expected: a name that resolves, checked again with the value\n"
        "  fix: nothing yet: the update checks it\n"
        "  source: https://kafka.apache.org/documentation/#brokerconfigs_advertised.listeners"
    ) in findings["not-known-yet"]


def test_every_rule_has_policies_of_its_level() -> None:
    by_name = {policy.name: policy for policy in policies()}
    assert len(by_name) == len(policies()), "each name is used once"
    assert next(iter(by_name)) == "names", "the resolvers are configured before anything is checked"
    for rule in RULES:
        if rule not in SINGLE_RULES:
            assert rule.id.lower() not in by_name
            continue
        has_level_of(rule, by_name[rule.id.lower()])
    for rule in STACK_RULES:
        policy = by_name[f"{rule.id.lower()}-stack"]
        assert isinstance(policy, StackValidationPolicy)
        has_level_of(rule, policy)


def has_level_of(rule: Rule, policy: Policy) -> None:
    assert rule.title in policy.description
    mandatory = policy.enforcement_level is EnforcementLevel.MANDATORY
    assert mandatory == (rule.severity == "error"), policy.name


def test_the_files_of_the_configuration_name_policies_and_the_strict_one_no_level() -> None:
    names = {policy.name for policy in policies()}
    for path in (POLICIES / "config").glob("*.json"):
        assert set(json.loads(path.read_text())) <= names, path.name
    strict = json.loads((POLICIES / "config" / "aws-prod.json").read_text())
    assert [*strict] == ["names"]


def test_no_password_of_any_resource_is_said() -> None:
    """Whatever is wrong with it, and wherever a password stands."""
    planted = "Pl4ntedS3cret"
    kafka = [
        "KAFKA_NODE_ID=1",
        "KAFKA_PROCESS_ROLES=broker,controller",
        f"KAFKA_LISTENERS=PLAINTEXT://u:{planted}@:9092,CONTROLLER://:9093",
        f"KAFKA_SSL_KEYSTORE_PASSWORD={planted}",
        f'KAFKA_SASL_JAAS_CONFIG=x required password="{planted}";',
    ]
    command = ["run", "--password", planted, "--bootstrap-server", f"u:{planted}@nobody:9092"]
    ui = {"name": "ui", "image": "ui", "envs": [f"A=http://u:{planted}@h"], "command": command}
    data = (
        "#!/bin/sh\ncat > server.properties <<EOF\nnode.id=x\nprocess.roles=broker\n"
        f'sasl.jaas.config=x required password="{planted}$(date)";\nlisteners=A://u:{planted}@:1\n'
        f"advertised.listeners=A://$(curl --token {planted} http://h):1\nEOF\n"
    )
    program = Program()
    program.add(
        CONTAINER_TYPE, "kafka", {"name": "kafka", "image": "apache/kafka:4.1.1", "envs": kafka}
    )
    program.add(CONTAINER_TYPE, "ui", ui)
    program.add("aws:ec2/instance:Instance", "instance", {"userData": data})
    by_resource, end = program.run(Pack(), preview=True)
    assert {"kafka", "instance"} <= set(by_resource)
    assert planted not in f"{by_resource}{end}"


def test_a_configuration_that_cannot_be_used_is_told_of_what_is_checked_alone() -> None:
    pack = Pack({"resolvers": {"external": ["nowhere:x"]}})
    findings = pack.analyze(CONTAINER_TYPE, {"name": "k", "image": "apache/kafka:4.1.1"})
    (reported,) = findings["names"]
    assert reported == (
        "the pack's configuration of `names`: resolvers: external: DNS server 'nowhere:x': is "
        "not an IP address; allowed: ip, ip:port or [ipv6]:port, as in 192.0.2.53 or "
        "[2001:db8::53]:5353"
    )
    assert pack.analyze("aws:s3/bucket:Bucket", {}) == {}


@pytest.mark.parametrize("type", [GATE_TYPE, PROVIDER_TYPE])
def test_a_preview_that_does_not_know_the_plan_at_all_says_so(type: str) -> None:
    props = {"plan": UNKNOWN, "placement": "docker"}
    pack = Pack()
    findings = pack.analyze(type, props)
    assert set(findings) == {"not-known-yet"}
    assert "the plan: not known yet" in findings["not-known-yet"][0]
    options = PolicyResourceOptions(False, [], None, [], None, [], None)  # type: ignore[arg-type]
    resource = PolicyResource(
        type,
        unknown_checking_proxy(props),
        f"urn:pulumi:s::p::{type}::x",
        "x",
        options,
        None,
        None,
        [],
        {},
    )
    assert pack.analyze_stack([resource]) == {}
