"""Clusters as components: inputs, names of resources, outputs, refusals."""

from collections import Counter
from collections.abc import Mapping
from pathlib import Path
from types import MappingProxyType
from typing import Any

import pulumi
import pytest
from earshot_pulumi.local.cluster import LocalCluster
from pulumi.errors import InputPropertiesError
from pulumi.runtime import mocks

from earshot.validation.contract import Contract
from tests.components.aws.registered import (
    ASSOCIATION,
    GATE,
    INSTANCE,
    PARAMETER,
    VOLUME,
    Answers,
    registered,
)
from tests.components.constructed import constructed
from tests.components.engine_double import Engine
from tests.components.local import test_brokers as local
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
from tests.raised import raised

SMALLEST = {"region": REGION, "vpc": {"zones": ZONES}, "archive": ARCHIVE}
PUBLIC = {"listeners": [INTERNAL, EXTERNAL], "clients": OFFICE}
PREVIEW = Answers(preview=True)


@pytest.fixture(autouse=True)
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "Pulumi.yaml").write_text("name: program\n")
    monkeypatch.chdir(tmp_path)


def kinds(engine: Engine) -> Counter[str]:
    return Counter(item.type for item in engine.seen if item.type.startswith("aws:"))


def test_the_placement_of_another_cluster_is_refused() -> None:
    args: Any = {"placement": "docker"}
    with pytest.raises(
        pulumi.RunError, match="placement: found 'docker'; allowed: local, the placement"
    ):
        LocalCluster("kafka", args)


@pytest.mark.parametrize(("inputs", "settings"), [
    ({}, {}),
    (PUBLIC, TWO_LISTENERS),
    ({**PUBLIC, "naming": "zone",
      "zone": {"name": "kafka.example.com", "publicZoneId": "Z0123456789ABC"},
      "controllers": {"mode": "separate"}, "flowLogs": True, "pinned": {"2": ZONES[0]},
      "controllerVolume": {"sizeGib": 30}},
     {**TWO_LISTENERS, **OWN_ZONE, "controllers": {"mode": "separate"}, "flow_logs": True}),
])  # fmt: skip
def test_the_same_is_made_as_in_a_stack_of_ours(
    inputs: dict[str, Any], settings: dict[str, Any]
) -> None:
    engine, _ = constructed("AwsCluster", {**SMALLEST, **inputs})
    assert kinds(engine) == kinds(registered(read_aws(**settings)))
    packages = {item.type.partition(":")[0] for item in engine.seen}
    assert packages - {"pulumi"} == {"earshot", "aws"}, "beside the stack itself"
    gate = engine.one(GATE)
    assert all(item.is_below(gate) for item in engine.of(INSTANCE).values())
    assert engine.one("earshot:aws:AwsCluster").is_below(engine.one("earshot:index:AwsCluster"))


def test_numbers_and_names_arrive_as_they_were_meant() -> None:
    inputs = {
        **SMALLEST,
        "brokers": 1.0,  # as it comes over the wire
        "volume": {"sizeGib": 7.0},
        "listeners": [{**INTERNAL, "port": 19192.0, "advertised": {"1": "b1.example.com"}}],
        "heap": "3g",
    }
    engine, outputs = constructed("AwsCluster", inputs)
    assert engine.one(VOLUME).inputs["size"] == 7
    names = [it.inputs["name"] for it in engine.of(PARAMETER).values()]
    assert names == ["/earshot/stack-mine/cluster-id", "/earshot/stack-mine/broker-1"]
    assert outputs["bootstrap"] == {"INTERNAL": "b1.example.com:19192"}
    assert "-Xmx3g" in engine.one(INSTANCE).inputs["userData"]


def test_settings_are_secrets_wherever_pulumi_keeps_them() -> None:
    inputs = {**SMALLEST, "extra": {"num.io.threads": "4"}, "client": {"request.timeout.ms": "9"}}
    engine, _ = constructed("AwsCluster", inputs)
    own = engine.one("earshot:index:AwsCluster").request
    assert secret_inputs(own) == {"extra", "client"}
    for text in ("num.io.threads", "request.timeout.ms"):
        assert [it.urn for it in engine.seen if text in visible(it.request)] == []


