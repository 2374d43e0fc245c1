"""The CLI and our wrappers in one directory."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from toolchain.pulumi_cli import wrapper


@pytest.fixture
def built(tmp_path: Path) -> Path:
    directory = tmp_path / "built"
    directory.mkdir()
    for name in wrapper.EXECUTABLES:
        (directory / name).write_text(f"#!/bin/sh\necho {name}\n")
        (directory / name).chmod(0o755)
    return directory


def test_all_executables_lie_together(tmp_path: Path, built: Path) -> None:
    directory = tmp_path / "bin"
    wrapper.install(built, directory, python=Path(sys.executable))

    names = {*wrapper.EXECUTABLES, wrapper.LANGUAGE_HOST}
    assert {path.name for path in directory.iterdir()} == names
    assert all(os.access(directory / name, os.X_OK) for name in names)
    # The CLI finds itself with links resolved, so this must not be a symbolic one.
    assert not (directory / "pulumi").is_symlink()


def test_second_time_changes_nothing(tmp_path: Path, built: Path) -> None:
    directory = tmp_path / "bin"
    wrapper.install(built, directory, python=Path(sys.executable))
    before = {path: path.stat().st_ino for path in directory.iterdir()}
    wrapper.install(built, directory, python=Path(sys.executable))
    assert {path: path.stat().st_ino for path in directory.iterdir()} == before


def test_new_build_replaces_the_old_one(tmp_path: Path, built: Path) -> None:
    directory = tmp_path / "bin"
    wrapper.install(built, directory, python=Path(sys.executable))
    (built / "pulumi").unlink()
    (built / "pulumi").write_text("newer")
    wrapper.install(built, directory, python=Path(sys.executable))
    assert (directory / "pulumi").read_text() == "newer"


def test_other_file_system_gets_a_copy(
    tmp_path: Path, built: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*_: object) -> None:
        raise OSError("cross-device link")

    monkeypatch.setattr(os, "link", refuse)
    wrapper.install(built, tmp_path / "bin", python=Path(sys.executable))
    assert (tmp_path / "bin" / "pulumi").read_text() == (built / "pulumi").read_text()


def test_wrappers_are_recognized(tmp_path: Path, built: Path) -> None:
    wrapper.install(built, tmp_path / "bin", python=Path(sys.executable))
    assert wrapper.is_ours(tmp_path / "bin")
    assert not wrapper.is_ours(built)


def test_paths_with_spaces_and_quotes(tmp_path: Path, built: Path) -> None:
    odd = tmp_path / "it's a folder"
    python = odd / "python"
    odd.mkdir()
    python.write_text('#!/bin/sh\nfor word; do echo "[$word]"; done\n')
    python.chmod(0o755)
    wrapper.install(built, odd / "bin", python=python)

    result = subprocess.run(
        [odd / "bin" / wrapper.LANGUAGE_HOST, "127.0.0.1:1"], capture_output=True, text=True
    )

    words = result.stdout.splitlines()
    assert words[:3] == ["[-P]", "[-m]", f"[{wrapper.MODULE}]"]
    assert words[-4:] == [f"[{odd / 'bin'}]", "[--engine-pid]", f"[{os.getpid()}]", "[127.0.0.1:1]"]
