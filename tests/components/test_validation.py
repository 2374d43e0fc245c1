"""The validation as a resource: when it runs again, and what its command is told."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from components import validation
from components.validation import GRACE, IMAGE_SECONDS, ValidationProvider
from earshot.errors import EarshotError
from earshot.report import render
from earshot.vantages.standpoint import Candidate, docker_standpoints, read_standpoints
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
