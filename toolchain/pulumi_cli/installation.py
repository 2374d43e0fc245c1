"""Decides which Pulumi CLI this checkout uses, and records it."""

import contextlib
import enum
import json
import os
from dataclasses import asdict, dataclass
from pathlib import Path

from earshot.errors import EarshotError
from earshot.files import cache
from toolchain.paths import BIN, CLI_RECORD, PYTHON
from toolchain.pulumi_cli import build, official, wrapper

# The same version as the SDK's in requirements.lock: tests use that pair.
VERSION = "3.259.0"


class Origin(enum.StrEnum):
    """The origin of a CLI. The built one has our language host, the others have their own."""

    INSTALLED = "installed"
    DOWNLOADED = "downloaded"
    BUILT = "built"


@dataclass(frozen=True)
class Installation:
    """A Pulumi CLI: its directory (all executables in one place), its version and origin."""

    directory: Path
    version: str
    origin: Origin


def ensure() -> Installation:
    """Find, download or build a CLI, and record it. Raises EarshotError."""
    installation = _find_or_make()
    cache.write(CLI_RECORD, json.dumps(asdict(installation), indent=2, default=str) + "\n")
    return installation


def _find_or_make() -> Installation:
    if official_cli := official.find(os.environ.get("PATH", "")):
        return Installation(*official_cli, Origin.INSTALLED)
    if not build.is_done(VERSION) and (folder := official.download(VERSION)):
        return Installation(folder, VERSION, Origin.DOWNLOADED)
    built_folder = build.ensure(VERSION, pip=PYTHON)
    wrapper.install(built_folder, BIN, python=PYTHON)
    return Installation(BIN, VERSION, Origin.BUILT)


def recorded() -> Installation:
    """The CLI that `ensure` recorded. Raises EarshotError if there is none, or not any more."""
    with contextlib.suppress(OSError, ValueError, KeyError, TypeError):
        record = json.loads(CLI_RECORD.read_text())
        directory, origin = Path(record["directory"]), Origin(record["origin"])
        if os.access(directory / "pulumi", os.X_OK):
            return Installation(directory, record["version"], origin)
    raise EarshotError(
        "Pulumi CLI", observed="none is set up in this checkout", remedy="run: make setup"
    )
