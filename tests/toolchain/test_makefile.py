"""The recipes of the Makefile, run by a real `make` with a script instead of Python."""

import signal
import subprocess
from pathlib import Path

import pytest

from toolchain.paths import ROOT

SCRIPT = """#!/bin/sh
trap 'echo tidied up; exit 5' TERM
echo begun
for second in $(seq 30); do sleep 1 & wait $!; done
"""


@pytest.mark.parametrize("target", ["up", "down", "clean"])
def test_sigterm_of_make_reaches_the_command_of_a_stack(target: str, tmp_path: Path) -> None:
    """GNU make passes SIGTERM to its child alone, so no shell may come between them."""
    script = tmp_path / "python"
    script.write_text(SCRIPT)
    script.chmod(0o755)
    command = ["make", target, "PYTHON=true", f"VENV_PYTHON={script}"]
    with subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, text=True) as make:
        assert make.stdout is not None
        assert make.stdout.readline() == "begun\n"
        make.send_signal(signal.SIGTERM)
        assert "tidied up" in make.stdout.read()
    assert make.returncode != 0
