"""`earshot validate` around the validation itself, for which a double stands here."""

from collections.abc import Callable, Sequence
from pathlib import Path

import pytest

from earshot.cli import discovery, run
from earshot.cli import validate as command
from earshot.doctor.draft import Draft
from earshot.doctor.targets import targets_of
from earshot.listeners.address import Address, read_address
from earshot.listeners.terms import Protocol
from earshot.placement import plan_stack
from earshot.placement.standpoint import CandidateEngine, Standpoint, docker_standpoints, to_json
from earshot.project import Project
from earshot.remote.run import KnownReports
from earshot.report.json import read_report
from earshot.spark.run import ValidationOptions
from earshot.validation.contract import Contract
from earshot.validation.result import Report
from earshot.validation.terms import Verdict
from tests.doubles.closed_port import closed_port
from tests.raised import raised
from tests.remote.contracts import docker_contract
from tests.report import samples

STACK = """\
config:
  earshot:cluster:
    placement: local
    validation: {records: 42, deadline: 77}
"""


class Double:
    """Stands for `validate`: keeps what it was asked, and returns a crafted report."""

    def __init__(self, report: Report) -> None:
        self.report = report
        self.contract: Contract | None = None
        self.options = ValidationOptions()
        self.interrupted: BaseException | None = None

    def __call__(
        self,
        contract: Contract,
        options: ValidationOptions,
        on_event: Callable[[str], None],
        draft: Draft,
    ) -> Report:
        self.contract, self.options = contract, options
        on_event("a step \x1b[2J")
        if self.interrupted is not None:
            draft.targets = targets_of(contract)
            draft.cells[0] = samples.cell("INTERNAL", 1)
            raise self.interrupted
        return self.report


@pytest.fixture
def double(monkeypatch: pytest.MonkeyPatch) -> Double:
    double = Double(samples.all_pass())
    monkeypatch.setattr(command, "prove", double)
    return double


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Project:
    (tmp_path / "Pulumi.yaml").write_text("name: earshot\n")
    (tmp_path / "Pulumi.local.yaml").write_text(STACK)
    monkeypatch.chdir(tmp_path)
    project = Project(tmp_path)
    plan = plan_stack(project.read_cluster("local"), "local", tmp_path).plan
    file = project.contract_file("local")
    file.parent.mkdir(parents=True)
    file.write_text(Contract.of(plan, "local", "local").to_json())
    return project


def test_a_stack_says_how_much_and_keeps_its_report(
    project: Project, double: Double, capsys: pytest.CaptureFixture[str]
) -> None:
    double.report = double.report.model_copy(update={"notes": ("noted",)})
    assert run(["validate", "--stack", "local"]) == 0
    assert (double.options.records, double.options.deadline) == (42, 77.0)
    assert (double.options.vantage, double.options.record) == ("host", True)
    kept = read_report(project.report_file("local").read_bytes(), "file")
    assert kept == double.report.model_copy(update={"incarnations": {}})
    captured = capsys.readouterr()
    assert captured.out.startswith("earshot validation: PASS")
    assert captured.err == "a step \\u001b[2J\n"


def test_a_report_that_cannot_be_kept_is_shown(
    project: Project, double: Double, capsys: pytest.CaptureFixture[str]
) -> None:
    project.report_file("local").mkdir()
    assert run(["validate", "--stack", "local"]) == 2
    captured = capsys.readouterr()
    assert captured.out.startswith("earshot validation: PASS")
    assert "report.json: cannot be written" in captured.err


def test_options_go_before_the_stack_file(project: Project, double: Double) -> None:
    arguments = ["--records", "7", "--deadline", "20", "--jars", "a.jar, b.jar"]
    more = ["--jars-dir", "jars", "--conf", "spark.master=local[2]", "--conf", "spark.a=b=c"]
    assert run(["validate", "--stack", "local", *arguments, *more]) == 0
    assert (double.options.records, double.options.deadline) == (7, 20.0)
    assert double.options.jars == (Path("a.jar"), Path("b.jar"))
    assert double.options.jars_dir == Path("jars")
    assert double.options.spark_conf == {"spark.master": "local[2]", "spark.a": "b=c"}


