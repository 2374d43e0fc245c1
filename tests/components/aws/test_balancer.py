"""The balancer of a cluster: its resources, names, rules and refusals."""

from typing import Any

import pytest
from earshot_pulumi.gate import GATE_TYPE, PROVIDER_TYPE

from earshot.checks.plan import check_planned
from earshot.config.aws import AwsSpec
from earshot.listeners.terms import UnknownHost
from earshot.names.policy import ResolverPolicy
from earshot.placement.aws import plan_aws
from earshot.rules.rule import FindingState, Severity
from earshot.validation.contract import Contract
from tests.components.aws import registered as aws
from tests.components.aws.registered import Answers, inputs, registered
from tests.components.engine_double import Engine
from tests.config.aws_documents import INTERNAL, OFFICE, OWN_ZONE, TWO_LISTENERS, read_aws, refused
from tests.user_data.properties import properties_in

BALANCER = "aws:lb/loadBalancer:LoadBalancer"
LISTENER = "aws:lb/listener:Listener"
TARGETS = "aws:lb/targetGroup:TargetGroup"
ATTACHED = "aws:lb/targetGroupAttachment:TargetGroupAttachment"
EXTERNAL = {
    "name": "EXTERNAL",
    "port": 9094,
    "scopes": ["external"],
    "protocol": "SSL",
    "address": {"strategy": "port", "base_port": 9100},
}
EXPOSED: dict[str, Any] = {
    "listeners": [INTERNAL, EXTERNAL],
    "clients": OFFICE,
    "expose": "nlb",
}
NAME = "mine-0123.elb.eu-central-1.amazonaws.com"


@pytest.fixture(scope="module")
def engine() -> Engine:
    return registered(read_aws(**EXPOSED))


def external_addresses(engine: Engine) -> list[str]:
    """The addresses that brokers advertise on EXTERNAL, from their user data."""
    return [
        address
        for instance in inputs(engine, aws.INSTANCE).values()
        for line in properties_in(instance["userData"]).splitlines()
        if line.startswith("advertised.listeners")
        for address in line.split(",")
        if address.startswith("EXTERNAL")
    ]


def test_each_broker_has_a_port_that_leads_to_its_interface(engine: Engine) -> None:
    assert external_addresses(engine) == [f"EXTERNAL://{NAME}:910{id}" for id in (1, 2, 3)]
    listeners = {int(it["port"]): it for it in inputs(engine, LISTENER).values()}
    assert sorted(listeners) == [9100, 9101, 9102, 9103]
    targets = inputs(engine, ATTACHED)
    for id in (1, 2, 3):
        (action,) = listeners[9100 + id]["defaultActions"]
        group = f"mine-external-broker-{id}"
        assert action["targetGroupArn"] == f"arn of {group}"
        target = targets[f"{group}-{id}"]
        assert (target["targetId"], target["port"]) == (f"10.0.0.{id + 10}", 9094)
        assert inputs(engine, TARGETS)[group]["healthCheck"]["port"] == "9094"
    bootstrap = sorted(name for name in targets if "bootstrap" in name)
    assert bootstrap == [f"mine-external-bootstrap-{id}" for id in (1, 2, 3)]
    for listener in listeners.values():
        assert (listener["tcpIdleTimeoutSeconds"], listener["protocol"]) == (660, "TCP")


def test_the_balancer_and_the_brokers_are_private(engine: Engine) -> None:
    balancer = engine.one(BALANCER).inputs
    assert balancer["internal"] is True and balancer["enableCrossZoneLoadBalancing"] is True
    assert balancer["securityGroups"] == ["id of mine-balancer"]
    assert balancer["subnets"] == [f"id of mine-private-{zone}" for zone in "abc"]
    assert engine.of(aws.ADDRESS).keys() == {"mine-nat-a"}
    subnets = {interface["subnetId"] for interface in inputs(engine, aws.INTERFACE).values()}
    assert subnets == set(balancer["subnets"])


def test_clients_reach_the_balancer_and_the_balancer_the_brokers(engine: Engine) -> None:
    assert set(engine.of(aws.GROUP)) == {"mine-brokers", "mine-controllers", "mine-balancer"}
    rules = inputs(engine, aws.INGRESS).values()
    (rule,) = (it for it in rules if it["securityGroupId"] == "id of mine-balancer")
    assert (rule["fromPort"], rule["toPort"], rule["cidrIpv4"]) == (9100, 9103, "203.0.113.0/24")
    (rule,) = (it for it in rules if it["fromPort"] == 9094)
    assert rule["referencedSecurityGroupId"] == "id of mine-balancer"


