"""What the component registers: which resources, with which inputs, below and after which."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import pulumi
import pytest
from earshot_pulumi.aws.brokers import AwsBrokers
from earshot_pulumi.aws.remembered import Remembered
from earshot_pulumi.gate import PROVIDER_TYPE
from google.protobuf import json_format

from earshot.errors import EarshotError
from tests.components.aws.registered import (
    ADDRESS,
    ASSOCIATION,
    ATTACHMENT,
    GATE,
    GROUP,
    INGRESS,
    INSTANCE,
    INTERFACE,
    PARAMETER,
    PREFLIGHT,
    READY,
    RECORD,
    SUBNET,
    TURN,
    VPC,
    ZONE,
    Answers,
    registered,
)
from tests.components.engine_double import Engine
from tests.components.plain_inputs import secret_inputs, visible
from tests.config.aws_documents import ONE_LISTENER, OWN_ZONE, TWO_LISTENERS, ZONES, read_aws
from tests.user_data.properties import properties_in

PREVIEW = Answers(preview=True)
SEPARATE = {"controllers": {"mode": "separate"}}


def hosts(engine: Engine) -> dict[int, list[Any]]:
    """What the gate shows the pack, by node id."""
    plan = engine.one(GATE).inputs["plan"]
    return {int(node["id"]): [item["host"] for item in node["listeners"]] for node in plan["nodes"]}


@pytest.mark.parametrize(
    ("settings", "first"),
    [
        (
            TWO_LISTENERS,
            [
                "ip-10-0-0-11.eu-central-1.compute.internal",
                "ec2-198-51-100-11.eu-central-1.compute.amazonaws.com",
                "ip-10-0-0-11.eu-central-1.compute.internal",
            ],
        ),
        (
            ONE_LISTENER,
            [
                "ec2-198-51-100-11.eu-central-1.compute.amazonaws.com",
                "ip-10-0-0-11.eu-central-1.compute.internal",
            ],
        ),
        ({**TWO_LISTENERS, **OWN_ZONE}, ["broker-1.kafka.example.com"] * 3),
    ],
)
def test_names_are_those_that_were_given(settings: dict[str, Any], first: list[str]) -> None:
    engine = registered(read_aws(**settings))
    assert hosts(engine)[1] == first
    for id, shown in hosts(engine).items():
        text = engine.of(INSTANCE)[f"mine-broker-{id}"].inputs["userData"]
        assert all(f"://{host}:" in properties_in(text) for host in shown)


def test_names_come_before_the_gate_and_the_gate_before_instances() -> None:
    engine = registered(read_aws(**TWO_LISTENERS, **OWN_ZONE))
    gate, approval = engine.one(GATE), engine.one(PROVIDER_TYPE)
    for type in (INTERFACE, ADDRESS, RECORD, ZONE):
        assert all(engine.before(item, gate) for item in engine.of(type).values())
    for item in engine.of(INSTANCE).values():
        assert item.is_below(gate) and item.depends_on(approval)
    assert approval.is_below(gate)


def test_one_node_is_touched_after_the_last_is_ready() -> None:
    engine = registered(read_aws(**SEPARATE))
    order = ["broker-1", "broker-2", "broker-3", *(f"controller-1000{n}" for n in (1, 2, 3))]
    instances, ready = engine.of(INSTANCE), engine.of(READY)
    assert list(instances) == [f"mine-{name}" for name in order]
    for name in order:
        assert ready[f"mine-{name}"].depends_on(engine.of(ATTACHMENT)[f"mine-{name}"])
    for last, following in pairwise(order):
        assert engine.before(ready[f"mine-{last}"], instances[f"mine-{following}"])
    whole = ready["mine-cluster"]
    assert whole.depends_on(ready[f"mine-{order[-1]}"])
    assert [int(item["node"]) for item in whole.inputs["nodes"]] == list(
        read_aws(**SEPARATE).node_ids
    )


def test_only_brokers_for_external_clients_have_an_address_beyond() -> None:
    assert not registered(read_aws()).of(ASSOCIATION)
    engine = registered(read_aws(**SEPARATE, **TWO_LISTENERS))
    assert sorted(engine.of(ASSOCIATION)) == [f"mine-broker-{id}" for id in (1, 2, 3)]
    for name, item in engine.of(ASSOCIATION).items():
        assert item.inputs["networkInterfaceId"] == f"id of {name}"
        assert engine.of(INSTANCE)[name].depends_on(item)
    subnets = {name: it.inputs["subnetId"] for name, it in engine.of(INTERFACE).items()}
    assert subnets["mine-broker-2"] == "id of mine-public-b"
    assert subnets["mine-controller-10002"] == "id of mine-private-b"


def test_groups_open_each_port_to_its_clients() -> None:
    clients = {"ranges": {"office": "203.0.113.0/24"}, "groups": {"app": "sg-0123abcd"}}
    engine = registered(read_aws(**{**TWO_LISTENERS, "clients": clients}, **SEPARATE))
    sources = ("cidrIpv4", "referencedSecurityGroupId")
    found = {
        (
            it.inputs["securityGroupId"],
            int(it.inputs["fromPort"]),
            int(it.inputs["toPort"]),
            next(it.inputs[key] for key in sources if it.inputs.get(key)),
        )
        for it in engine.of(INGRESS).values()
    }
    brokers, controllers = (f"id of mine-{name}" for name in ("brokers", "controllers"))
    assert found == {
        (brokers, 19092, 19092, brokers),
        (brokers, 19092, 19092, "10.0.0.0/16"),
        (brokers, 19092, 19092, "sg-0123abcd"),
        (brokers, 9092, 9092, "203.0.113.0/24"),
        (controllers, 29092, 29092, brokers),
        (controllers, 29092, 29092, controllers),
    }
    assert set(engine.of(GROUP)) == {"mine-brokers", "mine-controllers"}


def test_own_names_have_a_record_in_each_zone() -> None:
    engine = registered(read_aws(brokers=1, **TWO_LISTENERS, **OWN_ZONE))
    found = {
        name: (it.inputs["zoneId"], it.inputs["name"], it.inputs["records"])
        for name, it in engine.of(RECORD).items()
    }
    assert found == {
        "mine-broker-1-private": ("ZPRIVATE", "broker-1.kafka.example.com", ["10.0.0.11"]),
        "mine-broker-1-public": ("Z0123456789ABC", "broker-1.kafka.example.com", ["198.51.100.11"]),
    }
    (vpc,) = engine.one(ZONE).inputs["vpcs"]
    assert vpc == {"vpcId": "id of mine", "vpcRegion": "eu-central-1"}


@pytest.mark.parametrize("naming", [{}, OWN_ZONE])
def test_a_first_preview_shows_everything_but_the_hosts(naming: dict[str, Any]) -> None:
    spec = read_aws(**TWO_LISTENERS, **naming)
    engine, real = registered(spec, PREVIEW), registered(spec)
    shown = hosts(engine)
    assert {id: len(items) for id, items in shown.items()} == {1: 3, 2: 3, 3: 3}
    assert all(set(item) == {"what"} for items in shown.values() for item in items)
    assert sorted(it.urn for it in engine.seen) == sorted(it.urn for it in real.seen)
    inputs = engine.of(INSTANCE)["mine-broker-1"].inputs
    assert pulumi.contains_unknowns(inputs["userData"])
    assert engine.one(PROVIDER_TYPE).inputs["plan"]


def test_a_vpc_that_is_there_is_taken_as_it_is() -> None:
    vpc = {
        "id": "vpc-0123abcd",
        "cidr": "10.1.0.0/16",
        "zones": ZONES[:2],
        "public_subnets": {ZONES[0]: "subnet-0000000a", ZONES[1]: "subnet-0000000b"},
    }
    there = {
        "id": "vpc-0123abcd",
        "cidrBlock": "10.1.0.0/16",
        "enableDnsSupport": True,
        "enableDnsHostnames": False,
    }
    spec = read_aws(brokers=2, vpc=vpc, **TWO_LISTENERS)
    engine = registered(spec, Answers(vpc=there))
    assert not engine.of(VPC) and not engine.of(SUBNET)
    subnets = {name: it.inputs["subnetId"] for name, it in engine.of(INTERFACE).items()}
    assert [subnets[name] for name in sorted(subnets)] == ["subnet-0000000a", "subnet-0000000b"]
    # without the attribute nothing declares a public name, and the pack is not told otherwise
    assert engine.one(GATE).inputs["cloud"]["declared"] == []
    with pytest.raises(EarshotError, match=r"write vpc.cidr: 10.9.0.0/16"):
        registered(spec, Answers(vpc={**there, "cidrBlock": "10.9.0.0/16"}))


def test_another_region_is_refused() -> None:
    with pytest.raises(EarshotError, match="the AWS provider works in us-east-1"):
        registered(read_aws(), Answers(region="us-east-1"))


def of_type(type: str, **rest: Any) -> dict[str, Any]:
    return {"instance": {"type": type, **rest}}


@pytest.mark.parametrize(
    ("settings", "restarts", "replaces"),
    [
        (of_type("m7g.xlarge"), True, False),
        (of_type("m7i.large"), True, True),
        (of_type("m7g.large", root_gib=32), False, True),
        ({"heap": "2g"}, True, True),
        ({"volume": {"size_gib": 200}}, False, False),
    ],
)
def test_what_stops_an_instance_is_a_change_of_its_node(
    settings: dict[str, Any], restarts: bool, replaces: bool
) -> None:
    """A restart in place is in what is waited for and in the incarnation, as a replacement is: by
    other user data, or by what EC2 cannot change in place."""

    def made(**settings: Any) -> tuple[Any, ...]:
        found: list[dict[str, str]] = []

        def look(cluster: AwsBrokers) -> pulumi.Output[None]:
            return pulumi.Output.all(**cluster.incarnations).apply(lambda it: found.append(it))

        engine = registered(read_aws(cluster_id="5L6g3nShT-eMCtK-X86swQ", **settings), look=look)
        instance = engine.of(INSTANCE)["mine-broker-1"]
        trigger = json_format.MessageToDict(instance.request.replacement_trigger)
        awaited = engine.of(READY)["mine-broker-1"].inputs["nodes"]
        wanted = engine.of(TURN)["mine-broker-1"].inputs["wanted"]
        return found[0]["1"], wanted, awaited, (trigger, instance.inputs["userData"])

    before, after = made(), made(**settings)
    assert (before[0] != after[0]) is (before[1] != after[1]) is restarts
    assert before[2] != after[2] or not restarts, "it is waited for"
    assert (before[3] != after[3]) is replaces


def test_a_turn_comes_before_the_instance_and_knows_who_must_serve() -> None:
    held = Remembered(True, frozenset({"broker-1", "broker-2", "controller-10001"}))
    spec = read_aws(brokers=3, controllers={"mode": "separate", "count": 1})
    engine = registered(spec, remembered=held)
    turns, instances = engine.of(TURN), engine.of(INSTANCE)
    for name, turn in turns.items():
        assert engine.before(turn, instances[name])
        assert turn.depends_on(engine.one(PREFLIGHT))
        assert turn.inputs["wanted"][1:] == [spec.instance_of(int(turn.inputs["node"])).type, ""]
    others = {
        name: [int(it["node"]) for it in turn.inputs["others"]] for name, turn in turns.items()
    }
    assert others == {
        "mine-broker-1": [2, 10001],
        "mine-broker-2": [1, 10001],
        "mine-broker-3": [],
        "mine-controller-10001": [1, 2],
    }
    (first, *_) = turns["mine-broker-1"].inputs["others"]
    assert (first["name"], first["parameter"]) == ("mine-broker-2", "/earshot/mine/broker-2")
    assert all(it.inputs["in_turn"] is True for it in engine.of(READY).values())
    for other, known in ((spec, Remembered()), (read_aws(in_turn=False), held)):
        engine = registered(other, remembered=known)
        assert all(it.inputs["others"] == [] for it in engine.of(TURN).values())
        assert all(it.inputs["in_turn"] is False for it in engine.of(READY).values())


def test_a_report_is_never_written_over_by_an_update() -> None:
    found = registered(read_aws()).of(PARAMETER)
    del found["mine-cluster-id"]  # which no node writes
    for item in found.values():
        assert set(item.request.ignoreChanges) == {"insecureValue", "value", "description"}


def test_brokers_have_an_address_beyond_where_they_are_in_public_subnets() -> None:
    """Also without a listener for scope external: it is their way out."""
    engine = registered(read_aws(place="public"))
    assert len(engine.of(ASSOCIATION)) == 3
    subnets = {name: it.inputs["subnetId"] for name, it in engine.of(INTERFACE).items()}
    assert subnets["mine-broker-2"] == "id of mine-public-b"


def test_a_gate_that_is_off_is_said_to_be() -> None:
    engine = registered(read_aws(gate="off"))
    assert not engine.of(PROVIDER_TYPE)
    assert all(item.is_below(engine.one(GATE)) for item in engine.of(INSTANCE).values())


def test_settings_are_secrets_wherever_pulumi_keeps_them() -> None:
    engine = registered(read_aws(extra={"num.io.threads": "4"}))
    assert secret_inputs(engine.one(GATE).request) == {"plan"}
    assert secret_inputs(engine.one(PREFLIGHT).request) == {"properties"}
    assert [secret_inputs(it.request) for it in engine.of(INSTANCE).values()] == [{"userData"}] * 3
    assert [it.urn for it in engine.seen if "num.io.threads" in visible(it.request)] == []


def test_an_incarnation_is_an_instance_with_its_user_data() -> None:
    found: list[dict[str, str]] = []

    def look(cluster: AwsBrokers) -> pulumi.Output[None]:
        return pulumi.Output.all(**cluster.incarnations).apply(lambda it: found.append(it))

    registered(read_aws(heap="1g"), look=look)
    registered(read_aws(heap="2g"), look=look)
    assert found[0].keys() == {"1", "2", "3"}
    assert found[0]["1"].startswith("id of mine-broker-1 ")
    assert all(found[0][id] != found[1][id] for id in found[0])


def test_no_node_depends_on_more_the_more_nodes_there_are() -> None:
    """So that the work grows with the nodes, and no replacement takes other nodes along."""

    def dependencies(brokers: int) -> dict[str, int]:
        engine = registered(read_aws(brokers=brokers, **TWO_LISTENERS, **OWN_ZONE))
        own = [item for item in engine.seen if item.name.endswith("-broker-2")]
        return {item.urn: len(item.request.dependencies) for item in own}

    few, many = dependencies(3), dependencies(12)
    assert few == many
    assert max(few.values()) <= 30
