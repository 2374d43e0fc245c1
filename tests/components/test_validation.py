"""The validation as a resource: when it runs again, and the arguments of its command."""

import contextlib
import os
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from earshot_pulumi import validation
from earshot_pulumi.provider.kind import FailedUpdate
from earshot_pulumi.validation import (
    DOCTOR_ALONE,
    GRACE,
    IMAGE_SECONDS,
    ValidationKind,
    check_spark,
    run_child,
)

from earshot.errors import EarshotError
from earshot.listeners.terms import Scope
from earshot.placement.standpoint import (
    CandidateEngine,
    Kind,
    Standpoint,
    docker_standpoints,
    read_standpoints,
)
from earshot.report import render
from earshot.validation.result import Replication, Report, Vantage
from earshot.validation.terms import Verdict
from tests.components.called import Called
from tests.raised import raised
from tests.remote.contracts import docker_contract
from tests.report import samples

PLACES = docker_standpoints(docker_contract(), [CandidateEngine()], "dev")


def properties(folder: Path, **changes: Any) -> dict[str, Any]:
    return {
        "contract": docker_contract().model_dump(mode="json"),
        "incarnations": {"broker-0": "c0ffee"},
        "records": 300.0,
        "deadline": 60.0,
        "state_dir": str(folder),
        "vantages": [place.model_dump(mode="json") for place in PLACES],
        "verdict": None,
        **changes,
    }