def test_other_inputs_that_the_program_marks_are_secrets_in_all_resources() -> None:
    host = pulumi.Output.secret("kafka.example.com")
    policy = {"names": {"waived": {"kafka.example.com": pulumi.Output.secret("planted")}}}
    local_engine, _ = in_program("a", a=on_port(19000, external_host=host, policy=policy))
    archive = {**SMALLEST, "archive": lambda: pulumi.Output.secret(ARCHIVE)}
    aws_engine, _ = constructed("AwsCluster", archive)
    for engine, texts in (
        (local_engine, ("kafka.example.com:", "planted")),
        (aws_engine, (ARCHIVE["url"], ARCHIVE["sha512"])),
    ):
        for text in texts:
            assert [it.urn for it in engine.seen if text in visible(it.request)] == []
    plain_engine, _ = in_program("a", a=on_port(19000, external_host=pulumi.Output.from_input("x")))
    assert secret_inputs(plain_engine.one("earshot:index:Validation").request) == set()


def test_outputs_are_what_clients_need() -> None:
    engine, outputs = constructed("AwsCluster", {**SMALLEST, **PUBLIC})
    contract = Contract.model_validate(outputs["contract"])
    assert contract.cluster == "stack-mine" and len(contract.brokers) == 3
    own = engine.of(PARAMETER)["stack-mine-cluster-id"].inputs["insecureValue"]
    assert contract.cluster_id == own
    assert outputs["bootstrap"] == {it.name: it.bootstrap for it in contract.listeners}
    assert outputs["instances"] == {str(n): f"id of stack-mine-broker-{n}" for n in (1, 2, 3)}
    assert outputs["vpcId"] == "id of stack-mine"
    assert len(engine.of(ASSOCIATION)) == 3


def test_a_first_preview_knows_no_names() -> None:
    engine, outputs = constructed("AwsCluster", {**SMALLEST, **PUBLIC}, PREVIEW)
    assert len(engine.of(INSTANCE)) == 3
    assert not {"bootstrap", "contract", "instances"} & outputs.keys()


@pytest.mark.parametrize(
    ("inputs", "said"),
    [
        ({"brokers": 0}, "mine: brokers: found 0; allowed: 1 or more"),
        ({"naming": "zone"}, "zone: is missing; naming zone takes"),
        ({"listeners": [INTERNAL, EXTERNAL]}, "clients.ranges: is missing"),
    ],
)
def test_what_cannot_be_is_told_in_words(inputs: dict[str, Any], said: str) -> None:
    error = raised(InputPropertiesError, constructed, "AwsCluster", {**SMALLEST, **inputs})
    assert said in error.message


class OtherOutputs(local.Answers):
    """Resources of some types have further outputs."""

    def __init__(self, outputs: Mapping[str, Mapping[str, Any]]) -> None:
        super().__init__()
        self._outputs = outputs

    def new_resource(self, args: mocks.MockResourceArgs) -> tuple[str | None, dict[str, Any]]:
        id, found = super().new_resource(args)
        return id, {**found, **self._outputs.get(args.typ, {})}


def in_program(
    *names: str, outputs: Mapping[str, Mapping[str, Any]] = MappingProxyType({}), **settings: Any
) -> tuple[Engine, Any]:
    """A program with local clusters of these names; the settings of each may depend on it.

    ``outputs`` are further ones by type of resource.
    """
    answers = OtherOutputs(outputs)
    engine = Engine(answers)
    mocks.set_mocks(answers, "program", "dev", preview=False, monitor=engine)
    found: dict[str, Any] = {}

    def run() -> Any:
        made = {name: LocalCluster(name, settings[name]) for name in names}
        return pulumi.Output.all(**{name: it.bootstrap for name, it in made.items()}).apply(
            found.update
        )

    pulumi.runtime.test(run)()  # type: ignore[no-untyped-call]
    return engine, found


