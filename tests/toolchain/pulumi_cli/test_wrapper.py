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


def test_all_executables_are_in_one_folder(tmp_path: Path, built: Path) -> None:
    directory = tmp_path / "bin"
    wrapper.install(built, directory, python=Path(sys.executable))

    names = {*wrapper.EXECUTABLES, wrapper.LANGUAGE_HOST}
    assert {path.name for path in directory.iterdir()} == names
    assert all(os.access(directory / name, os.X_OK) for name in names)
    # The CLI finds itself with links resolved, so this must not be a symbolic one.
    assert not (directory / "pulumi").is_symlink()
    assert wrapper.is_ours(directory) and not wrapper.is_ours(built)


def test_only_a_new_build_changes_the_folder(tmp_path: Path, built: Path) -> None:
    directory = tmp_path / "bin"

    def inodes() -> dict[str, int]:
        wrapper.install(built, directory, python=Path(sys.executable))
        return {path.name: path.stat().st_ino for path in directory.iterdir()}

    assert inodes() == inodes()
    (built / "pulumi").unlink()
    (built / "pulumi").write_text("newer")
    inodes()
    assert (directory / "pulumi").read_text() == "newer"


def test_other_file_system_gets_a_copy(
    tmp_path: Path, built: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*_: object) -> None:
        raise OSError("cross-device link")

    monkeypatch.setattr(os, "link", refuse)
    wrapper.install(built, tmp_path / "bin", python=Path(sys.executable))
    assert (tmp_path / "bin" / "pulumi").read_text() == (built / "pulumi").read_text()


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
