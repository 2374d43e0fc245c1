"""Makes the project's ``.venv`` with exactly the packages of ``requirements.lock``."""

import hashlib
import importlib.util
import json
import os
import platform
import re
import sys
import tempfile
import tomllib
from pathlib import Path

from earshot.errors import EarshotError
from earshot.files import cache
from toolchain import progress
from toolchain.paths import LANGUAGE_HOST, LOCK_FILE, LOGS, PYTHON, ROOT, VENV

STAMP = VENV / "earshot-stamp"
OURS = (ROOT, LANGUAGE_HOST)
"""The distributions of this checkout."""
PIP_FLAGS = (
    *("--disable-pip-version-check", "--no-input", "--progress-bar", "off"),
    # install into .venv only, also with PIP_USER, PIP_TARGET or a user's pip.conf
    *("--no-user", "--target="),
)
BREAKING = '"$`\\{}\n'
"""Characters of a path with which pip makes scripts that do not start, or setuptools fails."""
RETRY = "check the network and the package index that pip uses, then run it again"


def ensure_interpreter() -> None:
    """Make an empty ``.venv`` if it is missing, unfinished or differs from the lock file.

    Raises EarshotError.
    """
    if os.pathsep in str(VENV):
        raise EarshotError(
            f"project folder {VENV.parent}",
            observed=f"has a {os.pathsep} in its path, which separates the folders of PATH",
            remedy="move the project to another path",
        )
    if letters := [letter for letter in BREAKING if letter in str(VENV)]:
        raise EarshotError(
            f"project folder {str(VENV.parent)!r}",
            observed=f"has {' and '.join(map(repr, letters))} in its path, with which pip and "
            "setuptools make commands that do not start",
            remedy="move the project to another path",
        )
    if _is_complete():
        return
    if importlib.util.find_spec("ensurepip") is None:
        raise EarshotError(
            "Python",
            observed=f"{sys.executable} cannot make virtual environments (no ensurepip)",
            remedy="install that package of Python, on Debian and Ubuntu: apt-get install"
            f" python{sys.version_info.major}.{sys.version_info.minor}-venv",
        )
    with progress.step(f"Python {platform.python_version()}: making .venv"):
        STAMP.unlink(missing_ok=True)
        if VENV.is_symlink():  # never clear the target of a user's link
            VENV.unlink()
        progress.run(
            # Not sys.executable: that may be in the environment to be cleared.
            [getattr(sys, "_base_executable", sys.executable), "-m", "venv", "--clear", VENV],
            log=LOGS / "venv.log",
            failure="Python environment .venv",
            remedy="remove .venv and run it again",
        )


def ensure_packages() -> None:
    """Install the packages of the lock file into the ``.venv`` of `ensure_interpreter`.

    The stamp is written last, so an interrupted set-up starts over. Raises EarshotError.
    """
    if _is_complete():
        return
    with progress.step("Python packages: installing requirements.lock"):
        # Build tools come first: isolated builds would fetch other versions than the locked ones.
        with tempfile.NamedTemporaryFile("w", suffix=".txt") as builders:
            builders.write(locked("setuptools"))
            builders.flush()
            _pip("--require-hashes", "-r", builders.name)
        # Python compiles modules at their first use; pip would compile all of them now
        _pip("--require-hashes", "--no-build-isolation", "--use-pep517", "--no-compile",
             "-r", str(LOCK_FILE))  # fmt: skip
        own_packages = (word for folder in OURS for word in ("-e", str(folder)))
        _pip("--no-deps", "--no-index", "--no-build-isolation", *own_packages)
        _find_toolchain()
    cache.write(STAMP, _fingerprint())


def _find_toolchain() -> None:
    """Make `toolchain`, which is not installed, importable for tests in any folder."""
    for packages in VENV.glob("lib/python*/site-packages"):
        (packages / "earshot-repository.pth").write_text(f"{ROOT}\n")


def _is_complete() -> bool:
    return PYTHON.exists() and STAMP.exists() and STAMP.read_text() == _fingerprint()


def locked(name: str, lock_file: Path = LOCK_FILE) -> str:
    """The lock file's entry for one package, hashes included."""
    match = re.search(
        rf"^{re.escape(name)}==.*?(?=^\S|\Z)", lock_file.read_text(), re.MULTILINE | re.DOTALL
    )
    if match is None:
        raise EarshotError(lock_file.name, observed=f"no entry for {name}", remedy="run: make lock")
    return match.group()


def _pip(*arguments: str) -> None:
    progress.run(
        [PYTHON, "-m", "pip", "install", *PIP_FLAGS, *arguments],
        log=LOGS / "pip.log",
        failure="Python packages",
        remedy=RETRY,
        cwd=ROOT,
    )


def _fingerprint() -> str:
    """A hash of all that decides the environment: lock file, projects, Python, path."""
    projects = [tomllib.loads((folder / "pyproject.toml").read_text()) for folder in OURS]
    parts = (
        LOCK_FILE.read_text(),
        # without the settings of tools, which change no installed file
        [(project["project"], project["tool"]["setuptools"]) for project in projects],
        platform.python_version(),
        platform.machine(),
        str(VENV),
    )
    return hashlib.sha256(json.dumps(parts).encode()).hexdigest()
