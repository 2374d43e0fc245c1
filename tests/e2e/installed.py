"""Environments like those of users: without a checkout, with or without earshot's wheel."""

import subprocess
import sys
import sysconfig
import venv
from pathlib import Path

from tests import release


def bare_environment(folder: Path) -> Path:
    """An environment with the dependencies of earshot, and without earshot."""
    venv.create(folder, symlinks=True)
    packages = Path(sysconfig.get_path("purelib", vars={"base": str(folder)}))
    # Python reads no `.pth` in a folder that a `.pth` names: the checkout's own earshot stays out
    (packages / "dependencies.pth").write_text(f"{sysconfig.get_path('purelib')}\n")
    return folder


def wheel_environment(folder: Path) -> Path:
    """Like `bare_environment`, with the wheel of this checkout, installed without the network."""
    environment = bare_environment(folder)
    builds = folder / "builds"
    builds.mkdir()
    wheel = release.build("wheel", builds)
    pip = [sys.executable, "-m", "pip", "--python", str(environment / "bin" / "python")]
    flags = ["--quiet", "--no-deps", "--no-index", "--disable-pip-version-check"]
    # what the checkout has installed is no earshot of this environment
    subprocess.run([*pip, "install", "--ignore-installed", *flags, str(wheel)], check=True)
    return environment
