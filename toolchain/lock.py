"""Pins Python packages again: version and hashes, for all supported Pythons and platforms."""

from __future__ import annotations

import shutil
import tempfile
import tomllib
from pathlib import Path

from earshot.errors import EarshotError
from toolchain import progress
from toolchain.paths import LOCK_FILE, LOGS, ROOT
from toolchain.pulumi_cli import go

VALIDATOR_LOCK = ROOT / "earshot" / "remote" / "requirements.lock"


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
    with (
        progress.step(f"Pinning {VALIDATOR_LOCK.relative_to(ROOT)}"),
        tempfile.NamedTemporaryFile("w", suffix=".in") as wanted,
    ):
        wanted.write("".join(f"{line}\n" for line in validator_requirements()))
        wanted.flush()
        # the same versions as everywhere else
        _compile(uv, wanted.name, VALIDATOR_LOCK, "--constraint", str(LOCK_FILE))


def validator_requirements() -> list[str]:
    """What the library and its Spark job need: the validator deploys nothing."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    return [*project["dependencies"], *project["optional-dependencies"]["spark"]]


def _compile(uv: str, source: str | Path, target: Path, *options: str) -> None:
    extras = ["--all-extras", *options] if source == "pyproject.toml" else [*options]
    progress.run(
        [uv, "pip", "compile", "--quiet", "--universal", "--python-version", "3.11",
         "--generate-hashes", "--no-emit-index-url", "--no-emit-find-links", "--no-annotate",
         "--no-strip-extras",
         "--custom-compile-command", "make lock", "--upgrade", *extras,
         source, "--output-file", target],
        log=LOGS / "lock.log",
        failure=target.name,
        remedy="fix the requirements in pyproject.toml",
        cwd=ROOT,
    )  # fmt: skip
