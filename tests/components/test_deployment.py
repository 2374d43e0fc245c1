"""The folder of a stack's files."""

from pathlib import Path

import pytest
from earshot_pulumi.deployment import state_folder
from earshot_pulumi.properties import here
from pulumi.runtime import mocks

from tests.components.aws.registered import Answers


@pytest.mark.parametrize(("file", "name"), [("Pulumi.yaml", "dev"), ("main.py", "shop.dev")])
def test_a_program_of_the_automation_api_needs_no_pulumi_yaml(
    file: str, name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / file).write_text("")
    monkeypatch.chdir(tmp_path)
    mocks.set_mocks(Answers(), "shop", "dev")
    folder = tmp_path / ".earshot" / "stacks" / name
    assert state_folder() == folder
    # the plugin finds the folder, also after the project was moved
    assert here(str(folder)) == here(f"/elsewhere/.earshot/stacks/{name}") == folder