class ChildDouble:
    """A double of the command, which keeps its arguments and writes a report."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.report = samples.all_pass()
        self.command: list[str] = []
        self.deadline = 0.0
        self.environment: Mapping[str, str] = {}
        self.crashes_with: int | None = None
        """The exit code of a crash before the report."""
        self.ends_with: int | None = None
        """An exit code that differs from that of the report."""
        monkeypatch.setattr(validation, "run_child", self)

    def __call__(
        self,
        command: list[str],
        deadline: float,
        environment: Mapping[str, str],
        show: object,
        cancelled: object,
    ) -> tuple[int, str]:
        self.command, self.deadline, self.environment = command, deadline, environment
        if self.crashes_with is not None:
            return self.crashes_with, "Segmentation fault"
        Path(command[command.index("--output") + 1]).write_text(render(self.report, "json"))
        return self.report.exit_code if self.ends_with is None else self.ends_with, ""


@pytest.mark.parametrize(
    ("changes", "again"),
    [
        ({}, False),
        ({"deadline": 90.0}, False),
        ({"records": 400.0}, True),
        ({"incarnations": {"broker-0": "decade"}}, True),
        ({"vantages": []}, True),
    ],
)
def test_it_runs_again_when_what_is_proved_changes(
    changes: dict[str, Any], again: bool, tmp_path: Path
) -> None:
    olds, news = properties(tmp_path), properties(tmp_path, **changes)
    assert Called(ValidationKind()).differs(olds, news) is again


@pytest.fixture
def child(monkeypatch: pytest.MonkeyPatch) -> ChildDouble:
    return ChildDouble(monkeypatch)


def created(folder: Path, *places: Standpoint) -> dict[str, Any]:
    """The outputs of a validation from ``places``."""
    vantages = [place.model_dump(mode="json") for place in places]
    return Called(ValidationKind()).create(properties(folder, vantages=vantages)).outs


def test_the_command_gets_its_vantages(tmp_path: Path, child: ChildDouble) -> None:
    assert created(tmp_path, *PLACES) == {**properties(tmp_path), "verdict": "pass"}
    file = Path(child.command[child.command.index("--vantages") + 1])
    assert file == tmp_path / "vantages.json" and read_standpoints(file) == PLACES
    assert child.deadline == 60 + GRACE + IMAGE_SECONDS
    afar = Standpoint(
        name="internal", scope=Scope.INTERNAL, kind=Kind.INSTANCE, bucket="b", patience=1200
    )
    created(tmp_path, afar)
    assert child.deadline == 60 + GRACE + IMAGE_SECONDS + 1200
    Called(ValidationKind()).delete(properties(tmp_path))
    assert sorted(path.name for path in tmp_path.iterdir()) == ["report.json"]


def test_without_vantages_the_command_runs_here(tmp_path: Path, child: ChildDouble) -> None:
    (tmp_path / "vantages.json").write_text("of an earlier deployment")
    Called(ValidationKind()).update({}, properties(tmp_path, vantages=[]))
    assert "--vantages" not in child.command and child.deadline == 60 + GRACE
    assert not (tmp_path / "vantages.json").exists()


def test_a_run_that_did_not_pass_is_repeated_with_the_former_inputs(
    tmp_path: Path, child: ChildDouble
) -> None:
    former = {**properties(tmp_path), "verdict": "pass"}
    child.report = samples.dead_broker()
    kind, changed = Called(ValidationKind()), properties(tmp_path, records=0.0)
    error = raised(FailedUpdate, kind.update, former, changed)
    assert error.outputs == {**changed, "verdict": "fail"}
    assert kind.differs(error.outputs, properties(tmp_path))
    assert not kind.differs(former, properties(tmp_path))


@pytest.mark.parametrize("name", ["vantages", "inconclusive"])
def test_a_run_that_did_not_pass_ends_the_update_with_its_report(
    name: str, tmp_path: Path, child: ChildDouble
) -> None:
    child.report = samples.ALL[name]()
    error = raised(EarshotError, created, tmp_path, *PLACES)
    assert str(error) == render(child.report, "text")


def with_verdict(report: Report, vantage: str, verdict: Verdict, reason: str) -> Report:
    """``report`` with ``verdict`` in the cells of ``vantage``."""
    cells = tuple(
        cell.model_copy(update={"verdict": verdict, "reason": reason})
        if cell.vantage == vantage
        else cell
        for cell in report.cells
    )
    return report.model_copy(update={"cells": cells})


def without_internal() -> Report:
    """A pass from `host`; from `internal` there was no run."""
    cells = [samples.cell("INTERNAL", 1, name) for name in ("host", "internal")]
    vantages = [Vantage(name="host"), Vantage(name="internal", verdict=Verdict.SKIP)]
    report = samples.report(cells, vantages=vantages)
    return with_verdict(report, "internal", Verdict.SKIP, "not run")


NOT_RUN_PLACE = Standpoint(
    name="internal", scope=Scope.INTERNAL, kind=Kind.NOT_RUN, reason="not run"
)
HERE = Standpoint(name="host", scope=Scope.HOST)
CONTAINER = Standpoint(name="one", scope=Scope.INTERNAL, kind=Kind.CONTAINER)


def test_a_vantage_that_the_stack_leaves_out_is_shown_and_fails_no_update(
    tmp_path: Path, child: ChildDouble, capsys: pytest.CaptureFixture[str]
) -> None:
    child.report = without_internal()
    assert created(tmp_path, HERE, NOT_RUN_PLACE)["verdict"] == "inconclusive"
    assert "INTERNAL (internal): not run" in capsys.readouterr().out


@pytest.mark.parametrize("code", [3, 1, 2, 139, -15])
def test_a_run_that_crashes_is_not_passed_by_the_report_of_an_earlier_one(
    code: int, tmp_path: Path, child: ChildDouble
) -> None:
    child.report = without_internal()
    created(tmp_path, HERE, NOT_RUN_PLACE)
    child.crashes_with = code
    error = raised(EarshotError, created, tmp_path, HERE, NOT_RUN_PLACE)
    assert str(error) == f"the validation could not run (exit code {code}):\nSegmentation fault"


UNPROVED = Replication(
    leader=1, follower=2, verdict=Verdict.INCONCLUSIVE, reason="nothing is known: stopped"
)
BOTH = (HERE, NOT_RUN_PLACE)
FAILED, UNDECIDED = (
    with_verdict(without_internal(), "internal", verdict, "not run")
    for verdict in (Verdict.FAIL, Verdict.INCONCLUSIVE)
)
NO_ROUTE = with_verdict(without_internal(), "host", Verdict.SKIP, "no route")


@pytest.mark.parametrize(("report", "code", "places", "match"), [
    *((without_internal(), code, BOTH, "not run") for code in (1, 2, 139)),
    (FAILED, 3, BOTH, "INTERNAL"),
    (UNDECIDED, 3, BOTH, "INTERNAL"),
    (without_internal().model_copy(update={"replication": (UNPROVED,)}), None, BOTH,
     "nothing is known: stopped"),
    (NO_ROUTE, None, (HERE,), "no route"),
    (NO_ROUTE, None, (NOT_RUN_PLACE,), "no route"),
])  # fmt: skip
def test_any_other_result_without_a_pass_fails_the_update(
    report: Report,
    code: int | None,
    places: tuple[Standpoint, ...],
    match: str,
    tmp_path: Path,
    child: ChildDouble,
) -> None:
    child.report, child.ends_with = report, code
    with pytest.raises(EarshotError, match=match):
        created(tmp_path, *places)


class TestTheCommandItself:
    """What runs in place of Python is a script."""

    def run(
        self, folder: Path, monkeypatch: pytest.MonkeyPatch, script: str, **changes: Any
    ) -> str | None:
        """Its verdict; ``$out`` of the script is where the report is to be written."""
        report = folder / "made.json"
        report.write_text(render(samples.all_pass(), "json"))
        program = folder / "program"
        program.write_text(f"#!/bin/bash\nout={folder}/report.json made={report}\n{script}\n")
        program.chmod(0o755)
        monkeypatch.setattr(sys, "executable", str(program))
        props = properties(folder, vantages=[], **changes)
        outs = Called(ValidationKind()).create(props).outs
        return str(outs["verdict"])

    def test_its_progress_is_shown_and_its_output_is_not(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
    ) -> None:
        script = 'echo "$@" >&2; echo noise; cp $made $out'
        assert self.run(tmp_path, monkeypatch, script) == "pass"
        assert capfd.readouterr().out == (
            f"-m earshot.cli.ends_with_stdin validate --contract {tmp_path}/contract.json"
            f" --output {tmp_path}/report.json --records 300 --deadline 60 --format json"
            ' --incarnations {"broker-0": "c0ffee"}\n'
        )

    def test_a_crash_is_told_with_its_last_lines(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        error = raised(EarshotError, self.run, tmp_path, monkeypatch, "seq 1 30 >&2; exit 70")
        lines = "\n".join(map(str, range(11, 31)))
        assert str(error) == f"the validation could not run (exit code 70):\n{lines}"

    def test_one_that_never_ends_is_ended(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(validation, "GRACE", 0.0)
        error = raised(EarshotError, self.run, tmp_path, monkeypatch, "exec sleep 60", deadline=0.3)
        assert str(error) == (
            "the validation could not run (exit code -15):\n"
            "the validation did not end within 0 s and was stopped"
        )

    def test_its_standard_input_stays_open(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """As long as its parent waits; nothing is written to it."""
        script = "read -t 0.3 line; [[ $? -gt 128 ]] && cp $made $out"
        assert self.run(tmp_path, monkeypatch, script) == "pass"


@pytest.fixture
def without_spark(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)


class TestSparkIsAskedForBeforeABroker:
    @pytest.mark.parametrize(
        ("records", "standpoints", "alternative"),
        [
            (300, (), DOCTOR_ALONE),
            (1, (HERE, NOT_RUN_PLACE), DOCTOR_ALONE),
            (300, (HERE, CONTAINER), ""),
            (0, (CONTAINER,), ""),
        ],
    )
    @pytest.mark.usefixtures("without_spark")
    def test_the_extra_is_named(
        self, records: int, standpoints: tuple[Standpoint, ...], alternative: str
    ) -> None:
        assert str(raised(EarshotError, check_spark, records, standpoints)) == (
            "validation: needs the package pyspark, which is not installed\n"
            f"  fix: pip install 'earshot[spark]'{alternative}"
        )

    @pytest.mark.parametrize(
        ("records", "standpoints"), [(0, ()), (0, (HERE,)), (300, (NOT_RUN_PLACE,))]
    )
    @pytest.mark.usefixtures("without_spark")
    def test_a_validation_without_spark_needs_none(
        self, records: int, standpoints: tuple[Standpoint, ...]
    ) -> None:
        check_spark(records, standpoints)

    @pytest.mark.parametrize("is_preview", [True, False])
    def test_a_preview_warns_of_a_missing_java(
        self, is_preview: bool, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        def without_java() -> None:
            raise EarshotError("Java", observed="none was found (JAVA_HOME, PATH)")

        warnings: list[str] = []
        monkeypatch.setattr(validation, "find_java", without_java)
        monkeypatch.setattr("pulumi.runtime.is_dry_run", lambda: is_preview)
        monkeypatch.setattr("pulumi.log.warn", warnings.append)
        with contextlib.nullcontext() if is_preview else pytest.raises(EarshotError, match="Java"):
            check_spark(300)
        message = "validation: Java: none was found (JAVA_HOME, PATH)"
        assert warnings == ([message] if is_preview else [])


def test_the_error_of_the_command_is_shown_once() -> None:
    code = (
        "import sys; sys.stderr.write('step 1\\nerror: Java: none was found\\n  fix: get one\\n');"
        "sys.exit(2)"
    )
    progress: list[str] = []
    status, errors = run_child([sys.executable, "-c", code], 30, os.environ, progress.append)
    assert (status, progress) == (2, ["step 1"])
    assert errors == "error: Java: none was found\n  fix: get one"
