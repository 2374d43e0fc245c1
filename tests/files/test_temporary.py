"""Temporary folders, also those of killed processes."""

import subprocess
import sys
from pathlib import Path

import pytest

from earshot.files.temporary import TemporaryFolder

PREFIX = "earshot-test-"


def test_a_new_folder_removes_those_of_killed_processes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    code = "import os, tempfile; from earshot.files.temporary import TemporaryFolder; "
    code += f"tempfile.tempdir = {str(tmp_path)!r}; folder = TemporaryFolder({PREFIX!r}); "
    code += "(folder.path / 'password').touch(); print(folder.path, flush=True); os._exit(1)"
    process = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    killed, earlier = Path(process.stdout.strip()), tmp_path / f"{PREFIX}earlier"
    earlier.mkdir()
    (tmp_path / f"{PREFIX}link").symlink_to(earlier)
    assert (killed / "password").exists()
    with TemporaryFolder(PREFIX) as running:
        assert running.path.stat().st_mode & 0o777 == 0o700
        with TemporaryFolder(PREFIX):
            assert running.path.exists() and earlier.exists() and not killed.exists()
    assert not running.path.exists()
