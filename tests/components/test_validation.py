"""The validation as a resource: when it runs again, and what its command is told."""

import contextlib
import os
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from earshot_pulumi import validation
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
        "vantages": [item.model_dump(mode="json") for item in PLACES],
        "verdict": None,
        **changes,
    }


class ChildDouble:
    """Stands for the command: keeps how it was called, and leaves a report."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, name: str = "all_pass") -> None:
        self.report = samples.ALL[name]()
        self.command: list[str] = []
        self.deadline = 0.0
        self.environment: Mapping[str, str] = {}
        self.crashes_with: int | None = None
        """An exit code with which it ends before it writes anything."""
        self.ends_with: int | None = None
        """An exit code that is not its report's."""
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
    before, after = properties(tmp_path), properties(tmp_path, **changes)
    assert Called(ValidationKind()).differs(before, after) is again


def test_the_command_is_told_where_to_stand(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    child = ChildDouble(monkeypatch)
    outcome = Called(ValidationKind()).create(properties(tmp_path))
    assert outcome.outs == {**properties(tmp_path), "verdict": "pass"}
    file = Path(child.command[child.command.index("--vantages") + 1])
    assert file == tmp_path / "vantages.json" and read_standpoints(file) == PLACES
    assert child.deadline == 60 + GRACE + IMAGE_SECONDS
    Called(ValidationKind()).delete(properties(tmp_path))
    assert sorted(path.name for path in tmp_path.iterdir()) == ["report.json"]


def test_without_vantages_everything_is_seen_from_here(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "vantages.json").write_text("of an earlier deployment")
    child = ChildDouble(monkeypatch)
    Called(ValidationKind()).update({}, properties(tmp_path, vantages=[]))
    assert "--vantages" not in child.command and child.deadline == 60 + GRACE
    assert not (tmp_path / "vantages.json").exists()


@pytest.mark.parametrize("name", ["vantages", "inconclusive"])
def test_an_update_ends_with_the_report_of_what_did_not_pass(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    child = ChildDouble(monkeypatch, name)
    error = raised(EarshotError, Called(ValidationKind()).create, properties(tmp_path))
    assert str(error) == render(child.report, "text")


def skipped(report: Report, vantage: str, reason: str) -> Report:
    """``report`` as if no run had taken place at ``vantage``."""
    cells = tuple(
        cell.model_copy(update={"verdict": Verdict.SKIP, "reason": reason})
        if cell.vantage == vantage
        else cell
        for cell in report.cells
    )
    vantages = tuple(
        item.model_copy(update={"verdict": Verdict.SKIP}) if item.name == vantage else item
        for item in report.vantages
    )
    return report.model_copy(update={"cells": cells, "vantages": vantages})


def two_places() -> Report:
    """All is well from `host` and from `internal`."""
    cells = [samples.cell("INTERNAL", 1, name) for name in ("host", "internal")]
    return samples.report(cells, vantages=[Vantage(name="host"), Vantage(name="internal")])


NOT_RUN_PLACE = Standpoint(
    name="internal", scope=Scope.INTERNAL, kind=Kind.NOT_RUN, reason="not run"
)
HERE = Standpoint(name="host", scope=Scope.HOST)


def test_what_the_stack_itself_leaves_out_is_said_and_fails_no_update(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    child = ChildDouble(monkeypatch)
    child.report = skipped(two_places(), "internal", "not run")
    vantages = [item.model_dump(mode="json") for item in (HERE, NOT_RUN_PLACE)]
    given = properties(tmp_path, vantages=vantages)
    outcome = Called(ValidationKind()).create(given)
    assert outcome.outs == {**given, "verdict": "inconclusive"}
    assert "INTERNAL (internal): not run" in capsys.readouterr().out


@pytest.mark.parametrize("code", [3, 1, 2, 139, -15])
def test_a_run_that_crashes_is_not_passed_by_the_report_of_an_earlier_one(
    code: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    child = ChildDouble(monkeypatch)
    child.report = skipped(two_places(), "internal", "not run")
    vantages = [item.model_dump(mode="json") for item in (HERE, NOT_RUN_PLACE)]
    Called(ValidationKind()).create(properties(tmp_path, vantages=vantages))
    child.crashes_with = code
    with pytest.raises(EarshotError) as caught:
        Called(ValidationKind()).update({}, properties(tmp_path, vantages=vantages))
    assert str(caught.value) == (
        f"the validation could not run (exit code {code}):\nSegmentation fault"
    )


@pytest.mark.parametrize("code", [1, 2, 139])
def test_only_an_inconclusive_run_is_as_foreseen(
    code: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    child = ChildDouble(monkeypatch)
    child.report = skipped(two_places(), "internal", "not run")
    child.ends_with = code
    vantages = [item.model_dump(mode="json") for item in (HERE, NOT_RUN_PLACE)]
    with pytest.raises(EarshotError):
        Called(ValidationKind()).create(properties(tmp_path, vantages=vantages))


@pytest.mark.parametrize("verdict", [Verdict.FAIL, Verdict.INCONCLUSIVE])
def test_a_cell_that_did_not_pass_is_not_foreseen_where_its_listener_is_left_out(
    verdict: Verdict, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    child = ChildDouble(monkeypatch)
    foreseen = skipped(two_places(), "internal", "not run")
    child.report = foreseen.model_copy(
        update={
            "cells": tuple(
                cell.model_copy(update={"verdict": verdict}) if cell.vantage == "internal" else cell
                for cell in foreseen.cells
            )
        }
    )
    child.ends_with = 3
    vantages = [item.model_dump(mode="json") for item in (HERE, NOT_RUN_PLACE)]
    with pytest.raises(EarshotError, match="INTERNAL"):
        Called(ValidationKind()).create(properties(tmp_path, vantages=vantages))


def test_unproved_replication_is_not_foreseen(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    child = ChildDouble(monkeypatch)
    unknown = Replication(
        leader=1, follower=2, verdict=Verdict.INCONCLUSIVE, reason="nothing is known: stopped"
    )
    foreseen = skipped(two_places(), "internal", "not run")
    child.report = foreseen.model_copy(update={"replication": (unknown,)})
    vantages = [item.model_dump(mode="json") for item in (HERE, NOT_RUN_PLACE)]
    with pytest.raises(EarshotError, match="nothing is known: stopped"):
        Called(ValidationKind()).create(properties(tmp_path, vantages=vantages))


@pytest.mark.parametrize("places", [(HERE,), (NOT_RUN_PLACE,)])
def test_anything_else_that_is_undecided_fails_it(
    places: tuple[Standpoint, ...], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    child = ChildDouble(monkeypatch)
    child.report = skipped(skipped(two_places(), "internal", "not run"), "host", "no route")
    vantages = [item.model_dump(mode="json") for item in places]
    with pytest.raises(EarshotError, match="no route"):
        Called(ValidationKind()).create(properties(tmp_path, vantages=vantages))


def test_patience_with_a_new_validator_is_added(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    child = ChildDouble(monkeypatch)
    afar = Standpoint(
        name="internal", scope=Scope.INTERNAL, kind=Kind.INSTANCE, bucket="b", patience=1200
    )
    Called(ValidationKind()).create(properties(tmp_path, vantages=[afar.model_dump(mode="json")]))
    assert child.deadline == 60 + GRACE + IMAGE_SECONDS + 1200


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
        state = tmp_path
        assert capfd.readouterr().out == (
            f"-m earshot.cli.ends_with_stdin validate --contract {state}/contract.json"
            f" --output {state}/report.json --records 300 --deadline 60 --format json"
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
        with pytest.raises(EarshotError) as caught:
            self.run(tmp_path, monkeypatch, "exec sleep 60", deadline=0.3)
        assert str(caught.value) == (
            "the validation could not run (exit code -15):\n"
            "the validation did not end within 0 s and was stopped"
        )

    def test_its_standard_input_stays_open(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """As long as its parent waits; nothing is written to it."""
        script = "read -t 0.3 line; [[ $? -gt 128 ]] && cp $made $out"
        assert self.run(tmp_path, monkeypatch, script) == "pass"


HERE, CONTAINER, NOT_RUN = (
    Standpoint(name="one", scope=Scope.INTERNAL, kind=kind)
    for kind in (Kind.HERE, Kind.CONTAINER, Kind.NOT_RUN)
)


@pytest.fixture
def without_spark(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)


class TestSparkIsAskedForBeforeABroker:
    @pytest.mark.parametrize(
        ("records", "standpoints", "alternative"),
        [
            (300, (), DOCTOR_ALONE),
            (1, (HERE, NOT_RUN), DOCTOR_ALONE),
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

    @pytest.mark.parametrize(("records", "standpoints"), [(0, ()), (0, (HERE,)), (300, (NOT_RUN,))])
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