def on_port(port: int, **more: Any) -> dict[str, Any]:
    listeners = [
        {"name": "INTERNAL", "port": port, "scopes": ["internal"]},
        {"name": "EXTERNAL", "port": port + 10, "scopes": ["host"]},
    ]
    return {"brokers": 1, "listeners": listeners, "controllers": {"port": port + 20}, **more}


def test_two_clusters_share_a_program() -> None:
    engine, found = in_program("a", "b", a=on_port(19000), b=on_port(19100))
    ports = {
        name: {key: it.rpartition(":")[2] for key, it in own.items()} for name, own in found.items()
    }
    assert ports == {
        "a": {"INTERNAL": "19000", "EXTERNAL": "19010"},
        "b": {"INTERNAL": "19100", "EXTERNAL": "19110"},
    }
    urns = Counter((it.type, it.name) for it in engine.seen)
    assert max(urns.values()) == 1
    assert engine.of(local.NODE).keys() == {"dev-a-broker-1", "dev-b-broker-1"}


def test_the_cluster_called_like_the_stack_has_the_names_of_earlier_releases() -> None:
    engine, _ = in_program("dev", dev=on_port(19000))
    assert list(engine.of(local.NODE)) == ["broker-1"]
    for kind in ("LocalCluster", "index:Validation", "ProvedChange"):
        (one,) = [it for it in engine.seen if it.type.endswith(kind) and it.request.aliases]
        assert any(alias.spec.noParent for alias in one.request.aliases), kind


def test_a_plan_is_remembered_before_a_node_has_it_and_once_it_is_proved() -> None:
    engine, _ = in_program("dev", dev=on_port(19000))
    begun = engine.one("earshot:index:BegunChange")
    proved = engine.one("earshot:index:ProvedChange")
    assert any("BegunChange" in urn for urn in engine.one(local.NODE).request.dependencies)
    assert any("Validation" in urn for urn in proved.request.dependencies)
    assert begun.inputs["begun"] == proved.inputs["begun"]


def test_a_validation_that_an_update_leaves_out_proves_nothing() -> None:
    """The engine answers with the outputs of the last run, as for `--exclude`."""
    former = {"incarnations": {"1": "former"}, "verdict": "pass"}
    engine, _ = in_program("dev", outputs={"earshot:index:Validation": former}, dev=on_port(19000))
    assert engine.one("earshot:index:ProvedChange").inputs["verdict"] == "unproved"
    run: dict[str, Any] = {"earshot:index:Validation": {"verdict": "pass"}}
    engine, _ = in_program("dev", outputs=run, dev=on_port(19000))
    assert engine.one("earshot:index:ProvedChange").inputs["verdict"] == "pass"


def test_an_output_as_an_input_is_waited_for() -> None:
    host = pulumi.Output.from_input("kafka.example.com")
    engine, found = in_program("a", a=on_port(19000, external_host=host))
    assert found["a"]["EXTERNAL"] == "kafka.example.com:19010"
    assert len(engine.of(local.NODE)) == 1


@pytest.mark.parametrize("name", ["A", "a_b", "x" * 31, "-a", "a/b"])
def test_a_name_that_no_container_can_have_is_refused(name: str) -> None:
    with pytest.raises(pulumi.RunError, match="the name cannot be used"):
        in_program(name, **{name: on_port(19000)})


def test_problems_of_inputs_come_in_one_message_by_their_names() -> None:
    wrong = on_port(19000, heap="none", external_host="no host", policy={"KL011": "disabled"})
    error = raised(pulumi.RunError, in_program, "a_b", a_b=wrong)
    assert "cluster 'a_b': the name cannot be used" in str(error)
    assert "policy: KL011: is no key" in str(error)
    assert "heap: found 'none'; allowed: a JVM size" in str(error)
    assert "external_host: host 'no host'" in str(error)
