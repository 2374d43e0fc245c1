"""`earshot validate`, with a double of the validation itself."""

from collections.abc import Callable, Sequence
from pathlib import Path

import pytest

from earshot.cli import discovery
from earshot.cli import validate as command
from earshot.doctor.draft import Draft
from earshot.doctor.targets import targets_of
from earshot.listeners.address import Address, read_address
from earshot.listeners.terms import Protocol
from earshot.placement.standpoint import CandidateEngine, Standpoint, docker_standpoints, to_json
from earshot.project import Project
from earshot.remote.run import KnownReports
from earshot.report.json import read_report
from earshot.spark.run import ValidationOptions
from earshot.validation.contract import Contract
from earshot.validation.result import Report
from earshot.validation.terms import Verdict
from tests.cli.command import Earshot, save_contract, save_stack
from tests.doubles.closed_port import closed_port
from tests.raised import raised
from tests.remote.contracts import docker_contract
from tests.report import samples


class Double:
    """Stands for `validate`: keeps its arguments, and returns a crafted report."""

    def __init__(self) -> None:
        self.report = samples.all_pass()
        self.contract: Contract | None = None
        self.options = ValidationOptions()
        self.interrupt: BaseException | None = None

    def __call__(
        self,
        contract: Contract,
        options: ValidationOptions,
        on_event: Callable[[str], None],
        draft: Draft,
    ) -> Report:
        self.contract, self.options = contract, options
        on_event("a step \x1b[2J")
        if self.interrupt is not None:
            draft.targets = targets_of(contract)
            draft.cells[0] = samples.cell("INTERNAL", 1)
            raise self.interrupt
        return self.report


@pytest.fixture
def double(monkeypatch: pytest.MonkeyPatch) -> Double:
    double = Double()
    monkeypatch.setattr(command, "prove", double)
    return double


@pytest.fixture
def deployed(project: Project) -> Project:
    """The project, whose stack `local` has a contract."""
    save_stack(project, "local", placement="local", validation={"records": 42, "deadline": 77})
    save_contract(project, "local")
    return project


def test_the_stack_file_has_options_and_the_report_is_stored(
    deployed: Project, double: Double, earshot: Earshot
) -> None:
    double.report = double.report.model_copy(update={"notes": ("noted",)})
    code, output, errors = earshot("validate --stack local")
    assert (double.options.records, double.options.deadline) == (42, 77.0)
    assert (double.options.vantage, double.options.record) == ("host", True)
    report = read_report(deployed.report_file("local").read_bytes(), "file")
    assert report == double.report.model_copy(update={"incarnations": {}})
    assert output.startswith("earshot validation: PASS")
    assert (code, errors) == (0, "a step \\u001b[2J\n")


def test_a_report_that_cannot_be_stored_is_shown(
    deployed: Project, double: Double, earshot: Earshot
) -> None:
    deployed.report_file("local").mkdir()
    code, output, errors = earshot("validate --stack local")
    assert code == 2 and output.startswith("earshot validation: PASS")
    assert "report.json: cannot be written" in errors


def test_options_outweigh_the_stack_file(
    deployed: Project, double: Double, earshot: Earshot
) -> None:
    line = "validate --stack local --records 7 --deadline 20 --jars-dir jars"
    conf = ["--conf", "spark.master=local[2]", "--conf", "spark.a=b=c", "--jars", "a.jar, b.jar"]
    assert earshot(line, *conf).code == 0
    assert (double.options.records, double.options.deadline) == (7, 20.0)
    assert double.options.jars == (Path("a.jar"), Path("b.jar"))
    assert double.options.jars_dir == Path("jars")
    assert double.options.spark_conf == {"spark.master": "local[2]", "spark.a": "b=c"}


def test_a_contract_and_its_incarnations_are_in_the_report(
    deployed: Project, double: Double, earshot: Earshot
) -> None:
    line = f"validate --contract {deployed.contract_file('local')} -o out.json --incarnations"
    assert earshot(line, '{"broker-1": "7@8"}').code == 0
    report = read_report(Path("out.json").read_bytes(), "out.json")
    assert report.incarnations == {"broker-1": "7@8"}
    assert not deployed.report_file("local").exists()


@pytest.mark.parametrize(("name", "code"), [("dead_broker", 1), ("inconclusive", 3)])
def test_the_exit_code_is_the_verdict(
    name: str, code: int, deployed: Project, double: Double, earshot: Earshot
) -> None:
    double.report = samples.ALL[name]()
    assert earshot("validate --stack local").code == code
    assert deployed.report_file("local").exists()


