"""Resources of the brokers: inputs, parents and order. All inputs are in test_registrations."""

from itertools import pairwise
from typing import Any

import pulumi
import pytest
from earshot_pulumi.aws.brokers import AwsBrokers
from earshot_pulumi.aws.last_run import LastRun
from earshot_pulumi.gate import PROVIDER_TYPE
from google.protobuf import json_format

from earshot.errors import EarshotError
from tests.components.aws import registered as aws
from tests.components.aws.registered import Answers, inputs, registered
from tests.components.engine_double import Engine
from tests.components.plain_inputs import secret_inputs, visible
from tests.config.aws_documents import ONE_LISTENER, OWN_ZONE, TWO_LISTENERS, ZONES, read_aws
from tests.user_data.properties import properties_in

PREVIEW = Answers(preview=True)
SEPARATE = {"controllers": {"mode": "separate"}}


def hosts(engine: Engine) -> dict[int, list[Any]]:
    """The hosts of all listeners in the gate, by node id."""
    plan = engine.one(aws.GATE).inputs["plan"]
    return {
        int(node["id"]): [listener["host"] for listener in node["listeners"]]
        for node in plan["nodes"]
    }


@pytest.mark.parametrize(("settings", "first"), [
    (TWO_LISTENERS, ["ip-10-0-0-11.eu-central-1.compute.internal",
                     "ec2-198-51-100-11.eu-central-1.compute.amazonaws.com",
                     "ip-10-0-0-11.eu-central-1.compute.internal"]),
    (ONE_LISTENER, ["ec2-198-51-100-11.eu-central-1.compute.amazonaws.com",
                    "ip-10-0-0-11.eu-central-1.compute.internal"]),
    ({**TWO_LISTENERS, **OWN_ZONE}, ["broker-1.kafka.example.com"] * 3),
])  # fmt: skip
def test_brokers_advertise_the_provisioned_names(
    settings: dict[str, Any], first: list[str]
) -> None:
    engine = registered(read_aws(**settings))
    assert hosts(engine)[1] == first
    for id, names in hosts(engine).items():
        text = inputs(engine, aws.INSTANCE)[f"mine-broker-{id}"]["userData"]
        assert all(f"://{host}:" in properties_in(text) for host in names)


def test_names_come_before_the_gate_and_the_gate_before_instances() -> None:
    engine = registered(read_aws(**TWO_LISTENERS, **OWN_ZONE))
    gate, approval = engine.one(aws.GATE), engine.one(PROVIDER_TYPE)
    for type in (aws.INTERFACE, aws.ADDRESS, aws.RECORD, aws.ZONE):
        assert all(engine.before(resource, gate) for resource in engine.of(type).values())
    for instance in engine.of(aws.INSTANCE).values():
        assert instance.is_below(gate) and instance.depends_on(approval)
    assert approval.is_below(gate)


def test_one_node_is_touched_after_the_last_is_ready() -> None:
    engine = registered(read_aws(**SEPARATE))
    order = ["broker-1", "broker-2", "broker-3", *(f"controller-1000{n}" for n in (1, 2, 3))]
    instances, ready = engine.of(aws.INSTANCE), engine.of(aws.READY)
    assert list(instances) == [f"mine-{name}" for name in order]
    for name in order:
        assert ready[f"mine-{name}"].depends_on(engine.of(aws.ATTACHMENT)[f"mine-{name}"])
    for last, following in pairwise(order):
        assert engine.before(ready[f"mine-{last}"], instances[f"mine-{following}"])
    whole = ready["mine-cluster"]
    assert whole.depends_on(ready[f"mine-{order[-1]}"])
    node_ids = [int(node["node"]) for node in whole.inputs["nodes"]]
    assert node_ids == list(read_aws(**SEPARATE).node_ids)


