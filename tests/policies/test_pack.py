"""The pack's policies on the gate and its seal."""

from __future__ import annotations

import json
from typing import Any

import pytest
from pulumi_policy import EnforcementLevel, StackValidationPolicy

from components.gate import GATE_TYPE, NOBODY, SEAL_TYPE, digest
from earshot.listeners.model import ClusterPlan, Scope
from earshot.placement.plan import NodeNames, plan
from earshot.rules import RULES, instance_stack
from policies.pack import policies
from tests.policies.calls import UNKNOWN, Pack
from tests.spec.read import read_local
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


def test_a_good_plan_passes_every_policy() -> None:
    assert Pack().analyze(GATE_TYPE, gate(planned())) == {}


def test_a_name_that_does_not_resolve_is_reported_by_its_rule_alone() -> None:
    found = Pack().analyze(GATE_TYPE, gate(planned("nope.invalid")))
    assert list(found) == ["kl011"]
    assert len(found["kl011"]) == 3
    assert "broker 1, listener EXTERNAL (scope host): nope.invalid" in found["kl011"][0]
    assert "[KL011]" in found["kl011"][0]


def test_the_any_address_is_reported_with_its_rule() -> None:
    assert "kl003" in Pack().analyze(GATE_TYPE, gate(planned("0.0.0.0")))


def test_a_waived_name_passes_and_is_remembered_as_advice() -> None:
    config = {"waived": {"nope.invalid": "the zone is made by another team tomorrow"}}
    found = Pack(config).analyze(GATE_TYPE, gate(planned("nope.invalid")))
    assert "kl011" not in found
    assert "made by another team tomorrow" in found["advice"][0]


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
    found = Pack(config).analyze(GATE_TYPE, gate(planned()))
    assert message in found["names"][0]


def test_a_host_that_is_not_known_yet_is_neither_passed_nor_stopped() -> None:
    document = gate(planned())
    document["plan"]["nodes"][1]["listeners"][1]["host"] = UNKNOWN
    found = Pack().analyze(GATE_TYPE, document)
    assert "kl011" not in found
    assert any("broker 2, listener EXTERNAL" in text for text in found["not-known-yet"])


def test_the_seal_is_put_on_what_was_judged_in_this_run() -> None:
    pack, plan = Pack(), planned()
    props = {"digest": digest(plan), "judged": NOBODY}
    assert pack.remediate(SEAL_TYPE, props) is None
    pack.analyze(GATE_TYPE, gate(plan))
    assert pack.remediate(SEAL_TYPE, props) == {"digest": digest(plan), "judged": digest(plan)}


def test_another_plan_gets_no_seal() -> None:
    pack = Pack()
    pack.analyze(GATE_TYPE, gate(planned()))
    props = {"digest": digest(planned("other.example")), "judged": NOBODY}
    assert pack.remediate(SEAL_TYPE, props) is None


def test_other_resources_are_nobodys_business() -> None:
    pack = Pack()
    assert pack.analyze("aws:s3/bucket:Bucket", {"bucket": "b"}) == {}
    assert pack.remediate("aws:s3/bucket:Bucket", {"digest": "d"}) is None


def test_every_rule_has_a_policy_of_its_level() -> None:
    by_name = {policy.name: policy for policy in policies()}
    assert next(iter(by_name)) == "names", "the resolvers are configured before anything is judged"
    for rule in RULES:
        policy = by_name[rule.id.lower()]
        assert rule.title in policy.description
        mandatory = policy.enforcement_level is EnforcementLevel.MANDATORY
        assert mandatory == (rule.severity == "error")


def test_every_policy_has_a_name_of_its_own_and_what_is_configured_exists() -> None:
    names = [policy.name for policy in policies()]
    assert len(set(names)) == len(names)
    for path in (POLICIES / "config").glob("*.json"):
        assert set(json.loads(path.read_text())) <= set(names), path.name


def test_at_the_end_a_rule_is_judged_by_a_policy_that_is_called_after_it() -> None:
    by_name = {policy.name: policy for policy in policies()}
    for rule in instance_stack.RULES:
        policy = by_name[f"{rule.id.lower()}-stack"]
        assert isinstance(policy, StackValidationPolicy)
        assert rule.title in policy.description
        assert policy.enforcement_level is EnforcementLevel.MANDATORY


def test_the_strict_configuration_names_all_that_can_stop() -> None:
    strict = json.loads((POLICIES / "config" / "aws-prod.json").read_text())
    stops = [item for item in policies() if item.enforcement_level is EnforcementLevel.MANDATORY]
    of_containers = {"kl006", "kl014"}
    assert {item.name for item in stops} - of_containers == set(strict)
