"""Previews that do not know all inputs of a cluster: what is shown, judged and refused."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pulumi
import pytest
from earshot_pulumi import AwsCluster, DockerCluster, LocalCluster
from earshot_pulumi.change_memory import AppliedPlan, RecordedChanges
from earshot_pulumi.docker import deployment, host_resources, on_engines
from earshot_pulumi.gate import PROVIDER_TYPE
from earshot_pulumi.judge import judge
from earshot_pulumi.outputs import unknown
from earshot_pulumi.provider.kind import UNKNOWN, InvalidInputs
from earshot_pulumi.unknown_inputs import SUFFIX
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
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "Pulumi.yaml").write_text("name: program\n")
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("DOCKER_HOST", raising=False)
    monkeypatch.setattr(host_resources, "clearing", lambda *_: None)  # mocks run no hooks
    monkeypatch.setattr(deployment, "check_engine", lambda _: None)


def previewed(program: Callable[[], Any]) -> tuple[Engine, dict[str, Any]]:
    """The registrations of a first preview, and the known outputs of its cluster."""
    answers = Everywhere(preview=True)
    engine = Engine(answers)
    mocks.set_mocks(answers, "program", "stack", True, monitor=engine)
    found: dict[str, Any] = {}

    def run() -> Any:
        made = program()
        return made.bootstrap.apply(lambda it: found.update(bootstrap=it), run_with_unknowns=True)

    pulumi.runtime.test(run)()  # type: ignore[no-untyped-call]
    return engine, found


def gate(engine: Engine) -> dict[str, Any]:
    """The inputs of the gate, as its check gets them."""
    return plain(engine.one(PROVIDER_TYPE).inputs)  # type: ignore[no-any-return]


def plain(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: plain(it) for key, it in value.items()}
    if isinstance(value, list):
        return [plain(it) for it in value]
    return UNKNOWN if isinstance(value, pulumi.output.Unknown) else value


def test_a_vpc_of_the_same_program_hides_nothing_of_a_cluster() -> None:
    subnets = {zone: unknown() for zone in ZONES}
    inputs: Any = {**CLUSTER, "vpc": {"id": unknown(), "zones": ZONES, "private_subnets": subnets}}
    engine, _ = previewed(lambda: AwsCluster("kafka", inputs))
    assert len(engine.of(INSTANCE)) == len(engine.of(INTERFACE)) == 3
    assert all(
        "subnetId" not in it.inputs or plain(it.inputs["subnetId"]) is UNKNOWN
        for it in engine.of(INTERFACE).values()
    )
    assert "ffffffff" not in str([it.inputs for it in engine.seen if it.type.startswith("aws:")])


def test_an_unknown_host_is_a_marker_of_the_plan_and_an_unknown_of_the_outputs() -> None:
    inputs: Any = {**LOCAL, "external_host": unknown()}
    inputs["listeners"] = [*LOCAL["listeners"], EXTERNAL_LOCAL]
    engine, found = previewed(lambda: LocalCluster("kafka", inputs))
    assert len(engine.of(NODE)) == 1
    (node,) = gate(engine)["plan"]["nodes"]
    hosts = {it["name"]: it["host"] for it in node["listeners"]}
    assert hosts["EXTERNAL"] == {"what": "external_host"} and hosts["INTERNAL"] == "localhost"
    assert SUFFIX not in str(found)


def test_the_gate_says_which_names_it_could_not_judge_and_does_not_approve() -> None:
    inputs: Any = {**LOCAL, "external_host": unknown()}
    inputs["listeners"] = [*LOCAL["listeners"], EXTERNAL_LOCAL]
    engine, _ = previewed(lambda: LocalCluster("kafka", inputs))
    shown: list[str] = []
    judged = judge(gate(engine), lambda text, _: shown.append(text))
    assert judged["approved"] is UNKNOWN
    assert [text.splitlines()[0] for text in shown] == [
        f"broker 1, listener {name} (scope external): its host is not known yet: external_host"
        " [KL011]"
        for name in ("HOST", "EXTERNAL")
    ]


def test_inputs_that_are_no_names_are_not_approved_either() -> None:
    subnets = {zone: unknown() for zone in ZONES}
    vpc = {"id": unknown(), "zones": ZONES, "private_subnets": subnets}
    fixed = {**INTERNAL, "advertised": {"1": "10.0.0.1", "2": "10.0.0.2", "3": "10.0.0.3"}}
    inputs: Any = {**CLUSTER, "vpc": vpc, "listeners": [fixed]}
    engine, _ = previewed(lambda: AwsCluster("kafka", inputs))
    assert judge(gate(engine), lambda *_: None)["approved"] is UNKNOWN


def test_a_bad_name_is_refused_though_another_input_is_unknown() -> None:
    bad = {**EXTERNAL_LOCAL, "advertised": {"1": "127.0.0.1"}}
    inputs: Any = {
        **LOCAL,
        "external_host": "kafka.example.com",
        "extra": {"num.io.threads": unknown()},
    }
    inputs["listeners"] = [*LOCAL["listeners"], bad]
    engine, _ = previewed(lambda: LocalCluster("kafka", inputs))
    with pytest.raises(InvalidInputs, match=r"listener EXTERNAL .* advertises 127\.0\.0\.1"):
        judge(gate(engine), lambda *_: None)


def test_a_bad_name_on_aws_is_refused_though_the_vpc_is_unknown() -> None:
    wrong = {**EXTERNAL, "advertised": {"1": "localhost"}}
    subnets = {zone: unknown() for zone in ZONES}
    vpc = {"id": unknown(), "zones": ZONES, "public_subnets": subnets, "private_subnets": subnets}
    inputs: Any = {**CLUSTER, "vpc": vpc, "listeners": [INTERNAL, wrong], "clients": OFFICE}
    engine, _ = previewed(lambda: AwsCluster("kafka", inputs))
    with pytest.raises(InvalidInputs, match=r"listener EXTERNAL .* advertises localhost"):
        judge(gate(engine), lambda *_: None)


@pytest.mark.parametrize(
    ("inputs", "path"),
    [
        ({"hosts": [{"external": unknown}]}, "hosts[0].external"),
        ({"network": unknown}, "network"),
        ({"hosts": [{"engine": unknown}]}, "hosts[0].engine"),
        ({"extra": {"num.io.threads": unknown}}, "extra.num.io.threads"),
    ],
)
def test_containers_are_shown_with_what_is_known_of_them(inputs: Any, path: str) -> None:
    def filled(value: Any) -> Any:
        if isinstance(value, dict):
            return {key: filled(it) for key, it in value.items()}
        return [filled(it) for it in value] if isinstance(value, list) else value and value()

    whole: Any = {"brokers": 1, **filled(inputs)}
    engine, _ = previewed(lambda: DockerCluster("kafka", whole))
    assert list(engine.of(CONTAINER)) == ["stack-kafka-broker-1"]
    assert gate(engine)["unknown"] == [path]
    judge(gate(engine), lambda *_: None)
    assert SUFFIX not in str([it.inputs for it in engine.seen if it.type.startswith("docker:")])


def silent(_: Any) -> None:
    raise EarshotError("Docker engine at unix:///x", observed="does not answer (no socket)")


def test_a_first_preview_needs_no_engine(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(deployment, "check_engine", silent)
    engine, _ = previewed(lambda: DockerCluster("kafka", {"brokers": 1}))
    assert list(engine.of(CONTAINER)) == ["stack-kafka-broker-1"]
    assert plain(engine.one("pulumi:providers:docker").inputs["host"]) is UNKNOWN
    assert gate(engine)["unknown"] == ["hosts[0].engine"]
    checked = engine.one("earshot:index:EnginePreflight").inputs
    assert not on_engines.can_be_asked(checked)
    wrong: Any = {"hosts": [{"external": "127.0.0.1"}]}
    engine, _ = previewed(lambda: DockerCluster("kafka", wrong))
    with pytest.raises(InvalidInputs, match=r"listener EXTERNAL .* advertises 127\.0\.0\.1"):
        judge(gate(engine), lambda *_: None)


def test_a_preview_of_a_cluster_that_runs_asks_its_engine(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(deployment, "check_engine", silent)
    begun = RecordedChanges(begun=(AppliedPlan(plan_docker(SPEC, "x", Path("x")).plan, {}),))
    monkeypatch.setattr(deployment, "recorded_changes", lambda *_: begun)
    engine, _ = previewed(lambda: DockerCluster("kafka", {"brokers": 1}))
    assert plain(engine.one("pulumi:providers:docker").inputs["host"]) is not UNKNOWN


@pytest.mark.parametrize(
    ("kind", "inputs", "path"),
    [
        (LocalCluster, {**LOCAL, "brokers": unknown}, "brokers"),
        (AwsCluster, {**CLUSTER, "vpc": {"zones": unknown}}, "vpc.zones"),
        (DockerCluster, {"listeners": unknown}, "listeners"),
    ],
)
def test_without_its_shape_nothing_of_a_cluster_is_shown(
    kind: Any, inputs: dict[str, Any], path: str, caplog: pytest.LogCaptureFixture
) -> None:
    filled = {
        key: {"zones": unknown()} if key == "vpc" and path == "vpc.zones" else it
        for key, it in inputs.items()
    }
    filled = {key: unknown() if it is unknown else it for key, it in filled.items()}
    engine, _ = previewed(lambda: kind("kafka", filled))
    assert not engine.of(PROVIDER_TYPE)