def test_brokers_have_public_addresses_for_external_clients_or_in_public_subnets() -> None:
    """In public subnets also without a listener for scope external: it is their way out."""
    assert not registered(read_aws()).of(aws.ASSOCIATION)
    engine = registered(read_aws(**SEPARATE, **TWO_LISTENERS))
    assert sorted(engine.of(aws.ASSOCIATION)) == [f"mine-broker-{id}" for id in (1, 2, 3)]
    for name, association in engine.of(aws.ASSOCIATION).items():
        assert association.inputs["networkInterfaceId"] == f"id of {name}"
        assert engine.of(aws.INSTANCE)[name].depends_on(association)
    interfaces = inputs(engine, aws.INTERFACE)
    assert interfaces["mine-broker-2"]["subnetId"] == "id of mine-public-b"
    assert interfaces["mine-controller-10002"]["subnetId"] == "id of mine-private-b"
    engine = registered(read_aws(place="public"))
    assert len(engine.of(aws.ASSOCIATION)) == 3
    assert inputs(engine, aws.INTERFACE)["mine-broker-2"]["subnetId"] == "id of mine-public-b"


@pytest.mark.parametrize("naming", [{}, OWN_ZONE])
def test_a_first_preview_shows_everything_but_the_hosts(naming: dict[str, Any]) -> None:
    spec = read_aws(**TWO_LISTENERS, **naming)
    engine, real = registered(spec, PREVIEW), registered(spec)
    assert {id: len(names) for id, names in hosts(engine).items()} == {1: 3, 2: 3, 3: 3}
    assert all(set(name) == {"what"} for names in hosts(engine).values() for name in names)
    assert sorted(it.urn for it in engine.seen) == sorted(it.urn for it in real.seen)
    assert pulumi.contains_unknowns(inputs(engine, aws.INSTANCE)["mine-broker-1"]["userData"])
    assert engine.one(PROVIDER_TYPE).inputs["plan"]


def test_an_existing_vpc_stays_unchanged() -> None:
    vpc = {
        "id": "vpc-0123abcd",
        "cidr": "10.1.0.0/16",
        "zones": ZONES[:2],
        "public_subnets": {ZONES[0]: "subnet-0000000a", ZONES[1]: "subnet-0000000b"},
    }
    dns: dict[str, Any] = {"enableDnsSupport": True, "enableDnsHostnames": False}
    outputs = {**dns, "id": vpc["id"], "cidrBlock": vpc["cidr"]}
    spec = read_aws(brokers=2, vpc=vpc, **TWO_LISTENERS)
    engine = registered(spec, Answers(vpc=outputs))
    assert not engine.of(aws.VPC) and not engine.of(aws.SUBNET)
    subnets = [interface["subnetId"] for interface in inputs(engine, aws.INTERFACE).values()]
    assert sorted(subnets) == ["subnet-0000000a", "subnet-0000000b"]
    # without the attribute nothing declares a public name, and the pack is not told otherwise
    assert engine.one(aws.GATE).inputs["cloud"]["declared"] == []
    with pytest.raises(EarshotError, match=r"write vpc.cidr: 10.9.0.0/16"):
        registered(spec, Answers(vpc={**outputs, "cidrBlock": "10.9.0.0/16"}))


def test_another_region_is_refused() -> None:
    with pytest.raises(EarshotError, match="the region of the AWS provider is us-east-1"):
        registered(read_aws(), Answers(region="us-east-1"))


def of_type(type: str, **rest: Any) -> dict[str, Any]:
    return {"instance": {"type": type, **rest}}


def broker_inputs(**settings: Any) -> tuple[Any, ...]:
    """Broker 1: incarnation, input `wanted` of its turn, awaited nodes, causes of a replacement."""
    incarnations: dict[str, str] = {}

    def look(cluster: AwsBrokers) -> pulumi.Output[None]:
        return pulumi.Output.all(**cluster.incarnations).apply(incarnations.update)

    engine = registered(read_aws(cluster_id="5L6g3nShT-eMCtK-X86swQ", **settings), look=look)
    assert incarnations.keys() == {"1", "2", "3"}
    assert incarnations["1"].startswith("id of mine-broker-1 ")
    instance = engine.of(aws.INSTANCE)["mine-broker-1"]
    trigger = json_format.MessageToDict(instance.request.replacement_trigger)
    awaited = inputs(engine, aws.READY)["mine-broker-1"]["nodes"]
    wanted = inputs(engine, aws.TURN)["mine-broker-1"]["wanted"]
    return incarnations["1"], wanted, awaited, (trigger, instance.inputs["userData"])


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
def test_a_change_that_stops_an_instance_changes_its_incarnation_and_wait(
    settings: dict[str, Any], restarts: bool, replaces: bool
) -> None:
    """The instance is restarted in place, or replaced for other user data or hardware that EC2
    cannot change in place."""
    old, new = broker_inputs(), broker_inputs(**settings)
    assert (old[0] != new[0]) is (old[1] != new[1]) is restarts
    assert old[2] != new[2] or not restarts, "it is waited for"
    assert (old[3] != new[3]) is replaces