def test_a_contract_and_its_incarnations_reach_the_report(project: Project, double: Double) -> None:
    arguments = ["validate", "--contract", str(project.contract_file("local"))]
    more = ["--incarnations", '{"broker-1": "7@8"}', "-o", "out.json"]
    assert run([*arguments, *more]) == 0
    report = read_report(Path("out.json").read_bytes(), "out.json")
    assert report.incarnations == {"broker-1": "7@8"}
    assert not project.report_file("local").exists()


@pytest.mark.parametrize(("name", "code"), [("dead_broker", 1), ("inconclusive", 3)])
def test_the_exit_code_is_the_verdict(
    name: str, code: int, project: Project, double: Double
) -> None:
    double.report = samples.ALL[name]()
    assert run(["validate", "--stack", "local"]) == code
    assert project.report_file("local").exists()


def test_client_properties_reach_the_run(project: Project, double: Double) -> None:
    Path("client.properties").write_text("security.protocol=SASL_SSL\nsasl.mechanism: PLAIN\n")
    assert run(["validate", "-s", "local", "--client-config", "client.properties"]) == 0
    assert double.options.client == {"security.protocol": "SASL_SSL", "sasl.mechanism": "PLAIN"}


def test_a_secured_stacks_own_credentials_reach_the_run_unless_others_are_given(
    project: Project, double: Double
) -> None:
    file = project.credentials_file("local")
    file.parent.mkdir(parents=True)
    file.write_text("sasl.mechanism=SCRAM-SHA-512\n")
    assert run(["validate", "-s", "local"]) == 0
    assert double.options.client == {"sasl.mechanism": "SCRAM-SHA-512"}
    Path("client.properties").write_text("sasl.mechanism=PLAIN\n")
    assert run(["validate", "-s", "local", "--client-config", "client.properties"]) == 0
    assert double.options.client == {"sasl.mechanism": "PLAIN"}
    assert run(["validate", "--contract", str(project.contract_file("local"))]) == 0
    assert double.options.client == {}


