"""Which ``pulumi`` on PATH counts as an official one that will do."""

import os
from pathlib import Path

import pytest

from toolchain.pulumi_cli import official, wrapper


def install(directory: Path, version: str, *, host: str | None = "#!/bin/sh\n") -> Path:
    """A stand-in for a CLI: it says its version, and lies beside a language host."""
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


def test_new_enough_one_is_found(tmp_path: Path) -> None:
    directory = install(tmp_path / "bin", "v3.260.1")
    assert search(tmp_path / "empty", directory) == (directory, "3.260.1")


def test_link_on_path_leads_to_its_directory(tmp_path: Path) -> None:
    directory = install(tmp_path / "cellar", "v3.260.1")
    (tmp_path / "bin").mkdir()
    (tmp_path / "bin" / "pulumi").symlink_to(directory / "pulumi")
    found = search(tmp_path / "bin")
    assert found is not None
    assert found[0] == directory


def test_old_one_is_passed_over_with_a_word(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    old = install(tmp_path / "old", "v3.100.0")
    new = install(tmp_path / "new", "v3.260.1-alpha.1")
    found = search(old, new)
    assert found is not None
    assert found[0] == new
    assert f"{old / 'pulumi'} is older than 3.229.0" in capsys.readouterr().out


def test_one_without_python_host_is_passed_over(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert search(install(tmp_path / "bin", "v3.260.1", host=None)) is None
    assert "has no pulumi-language-python" in capsys.readouterr().out


def test_our_own_is_not_official(tmp_path: Path) -> None:
    host = f"#!/bin/sh\nexec python -m {wrapper.MODULE}\n"
    assert search(install(tmp_path / "bin", "v3.260.1", host=host)) is None


@pytest.mark.parametrize("said", ["", "'not a version'", "v3"])
def test_something_else_called_pulumi(tmp_path: Path, said: str) -> None:
    assert search(install(tmp_path / "bin", said)) is None
