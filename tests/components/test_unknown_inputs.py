"""Previews that do not know all inputs of a cluster: what is shown, judged and refused."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pulumi
import pytest
from earshot_pulumi import AwsCluster, DockerCluster, LocalCluster
from earshot_pulumi.change_memory import AppliedPlan, RecordedChanges
from earshot_pulumi.docker import deployment, engine_objects, host_resources
from earshot_pulumi.gate import PROVIDER_TYPE
from earshot_pulumi.outputs import unknown
from earshot_pulumi.provider.judge import judge
from earshot_pulumi.provider.kind import UNKNOWN, InvalidInputs
from earshot_pulumi.unknown_inputs import SUFFIX
from pulumi.output import Unknown
from pulumi.runtime import mocks

from earshot.config.document import read_spec
from earshot.errors import EarshotError
from earshot.placement.docker import plan_docker
from tests.components.aws.registered import INSTANCE, INTERFACE
from tests.components.docker.test_brokers import CONTAINER
from tests.components.engine_double import Engine
from tests.components.test_options import CLUSTER, LOCAL, Everywhere
from tests.config.aws_documents import EXTERNAL, INTERNAL, OFFICE, ZONES

EXTERNAL_LOCAL = {"name": "EXTERNAL", "port": 19030, "scopes": ["external"]}
NODE = "earshot:index:LocalNode"
SPEC: Any = read_spec({"placement": "docker"}, "test")


@pytest.fixture(autouse=True)
def without_an_engine(project: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(host_resources, "clearing", lambda *_: None)  # mocks run no hooks
    monkeypatch.setattr(deployment, "check_engine", lambda _: None)


def previewed(program: Callable[[], Any]) -> tuple[Engine, dict[str, Any]]:
    """The registrations of a first preview, and the known outputs of its cluster."""
    answers = Everywhere(preview=True)
    engine = Engine(answers)
    mocks.set_mocks(answers, "program", "stack", True, monitor=engine)
    outputs: dict[str, Any] = {}

    def run() -> Any:
        return program().bootstrap.apply(
            lambda bootstrap: outputs.update(bootstrap=bootstrap), run_with_unknowns=True
        )

    pulumi.runtime.test(run)()  # type: ignore[no-untyped-call]
    return engine, outputs


def with_unknowns(value: Any) -> Any:
    """``value`` with an unknown output in place of each `unknown`."""
    if isinstance(value, dict):
        return {key: with_unknowns(part) for key, part in value.items()}
    if isinstance(value, list):
        return [with_unknowns(part) for part in value]
    return unknown() if value is unknown else value


SUBNETS = dict.fromkeys(ZONES, unknown)
VPC = {"id": unknown, "zones": ZONES, "private_subnets": SUBNETS}


def test_a_vpc_of_the_same_program_hides_no_part_of_a_cluster() -> None:
    fixed = {**INTERNAL, "advertised": {"1": "10.0.0.1", "2": "10.0.0.2", "3": "10.0.0.3"}}
    inputs: Any = {**CLUSTER, "vpc": VPC, "listeners": [fixed]}
    engine, _ = previewed(lambda: AwsCluster("kafka", with_unknowns(inputs)))
    assert len(engine.of(INSTANCE)) == len(engine.of(INTERFACE)) == 3
    assert all(
        isinstance(interface.inputs.get("subnetId", pulumi.UNKNOWN), Unknown)
        for interface in engine.of(INTERFACE).values()
    )
    resources = [resource for resource in engine.seen if resource.type.startswith("aws:")]
    assert "ffffffff" not in str([resource.inputs for resource in resources])
    assert judge(engine.gate, lambda *_: None)["approved"] is UNKNOWN, "though all names are known"


def test_an_unknown_host_is_marked_in_the_plan_and_not_approved() -> None:
    listeners = [*LOCAL["listeners"], EXTERNAL_LOCAL]
    inputs: Any = {**LOCAL, "external_host": unknown(), "listeners": listeners}
    engine, outputs = previewed(lambda: LocalCluster("kafka", inputs))
    assert len(engine.of(NODE)) == 1
    (node,) = engine.gate["plan"]["nodes"]
    hosts = {listener["name"]: listener["host"] for listener in node["listeners"]}
    assert hosts["EXTERNAL"] == {"what": "external_host"} and hosts["INTERNAL"] == "localhost"
    assert SUFFIX not in str(outputs)
    shown: list[str] = []
    assert judge(engine.gate, lambda text, _: shown.append(text))["approved"] is UNKNOWN
    assert [text.splitlines()[0] for text in shown] == [
        f"not checked: broker 1, listener {name} (scope external): "
        "its host is not known yet: external_host [KL011]"
        for name in ("HOST", "EXTERNAL")
    ]


def bad_external(listener: dict[str, Any], name: str) -> dict[str, Any]:
    return {**listener, "advertised": {"1": name}}


@pytest.mark.parametrize(("kind", "inputs", "name"), [
    (LocalCluster,
     {**LOCAL, "external_host": "kafka.example.com", "extra": {"num.io.threads": unknown},
      "listeners": [*LOCAL["listeners"], bad_external(EXTERNAL_LOCAL, "127.0.0.1")]}, "127.0.0.1"),
    (AwsCluster, {**CLUSTER, "vpc": {**VPC, "public_subnets": SUBNETS},
                  "listeners": [INTERNAL, bad_external(EXTERNAL, "localhost")], "clients": OFFICE},
     "localhost"),
])  # fmt: skip
def test_a_bad_name_is_refused_though_another_input_is_unknown(
    kind: Any, inputs: dict[str, Any], name: str
) -> None:
    engine, _ = previewed(lambda: kind("kafka", with_unknowns(inputs)))
    with pytest.raises(InvalidInputs, match=f"listener EXTERNAL .* advertises {name}"):
        judge(engine.gate, lambda *_: None)


@pytest.mark.parametrize(
    ("inputs", "path"),
    [
        ({"hosts": [{"external": unknown}]}, "hosts[0].external"),
        ({"network": unknown}, "network"),
        ({"hosts": [{"engine": unknown}]}, "hosts[0].engine"),
        ({"extra": {"num.io.threads": unknown}}, "extra.num.io.threads"),
    ],
)
def test_containers_are_shown_with_their_known_parts(inputs: Any, path: str) -> None:
    whole: Any = {"brokers": 1, **with_unknowns(inputs)}
    engine, _ = previewed(lambda: DockerCluster("kafka", whole))
    assert list(engine.of(CONTAINER)) == ["stack-kafka-broker-1"]
    assert engine.gate["unknown"] == [path]
    judge(engine.gate, lambda *_: None)
    assert SUFFIX not in str([it.inputs for it in engine.seen if it.type.startswith("docker:")])


def no_answer(_: Any) -> None:
    raise EarshotError("Docker engine at unix:///x", observed="does not answer (no socket)")


def test_a_first_preview_needs_no_engine(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(deployment, "check_engine", no_answer)
    engine, _ = previewed(lambda: DockerCluster("kafka", {"brokers": 1}))
    assert list(engine.of(CONTAINER)) == ["stack-kafka-broker-1"]
    assert isinstance(engine.one("pulumi:providers:docker").inputs["host"], Unknown)
    assert engine.gate["unknown"] == ["hosts[0].engine"]
    checked = engine.one("earshot:index:EnginePreflight").inputs
    assert not engine_objects.can_be_asked(checked)
    wrong: Any = {"hosts": [{"external": "127.0.0.1"}]}
    engine, _ = previewed(lambda: DockerCluster("kafka", wrong))
    with pytest.raises(InvalidInputs, match=r"listener EXTERNAL .* advertises 127\.0\.0\.1"):
        judge(engine.gate, lambda *_: None)


def test_a_preview_of_a_cluster_that_runs_asks_its_engine(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(deployment, "check_engine", no_answer)
    begun = RecordedChanges(begun=(AppliedPlan(plan_docker(SPEC, "x", Path("x")).plan, {}),))
    monkeypatch.setattr(deployment, "recorded_changes", lambda *_: begun)
    engine, _ = previewed(lambda: DockerCluster("kafka", {"brokers": 1}))
    assert not isinstance(engine.one("pulumi:providers:docker").inputs["host"], Unknown)


@pytest.mark.parametrize(
    ("kind", "inputs"),
    [
        (LocalCluster, {**LOCAL, "brokers": unknown}),
        (AwsCluster, {**CLUSTER, "vpc": {"zones": unknown}}),
        (DockerCluster, {"listeners": unknown}),
    ],
)
def test_a_cluster_of_unknown_shape_is_not_shown(kind: Any, inputs: dict[str, Any]) -> None:
    engine, _ = previewed(lambda: kind("kafka", with_unknowns(inputs)))
    assert not engine.of(PROVIDER_TYPE)