@pytest.mark.parametrize(
    ("arguments", "observed"),
    [
        (
            ["--conf", "master=yarn"],
            "--conf master=yarn: is no Spark property\n  allowed: spark.KEY=VALUE\n",
        ),
        (["--conf", "spark.master"], "is no Spark property"),
        (["--incarnations", "{"], "--incarnations: is not JSON (Expecting"),
        (["--incarnations", "[" * 100_000], "--incarnations: is not JSON (maximum recursion"),
        (["--incarnations", "[1]"], "--incarnations: found [1]\n  allowed: a JSON object\n"),
        (
            ["--output", "report.pdf"],
            "its suffix names no format\n  allowed: .txt, .json, .xml, .md, .html\n",
        ),
        (["--output", "."], "--output .: its suffix names no format"),
        (["--bootstrap", "a:1"], "--bootstrap: is given with a contract"),
    ],
)
def test_wrong_options_are_found_before_anything_runs(
    arguments: list[str],
    observed: str,
    project: Project,
    double: Double,
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert run(["validate", "--stack", "local", *arguments]) == 2
    assert observed in capsys.readouterr().err
    assert double.contract is None


def seen(cells: list[tuple[str, int, str]]) -> Report:
    """What the doctor makes of addresses alone: listeners are called by them."""
    good = samples.cell("EXTERNAL", 1)
    changes = [
        {"listener": asked, "broker": broker, "address": read_address(address)}
        for asked, broker, address in cells
    ]
    found = [good.model_copy(update=change) for change in changes]
    return samples.report(found, cluster="Xq1", placement="", kafka_version="")


def test_without_a_contract_the_cluster_is_asked(
    double: Double, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    report = seen([("a:1,b:1", 1, "a:1"), ("a:1,b:1", 2, "b:1"), ("c:2", 1, "[::1]:2")])
    monkeypatch.setattr(discovery, "examine", lambda *_, **__: report)
    assert run(["validate", "--bootstrap", "a:1,b:1,c:2"]) == 0
    contract = double.contract
    assert contract is not None
    assert [item.bootstrap for item in contract.listeners] == ["a:1,b:1", "[::1]:2"]
    assert contract.brokers[0].advertised["LISTENER_2"].address == Address("::1", 2)
    assert [broker.id for broker in contract.brokers] == [1, 2]
    assert contract.listeners[0].protocol is Protocol.PLAINTEXT
    assert "LISTENER_2 is what c:2 led to" in capsys.readouterr().out


def test_an_address_that_named_no_broker_does_not_pass(
    double: Double, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    report = seen([("a:1", 1, "a:1"), ("b:1", -1, "b:1")])
    lacking = report.cells[1].model_copy(update={"verdict": Verdict.FAIL, "stages": ()})
    report = report.model_copy(update={"cells": (report.cells[0], lacking)})
    monkeypatch.setattr(discovery, "examine", lambda *_, **__: report)
    assert run(["validate", "--bootstrap", "a:1,b:1"]) == 1
    assert "unknown broker (b:1)" in capsys.readouterr().out
    assert double.contract is not None and [it.id for it in double.contract.brokers] == [1]


def test_who_never_said_its_id_is_no_broker_of_the_contract() -> None:
    report = seen([("a:1", 0, "a:1"), ("b:1", -1, "b:1"), ("c:1", 3, "c:1")])
    contract, notes = discovery.contract_of(report, Protocol.SSL)
    assert [broker.id for broker in contract.brokers] == [0, 3]
    assert notes == ("LISTENER_1 is what a:1 led to", "LISTENER_2 is what c:1 led to")
    assert contract.cluster_id == report.cluster_id
    assert {item.protocol for item in contract.listeners} == {Protocol.SSL}
    unsaid = report.model_copy(update={"cluster_id": ""})
    assert discovery.contract_of(unsaid, Protocol.SSL)[0].cluster_id is None
    unanswered = report.model_copy(update={"cells": (report.cells[1],)})
    error = raised(discovery.NoBrokerAnswered, discovery.contract_of, unanswered, Protocol.SSL)
    assert error.report == unanswered


def test_if_no_address_answers_the_doctors_report_says_why(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    with closed_port() as address:
        assert run(["validate", "--bootstrap", str(address)]) == 1
    printed = capsys.readouterr().out
    assert f"{address} refused the connection" in printed
    assert "correct the bootstrap address" in printed


class EverywhereDouble:
    """Stands for `validate_from`: keeps what it was asked, and returns a crafted report."""

    standpoints: Sequence[Standpoint] | None = None
    only: Sequence[str] = ()
    interrupted: BaseException | None = None

    def __call__(
        self,
        standpoints: Sequence[Standpoint],
        contract: Contract,
        options: ValidationOptions,
        on_event: Callable[[str], None],
        only: Sequence[str],
        known: KnownReports,
    ) -> Report:
        self.standpoints, self.only = standpoints, only
        if self.interrupted is not None:
            raise self.interrupted
        return samples.vantages()


@pytest.fixture
def everywhere(monkeypatch: pytest.MonkeyPatch) -> EverywhereDouble:
    double = EverywhereDouble()
    monkeypatch.setattr(command, "validate_from", double)
    return double


def test_an_interrupted_validation_tells_what_it_knows(
    project: Project, double: Double, capsys: pytest.CaptureFixture[str]
) -> None:
    """What the doctor passed is not proven without Spark."""
    double.interrupted = KeyboardInterrupt()
    assert run(["validate", "--stack", "local"]) == 130
    out, errors = capsys.readouterr()
    assert "earshot validation: INCONCLUSIVE" in out and "0 of " in out
    assert out.count("not decided: interrupted") >= 1
    assert errors.endswith("interrupted\n")


def test_an_interrupted_validation_from_several_vantages_tells_what_it_knows(
    containers: Project, everywhere: EverywhereDouble, capsys: pytest.CaptureFixture[str]
) -> None:
    containers.contract_file("docker").with_name("vantages.json").write_text(to_json(PLACES))
    everywhere.interrupted = SystemExit(143)
    assert run(["validate", "--stack", "docker"]) == 143
    out, _ = capsys.readouterr()
    assert "not decided: terminated" in out


@pytest.fixture
def containers(project: Project) -> Project:
    """The project, whose stack `docker` was deployed and left its contract."""
    file = project.contract_file("docker")
    file.parent.mkdir(parents=True)
    file.write_text(docker_contract().to_json())
    return project


PLACES = docker_standpoints(docker_contract(), [CandidateEngine()], "dev")


def test_a_stack_says_where_to_stand(
    containers: Project, everywhere: EverywhereDouble, double: Double
) -> None:
    containers.contract_file("docker").with_name("vantages.json").write_text(to_json(PLACES))
    assert run(["validate", "--stack", "docker", "--only", "host", "--only", "internal"]) == 1
    assert everywhere.standpoints == PLACES
    assert everywhere.only == ("host", "internal")
    assert double.contract is None
    kept = read_report(containers.report_file("docker").read_bytes(), "file")
    assert [item.name for item in kept.vantages] == ["internal", "host", "external"]


@pytest.mark.parametrize(
    ("arguments", "asked"),
    [
        ([], False),
        (["--only", "internal"], False),
        (["--only", "external"], True),
        (["--client-config", "client.properties"], True),
    ],
)
def test_what_a_deploy_leaves_out_is_looked_at_where_it_is_asked_for(
    arguments: list[str], asked: bool, containers: Project, everywhere: EverywhereDouble
) -> None:
    left = {"ALICE": "it takes SSL"}
    places = [
        item.model_copy(update={"without": left}) if item.name == "external" else item
        for item in PLACES
    ]
    containers.contract_file("docker").with_name("vantages.json").write_text(to_json(places))
    Path("client.properties").write_text("security.protocol=SSL\n")
    run(["validate", "--stack", "docker", *arguments])
    assert everywhere.standpoints is not None
    found = {item.name: item.without for item in everywhere.standpoints}
    assert found["external"] == ({} if asked else left)


def test_a_file_says_where_to_stand(containers: Project, everywhere: EverywhereDouble) -> None:
    Path("places.json").write_text(to_json(PLACES[:1]))
    contract = str(containers.contract_file("docker"))
    assert run(["validate", "--contract", contract, "--vantages", "places.json"]) == 1
    assert everywhere.standpoints == PLACES[:1] and everywhere.only == ()


def test_a_docker_contract_alone_tells_only_of_this_machine(
    containers: Project, everywhere: EverywhereDouble
) -> None:
    run(["validate", "--contract", str(containers.contract_file("docker"))])
    assert everywhere.standpoints == command.HOST_ALONE


def test_a_place_with_a_name_validates_everything_itself(
    containers: Project, everywhere: EverywhereDouble, double: Double
) -> None:
    contract = str(containers.contract_file("docker"))
    assert run(["validate", "--contract", contract, "--vantage", "laptop"]) == 0
    assert everywhere.standpoints is None
    assert (double.options.vantage, double.options.record) == ("laptop", False)
    assert double.contract == docker_contract()


@pytest.mark.parametrize(
    ("arguments", "observed"),
    [
        (["--vantage", "a", "--only", "b"], "--vantage and --only: are both given"),
        (["--vantage", "a", "--vantages", "f"], "--vantage and --vantages: are both given"),
        (["--vantages", "none.json"], "none.json: cannot be read"),
        (["--only", "host"], "there is one vantage: this machine"),
    ],
)
def test_wrong_places_are_found_before_anything_runs(
    arguments: list[str],
    observed: str,
    project: Project,
    double: Double,
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert run(["validate", "--stack", "local", *arguments]) == 2
    assert observed in capsys.readouterr().err
    assert double.contract is None
