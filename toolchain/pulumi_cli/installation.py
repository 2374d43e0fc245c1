"""Decides which Pulumi CLI this checkout uses, and records it."""

from __future__ import annotations

import enum
import json
import os
from dataclasses import dataclass
from pathlib import Path

from earshot import cache
from earshot.errors import EarshotError
from toolchain.paths import BIN, CLI_RECORD, PYTHON
from toolchain.pulumi_cli import build, download, official, wrapper

# The same version as the SDK's in requirements.lock: tests use that pair.
VERSION = "3.259.0"


class Origin(enum.Enum):
    """Where a CLI comes from. The built one has our language host, the others their own."""

    INSTALLED = "installed"
    DOWNLOADED = "downloaded"
    BUILT = "built"


@dataclass(frozen=True)
class Installation:
    """A Pulumi CLI: its directory (all executables in one place), its version and origin."""

    directory: Path
    version: str
    origin: Origin

    def is_usable(self) -> bool:
        return os.access(self.directory / "pulumi", os.X_OK)


def ensure() -> Installation:
    """Find, download or build a CLI, and record it. Raises EarshotError."""
    installation = _settle()
    record = {
        "directory": str(installation.directory),
        "version": installation.version,
        "origin": installation.origin.value,
    }
    cache.write(CLI_RECORD, json.dumps(record, indent=2) + "\n")
    return installation


def _settle() -> Installation:
    found = official.find(os.environ.get("PATH", ""))
    if found is not None:
        return Installation(found.directory, found.version, Origin.INSTALLED)
    if not build.is_done(VERSION):
        downloaded = download.ensure(VERSION)
        if downloaded is not None:
            return Installation(downloaded, VERSION, Origin.DOWNLOADED)
    built = build.ensure(VERSION, pip=PYTHON)
    wrapper.install(built, BIN, python=PYTHON)
    return Installation(BIN, VERSION, Origin.BUILT)


def recorded() -> Installation:
    """The CLI that `ensure` recorded. Raises EarshotError where there is none or it is gone."""
    installation = _read_record()
    if installation is None or not installation.is_usable():
        raise EarshotError(
            "Pulumi CLI", observed="none is set up in this checkout", remedy="run: make setup"
        )
    return installation


def _read_record() -> Installation | None:
    try:
        record = json.loads(CLI_RECORD.read_text())
        return Installation(Path(record["directory"]), record["version"], Origin(record["origin"]))
    except (OSError, ValueError, KeyError, TypeError):
        return None