def test_a_turn_comes_before_the_instance_and_knows_who_must_serve() -> None:
    remembered = LastRun(True, frozenset({"broker-1", "broker-2", "controller-10001"}))
    spec = read_aws(brokers=3, controllers={"mode": "separate", "count": 1})
    engine = registered(spec, remembered=remembered)
    turns, instances = engine.of(aws.TURN), engine.of(aws.INSTANCE)
    for name, turn in turns.items():
        assert engine.before(turn, instances[name])
        assert turn.depends_on(engine.one(aws.PREFLIGHT))
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
    assert all(it.inputs["in_turn"] is True for it in engine.of(aws.READY).values())
    for settings, last in ((spec, LastRun()), (read_aws(in_turn=False), remembered)):
        engine = registered(settings, remembered=last)
        assert all(turn["others"] == [] for turn in inputs(engine, aws.TURN).values())
        assert all(node["in_turn"] is False for node in inputs(engine, aws.READY).values())


def test_a_node_that_is_down_is_brought_back_before_another_one_changes() -> None:
    engine = registered(read_aws(brokers=3), down={3: "its instance is stopped"})
    nodes = [engine.of(aws.INSTANCE)[f"mine-broker-{id}"] for id in (3, 1, 2)]
    waits = [engine.of(aws.READY)[f"mine-broker-{id}"] for id in (3, 1, 2)]
    for wait, later in zip(waits, nodes[1:], strict=False):
        assert engine.before(wait, later)


@pytest.mark.parametrize(
    ("down", "others"),
    [
        ({3}, {1: [2], 2: [1], 3: [1, 2]}),
        ({1, 3}, {1: [2, 3], 2: [], 3: [2]}),
    ],
)
def test_a_preview_asks_no_node_that_the_update_waits_for_before(
    down: set[int], others: dict[int, list[int]], monkeypatch: pytest.MonkeyPatch
) -> None:
    nodes = frozenset({"broker-1", "broker-2", "broker-3"})
    remembered = LastRun(nodes=nodes, served=True)
    for is_preview in (False, True):
        monkeypatch.setattr("earshot_pulumi.aws.brokers.is_dry_run", lambda it=is_preview: it)
        engine = registered(read_aws(brokers=3), remembered=remembered, down=down)
        turns = engine.of(aws.TURN)
        asked = {
            id: [other["node"] for other in turns[f"mine-broker-{id}"].inputs["others"]]
            for id in (1, 2, 3)
        }
        assert asked == (others if is_preview else {1: [2, 3], 2: [1, 3], 3: [1, 2]})


def test_a_gate_that_is_off_is_said_to_be() -> None:
    engine = registered(read_aws(gate="off"))
    assert not engine.of(PROVIDER_TYPE)
    assert all(it.is_below(engine.one(aws.GATE)) for it in engine.of(aws.INSTANCE).values())


def test_settings_are_secrets_wherever_pulumi_keeps_them() -> None:
    engine = registered(read_aws(extra={"num.io.threads": "4"}))
    assert secret_inputs(engine.one(aws.GATE).request) == {"plan"}
    assert secret_inputs(engine.one(aws.PREFLIGHT).request) == {"properties"}
    assert [secret_inputs(it.request) for it in engine.of(aws.INSTANCE).values()] == [
        {"userData"}
    ] * 3
    assert [it.urn for it in engine.seen if "num.io.threads" in visible(it.request)] == []


def test_no_node_depends_on_more_the_more_nodes_there_are() -> None:
    """So that the work grows with the nodes, and no replacement takes other nodes along."""

    def dependencies(brokers: int) -> dict[str, int]:
        engine = registered(read_aws(brokers=brokers, **TWO_LISTENERS, **OWN_ZONE))
        resources = [it for it in engine.seen if it.name.endswith("-broker-2")]
        return {resource.urn: len(resource.request.dependencies) for resource in resources}

    few, many = dependencies(3), dependencies(12)
    assert few == many
    assert max(few.values()) <= 30
