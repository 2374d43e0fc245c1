"""The balancer that a cluster registers: listeners, targets, groups, names, and what it refuses."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from earshot_pulumi.gate import GATE_TYPE, PROVIDER_TYPE

from earshot.checks.plan import check_planned
from earshot.config.aws import AwsSpec
from earshot.listeners.terms import UnknownHost
from earshot.names.policy import ResolverPolicy
from earshot.placement.aws import plan_aws
from earshot.rules.registry import FindingState, Severity
from earshot.validation.contract import Contract
from tests.components.aws.registered import (
    ADDRESS,
    GROUP,
    INGRESS,
    INSTANCE,
    INTERFACE,
    READY,
    RECORD,
    TURN,
    Answers,
    registered,
)
from tests.components.engine_double import Engine
from tests.config.aws_documents import INTERNAL, OFFICE, OWN_ZONE, TWO_LISTENERS, read_aws, refused
from tests.user_data.properties import properties_in

BALANCER = "aws:lb/loadBalancer:LoadBalancer"
LISTENER = "aws:lb/listener:Listener"
TARGETS = "aws:lb/targetGroup:TargetGroup"
ATTACHED = "aws:lb/targetGroupAttachment:TargetGroupAttachment"
PORTS = {"strategy": "port", "base_port": 9100}
EXTERNAL = {
    "name": "EXTERNAL",
    "port": 9094,
    "scopes": ["external"],
    "protocol": "SSL",
    "address": PORTS,
}
EXPOSED: dict[str, Any] = {
    "listeners": [INTERNAL, EXTERNAL],
    "clients": OFFICE,
    "expose": "nlb",
}
NAME = "mine-0123.elb.eu-central-1.amazonaws.com"


def external(engine: Engine) -> list[str]:
    """What brokers advertise on EXTERNAL, as their user data say it."""
    found = []
    for item in engine.of(INSTANCE).values():
        (line,) = (
            line
            for line in properties_in(item.inputs["userData"]).splitlines()
            if line.startswith("advertised.listeners")
        )
        found += [text for text in line.split(",") if text.startswith("EXTERNAL")]
    return found


def test_each_broker_has_a_port_that_leads_to_its_interface() -> None:
    engine = registered(read_aws(**EXPOSED))
    assert external(engine) == [f"EXTERNAL://{NAME}:910{id}" for id in (1, 2, 3)]
    ports = {int(it.inputs["port"]): it.inputs for it in engine.of(LISTENER).values()}
    assert sorted(ports) == [9100, 9101, 9102, 9103]
    for id in (1, 2, 3):
        (action,) = ports[9100 + id]["defaultActions"]
        group = f"mine-external-broker-{id}"
        assert action["targetGroupArn"] == f"arn of {group}"
        address = engine.of(ATTACHED)[f"{group}-{id}"].inputs
        assert address["targetId"] == f"10.0.0.{id + 10}" and address["port"] == 9094
        assert engine.of(TARGETS)[group].inputs["healthCheck"]["port"] == "9094"
    bootstrap = [name for name in engine.of(ATTACHED) if "bootstrap" in name]
    assert sorted(bootstrap) == [f"mine-external-bootstrap-{id}" for id in (1, 2, 3)]
    for item in ports.values():
        assert item["tcpIdleTimeoutSeconds"] == 660 and item["protocol"] == "TCP"


def test_nothing_of_it_is_public_and_brokers_stay_private() -> None:
    engine = registered(read_aws(**EXPOSED))
    balancer = engine.one(BALANCER).inputs
    assert balancer["internal"] is True and balancer["enableCrossZoneLoadBalancing"] is True
    assert balancer["securityGroups"] == ["id of mine-balancer"]
    assert balancer["subnets"] == [f"id of mine-private-{zone}" for zone in "abc"]
    assert engine.of(ADDRESS).keys() == {"mine-nat-a"}
    placed = {it.inputs["subnetId"] for it in engine.of(INTERFACE).values()}
    assert placed == {f"id of mine-private-{zone}" for zone in "abc"}


def test_clients_come_in_to_the_balancer_and_the_balancer_to_brokers() -> None:
    engine = registered(read_aws(**EXPOSED))
    assert set(engine.of(GROUP)) == {"mine-brokers", "mine-controllers", "mine-balancer"}
    rules = [it.inputs for it in engine.of(INGRESS).values()]
    (own,) = (it for it in rules if it["securityGroupId"] == "id of mine-balancer")
    assert (own["fromPort"], own["toPort"], own["cidrIpv4"]) == (9100, 9103, "203.0.113.0/24")
    (to_brokers,) = (it for it in rules if it["fromPort"] == 9094)
    assert to_brokers["referencedSecurityGroupId"] == "id of mine-balancer"


def test_a_zone_names_it_and_a_preview_knows_that_it_does_not_know_the_name() -> None:
    engine = registered(read_aws(**EXPOSED, **OWN_ZONE))
    assert external(engine)[0] == "EXTERNAL://kafka.kafka.example.com:9101"
    records = {it.inputs["type"]: it.inputs for it in engine.of(RECORD).values()}
    assert records["CNAME"]["records"] == [NAME]
    preview = registered(read_aws(**EXPOSED), Answers(preview=True))
    node = preview.one(GATE_TYPE).inputs["plan"]["nodes"][0]
    assert node["listeners"][1]["host"] == {"what": "the balancer"}
    assert node["listeners"][1]["front"]["group"] == "balancer"
    assert preview.of(PROVIDER_TYPE)


def test_the_wait_for_a_node_is_for_its_targets_too_once_the_balancer_has_them() -> None:
    engine = registered(read_aws(**EXPOSED))
    ready = engine.of(READY)
    for id in (1, 2, 3):
        (node,) = ready[f"mine-broker-{id}"].inputs["nodes"]
        groups = (f"mine-external-broker-{id}", "mine-external-bootstrap")
        wanted = [
            {"group": f"arn of {group}", "address": f"10.0.0.{id + 10}", "port": 9094}
            for group in groups
        ]
        assert node["targets"] == wanted
    whole = ready["mine-cluster"]
    assert [len(node["targets"]) for node in whole.inputs["nodes"]] == [2, 2, 2]
    listeners = {urn for urn in whole.request.dependencies if LISTENER in urn}
    assert len(listeners) == 4
    (plain, *_) = registered(read_aws(**TWO_LISTENERS)).of(READY).values()
    assert "targets" not in plain.inputs["nodes"][0], "no difference for stacks without a balancer"


def test_the_turn_and_the_wait_of_a_broker_have_its_target_among_others() -> None:
    engine = registered(read_aws(**EXPOSED))
    for kind in (TURN, READY):
        for id in (1, 2, 3):
            (target,) = engine.of(kind)[f"mine-broker-{id}"].inputs["shared_targets"]
            assert (target["group"], target["address"]) == (
                "arn of mine-external-bootstrap",
                f"10.0.0.{id + 10}",
            )
    assert len(engine.of(READY)["mine-cluster"].inputs["shared_targets"]) == 3
    alone = registered(read_aws(**{**EXPOSED, "brokers": 1}))
    assert "shared_targets" not in alone.of(TURN)["mine-broker-1"].inputs


def test_bootstrap_and_rules_follow_from_it() -> None:
    spec = read_aws(**EXPOSED)
    planned = plan_aws(spec, balancer="kafka-0123.elb.eu-central-1.amazonaws.com")
    bootstrap = Contract.of(planned.plan, "mine", "aws").listener("EXTERNAL").bootstrap
    assert bootstrap == "kafka-0123.elb.eu-central-1.amazonaws.com:9100"
    found = check_planned(spec, planned, ResolverPolicy(timeout=1))
    certain = [it for it in found.findings if it.state is FindingState.VIOLATED]
    # without its own server no name of AWS resolves here; nothing else is wrong
    assert {it.rule for it in certain if it.severity is Severity.ERROR} <= {"KL011"}
    assert not {it.rule for it in certain} & {"KL007", "KL009", "KL024", "KL025"}


def test_a_short_idle_time_out_is_a_warning() -> None:
    spec = read_aws(**{**EXPOSED, "expose": {"idle_seconds": 350}})
    found = check_planned(spec, plan_aws(spec), ResolverPolicy(timeout=1)).findings
    (warning,) = (it for it in found if it.rule == "KL025")
    assert "drops them after 350 s" in warning.observed and "600 s" in warning.observed


@pytest.mark.parametrize(
    ("changes", "problem"),
    [
        ({"listeners": [INTERNAL]}, "expose: found a balancer, and no listener for it"),
        (
            {"brokers": 50},
            (
                "expose: found 50 brokers behind EXTERNAL, which take 51 listeners of the "
                "balancer; allowed: 50, so up to 49 brokers, each with a port per listener, and "
                "one for the bootstrap; more brokers take address strategy sni"
            ),
        ),
        ({"expose": None}, "listeners.EXTERNAL.address.host: is missing"),
        ({"expose": "alb"}, "expose: found 'alb'; allowed: nlb, privatelink, or a map"),
        (
            {"vpc": {"zones": ["eu-central-1a", "eu-central-1b"], "id": "vpc-0123abcd"}},
            "vpc.private_subnets: is missing; the balancer would be there",
        ),
        (
            {"expose": {"scheme": "internet"}, "naming": "zone", "zone": {"name": "k.example.com"}},
            "zone.public_zone_id: is missing",
        ),
    ],
)
def test_each_mistake_has_one_error(changes: dict[str, Any], problem: str) -> None:
    found = refused(**{**EXPOSED, **changes})
    assert any(problem in line for line in found), found


def test_forty_nine_brokers_fit() -> None:
    assert read_aws(**EXPOSED, brokers=49).balanced == ("EXTERNAL",)


def test_an_internal_balancer_needs_no_public_zone(tmp_path: Path) -> None:
    spec = read_aws(**EXPOSED, naming="zone", zone={"name": "kafka.example.com"})
    assert isinstance(spec, AwsSpec) and not spec.public
    unknown = plan_aws(spec).plan.brokers[0].listener("EXTERNAL")
    assert unknown is not None and unknown.host == UnknownHost("the record of the balancer")


def test_resources_grow_with_the_brokers() -> None:
    few, many = (len(registered(read_aws(**EXPOSED, brokers=n)).seen) for n in (10, 40))
    most = len(registered(read_aws(**EXPOSED, brokers=49)).seen)
    assert (many - few) / 30 == (most - many) / 9
