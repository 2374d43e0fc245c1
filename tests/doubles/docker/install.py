"""Putting the double where the Pulumi CLI of a test looks for the Docker plugin."""

from __future__ import annotations

import importlib.metadata
import sys
from pathlib import Path

import yaml

from toolchain.paths import ROOT

VERSION = "5.1.0"
MAIN = '''"""Runs a test double of the Docker provider; see {root}/tests/doubles/docker."""

import sys
from pathlib import Path

sys.path.insert(0, {root!r})

from tests.doubles.docker.serve import main

main(Path(__file__).parent, {version!r})
'''


def install_docker_double(home: Path) -> Path:
    """Make the double the Docker plugin of ``home``, a test's own PULUMI_HOME.

    Returns the plugin's folder; `double.log` in it tells what was asked of the double.
    """
    installed = importlib.metadata.version("pulumi-docker")
    if installed != VERSION:
        raise AssertionError(f"pulumi-docker {installed} is installed, the double is of {VERSION}")
    folder = home / "plugins" / f"resource-docker-v{VERSION}"
    folder.mkdir(parents=True)
    options = {"toolchain": "pip", "virtualenv": sys.prefix}
    about = {"runtime": {"name": "python", "options": options}}
    (folder / "PulumiPlugin.yaml").write_text(yaml.safe_dump(about))
    (folder / "__main__.py").write_text(MAIN.format(root=str(ROOT), version=VERSION))
    return folder