def test_the_credentials_of_a_secured_stack_are_used_unless_others_are_given(
    deployed: Project, double: Double, earshot: Earshot
) -> None:
    file = deployed.credentials_file("local")
    file.parent.mkdir(parents=True)
    file.write_text("sasl.mechanism=SCRAM-SHA-512\n")
    assert earshot("validate -s local").code == 0
    assert double.options.client == {"sasl.mechanism": "SCRAM-SHA-512"}
    Path("client.properties").write_text("security.protocol=SASL_SSL\nsasl.mechanism: PLAIN\n")
    assert earshot("validate -s local --client-config client.properties").code == 0
    assert double.options.client == {"security.protocol": "SASL_SSL", "sasl.mechanism": "PLAIN"}
    assert earshot(f"validate --contract {deployed.contract_file('local')}").code == 0
    assert double.options.client == {}


@pytest.mark.parametrize(("options", "observed"), [
    ("--conf master=yarn",
     "--conf master=yarn: is no Spark property\n  allowed: spark.KEY=VALUE\n"),
    ("--conf spark.master", "is no Spark property"),
    ("--incarnations {", "--incarnations: is not JSON (Expecting"),
    ("--incarnations " + "[" * 100_000, "--incarnations: is not JSON (maximum recursion"),
    ("--incarnations [1]", "--incarnations: found [1]\n  allowed: a JSON object\n"),
    ("--output report.pdf",
     "its suffix names no format\n  allowed: .txt, .json, .xml, .md, .html\n"),
    ("--output .", "--output .: its suffix names no format"),
    ("--bootstrap a:1", "--bootstrap: is given with a contract"),
    ("--vantage a --only b", "--vantage and --only: are both given"),
    ("--vantage a --vantages f", "--vantage and --vantages: are both given"),
    ("--vantages none.json", "none.json: cannot be read"),
    ("--only host", "there is one vantage: this machine"),
], ids=lambda text: text[:40])  # fmt: skip
def test_wrong_options_are_refused_before_anything_runs(
    options: str, observed: str, deployed: Project, double: Double, earshot: Earshot
) -> None:
    assert observed in earshot.refusal(f"validate --stack local {options}")
    assert double.contract is None


def doctor_report(cells: list[tuple[str, int, str]]) -> Report:
    """The doctor's report on addresses only: they are the names of its listeners."""
    good = samples.cell("EXTERNAL", 1)
    changes = [
        {"listener": bootstrap, "broker": broker, "address": read_address(address)}
        for bootstrap, broker, address in cells
    ]
    changed = [good.model_copy(update=change) for change in changes]
    return samples.report(changed, cluster="Xq1", placement="", kafka_version="")


def examine(monkeypatch: pytest.MonkeyPatch, report: Report) -> None:
    monkeypatch.setattr(discovery, "examine", lambda *_, **__: report)


def test_without_a_contract_the_cluster_is_discovered(
    double: Double, monkeypatch: pytest.MonkeyPatch, earshot: Earshot
) -> None:
    cells = [("a:1,b:1", 1, "a:1"), ("a:1,b:1", 2, "b:1"), ("c:2", 1, "[::1]:2")]
    examine(monkeypatch, doctor_report(cells))
    code, output, _ = earshot("validate --bootstrap a:1,b:1,c:2")
    contract = double.contract
    assert code == 0 and contract is not None
    assert [listener.bootstrap for listener in contract.listeners] == ["a:1,b:1", "[::1]:2"]
    assert contract.brokers[0].advertised["LISTENER_2"].address == Address("::1", 2)
    assert [broker.id for broker in contract.brokers] == [1, 2]
    assert contract.listeners[0].protocol is Protocol.PLAINTEXT
    assert "LISTENER_2 is what c:2 led to" in output


def test_an_address_that_named_no_broker_does_not_pass(
    double: Double, monkeypatch: pytest.MonkeyPatch, earshot: Earshot
) -> None:
    report = doctor_report([("a:1", 1, "a:1"), ("b:1", -1, "b:1")])
    failed = report.cells[1].model_copy(update={"verdict": Verdict.FAIL, "stages": ()})
    examine(monkeypatch, report.model_copy(update={"cells": (report.cells[0], failed)}))
    code, output, _ = earshot("validate --bootstrap a:1,b:1")
    assert code == 1 and "unknown broker (b:1)" in output
    assert double.contract is not None
    assert [broker.id for broker in double.contract.brokers] == [1]


def test_a_broker_without_an_id_is_not_in_the_contract() -> None:
    report = doctor_report([("a:1", 0, "a:1"), ("b:1", -1, "b:1"), ("c:1", 3, "c:1")])
    contract, notes = discovery.contract_of(report, Protocol.SSL)
    assert [broker.id for broker in contract.brokers] == [0, 3]
    assert notes == ("LISTENER_1 is what a:1 led to", "LISTENER_2 is what c:1 led to")
    assert contract.cluster_id == report.cluster_id
    assert {listener.protocol for listener in contract.listeners} == {Protocol.SSL}
    without_id = report.model_copy(update={"cluster_id": ""})
    assert discovery.contract_of(without_id, Protocol.SSL)[0].cluster_id is None
    unanswered = report.model_copy(update={"cells": (report.cells[1],)})
    error = raised(discovery.NoBrokerAnswered, discovery.contract_of, unanswered, Protocol.SSL)
    assert error.report == unanswered


