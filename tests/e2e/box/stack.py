"""A stack of placement aws in a box: the real program, CLI and policy pack, the provider double."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from ipaddress import IPv4Network
from pathlib import Path
from typing import Any

import yaml

from earshot.report.json import read_report
from earshot.validation.contract import Contract
from earshot.validation.result import Report, Verdict
from earshot.vantages.standpoint import Standpoint, to_json
from tests.doubles.aws.addresses import POOL_VARIABLE
from tests.doubles.aws.server import MotoServer
from tests.e2e.aws_project import Project, aws_project, aws_settings
from tests.e2e.project import STACK
from toolchain.paths import POLICIES, ROOT

TEMPLATE = ROOT / "stacks" / "Pulumi.aws-dev.yaml"
UP_SECONDS = 540
OPTION_1: dict[str, Any] = {
    "listeners": [{"name": "PLAINTEXT", "port": 9092, "scopes": ["internal", "external"]}],
    "clear_text": {"PLAINTEXT": "a trial without data worth reading"},
}
"""One listener for both scopes; the template itself has option 2, one for each."""


def passed(report: Report) -> set[tuple[str, str, int]]:
    """Vantage, listener and broker of the cells that passed, which must be all of them."""
    assert [(it, it.reason) for it in report.cells if it.verdict is not Verdict.PASS] == []
    assert report.exit_code == 0
    return {(it.vantage, it.listener, it.broker) for it in report.cells}


def template() -> dict[str, Any]:
    """`earshot:cluster` of the template for trials."""
    found: dict[str, Any] = yaml.safe_load(TEMPLATE.read_text())["config"]["earshot:cluster"]
    return found


@dataclass
class BoxStack:
    """What is not here is done on ``project`` (up, runs, fails, destroy, outputs)."""

    project: Project
    standpoints: Callable[[], Sequence[Standpoint]]

    @classmethod
    def prepared(
        cls,
        folder: Path,
        server: MotoServer,
        elastic: IPv4Network,
        standpoints: Callable[[], Sequence[Standpoint]],
        pack: Mapping[str, Any],
    ) -> BoxStack:
        """An empty stack; ``elastic`` is the pool of Elastic IPs, ``pack`` the pack's settings."""
        config = folder.with_name(f"{folder.name}-pack.json")
        config.write_text(json.dumps(pack))
        environment = {
            POOL_VARIABLE: str(elastic),
            "PULUMI_OPTION_POLICY_PACK": str(POLICIES),
            "PULUMI_OPTION_POLICY_PACK_CONFIG": str(config),
        }
        project = aws_project(folder, server, environment)
        project.seconds = UP_SECONDS
        (folder / "__main__.py").symlink_to(ROOT / "__main__.py")
        return cls(project, standpoints)

    def configure(self, cluster: Mapping[str, Any]) -> None:
        path = self.project.folder / f"Pulumi.{STACK}.yaml"
        found = yaml.safe_load(path.read_text())
        settings = {f"aws:{name}": it for name, it in aws_settings(self.project.server).items()}
        found["config"] = {**settings, "earshot:cluster": dict(cluster)}
        path.write_text(yaml.safe_dump(found, sort_keys=False))

    def up(self, *flags: str) -> str:
        return self.project.up(*flags)

    def destroy(self) -> None:
        self.project.destroy()

    def contract(self) -> Contract:
        return Contract.model_validate(self.project.outputs()["contract"])

    def validate(self, folder: Path, *arguments: str) -> Report:
        """The report of `earshot validate` from every vantage of the box."""
        contract, vantages, report = (
            folder / f"{it}.json" for it in ("contract", "vantages", "report")
        )
        contract.write_text(self.contract().to_json())
        vantages.write_text(to_json(self.standpoints()))
        command = [sys.executable, "-m", "earshot", "validate", "--contract", str(contract)]
        command += ["--vantages", str(vantages), "-o", str(report), *arguments]
        done = subprocess.run(command, capture_output=True, text=True)
        assert done.returncode in (0, 1, 3), done.stderr
        found = read_report(report.read_bytes(), "report")
        assert found.exit_code == done.returncode
        return found
