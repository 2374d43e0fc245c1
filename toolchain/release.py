"""`make release-check`: build wheel and sdist, and run the command from the wheel elsewhere.

The wheel goes into an environment of its own, without any extra, and its command runs in an empty
folder: neither what lies in the checkout nor what only deploying needs can help it.
"""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
import tarfile
import tempfile
import venv
import zipfile
from collections.abc import Iterable
from pathlib import Path

from earshot import __version__
from earshot.errors import EarshotError
from toolchain.paths import LOCK_FILE, ROOT
from toolchain.progress import exit_status

PACKAGES = {
    "earshot/": "",
    "components/earshot_pulumi/": "components/",
    "policies/earshot_policies/": "policies/",
}
"""The wheel's packages: the folder of each in the checkout, and what the wheel leaves out of it."""
COMMANDS = (
    ("--version",),
    ("rules", "KL011"),
    ("plan", "--help"),
    ("doctor", "--help"),
    ("lint", "."),
)
EXTRAS = ("boto3", "docker", "pulumi", "pyspark")
"""What a bare `pip install earshot` does not bring."""
_BUILD = "import sys; from setuptools import build_meta; "
_BUILD += "print(getattr(build_meta, sys.argv[1])(sys.argv[2]))"
_PIP = ("-m", "pip", "install", "--quiet", "--disable-pip-version-check", "--no-input")


def check(folder: Path) -> Path:
    """The wheel of this checkout, built into ``folder`` and tried out. Raises EarshotError."""
    dated(ROOT.joinpath("CHANGELOG.md").read_text(), __version__)
    tracked = _run("git", "ls-files", "-z", cwd=ROOT).split("\0")[:-1]
    source = _copied(tracked, folder / "source")  # building leaves folders behind
    wheel, sdist = (_built(f"build_{kind}", source, folder) for kind in ("wheel", "sdist"))
    tracked = [name for name in tracked if name.startswith(tuple(PACKAGES))]
    complete(wheel, zipfile.ZipFile(wheel).namelist(), map(in_wheel, tracked))
    with tarfile.open(sdist) as archive:
        top = f"{sdist.name.removesuffix('.tar.gz')}/"
        complete(sdist, (name.removeprefix(top) for name in archive.getnames()), tracked)
    _try_out(wheel, folder)
    return wheel


def in_wheel(name: str) -> str:
    """The name in the wheel of a file of the checkout."""
    package = next(it for it in PACKAGES if name.startswith(it))
    return name.removeprefix(PACKAGES[package])


def dated(changelog: str, version: str) -> None:
    """Raises EarshotError where the changelog has no day for ``version``."""
    if not re.search(
        rf"^## \[{re.escape(version)}\] - \d{{4}}-\d\d-\d\d$", changelog, re.MULTILINE
    ):
        raise EarshotError(
            "CHANGELOG.md",
            observed=f"has no dated heading for {version}",
            allowed=f"## [{version}] - YYYY-MM-DD",
        )


def complete(archive: Path, held: Iterable[str], tracked: Iterable[str]) -> None:
    """Raises EarshotError for what git tracks and ``archive`` lacks."""
    if missing := sorted(set(tracked) - set(held)):
        raise EarshotError(
            archive.name,
            observed=f"lacks {len(missing)} files, {missing[0]} first",
            remedy="name them in pyproject.toml, tool.setuptools",
        )


def pinned(lock: str) -> str:
    """The versions of a lock file as pip takes them for constraints: without hashes."""
    lines = (line.removesuffix("\\").strip() for line in lock.splitlines())
    return "".join(f"{line}\n" for line in lines if re.match(r"[\w.-]+==", line))


def _copied(tracked: Iterable[str], folder: Path) -> Path:
    for name in tracked:
        target = folder / name
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(ROOT / name, target)
    return folder


def _built(hook: str, source: Path, folder: Path) -> Path:
    out = _run(sys.executable, "-c", _BUILD, hook, str(folder), cwd=source)
    return folder / out.splitlines()[-1]


def _try_out(wheel: Path, folder: Path) -> None:
    home, empty = folder / "environment", folder / "empty"
    empty.mkdir()
    venv.create(home, with_pip=True)
    python = str(home / "bin" / "python")
    constraints = folder / "constraints.txt"
    constraints.write_text(pinned(LOCK_FILE.read_text()))
    _run(python, *_PIP, "--constraint", str(constraints), str(wheel), cwd=empty)
    for name in EXTRAS:
        code = f"import importlib.util, sys; sys.exit(bool(importlib.util.find_spec({name!r})))"
        _run(python, "-c", code, cwd=empty)
    for arguments in COMMANDS:
        _run(str(home / "bin" / "earshot"), *arguments, cwd=empty)
        print(f"  earshot {' '.join(arguments)}: well")


def _run(*command: str, cwd: Path) -> str:
    done = subprocess.run(command, cwd=cwd, capture_output=True, text=True, check=False)
    if done.returncode:
        raise EarshotError(
            " ".join(command[:6]), observed=f"ended with {done.returncode}: {done.stderr[-2000:]}"
        )
    return done.stdout


def main() -> int:
    """0; progress goes to standard output."""
    with tempfile.TemporaryDirectory() as folder:
        print(f"building earshot {__version__}, then an environment of its own (minutes) ...")
        print(f"{check(Path(folder)).name}: well")
    return 0


if __name__ == "__main__":
    sys.exit(exit_status(main, "run it again"))
