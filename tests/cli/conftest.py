"""A project with the stack `local`, and the command."""

from pathlib import Path

import pytest

from earshot.project import Project
from tests.cli.command import Earshot

STACK = """\
config:
  earshot:cluster:
    placement: local
    listeners:
      - {name: INTERNAL, port: 19092, scopes: [internal]}
      - {name: EXTERNAL, port: 9092, scopes: [host]}
"""


@pytest.fixture
def earshot(capsys: pytest.CaptureFixture[str]) -> Earshot:
    return Earshot(capsys)


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Project:
    """A project in the current folder."""
    (tmp_path / "Pulumi.yaml").write_text("name: earshot\nstackConfigDir: stacks\n")
    (tmp_path / "stacks").mkdir()
    (tmp_path / "stacks" / "Pulumi.local.yaml").write_text(STACK)
    monkeypatch.chdir(tmp_path)
    return Project(tmp_path)
