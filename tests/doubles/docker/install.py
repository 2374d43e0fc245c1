"""Installs the Docker plugin of a test's Pulumi CLI: the double, or a real one that is named."""

import os
import shutil
from pathlib import Path

from tests.doubles.plugin.install import install

VERSION = "5.1.0"
# the path of a real plugin's executable, which takes the double's place
REAL_PLUGIN = "EARSHOT_DOCKER_PLUGIN"


def real_plugin() -> str | None:
    """The executable that takes the double's place, or None."""
    return os.environ.get(REAL_PLUGIN) or None


def install_docker_plugin(home: Path) -> Path:
    """Makes the double the Docker plugin of ``home``, a test's own PULUMI_HOME.

    Returns the plugin's folder; the requests to the double are in its `double.log`. Where
    EARSHOT_DOCKER_PLUGIN names an executable, that one is the plugin.
    """
    if executable := real_plugin():
        folder = home / "plugins" / f"resource-docker-v{VERSION}"
        folder.mkdir(parents=True)
        _link(Path(executable), folder / "pulumi-resource-docker")
        return folder
    double = "tests.doubles.docker.provider:DockerDouble"
    return install(home, "docker", VERSION, double, as_binary=True)


def _link(executable: Path, target: Path) -> None:
    """A hard link, as the file is large; a copy where ``target`` is on another file system."""
    try:
        target.hardlink_to(executable)
    except OSError:
        shutil.copy2(executable, target)
