"""The official CLIs on PATH that can be used."""

import os
from pathlib import Path

import pytest

from toolchain.pulumi_cli import official, wrapper


def install(directory: Path, version: str, *, host: str | None = "#!/bin/sh\n") -> Path:
    """A double of a CLI, which prints its version, in a folder with a language host."""
    directory.mkdir(parents=True)
    scripts = {"pulumi": f"#!/bin/sh\necho {version}\n"} | (
        {wrapper.LANGUAGE_HOST: host} if host else {}
    )
    for name, text in scripts.items():
        (directory / name).write_text(text)
        (directory / name).chmod(0o755)
    return directory


def search(*directories: Path) -> tuple[Path, str] | None:
    return official.find(os.pathsep.join(map(str, directories)))


def test_a_new_enough_cli_is_found_also_through_a_link(tmp_path: Path) -> None:
    directory = install(tmp_path / "cellar", "v3.260.1")
    assert search(tmp_path / "empty", directory) == (directory, "3.260.1")
    (tmp_path / "bin").mkdir()
    (tmp_path / "bin" / "pulumi").symlink_to(directory / "pulumi")
    assert search(tmp_path / "bin") == (directory, "3.260.1")


def test_an_old_cli_and_one_without_a_python_host_are_skipped_with_a_message(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    old = install(tmp_path / "old", "v3.100.0")
    bare = install(tmp_path / "bare", "v3.260.1", host=None)
    new = install(tmp_path / "new", "v3.260.1-alpha.1")
    cli = search(old, bare, new)
    assert cli is not None and cli[0] == new
    output = capsys.readouterr().out
    assert f"{old / 'pulumi'} is older than 3.229.0" in output
    assert "has no pulumi-language-python" in output


@pytest.mark.parametrize("version", ["", "'not a version'", "v3"])
def test_another_program_and_the_built_cli_are_not_official(tmp_path: Path, version: str) -> None:
    assert search(install(tmp_path / "bin", version)) is None
    host = f"#!/bin/sh\nexec python -m {wrapper.MODULE}\n"
    assert search(install(tmp_path / "built", "v3.260.1", host=host)) is None
