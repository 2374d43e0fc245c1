"""Installs the double as the Docker plugin of a test's Pulumi CLI."""

from pathlib import Path

from tests.doubles.plugin.install import install

VERSION = "5.1.0"


def install_docker_double(home: Path) -> Path:
    """Makes the double the Docker plugin of ``home``, a test's own PULUMI_HOME.

    Returns the plugin's folder; the requests to the double are in its `double.log`.
    """
    double = "tests.doubles.docker.provider:DockerDouble"
    return install(home, "docker", VERSION, double, as_binary=True)
