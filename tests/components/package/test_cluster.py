"""A cluster through the package's host: what is registered, in which order, what is refused."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import pytest
from earshot_pulumi.package import cluster_args, patience
from pulumi.errors import InputPropertiesError
from pydantic import BaseModel

from earshot.config.aws import AwsSpec
from earshot.config.aws_parts import (
    ClientsSpec,
    InstanceSpec,
    KafkaRelease,
    VolumeSpec,
    VpcSpec,
    ZoneSpec,
)
from earshot.config.cluster import ControllerSpec
from earshot.config.listener import ListenerSpec
from earshot.user_data.boot import NodeReport, NodeState
from earshot.user_data.render import digest
from earshot.validation.contract import Contract
from tests.components.aws.registered import (
    ASSOCIATION,
    GATE,
    INSTANCE,
    PARAMETER,
    VOLUME,
    Answers,
    Engine,
    registered,
)
from tests.components.package.constructed import constructed
from tests.components.plain_inputs import secret_inputs, visible
from tests.config.aws_documents import (
    ARCHIVE,
    EXTERNAL,
    INTERNAL,
    OFFICE,
    OWN_ZONE,
    REGION,
    TWO_LISTENERS,
    ZONES,
    read_aws,
)

SMALLEST = {"region": REGION, "vpc": {"zones": ZONES}, "archive": ARCHIVE}
PUBLIC = {"listeners": [INTERNAL, EXTERNAL], "clients": OFFICE}
PREVIEW = Answers(preview=True)


@dataclass
class Reports:
    """A double of SSM: what nodes report, once their instances were registered."""

    engine: Engine | None = None
    served: bool = False
    """Whether the cluster has been in sync before, with other instances."""
    waits: list[tuple[list[str], int]] = field(default_factory=list)
    """The last parts of the parameters of each look, and how many instances there were."""

    def watch(self, engine: Engine) -> None:
        self.engine = engine

    def reader(self, config: Any, region: str) -> Any:
        assert region == REGION
        return self.read

    def history(self, config: Any, region: str, names: Sequence[str]) -> list[str]:
        assert region == REGION
        past = self.read(names)
        return list(past.values()) if self.served else []

    def read(self, names: Sequence[str]) -> dict[str, str]:
        assert self.engine is not None
        instances = self.engine.of(INSTANCE)
        self.waits.append(([name.rpartition("/")[2] for name in names], len(instances)))
        found = {}
        for name in names:
            node = name.rpartition("/")[2]
            there = instances.get(f"stack-mine-{node}")
            if there is not None or self.served:
                found[name] = self._report(node, there.inputs["userData"] if there else "old")
        return found

    def _report(self, node: str, text: str) -> str:
        return NodeReport(
            node=int(node.rpartition("-")[2]),
            instance=f"id of stack-mine-{node}",
            user_data=digest(text),
            state=NodeState.IN_SYNC,
            detail="",
            at="2026-01-01T00:00:00Z",
        ).model_dump_json()


@pytest.fixture
def reports(monkeypatch: pytest.MonkeyPatch) -> Reports:
    made = Reports()
    monkeypatch.setattr(patience, "reader", made.reader)
    monkeypatch.setattr(patience, "history", made.history)
    monkeypatch.setattr(patience, "starts", lambda *_: lambda _: {})
    return made


def kinds(engine: Engine) -> Counter[str]:
    return Counter(item.type for item in engine.seen if item.type.startswith("aws:"))


@pytest.mark.parametrize(
    ("inputs", "settings"),
    [
        ({}, {}),
        (PUBLIC, TWO_LISTENERS),
        (
            {
                **PUBLIC,
                "naming": "zone",
                "zone": {"name": "kafka.example.com", "publicZoneId": "Z0123456789ABC"},
                "controllers": {"mode": "separate"},
                "flowLogs": True,
                "pinned": {"2": ZONES[0]},
                "controllerVolume": {"sizeGib": 30},
            },
            {**TWO_LISTENERS, **OWN_ZONE, "controllers": {"mode": "separate"}, "flow_logs": True},
        ),
    ],
)
def test_the_same_is_made_as_in_a_stack_of_ours(
    inputs: dict[str, Any], settings: dict[str, Any], reports: Reports
) -> None:
    engine, _ = constructed("AwsCluster", {**SMALLEST, **inputs}, watch=reports.watch)
    assert kinds(engine) == kinds(registered(read_aws(**settings)))
    rooms = {item.type.partition(":")[0] for item in engine.seen}
    assert rooms - {"pulumi"} == {"earshot", "aws"}, "beside the stack itself"
    gate = engine.one(GATE)
    assert all(item.is_below(gate) for item in engine.of(INSTANCE).values())
    assert engine.one("earshot:aws:AwsCluster").is_below(engine.one("earshot:index:AwsCluster"))


def test_numbers_and_names_arrive_as_they_were_meant(reports: Reports) -> None:
    inputs = {
        **SMALLEST,
        "brokers": 1.0,  # as it comes over the wire
        "volume": {"sizeGib": 7.0},
        "listeners": [{**INTERNAL, "port": 19192.0, "advertised": {"1": "b1.example.com"}}],
        "heap": "3g",
    }
    engine, outputs = constructed("AwsCluster", inputs, watch=reports.watch)
    assert engine.one(VOLUME).inputs["size"] == 7
    names = [it.inputs["name"] for it in engine.of(PARAMETER).values()]
    assert names == ["/earshot/stack-mine/cluster-id", "/earshot/stack-mine/broker-1"]
    assert outputs["bootstrap"] == {"INTERNAL": "b1.example.com:19192"}
    assert "-Xmx3g" in engine.one(INSTANCE).inputs["userData"]


def test_settings_are_secrets_wherever_pulumi_keeps_them(reports: Reports) -> None:
    inputs = {**SMALLEST, "extra": {"num.io.threads": "4"}, "client": {"request.timeout.ms": "9"}}
    engine, _ = constructed("AwsCluster", inputs, watch=reports.watch)
    own = engine.one("earshot:index:AwsCluster").request
    assert secret_inputs(own) == {"extra", "client"}
    for text in ("num.io.threads", "request.timeout.ms"):
        assert [it.urn for it in engine.seen if text in visible(it.request)] == []


def test_outputs_are_what_clients_need(reports: Reports) -> None:
    engine, outputs = constructed("AwsCluster", {**SMALLEST, **PUBLIC}, watch=reports.watch)
    contract = Contract.model_validate(outputs["contract"])
    assert contract.cluster == "mine" and len(contract.brokers) == 3
    own = engine.of(PARAMETER)["stack-mine-cluster-id"].inputs["insecureValue"]
    assert contract.cluster_id == own
    assert outputs["bootstrap"] == {it.name: it.bootstrap for it in contract.listeners}
    assert outputs["instances"] == {str(n): f"id of stack-mine-broker-{n}" for n in (1, 2, 3)}
    assert outputs["vpcId"] == "id of stack-mine"
    assert len(engine.of(ASSOCIATION)) == 3


def test_a_first_preview_waits_for_nothing_and_knows_no_names(reports: Reports) -> None:
    engine, outputs = constructed("AwsCluster", {**SMALLEST, **PUBLIC}, PREVIEW, reports.watch)
    assert len(engine.of(INSTANCE)) == 3
    assert not reports.waits
    assert not {"bootstrap", "contract", "instances"} & outputs.keys()


def test_nodes_of_a_new_cluster_start_together(reports: Reports) -> None:
    constructed("AwsCluster", SMALLEST, watch=reports.watch)
    brokers = [f"broker-{id}" for id in (1, 2, 3)]
    assert reports.waits[0] == (brokers, 1), "whether it has ever served; it has not"
    assert (brokers, 3) in reports.waits, "the whole of it"


def test_a_node_is_touched_when_the_last_is_back(reports: Reports) -> None:
    reports.served = True
    constructed("AwsCluster", SMALLEST, watch=reports.watch)
    alone = [(names, count) for names, count in reports.waits if len(names) == 1]
    assert alone == [(["broker-1"], 1), (["broker-2"], 2), (["broker-3"], 3)]


@pytest.mark.parametrize(
    ("inputs", "said"),
    [
        ({"brokers": 0}, "mine: brokers: found 0; allowed: 1 or more"),
        ({"naming": "zone"}, "zone: is missing; naming zone takes"),
        ({"listeners": [INTERNAL, EXTERNAL]}, "clients.ranges: is missing"),
    ],
)
def test_what_cannot_be_is_told_in_words(inputs: dict[str, Any], said: str) -> None:
    with pytest.raises(InputPropertiesError) as caught:
        constructed("AwsCluster", {**SMALLEST, **inputs})
    assert said in caught.value.message


PARTS = {
    cluster_args.Vpc: VpcSpec,
    cluster_args.ClusterListener: ListenerSpec,
    cluster_args.Controllers: ControllerSpec,
    cluster_args.Zone: ZoneSpec,
    cluster_args.AllowedClients: ClientsSpec,
    cluster_args.NodeInstance: InstanceSpec,
    cluster_args.DataVolume: VolumeSpec,
    cluster_args.KafkaDistribution: KafkaRelease,
    cluster_args.AwsClusterArgs: AwsSpec,
}
SECURED = {"security", "mechanism", "client_auth"}
OWN = {"placement", "gate", "validation", "prove", "drained", "remove", "validator", *SECURED}
"""What a stack of ours can say, and a component cannot."""


@pytest.mark.parametrize(("args", "model"), PARTS.items(), ids=lambda it: it.__name__)
def test_the_args_are_those_of_the_spec(args: Any, model: type[BaseModel]) -> None:
    assert set(args.__annotations__) - {"names"} == set(model.model_fields) - OWN
    needed = {name for name, it in model.model_fields.items() if it.is_required()} - OWN
    assert args.__required_keys__ == needed
