"""Putting the double where the Pulumi CLI of a test looks for the Docker plugin."""

from pathlib import Path

from tests.doubles.plugin.install import install

VERSION = "5.1.0"


def install_docker_double(home: Path) -> Path:
    """Make the double the Docker plugin of ``home``, a test's own PULUMI_HOME.

    Returns the plugin's folder; `double.log` in it tells what was asked of the double.
    """
    double = "tests.doubles.docker.provider:DockerDouble"
    return install(home, "docker", VERSION, double, as_binary=True)
