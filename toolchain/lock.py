"""Pinning Python packages anew: every version and hash, for all supported Pythons and platforms."""

from __future__ import annotations

import shutil
from pathlib import Path

from earshot.errors import EarshotError
from toolchain import progress
from toolchain.paths import LOCK_FILE, LOGS, ROOT
from toolchain.pulumi_cli import go


def write() -> None:
    """Write ``requirements.lock`` and the one for Go. Raises EarshotError, also without uv."""
    uv = shutil.which("uv")
    if uv is None:
        raise EarshotError(
            "uv", observed="not on PATH", remedy="install it, for example: pipx install uv"
        )
    go_source = go.LOCK_FILE.with_suffix(".in")
    for source, target in (("pyproject.toml", LOCK_FILE), (go_source, go.LOCK_FILE)):
        with progress.step(f"Pinning {target.relative_to(ROOT)}"):
            _compile(uv, source, target)


def _compile(uv: str, source: str | Path, target: Path) -> None:
    extras = ["--extra", "dev"] if source == "pyproject.toml" else []
    progress.run(
        [uv, "pip", "compile", "--quiet", "--universal", "--python-version", "3.11",
         "--generate-hashes", "--no-emit-index-url", "--no-emit-find-links", "--no-annotate",
         "--custom-compile-command", "make lock", "--upgrade", *extras,
         source, "--output-file", target],
        log=LOGS / "lock.log",
        failure=target.name,
        remedy="mend the requirements in pyproject.toml",
        cwd=ROOT,
    )  # fmt: skip
