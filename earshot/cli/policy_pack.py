"""`earshot policy-pack`: prints a folder for `pulumi up --policy-pack`."""

from __future__ import annotations

import hashlib
import importlib.util
import json
import stat
import sys
from pathlib import Path

from earshot import __version__
from earshot.cli.output import emit
from earshot.errors import EarshotError, remedy_of
from earshot.extras import installing
from earshot.files import cache

MODE = 0o700
_PROGRAM = """\
from earshot_policies.pack import policies
from pulumi_policy import PolicyPack

PolicyPack("earshot", policies())
"""
_ABOUT = """\
description: Kafka listeners that their clients cannot reach
runtime:
  name: python
  options:
    toolchain: pip
    virtualenv: {environment}
version: {version}
"""


def run() -> None:
    """Prints the path of the folder. Raises EarshotError without the extra `deploy`."""
    if importlib.util.find_spec("pulumi_policy") is None:
        raise EarshotError(
            "the policy pack",
            observed=f"needs pulumi-policy, which {sys.prefix} does not have",
            remedy=installing("deploy"),
        )
    emit(f"{folder(Path(sys.prefix))}\n")


def folder(environment: Path) -> Path:
    """The pack that runs with the Python of ``environment``, below the user's cache.

    One folder per version and environment, with mode 0700. Raises EarshotError unless
    ``environment`` is a virtual environment and the cache can be written.
    """
    if not (environment / "bin" / "python").exists():
        raise EarshotError(
            f"environment {environment}",
            observed="has no bin/python, which Pulumi starts a policy pack with",
            allowed="a virtual environment",
            remedy="install earshot with its extra deploy into one "
            "(docs/installation-configuration.md)",
        )
    # a path quoted as JSON is valid YAML
    about = _ABOUT.format(environment=json.dumps(str(environment)), version=__version__)
    files = {"PulumiPolicy.yaml": about, "__main__.py": _PROGRAM}

    def make(fresh: Path) -> None:
        fresh.chmod(MODE)
        for name, content in files.items():
            (fresh / name).write_text(content)

    def is_valid(candidate: Path) -> bool:
        return (
            candidate.is_dir()
            and stat.S_IMODE(candidate.stat().st_mode) == MODE
            and all(_has_content(candidate / name, content) for name, content in files.items())
        )

    digest = hashlib.sha256(str(environment).encode()).hexdigest()[:12]
    pack = cache.root() / "policy-pack" / f"{__version__}-{digest}"
    try:
        return cache.ensure(pack, make, is_valid=is_valid)
    except OSError as reason:
        raise EarshotError(
            str(pack),
            observed=f"cannot be made ({reason.strerror})",
            remedy=remedy_of(reason)
            or "let HOME, or XDG_CACHE_HOME, name a folder that this user can write",
        ) from None


def _has_content(file: Path, content: str) -> bool:
    return file.is_file() and file.read_text(errors="replace") == content