def test_if_no_address_answers_the_doctors_report_is_shown(earshot: Earshot) -> None:
    with closed_port() as address:
        code, output, _ = earshot(f"validate --bootstrap {address}")
    assert code == 1
    assert f"{address} refused the connection" in output
    assert "correct the bootstrap address" in output


class EverywhereDouble:
    """Stands for `validate_from`: keeps its arguments, and returns a crafted report."""

    standpoints: Sequence[Standpoint] | None = None
    only: Sequence[str] = ()
    interrupt: BaseException | None = None

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
        if self.interrupt is not None:
            raise self.interrupt
        return samples.vantages()


STANDPOINTS = docker_standpoints(docker_contract(), [CandidateEngine()], "dev")


@pytest.fixture
def everywhere(monkeypatch: pytest.MonkeyPatch) -> EverywhereDouble:
    double = EverywhereDouble()
    monkeypatch.setattr(command, "validate_from", double)
    return double


@pytest.fixture
def contract_file(project: Project) -> Path:
    """The contract of the deployed stack `docker`, whose standpoints are beside it."""
    file = project.contract_file("docker")
    file.parent.mkdir(parents=True)
    file.write_text(docker_contract().to_json())
    file.with_name("vantages.json").write_text(to_json(STANDPOINTS))
    return file


def test_an_interrupted_validation_reports_its_results(
    deployed: Project, double: Double, earshot: Earshot
) -> None:
    """Cells that only the doctor passed are not proved without Spark."""
    double.interrupt = KeyboardInterrupt()
    code, output, errors = earshot("validate --stack local")
    assert code == 130 and errors.endswith("interrupted\n")
    assert "earshot validation: INCONCLUSIVE" in output and "0 of " in output
    assert "not decided: interrupted" in output


def test_an_interrupted_validation_from_several_vantages_reports_its_results(
    contract_file: Path, everywhere: EverywhereDouble, earshot: Earshot
) -> None:
    everywhere.interrupt = SystemExit(143)
    code, output, _ = earshot("validate --stack docker")
    assert code == 143 and "not decided: terminated" in output


def test_a_stack_has_the_standpoints_of_its_update(
    contract_file: Path,
    everywhere: EverywhereDouble,
    double: Double,
    project: Project,
    earshot: Earshot,
) -> None:
    assert earshot("validate --stack docker --only host --only internal").code == 1
    assert everywhere.standpoints == STANDPOINTS
    assert everywhere.only == ("host", "internal")
    assert double.contract is None
    report = read_report(project.report_file("docker").read_bytes(), "file")
    assert [vantage.name for vantage in report.vantages] == ["internal", "host", "external"]


@pytest.mark.parametrize(
    ("options", "included"),
    [
        ("", False),
        ("--only internal", False),
        ("--only external", True),
        ("--client-config client.properties", True),
    ],
)
def test_listeners_that_an_update_leaves_out_are_validated_on_demand(
    options: str,
    included: bool,
    contract_file: Path,
    everywhere: EverywhereDouble,
    earshot: Earshot,
) -> None:
    without = {"ALICE": "it takes SSL"}
    standpoints = [
        point.model_copy(update={"without": without}) if point.name == "external" else point
        for point in STANDPOINTS
    ]
    contract_file.with_name("vantages.json").write_text(to_json(standpoints))
    Path("client.properties").write_text("security.protocol=SSL\n")
    earshot(f"validate --stack docker {options}")
    assert everywhere.standpoints is not None
    left_out = {point.name: point.without for point in everywhere.standpoints}
    assert left_out["external"] == ({} if included else without)


def test_a_contract_has_the_standpoints_of_a_file_or_this_machine_only(
    contract_file: Path, everywhere: EverywhereDouble, earshot: Earshot
) -> None:
    Path("places.json").write_text(to_json(STANDPOINTS[:1]))
    assert earshot(f"validate --contract {contract_file} --vantages places.json").code == 1
    assert everywhere.standpoints == STANDPOINTS[:1] and everywhere.only == ()
    earshot(f"validate --contract {contract_file}")
    assert everywhere.standpoints == command.HOST_ALONE


def test_a_vantage_with_a_name_validates_everything_itself(
    contract_file: Path, everywhere: EverywhereDouble, double: Double, earshot: Earshot
) -> None:
    assert earshot(f"validate --contract {contract_file} --vantage laptop").code == 0
    assert everywhere.standpoints is None
    assert (double.options.vantage, double.options.record) == ("laptop", False)
    assert double.contract == docker_contract()
