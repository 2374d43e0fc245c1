"""The command line of the set-up."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from earshot.errors import EarshotError
from toolchain import command
from toolchain.paths import ROOT


def test_error_is_one_message(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def fail(**_: object) -> None:
        raise EarshotError("Java", observed="none", remedy="install it")

    monkeypatch.setattr(command, "set_up", fail)
    assert command.run(["setup"]) == 2
    assert capsys.readouterr().err == "Java: none\n  fix: install it\n"


def test_a_checkout_that_cannot_be_written_is_one_message(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def refused(**_: object) -> None:
        raise PermissionError(13, "Permission denied", "/p/.earshot/setup.lock")

    monkeypatch.setattr(command, "set_up", refused)
    assert command.run(["setup"]) == 2
    assert capsys.readouterr().err == "/p/.earshot/setup.lock: Permission denied\n"


@pytest.mark.parametrize("failed", ["/p", "/p/earshot", "/p/earshot/pulumi"])
def test_a_cache_that_cannot_be_written_is_one_message(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], failed: str
) -> None:
    def refused(**_: object) -> None:
        raise PermissionError(13, "Permission denied", failed)

    monkeypatch.setenv("XDG_CACHE_HOME", "/p")
    monkeypatch.setattr(command, "set_up", refused)
    assert command.run(["setup"]) == 2
    assert capsys.readouterr().err == (
        f"{failed}: Permission denied\n"
        "  fix: let XDG_CACHE_HOME name a folder, absolute, that this user can write\n"
    )


def test_interruption_is_no_trace(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def interrupt(**_: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(command, "set_up", interrupt)
    assert command.run(["setup"]) == 130
    assert "run it again" in capsys.readouterr().err


def test_unsupported_python_says_which_it_wants(tmp_path: Path) -> None:
    code = (
        "import sys, runpy; sys.version_info = (3, 10, 0); sys.argv = ['toolchain', 'setup'];"
        "runpy.run_module('toolchain', run_name='__main__')"
    )
    result = subprocess.run(
        [sys.executable, "-c", code],
        cwd=ROOT,
        env=os.environ | {"PATH": str(tmp_path)},
        capture_output=True,
        text=True,
    )
    assert result.returncode == 2
    assert result.stderr.startswith("Python: 3.10 is running\n  allowed: 3.11, 3.12 or 3.13\n")


def test_unsupported_python_gives_way_to_one_on_path(tmp_path: Path) -> None:
    other = tmp_path / "python3.12"
    other.write_text('#!/bin/sh\n[ "$1" = -c ] || echo "switched: $@"\n')
    other.chmod(0o755)
    broken_shim = tmp_path / "python3.13"
    broken_shim.write_text("#!/bin/sh\nexit 127\n")
    broken_shim.chmod(0o755)
    code = (
        "import sys, runpy; sys.version_info = (3, 10, 0); sys.argv = ['toolchain', 'setup'];"
        "runpy.run_module('toolchain', run_name='__main__')"
    )
    result = subprocess.run(
        [sys.executable, "-c", code],
        cwd=ROOT,
        env=os.environ | {"PATH": f"{tmp_path}:/bin:/usr/bin"},
        capture_output=True,
        text=True,
    )
    assert result.stdout == "switched: -m toolchain setup\n", result.stderr
