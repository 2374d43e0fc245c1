"""The command line of the set-up."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from earshot.errors import EarshotError
from toolchain import command
from toolchain.paths import ROOT


@pytest.mark.parametrize(("error", "code", "message"), [
    (EarshotError("Java", observed="none", remedy="install it"), 2,
     "Java: none\n  fix: install it\n"),
    (PermissionError(13, "Permission denied", "/p/.earshot/setup.lock"), 2,
     "/p/.earshot/setup.lock: Permission denied\n"),
    *((PermissionError(13, "Permission denied", path), 2,
       (f"{path}: Permission denied\n"
        "  fix: let XDG_CACHE_HOME name a folder, absolute, that this user can write\n")) for path
      in ("/cache", "/cache/earshot", "/cache/earshot/pulumi")),
    (KeyboardInterrupt(), 130, ""),
])  # fmt: skip
def test_an_error_is_one_message(
    error: BaseException,
    code: int,
    message: str,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    def fail(**_: object) -> None:
        raise error

    monkeypatch.setenv("XDG_CACHE_HOME", "/cache")
    monkeypatch.setattr(command, "set_up", fail)
    assert command.run(["setup"]) == code
    output = capsys.readouterr().err
    assert output == message or (not message and "run it again" in output)


def set_up_with_an_old_python(path: str) -> subprocess.CompletedProcess[str]:
    code = (
        "import sys, runpy; sys.version_info = (3, 10, 0); sys.argv = ['toolchain', 'setup'];"
        "runpy.run_module('toolchain', run_name='__main__')"
    )
    environment = os.environ | {"PATH": path}
    command = [sys.executable, "-c", code]
    return subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True)


def test_an_unsupported_python_names_the_supported_ones(tmp_path: Path) -> None:
    result = set_up_with_an_old_python(str(tmp_path))
    assert result.returncode == 2
    assert result.stderr.startswith("Python: 3.10 is running\n  allowed: 3.11, 3.12 or 3.13\n")


def test_an_unsupported_python_is_replaced_by_one_on_path(tmp_path: Path) -> None:
    for name, script in (
        ("python3.12", '[ "$1" = -c ] || echo "switched: $@"'),
        ("python3.13", "exit 127"),
    ):
        (tmp_path / name).write_text(f"#!/bin/sh\n{script}\n")
        (tmp_path / name).chmod(0o755)
    result = set_up_with_an_old_python(f"{tmp_path}:/bin:/usr/bin")
    assert result.stdout == "switched: -m toolchain setup\n", result.stderr
