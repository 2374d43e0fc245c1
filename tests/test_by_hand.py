"""Tests in files that only a target of make names are not run by CI: their fixtures exist."""

import subprocess
import sys

from toolchain.paths import ROOT


def test_fixtures_of_tests_that_are_run_by_hand_exist() -> None:
    folder = ROOT / "tests" / "e2e"
    files = [
        str(file)
        for file in sorted(folder.rglob("*.py"))
        if not file.name.startswith("test_") and "\ndef test_" in file.read_text()
    ]
    assert len(files) > 3
    options = ("--setup-plan", "-q", "-p", "no:cacheprovider", "-p", "no:xdist")
    completed = subprocess.run(
        [sys.executable, "-m", "pytest", *options, *files],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )
    assert completed.returncode == 0, completed.stdout[-3000:]
