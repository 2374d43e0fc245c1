"""A stack of placement aws in a box: the real program, CLI and policy pack, the provider double."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import yaml

from earshot.placement.standpoint import to_json
from earshot.project import POLICIES
from earshot.report.json import read_report
from earshot.validation.contract import Contract
from earshot.validation.result import Report
from earshot.validation.terms import Stage, Verdict
from tests.doubles.aws.addresses import POOL_VARIABLE
from tests.e2e.aws_project import Project, aws_project, aws_settings
from tests.e2e.project import STACK
from toolchain.paths import ROOT

if TYPE_CHECKING:
    from tests.e2e.box.cloud_box import CloudBox

TEMPLATE = ROOT / "stacks" / "Pulumi.aws-dev.yaml"
UP_SECONDS = 780
RECORDS = ("--records", "300")
LAST_WORDS = 3000
"""Characters of an instance's journal."""
OPTION_1: dict[str, Any] = {
    "listeners": [{"name": "PLAINTEXT", "port": 9092, "scopes": ["internal", "external"]}],
    "clear_text": {"PLAINTEXT": "a trial without data worth reading"},
}
"""One listener for both scopes; the template itself has option 2, one for each."""


def passed_cells(report: Report) -> set[tuple[str, str, int]]:
    """Vantage, listener and broker of the cells that passed, which must be all of them."""
    assert [(cell, cell.reason) for cell in report.cells if cell.verdict is not Verdict.PASS] == []
    assert report.exit_code == 0
    return {(cell.vantage, cell.listener, cell.broker) for cell in report.cells}


def template() -> dict[str, Any]:
    """`earshot:cluster` of the template for trials."""
    settings: dict[str, Any] = yaml.safe_load(TEMPLATE.read_text())["config"]["earshot:cluster"]
    return settings


def report_by(
    folder: Path, command: str, wrap: Callable[..., Sequence[str]], *words: str
) -> Report:
    """The report of `earshot doctor` or `earshot validate`, run by the command from ``wrap``."""
    report = folder / f"{command}-report.json"
    options = ("--output", str(report), "--force")
    full_command = wrap(sys.executable, "-m", "earshot", command, *options, *words)
    completed = subprocess.run(full_command, capture_output=True, text=True, timeout=400)
    assert completed.returncode in (0, 1, 3), completed.stderr
    return read_report(report.read_bytes(), report.name)


def failures(report: Report) -> dict[int, tuple[Stage | None, str]]:
    """The failed stage and the cause, by broker."""
    return {
        cell.broker: (cell.failed_stage, cell.cause.kind if cell.cause else "")
        for cell in report.cells
        if cell.verdict is not Verdict.PASS
    }


@dataclass
class BoxStack:
    """A stack in a box. Other commands are those of ``project`` (runs, fails, outputs)."""

    box: CloudBox
    project: Project

    @classmethod
    def with_empty_stack(cls, folder: Path, box: CloudBox) -> BoxStack:
        """An empty stack of the project's own program."""
        environment = {POOL_VARIABLE: str(box.ground.elastic)}
        project = aws_project(folder, box.server, environment)
        project.seconds = UP_SECONDS
        (folder / "__main__.py").symlink_to(ROOT / "__main__.py")
        config = folder / POLICIES / f"{STACK}.json"
        config.parent.mkdir(parents=True)
        config.write_text(json.dumps(box.policy()))
        return cls(box, project)

    def configure(self, cluster: Mapping[str, Any]) -> None:
        path = self.project.folder / f"Pulumi.{STACK}.yaml"
        document = yaml.safe_load(path.read_text())
        settings = {
            f"aws:{name}": aws_setting
            for name, aws_setting in aws_settings(self.project.server).items()
        }
        document["config"] = {**settings, "earshot:cluster": dict(cluster)}
        path.write_text(yaml.safe_dump(document, sort_keys=False))

    def up(self, *flags: str) -> str:
        """`pulumi up`, which must succeed. Its error has the logs of the instances."""
        try:
            return self.project.up(*flags)
        except BaseException as error:
            for name, instance in self.box.instances().items():
                error.add_note(f"{name}:\n{instance.journal()[-LAST_WORDS:]}")
            raise

    def destroy(self) -> None:
        self.project.destroy()

    def contract(self) -> Contract:
        return Contract.model_validate(self.project.outputs()["contract"])

    def validate(self, folder: Path, *arguments: str) -> Report:
        """The report of `earshot validate` from every vantage of the box.

        ``arguments`` replace those that make the validation short; its files are in ``folder``.
        """
        contract, vantages, report = (
            folder / f"{name}.json" for name in ("contract", "vantages", "report")
        )
        contract.write_text(self.contract().to_json())
        vantages.write_text(to_json(self.box.standpoints()))
        command = [sys.executable, "-m", "earshot", "validate", "--contract", str(contract)]
        command += ["--vantages", str(vantages), "-o", str(report), *(arguments or RECORDS)]
        completed = subprocess.run(command, capture_output=True, text=True)
        assert completed.returncode in (0, 1, 3), completed.stderr
        found_report = read_report(report.read_bytes(), "report")
        assert found_report.exit_code == completed.returncode
        return found_report
