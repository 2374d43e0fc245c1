from pathlib import Path
from typing import Any

import pytest

from toolchain import progress
from toolchain.pulumi_cli import go


def test_it_is_installed_from_its_wheel_into_the_cache_alone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whatever a user's pip.conf says: `user = true` and `--target` exclude each other."""
    ran: list[list[str]] = []

    def run(command: list[Any], **_: object) -> None:
        ran.append([str(word) for word in command])
        made = go._command(Path(command[command.index("--target") + 1]))
        made.parent.mkdir(parents=True)
        made.touch(mode=0o755)

    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    monkeypatch.setattr("shutil.which", lambda _: None)
    monkeypatch.setattr(progress, "run", run)
    found = go.ensure(Path("python"))
    assert found.is_file() and found.is_relative_to(tmp_path)
    ((*command,),) = ran
    assert {"--no-user", "--require-hashes", "--no-deps"} <= set(command)
