"""The validation as a resource: when it runs again, and what its command is told."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from components import validation
from components.validation import GRACE, IMAGE_SECONDS, ValidationProvider
from earshot.errors import EarshotError
from earshot.listeners.model import Scope
from earshot.report import render
from earshot.validation.result import Report, Vantage, Verdict
from earshot.vantages.standpoint import (
    Candidate,
    Kind,
    Standpoint,
    docker_standpoints,
    read_standpoints,
)
from tests.report import samples
from tests.vantages.contracts import docker_contract

PLACES = docker_standpoints(docker_contract(), [Candidate()], "dev")


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
        monkeypatch.setattr(validation, "_run_child", self)

    def __call__(
        self, command: list[str], deadline: float, environment: Mapping[str, str]
    ) -> tuple[int, str]:
        self.command, self.deadline, self.environment = command, deadline, environment
        Path(command[command.index("--output") + 1]).write_text(render(self.report, "json"))
        return self.report.exit_code, ""


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
    assert ValidationProvider().diff("validated", before, after).changes is again


def test_a_state_without_vantages_is_one_with_none(tmp_path: Path) -> None:
    before = properties(tmp_path)
    del before["vantages"]
    changed = ValidationProvider().diff
    assert changed("validated", before, properties(tmp_path, vantages=[])).changes is False
    assert changed("validated", before, properties(tmp_path)).changes is True


def test_the_command_is_told_where_to_stand(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    child = ChildDouble(monkeypatch)
    outcome = ValidationProvider().create(properties(tmp_path))
    assert outcome.outs is not None and outcome.outs["verdict"] == "pass"
    file = Path(child.command[child.command.index("--vantages") + 1])
    assert file == tmp_path / "vantages.json" and read_standpoints(file) == PLACES
    assert child.deadline == 60 + GRACE + IMAGE_SECONDS
    ValidationProvider().delete("validated", properties(tmp_path))
    assert sorted(path.name for path in tmp_path.iterdir()) == ["report.json"]


def test_without_vantages_everything_is_seen_from_here(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "vantages.json").write_text("of an earlier deployment")
    child = ChildDouble(monkeypatch)
    ValidationProvider().update("validated", {}, properties(tmp_path, vantages=[]))
    assert "--vantages" not in child.command and child.deadline == 60 + GRACE
    assert not (tmp_path / "vantages.json").exists()


@pytest.mark.parametrize("name", ["vantages", "inconclusive"])
def test_an_update_ends_with_the_report_of_what_did_not_pass(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    child = ChildDouble(monkeypatch, name)
    with pytest.raises(EarshotError) as caught:
        ValidationProvider().create(properties(tmp_path))
    assert str(caught.value) == f"\n{render(child.report, 'text')}"


def skipped(report: Report, vantage: str, reason: str) -> Report:
    """``report`` as if nobody had stood at ``vantage``."""
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


NOBODY = Standpoint(name="internal", scope=Scope.INTERNAL, kind=Kind.NOBODY, reason="not run")
HERE = Standpoint(name="host", scope=Scope.HOST)


def test_what_the_stack_itself_leaves_out_is_said_and_fails_no_update(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    child = ChildDouble(monkeypatch)
    child.report = skipped(two_places(), "internal", "not run")
    vantages = [item.model_dump(mode="json") for item in (HERE, NOBODY)]
    outcome = ValidationProvider().create(properties(tmp_path, vantages=vantages))
    assert outcome.outs is not None and outcome.outs["verdict"] == "inconclusive"
    assert "INTERNAL (internal): not run" in capsys.readouterr().out


@pytest.mark.parametrize("places", [(HERE,), (NOBODY,)])
def test_anything_else_that_is_undecided_fails_it(
    places: tuple[Standpoint, ...], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    child = ChildDouble(monkeypatch)
    child.report = skipped(skipped(two_places(), "internal", "not run"), "host", "no route")
    vantages = [item.model_dump(mode="json") for item in places]
    with pytest.raises(EarshotError, match="no route"):
        ValidationProvider().create(properties(tmp_path, vantages=vantages))


def test_patience_with_a_new_validator_is_added(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    child = ChildDouble(monkeypatch)
    afar = Standpoint(
        name="internal", scope=Scope.INTERNAL, kind=Kind.INSTANCE, bucket="b", patience=1200
    )
    ValidationProvider().create(properties(tmp_path, vantages=[afar.model_dump(mode="json")]))
    assert child.deadline == 60 + GRACE + IMAGE_SECONDS + 1200