def test_a_zone_names_it_and_a_preview_marks_the_name_as_unknown() -> None:
    engine = registered(read_aws(**EXPOSED, **OWN_ZONE))
    assert external_addresses(engine)[0] == "EXTERNAL://kafka.kafka.example.com:9101"
    records = {record["type"]: record for record in inputs(engine, aws.RECORD).values()}
    assert records["CNAME"]["records"] == [NAME]
    preview = registered(read_aws(**EXPOSED), Answers(preview=True))
    listener = preview.one(GATE_TYPE).inputs["plan"]["nodes"][0]["listeners"][1]
    assert listener["host"] == {"what": "the balancer"}
    assert listener["front"]["group"] == "balancer"
    assert preview.of(PROVIDER_TYPE)


def test_a_node_is_awaited_with_its_targets_once_the_balancer_has_them(engine: Engine) -> None:
    readiness, turns = inputs(engine, aws.READY), inputs(engine, aws.TURN)
    for id in (1, 2, 3):
        (node,) = readiness[f"mine-broker-{id}"]["nodes"]
        own, shared = (
            {"group": f"arn of mine-external-{name}", "address": f"10.0.0.{id + 10}", "port": 9094}
            for name in (f"broker-{id}", "bootstrap")
        )
        assert node["targets"] == [own, shared]
        for resources in (readiness, turns):
            assert resources[f"mine-broker-{id}"]["shared_targets"] == [shared]
    whole = engine.of(aws.READY)["mine-cluster"]
    assert [len(node["targets"]) for node in whole.inputs["nodes"]] == [2, 2, 2]
    assert len(whole.inputs["shared_targets"]) == 3
    assert len({urn for urn in whole.request.dependencies if LISTENER in urn}) == 4
    single = registered(read_aws(**{**EXPOSED, "brokers": 1}))
    assert "shared_targets" not in inputs(single, aws.TURN)["mine-broker-1"]
    (node, *_) = inputs(registered(read_aws(**TWO_LISTENERS)), aws.READY).values()
    assert "targets" not in node["nodes"][0], "no difference for stacks without a balancer"


def test_bootstrap_and_rules_follow_from_it() -> None:
    spec = read_aws(**EXPOSED)
    planned = plan_aws(spec, balancer="kafka-0123.elb.eu-central-1.amazonaws.com")
    bootstrap = Contract.of(planned.plan, "mine", "aws").listener("EXTERNAL").bootstrap
    assert bootstrap == "kafka-0123.elb.eu-central-1.amazonaws.com:9100"
    findings = check_planned(spec, planned, ResolverPolicy(timeout=1)).findings
    violations = [it for it in findings if it.state is FindingState.VIOLATED]
    # without its own server no name of AWS resolves here; nothing else is wrong
    assert {it.rule for it in violations if it.severity is Severity.ERROR} <= {"KL011"}
    assert not {it.rule for it in violations} & {"KL007", "KL009", "KL024", "KL025"}


def test_a_short_idle_time_out_is_a_warning() -> None:
    spec = read_aws(**{**EXPOSED, "expose": {"idle_seconds": 350}})
    findings = check_planned(spec, plan_aws(spec), ResolverPolicy(timeout=1)).findings
    (warning,) = (it for it in findings if it.rule == "KL025")
    assert "drops them after 350 s" in warning.observed and "600 s" in warning.observed


@pytest.mark.parametrize(("changes", "problem"), [
    ({"listeners": [INTERNAL]}, "expose: found a balancer, and no listener for it"),
    ({"brokers": 50},
     ("expose: found 50 brokers behind EXTERNAL, which take 51 listeners of the "
      "balancer; allowed: 50, so up to 49 brokers, each with a port per listener, and "
      "one for the bootstrap; more brokers take address strategy sni")),
    ({"expose": None}, "listeners.EXTERNAL.address.host: is missing"),
    ({"expose": "alb"}, "expose: found 'alb'; allowed: nlb, privatelink, or a map"),
    ({"vpc": {"zones": ["eu-central-1a", "eu-central-1b"], "id": "vpc-0123abcd"}},
     "vpc.private_subnets: is missing; the balancer would be there"),
    ({"expose": {"scheme": "internet"}, "naming": "zone", "zone": {"name": "k.example.com"}},
     "zone.public_zone_id: is missing"),
])  # fmt: skip
def test_each_mistake_has_one_error(changes: dict[str, Any], problem: str) -> None:
    problems = refused(**{**EXPOSED, **changes})
    assert any(problem in line for line in problems), problems


def test_an_internal_balancer_needs_no_public_zone() -> None:
    spec = read_aws(**EXPOSED, naming="zone", zone={"name": "kafka.example.com"})
    assert isinstance(spec, AwsSpec) and not spec.public
    listener = plan_aws(spec).plan.brokers[0].listener("EXTERNAL")
    assert listener is not None and listener.host == UnknownHost("the record of the balancer")


def test_resources_grow_with_the_brokers_up_to_forty_nine() -> None:
    assert read_aws(**EXPOSED, brokers=49).balanced == ("EXTERNAL",)
    few, many, most = (len(registered(read_aws(**EXPOSED, brokers=n)).seen) for n in (10, 40, 49))
    assert (many - few) / 30 == (most - many) / 9
